"""Programs that begin to need the clock, or cease to, on their checkpoint on Spark."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from eventide.common import Duration, Time, Types, WatermarkStrategy
from eventide.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.errors import StateError
from eventide.spark.checkpoint.savepoint import take_savepoint
from eventide.testing import ScriptedSource

pytestmark = [pytest.mark.spark, pytest.mark.long]

BY_VALUE = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda n, _: n)
IDLE = BY_VALUE.with_idleness(Duration.of_days(1))
PARTS = [[("s", 1), ("s", 5)], [("s", 7), ("s", 12)], [("s", 15), ("s", 33)]]


def run(place: Path, strategy: WatermarkStrategy, parts: int, savepoint: str | None = None) -> list[Any]:
    """The sums of the windows of 10 ms that fire when the first ``parts`` of the input are there."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1).set_available_now()
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(place))
    if savepoint is not None:
        env.from_savepoint(savepoint)
    source = ScriptedSource(["s"], PARTS[:parts], Types.LONG(), bounded=False)
    numbers = env.from_source(source, strategy, "numbers").key_by(lambda _: 0, Types.LONG())
    windows = numbers.window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    return list(windows.reduce(lambda a, b: a + b).name("windows").execute_and_collect())


class WaitsForEventTime(KeyedProcessFunction):
    """Counts elements, and sets timers of event time."""

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        ctx.timer_service().register_event_time_timer(value + 10)
        yield value

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
        yield -timestamp


def test_a_function_that_waits_for_event_time_alone_has_no_micro_batches_without_data(tmp_path: Path) -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(tmp_path))
    source = ScriptedSource(["s"], PARTS, Types.LONG(), bounded=False)
    numbers = env.from_source(source, BY_VALUE, "numbers").key_by(lambda _: 0, Types.LONG())
    client = numbers.process(WaitsForEventTime(), Types.LONG()).execute_and_collect("no clock")
    found = [next(client) for _ in range(11)]
    assert sorted(found) == [-25, -22, -17, -15, -11, 1, 5, 7, 12, 15, 33]
    before = len([*(tmp_path / "offsets").glob("[0-9]*")])
    time.sleep(3)
    assert len([*(tmp_path / "offsets").glob("[0-9]*")]) == before
    client.close()


def test_a_program_without_idleness_goes_on_where_one_with_it_was(tmp_path: Path) -> None:
    assert run(tmp_path, IDLE, 1) == []
    assert run(tmp_path, BY_VALUE, 2) == [13]
    assert run(tmp_path, IDLE, 3) == [27]


def test_idleness_is_refused_where_there_was_none_and_begins_with_a_savepoint(
    spark: SparkSession, tmp_path: Path
) -> None:
    assert run(tmp_path / "old", BY_VALUE, 1) == []
    with pytest.raises(StateError, match="the state of windows began without timers of processing time"):
        run(tmp_path / "old", IDLE, 2)
    take_savepoint(spark, str(tmp_path / "old"), str(tmp_path / "saved"))
    assert run(tmp_path / "new", IDLE, 2, str(tmp_path / "saved")) == [13]
    assert run(tmp_path / "new", IDLE, 3) == [27]
