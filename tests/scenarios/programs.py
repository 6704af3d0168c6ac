"""Each recorded scenario as the eventide program that a user would write for it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.scenarios.in_columns import ELEMENT, InColumns, with_fields, without_padding

from eventide.common import (
    Duration,
    Row,
    Time,
    TypeInformation,
    Types,
    Watermark,
    WatermarkGenerator,
    WatermarkStrategy,
)
from eventide.datastream import DataStream, OutputTag, ProcessWindowFunction, ReduceFunction, StreamExecutionEnvironment
from eventide.datastream.data_stream import KeyedStream, WindowedStream
from eventide.datastream.functions import AggregateFunction, ProcessAllWindowFunction
from eventide.datastream.window import (
    ContinuousEventTimeTrigger,
    CountEvictor,
    CountTrigger,
    CountTumblingWindowAssigner,
    DeltaEvictor,
    EventTimeSessionWindows,
    EventTimeTrigger,
    Evictor,
    GlobalWindows,
    NeverTrigger,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TimeEvictor,
    TimeWindow,
    Trigger,
    TumblingEventTimeWindows,
    WindowAssigner,
)
from eventide.testing import End, Idle, ScriptedSource

DATA = Path(__file__).parent / "data"
LATE = OutputTag("late")
KINDS = ("window", "reduce_window", "text_window", "aggregate_window", "two_stage", "union_window")
WITHOUT_TIMES = Types.ROW_NAMED(["k", "id", "v"], [Types.STRING(), Types.LONG(), Types.LONG()])
WITH_TEXT = Types.ROW_NAMED(["k", "id", "v", "t"], [Types.STRING(), Types.LONG(), Types.LONG(), Types.STRING()])
FIRST = "first"
"""The name of the operator whose watermarks a scenario tells."""


@dataclass(frozen=True)
class Scenario:
    """One recorded scenario: its script, and what the real Flink 2.3.0 gave.

    With ``in_columns`` its program has elements of declared types, which come as columns; else dicts of no type.
    """

    name: str
    script: dict[str, Any]
    expected: dict[str, Any]
    detail: dict[str, Any]
    in_columns: bool = False

    @property
    def kind(self) -> str:
        return self.script["op"]["kind"]

    @property
    def in_batch(self) -> bool:
        """Whether Flink ran the scenario in batch execution."""
        return self.script.get("mode") == "batch"

    @property
    def strategies(self) -> list[str]:
        """The kinds of watermark strategies of its sources."""
        return [one["strategy"]["kind"] for one in self.script.get("sources", [self.script])]

    @property
    def batches(self) -> int:
        return len(self.script["batches"])

    def declared(self, kind: TypeInformation) -> TypeInformation | None:
        """The type that the program declares for results of a function that are of this type."""
        return kind if self.in_columns else None

    @property
    def is_reduced(self) -> bool:
        """Whether its windows reduce elements, which may be done early in columns if late ones are not kept."""
        return self.kind in ("reduce_window", "aggregate_window", "two_stage")

    @property
    def keeps_late(self) -> bool:
        """Whether its program keeps late elements where there can be any."""
        return not (self.in_columns and self.is_reduced)

    def watermarks_at_batch_ends(self) -> list[int]:
        """The last watermark of each micro-batch in which it moved."""
        last = dict(zip(self.detail["watermark_batch"], self.expected["watermarks"], strict=True))
        return list(last.values())

    def by_batch(self, what: str) -> list[list[str]]:
        """Outputs or late ids per micro-batch, each batch as a sorted list of texts; the last is the end of input."""
        found: list[list[str]] = [[] for _ in range(self.batches + 1)]
        entries, batch_of = {
            "outputs": (
                [[o, t] for o, t in zip(self.expected["outputs"], self.detail["output_ts"], strict=True)],
                self.detail["output_batch"],
            ),
            "late": (self.expected["late"], self.detail["late_batch"]),
        }[what]
        for entry, batch in zip(entries, batch_of, strict=True):
            found[batch].append(canonical(entry))
        return [sorted(batch) for batch in found]


def canonical(entry: Any) -> str:
    """An output as text; where the order of ids is Flink's own affair, they are sorted."""
    if isinstance(entry, list):
        value, timestamp = entry
        sorted_lists = {name: sorted(value[name]) for name in ("ids", "l", "r") if isinstance(value.get(name), list)}
        entry = [value | sorted_lists, timestamp]
    return json.dumps(entry, sort_keys=True)


def scenarios(kinds: Iterable[str] = KINDS, *, in_batch: bool = False) -> list[Scenario]:
    """The scenarios of one mode and of some kinds of operators, by file: the file with the rules comes first."""
    loaded = []
    for file in sorted(DATA.glob("*.jsonl"), key=lambda file: (file.stem != "rules", file.stem)):
        for line in file.read_text().splitlines():
            record = json.loads(line)
            loaded.append(Scenario(record["name"], record["scenario"], record["expected"], record["detail"]))
    return [scenario for scenario in loaded if scenario.kind in kinds and scenario.in_batch == in_batch]


