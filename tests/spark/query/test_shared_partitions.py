"""Subtasks that share shuffle partitions: the same results, timers of each, and checkpoints of either number."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from eventide.common import Time, Types, WatermarkStrategy
from eventide.datastream import DataStream, StreamExecutionEnvironment
from eventide.datastream.window import TumblingEventTimeWindows, TumblingProcessingTimeWindows
from eventide.spark.checkpoint.savepoint import take_savepoint
from eventide.testing import ScriptedSource, local_environment
from support.steps import in_steps

pytestmark = pytest.mark.spark

PAIR = Types.TUPLE([Types.STRING(), Types.INT()])
BY_SECOND_FIELD = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda e, _: e[1])
SUBTASKS, PARTITIONS = 6, 2
SCRIPT: list[list[Any]] = [[("a", (f"k{key}", 10 * batch + key)) for key in range(30)] for batch in range(6)]
PATIENCE_S = 60


def at(path: Path) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(SUBTASKS).set_available_now()
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(path))
    return env


def counts(env: StreamExecutionEnvironment, script: list[list[Any]], *, bounded: bool = True) -> DataStream:
    """How many elements each key has in windows, and how many keys have as many: two stages."""
    stream = env.from_source(ScriptedSource(["a"], script, PAIR, bounded), BY_SECOND_FIELD, "script")
    windows = stream.map(lambda e: (e[0], 1), PAIR).key_by(lambda e: e[0], Types.STRING())
    ten = windows.window(TumblingEventTimeWindows.of(Time.milliseconds(10))).reduce(lambda a, b: (a[0], a[1] + b[1]))
    again = ten.map(lambda e: (str(e[1]), 1), PAIR).key_by(lambda e: e[0], Types.STRING())
    return again.window(TumblingEventTimeWindows.of(Time.milliseconds(20))).reduce(lambda a, b: (a[0], a[1] + b[1]))


def results(stream: DataStream) -> list[Any]:
    return list(stream.execute_and_collect())


def partitions_of(path: Path) -> int:
    """The number of state stores of the first stage."""
    return sum(place.name.isdigit() for place in (path / "state" / "0").iterdir())


@pytest.mark.long
@in_steps
@pytest.mark.parametrize(("before", "after"), [(SUBTASKS, PARTITIONS), (PARTITIONS, SUBTASKS)])
def test_a_job_goes_on_whatever_number_of_partitions_its_checkpoint_began_with(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int, after: int
) -> None:
    whole = sorted(results(counts(local_environment(), SCRIPT)))
    monkeypatch.setattr("eventide.spark.host.shuffle_partitions", lambda *_: before)
    first = results(counts(at(tmp_path), SCRIPT[:3], bounded=False))
    monkeypatch.setattr("eventide.spark.host.shuffle_partitions", lambda *_: after)
    rest = results(counts(at(tmp_path), SCRIPT))
    assert partitions_of(tmp_path) == before
    assert first
    assert rest
    assert sorted(first + rest) == whole


@pytest.mark.long
@in_steps
def test_a_savepoint_has_the_state_of_each_subtask(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = sorted(results(counts(local_environment(), SCRIPT)))
    monkeypatch.setattr("eventide.spark.host.shuffle_partitions", lambda *_: PARTITIONS)
    first = results(counts(at(tmp_path / "one"), SCRIPT[:3], bounded=False))
    take_savepoint(spark, str(tmp_path / "one"), str(tmp_path / "saved"))
    env = at(tmp_path / "two").set_parallelism(3).from_savepoint(str(tmp_path / "saved"))
    assert sorted(first + results(counts(env, SCRIPT))) == whole


def test_each_subtask_of_a_partition_has_timers_of_its_own(
    env: StreamExecutionEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eventide.spark.host.shuffle_partitions", lambda *_: PARTITIONS)
    env.set_parallelism(SUBTASKS).get_config().set_auto_watermark_interval(200)
    source = ScriptedSource(["a"], SCRIPT[:1], PAIR, bounded=False)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "script").key_by(lambda e: e[0], Types.STRING())
    fired: list[tuple[int, Row]] = []
    second = TumblingProcessingTimeWindows.of(Time.seconds(1))
    sums = stream.window(second).reduce(lambda a, b: (a[0], a[1] + b[1]))
    sums.sink_to(lambda rows, batch: fired.extend((batch, row) for row in rows.collect()))
    client = env.execute_async("clock")
    deadline = time.monotonic() + PATIENCE_S
    while len(fired) < 30:
        assert time.monotonic() < deadline, fired
        time.sleep(0.1)
    client.cancel().result()
    assert sorted(tuple(row) for _, row in fired) == sorted((f"k{key}", key) for key in range(30))
    assert all(batch > 0 for batch, _ in fired), "the data came in batch 0"
