"""Calendar and cumulating windows, sorting, as-of joins and hybrid sources on Spark: they give what the twin gives."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from eventide.aggregates import count, sum_
from eventide.common import Duration, Row, Time, Types, WatermarkStrategy
from eventide.datastream import DataStream, RuntimeExecutionMode, StreamExecutionEnvironment
from eventide.datastream.connectors import FormatSink, HybridSource
from eventide.datastream.window import CumulatingEventTimeWindows, TumblingCalendarWindows
from eventide.joins import left, right
from eventide.testing import ScriptedSource, local_environment
from support.steps import in_steps
from support.twin import Contents, plan_of, run, values

pytestmark = pytest.mark.spark

EVENT = Types.ROW_NAMED(["key", "at", "n"], [Types.STRING(), Types.LONG(), Types.LONG()])
IN_TIME = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_hours(2)).with_timestamp_assigner("at")
HOUR_MS = 3_600_000
BEGIN_MS = 1_711_746_000_000
"""Midnight in Berlin, before the night in which clocks are set forward."""


def elements(first: int, end: int) -> list[tuple[str, Row]]:
    """An element for each hour, of two splits, up to four hours out of order: more than the watermark waits for."""
    chance = random.Random(first)
    hours = sorted(range(first, end), key=lambda hour: hour + chance.uniform(0, 4))
    return [("ab"[hour % 2], Row(key=f"k{hour % 7}", at=BEGIN_MS + hour * HOUR_MS, n=hour)) for hour in hours]


HISTORY = [elements(0, 30), elements(30, 60)]
LIVE = [
    elements(60, 80),
    elements(80, 100),
    [(split, Row(key="k0", at=BEGIN_MS + 200 * HOUR_MS, n=0)) for split in "ab"],
]


class Days(TumblingCalendarWindows):
    """A class of the user's, which runs element by element."""


def of_key(row: Row) -> Any:
    """A key that is found in Python alone."""
    return row.key or row.key


def in_order(before: Row, row: Row) -> Row:
    """A number that tells in which order elements came."""
    return Row(key=row.key, at=row.at, n=(before.n * 31 + row.n) % 1_000_003)


def program(env: StreamExecutionEnvironment, live: list[Any], *, bounded: bool = False) -> DataStream:
    """All operators on one source, each on columns and element by element, as lines."""
    sources = [ScriptedSource(["a", "b"], HISTORY, EVENT), ScriptedSource(["a", "b"], live, EVENT, bounded=bounded)]
    events = env.from_source(HybridSource.builder(sources[0]).add_source(sources[1]).build(), IN_TIME, "events", EVENT)
    found: dict[str, DataStream] = {}
    for way, key in (("columns", "key"), ("Python", of_key)):
        keyed = events.key_by(key, *([] if key == "key" else [Types.STRING()]))
        found[f"sorted in {way}"] = keyed.sorted_by_event_time().key_by(of_key, Types.STRING()).reduce(in_order)
        fields = left("key"), left("at"), right("at").alias("since"), right("n")
        found[f"as of in {way}"] = keyed.as_of_join(keyed.filter(is_third).key_by(key)).select(*fields, how="left")
    keyed = events.key_by("key")
    found["days"] = keyed.window(TumblingCalendarWindows.of("day", "Europe/Berlin")).aggregate(count(), sum_("n"))
    found["days of a subclass"] = keyed.window(Days.of("day", "Europe/Berlin")).process(Contents())
    cumulating = CumulatingEventTimeWindows.of(Time.hours(12), Time.hours(3))
    found["cumulating"] = keyed.window(cumulating).aggregate(count(), sum_("n"))
    found["cumulating, by a function"] = keyed.window(cumulating).process(Contents())
    lines = [stream.map(line_of(name), Types.STRING()) for name, stream in found.items()]
    return lines[0].union(*lines[1:])


def is_third(row: Row) -> bool:
    """Which elements are versions."""
    return row.n % 3 == 0


def line_of(name: str) -> Callable[[Any], str]:
    """A line of text of each result."""
    return lambda result: f"{name}: {result}"


def by_twin(mode: RuntimeExecutionMode, *, bounded: bool) -> Counter[str]:
    return Counter(values(run(plan_of(program(local_environment(), LIVE, bounded=bounded), mode=mode))))


@pytest.mark.long
@in_steps
def test_they_go_on_after_a_restart_in_twenty_subtasks(spark: SparkSession, tmp_path: Path) -> None:
    """The first run ends when the second of two sources has begun."""
    for live in (LIVE[:1], LIVE):
        env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(20).set_available_now()
        env.get_checkpoint_config().set_checkpoint_storage_dir(str(tmp_path / "checkpoint"))
        program(env, live).sink_to(FormatSink("text", {"path": str(tmp_path / "out")}))
        env.execute("operators")
    found = Counter(line for part in (tmp_path / "out").glob("part-*") for line in part.read_text().splitlines())
    assert found == by_twin(RuntimeExecutionMode.STREAMING, bounded=False)


def test_they_run_in_batch_mode(env: StreamExecutionEnvironment) -> None:
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    found = Counter(program(env, LIVE, bounded=True).execute_and_collect())
    assert found == by_twin(RuntimeExecutionMode.BATCH, bounded=True)
