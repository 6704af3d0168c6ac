"""Each recorded scenario with aggregates of columns in place of Python functions, and what Flink's results are then."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from tests.scenarios.programs import (
    FIRST,
    KINDS,
    LATE,
    Scenario,
    assigner,
    canonical,
    events,
    evictor,
    trigger,
    windowed_as,
)

from eventide.aggregates import collect_list, collect_set, count, sum_
from eventide.common import Row, Types
from eventide.common.ms import MAX_MS
from eventide.datastream import DataStream, StreamExecutionEnvironment

COLUMN_KINDS = tuple(kind for kind in KINDS if kind != "aggregate_window")
"""Kinds of scenarios that aggregates of columns can have: all of their aggregates have a result."""
_FIELDS = ("id", "k", "ts", "v")
_ADDS_UP_LATE_FIRINGS = (
    "two-stage-013-10000-5000-lateness-2-splits-monotonous",
    "two-stage-005-10-5-lateness-4-splits-punctuated-idle",
)
_WANTED = {
    "window": collect_set("id").alias("ids"),
    "text_window": collect_list("id").alias("t"),
    "reduce_window": sum_("v").alias("v"),
}
_EVENT = Types.ROW_NAMED(_FIELDS, [Types.LONG(), Types.STRING(), Types.LONG(), Types.LONG()])


def column_program(
    env: StreamExecutionEnvironment, scenario: Scenario, *, keep_late: bool = True
) -> tuple[DataStream, DataStream | None]:
    """The scenario's program by column: its results, and its late elements where they are kept."""
    script = scenario.script
    op = script["op"]
    keyed = events(env, scenario).map(lambda e: Row(**{name: e.get(name) for name in _FIELDS}), _EVENT).key_by("k")
    if op["kind"] == "two_stage":
        first = keyed.window(assigner(op["first"])).allowed_lateness(script["allowed_lateness"])
        counts = (first.side_output_late_data(LATE) if keep_late else first).aggregate(count().alias("n")).name(FIRST)
        sums = counts.window_all(assigner(op["second"])).aggregate(sum_("n").alias("sum"))
        return sums, counts.get_side_output(LATE) if keep_late else None
    windowed, is_event_time = windowed_as(keyed, op["assigner"])
    windowed = windowed.allowed_lateness(script["allowed_lateness"])
    chosen = trigger(op.get("trigger"), op["assigner"])
    if chosen is not None:
        windowed = windowed.trigger(chosen)
    if op.get("evictor") is not None:
        windowed = windowed.evictor(evictor(op["evictor"]))
    keep_late = keep_late and is_event_time
    if keep_late:
        windowed = windowed.side_output_late_data(LATE)
    wanted = _WANTED.get(op["kind"], _WANTED["window"])
    if scenario.in_batch and op["kind"] == "window":  # where the order of elements is defined, and compared
        wanted = collect_list("id").alias("ids")
    results = windowed.aggregate(wanted).name(FIRST)
    return results, results.get_side_output(LATE) if keep_late else None


def as_recorded(rows: Iterable[tuple[Any, int | None]]) -> list[tuple[dict[str, Any], int | None]]:
    """Results in the form of the recorded ones: the bounds of the window in place of the window."""
    found = []
    for row, timestamp in rows:
        entry = row.as_dict()
        window = entry.pop("window", None)
        if "t" in entry:
            entry["t"] = ",".join(map(str, entry["t"]))
        found.append((entry if window is None else {**entry, "start": window.start, "end": window.end}, timestamp))
    return found


def is_on_columns(results: DataStream) -> bool:
    """Whether the operator of a scenario's program runs on columns."""
    plan = results.get_execution_environment().get_plan(results)
    return next(o.speed for o in plan.operators if o.name == FIRST).startswith("columns")


def fires_late_ones_together(scenario: Scenario) -> bool:
    """Whether late elements of a window fire it once in a micro-batch on columns: not if each fires what it brings."""
    chosen = scenario.script["op"].get("trigger") or {}
    return chosen.get("type") not in ("count", "purging")


def recorded_outputs(scenario: Scenario, *, late_firings_as_one: bool) -> list[list[str]] | None:
    """The results of Flink, micro-batch by micro-batch, without what only a Python function sees (``wm``).

    With ``late_firings_as_one``, without the firings of a window that were followed, in the same micro-batch, by one
    with more elements: those that columns leave out. None where second windows add up such firings of the first.
    """
    if late_firings_as_one and scenario.name in _ADDS_UP_LATE_FIRINGS:
        return None
    found: list[list[tuple[dict[str, Any], int]]] = [[] for _ in range(scenario.batches + 1)]
    entries = zip(
        scenario.expected["outputs"], scenario.detail["output_ts"], scenario.detail["output_batch"], strict=True
    )
    firings = [
        ({name: part for name, part in output.items() if name != "wm"}, ts, batch) for output, ts, batch in entries
    ]
    for place, (output, timestamp, batch) in enumerate(firings):
        is_replaced = (
            late_firings_as_one
            and _is_late(scenario, output, batch)
            and any(
                _replaces(scenario, later, later_batch, output, batch) for later, _, later_batch in firings[place + 1 :]
            )
        )
        has_elements = output.get("ids") != []  # without elements there is nothing to aggregate
        if has_elements and not is_replaced:
            found[batch].append((output, timestamp))
    return [sorted(canonical([output, timestamp]) for output, timestamp in batch) for batch in found]


def last_of_each_window(scenario: Scenario, batches: list[list[str]]) -> list[list[str]]:
    """Where a window fires in time and late in one micro-batch, which only punctuated watermarks do: its last firing.

    A script does not say which of the two a firing was. Elsewhere, what there is.
    """
    punctuated = "punctuated" in scenario.strategies
    if not punctuated or not scenario.script["allowed_lateness"] or scenario.kind == "two_stage":
        return batches
    collapsed = []
    for batch in batches:
        last: dict[str, tuple[int, str]] = {}
        for text in batch:
            output, _ = json.loads(text)
            window = json.dumps([output.get("k"), output.get("start"), output.get("end")])
            filled = output["v"] if "v" in output else len(_ids(output))
            last[window] = max(last.get(window, (filled, text)), (filled, text))
        collapsed.append(sorted(text for _, text in last.values()))
    return collapsed


def _is_late(scenario: Scenario, firing: dict[str, Any], batch: int) -> bool:
    """Whether the watermark had passed the window before the micro-batch ended."""
    marks = zip(scenario.expected["watermarks"], scenario.detail["watermark_batch"], strict=True)
    return any(mark >= firing.get("end", MAX_MS) - 1 for mark, at in marks if at < batch)


def _replaces(scenario: Scenario, later: dict[str, Any], later_batch: int, earlier: dict[str, Any], batch: int) -> bool:
    """Whether a later firing has more in it, of the same window, or of one it became part of in that micro-batch."""
    if "start" not in later or later["k"] != earlier["k"]:
        return False
    if not later["start"] <= earlier["start"] < earlier["end"] <= later["end"]:
        return False
    if "v" in later:
        return later_batch == batch
    arrived = {event["id"] for event in (scenario.script["batches"] + [[]])[batch] if "id" in event}
    return bool(arrived & (_ids(later) - _ids(earlier)))


def _ids(firing: dict[str, Any]) -> set[int]:
    """The ids of the elements of a firing, which it lists or has in a text."""
    return set(firing["ids"]) if "ids" in firing else set(map(int, firing["t"].split(",")))