class _Ids(ProcessWindowFunction):
    def process(self, key, context, elements):
        window = context.window()
        result = {"k": key, "ids": [e["id"] for e in elements], "wm": context.current_watermark()}
        if isinstance(window, TimeWindow):
            result |= {"start": window.start, "end": window.end}
        yield result


class _Sum(ProcessWindowFunction):
    def process(self, key, context, elements):
        window = context.window()
        (element,) = elements
        result = {"k": key, "v": element["v"]}
        if isinstance(window, TimeWindow):
            result |= {"start": window.start, "end": window.end}
        yield result


class _Text(ProcessWindowFunction):
    def process(self, key, context, elements):
        window = context.window()
        (element,) = elements
        result = {"k": key, "t": element["t"], "wm": context.current_watermark()}
        if isinstance(window, TimeWindow):
            result |= {"start": window.start, "end": window.end}
        yield result


class _AddV(ReduceFunction):
    def reduce(self, value1, value2):
        return Row(k=value1["k"], id=min(value1["id"], value2["id"]), v=value1["v"] + value2["v"])


class _TextAndSum(AggregateFunction):
    """Gives the text and the sum of a key, or None where the sum is below the least one."""

    def __init__(self, least):
        self._least = least

    def create_accumulator(self):
        return {"k": None, "t": None, "v": 0}

    def add(self, value, accumulator):
        text = value["t"] if accumulator["t"] is None else f"{accumulator['t']},{value['t']}"
        return {"k": value["k"], "t": text, "v": accumulator["v"] + value["v"]}

    def get_result(self, accumulator):
        return accumulator if accumulator["v"] >= self._least else None

    def merge(self, acc_a, acc_b):
        return self.add(acc_b, acc_a)


class _Count(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + 1

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


class _Total(ProcessAllWindowFunction):
    def process(self, context, elements):
        window = context.window()
        yield {"start": window.start, "end": window.end, "sum": sum(elements)}


def without_times(element: Any) -> Row:
    """The fields of an element that rolling and reducing functions use."""
    return Row(k=element["k"], id=element["id"], v=element["v"])


def with_text(element: Any) -> Row:
    """An element with a text, its id, which shows the order in which texts were put together."""
    return Row(k=element["k"], id=element["id"], v=element["v"], t=str(element["id"]))


def joined_text(first: Row, second: Row) -> Row:
    """The second element, with the texts of both."""
    return Row(k=second["k"], id=second["id"], v=second["v"], t=f"{first['t']},{second['t']}")


def _distance(element: Any, last: Any) -> int:
    return abs(last["v"] - element["v"])


class _GapFromV:
    def __call__(self, element):
        return element["v"]


def assigner(spec: dict[str, Any]) -> WindowAssigner:
    """The window assigner that a scenario names."""
    ms = Time.milliseconds
    match spec["type"]:
        case "tumbling":
            return TumblingEventTimeWindows.of(ms(spec["size"]), ms(spec.get("offset", 0)))
        case "sliding":
            return SlidingEventTimeWindows.of(ms(spec["size"]), ms(spec["slide"]), ms(spec.get("offset", 0)))
        case "session":
            return EventTimeSessionWindows.with_gap(ms(spec["gap"]))
        case "dynamic_session":
            return EventTimeSessionWindows.with_dynamic_gap(_GapFromV())
        case "global":
            return GlobalWindows.create()
        case "count_tumbling":
            return CountTumblingWindowAssigner.of(spec["size"])
    raise ValueError(spec)


def trigger(spec: dict[str, Any] | None, windows: dict[str, Any]) -> Trigger | None:
    """The trigger that a scenario names; a global window without one is asked for explicitly."""
    if spec is None:
        return NeverTrigger() if windows["type"] == "global" else None
    match spec["type"]:
        case "event_time":
            return EventTimeTrigger.create()
        case "continuous_event_time":
            return ContinuousEventTimeTrigger.of(Time.milliseconds(spec["interval"]))
        case "count":
            return CountTrigger.of(spec["n"])
        case "purging":
            inner = trigger(spec["inner"], windows)
            assert inner is not None
            return PurgingTrigger.of(inner)
    raise ValueError(spec)


def evictor(spec: dict[str, Any] | None) -> Evictor | None:
    """The evictor that a scenario names."""
    if spec is None:
        return None
    if spec["type"] == "count":
        return CountEvictor.of(spec["n"], spec["after"])
    if spec["type"] == "delta":
        return DeltaEvictor.of(spec["threshold"], _distance, spec["after"])
    return TimeEvictor.of(Duration.of_millis(spec["ms"]), spec["after"])


class _Marked(WatermarkGenerator):
    """An element may bring a watermark, which holds after it."""

    def on_event(self, event, event_timestamp, output):
        if event["wm"] is not None:
            output.emit_watermark(Watermark(event["wm"]))

    def on_periodic_emit(self, output):
        pass


def strategy(spec: dict[str, Any]) -> WatermarkStrategy:
    """The watermark strategy that a scenario names."""
    base = {
        "bounded": lambda: WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(spec["bound"])),
        "monotonous": WatermarkStrategy.for_monotonous_timestamps,
        "none": WatermarkStrategy.no_watermarks,
        "punctuated": lambda: WatermarkStrategy.for_generator(_Marked),
    }[spec["kind"]]()
    return base.with_timestamp_assigner(lambda element, _: element["ts"])


def streams(env: StreamExecutionEnvironment, scenario: Scenario) -> list[DataStream]:
    """The stream of each source; in columns, a function takes the padding off keys."""
    script = scenario.script
    several = script.get("sources") or [{"name": "events", "splits": script["splits"], "strategy": script["strategy"]}]
    found = []
    for one in several:
        batches = [list(_entries(batch, one["name"], one["splits"])) for batch in script["batches"]]
        played = InColumns if scenario.in_columns else ScriptedSource
        source = played(one["splits"], batches, bounded=script["final_watermark"])
        stream = env.from_source(source, strategy(one["strategy"]), one["name"])
        found.append(stream.map(without_padding, ELEMENT).name("element") if scenario.in_columns else stream)
    return found


def _entries(batch: list[dict[str, Any]], name: str, splits: list[str]) -> Iterator[Any]:
    """The entries of a micro-batch for one source: a source that ends ends in all of its splits."""
    for event in batch:
        if event.get("end") and event["source"] == name:
            yield from map(End, splits)
        elif event.get("s") in splits:
            yield Idle(event["s"]) if event.get("idle") else (event["s"], with_fields(event))


def events(env: StreamExecutionEnvironment, scenario: Scenario) -> DataStream:
    """The stream of all elements: of one source, or the union of several."""
    first, *others = streams(env, scenario)
    return first.union(*others) if others else first


def windowed_as(keyed: KeyedStream, spec: dict[str, Any]) -> tuple[WindowedStream, bool]:
    """The windows of a scenario, and whether they follow event time."""
    if spec["type"] == "count_sliding":
        return keyed.count_window(spec["size"], spec["slide"]), False
    windows = assigner(spec)
    return keyed.window(windows), windows.is_event_time()


def program(env: StreamExecutionEnvironment, scenario: Scenario) -> tuple[DataStream, DataStream | None]:
    """The scenario's program: its results, and its late elements where there can be any."""
    script = scenario.script
    op = script["op"]
    stream = events(env, scenario)
    if op["kind"] in ("text_window", "aggregate_window"):
        stream = stream.map(with_text, scenario.declared(WITH_TEXT)).name("with text")
    elif op["kind"] == "reduce_window":
        stream = stream.map(without_times, scenario.declared(WITHOUT_TIMES)).name("without times")
    keyed = stream.key_by(lambda e: e["k"])
    if op["kind"] == "two_stage":
        first = keyed.window(assigner(op["first"])).allowed_lateness(script["allowed_lateness"])
        first = first.side_output_late_data(LATE) if scenario.keeps_late else first
        counts = first.aggregate(_Count(), output_type=scenario.declared(Types.LONG())).name(FIRST)
        totals = counts.window_all(assigner(op["second"])).process(_Total())
        return totals, counts.get_side_output(LATE) if scenario.keeps_late else None
    windowed, is_event_time = windowed_as(keyed, op["assigner"])
    windowed = windowed.allowed_lateness(script["allowed_lateness"])
    chosen = trigger(op.get("trigger"), op["assigner"])
    if chosen is not None:
        windowed = windowed.trigger(chosen)
    if op.get("evictor") is not None:
        windowed = windowed.evictor(evictor(op["evictor"]))
    if keeps_late := is_event_time and scenario.keeps_late:
        windowed = windowed.side_output_late_data(LATE)
    results = _results(windowed, op).name(FIRST)
    return results, results.get_side_output(LATE) if keeps_late else None


def _results(windowed: WindowedStream, op: dict[str, Any]) -> DataStream:
    match op["kind"]:
        case "reduce_window":
            return windowed.reduce(_AddV(), _Sum())
        case "text_window":
            return windowed.reduce(joined_text, _Text())
        case "aggregate_window":
            return windowed.aggregate(_TextAndSum(op["least"]))
    return windowed.process(_Ids())
