"""Watermark alignment on Spark: a split that is ahead waits, over a restart too, and all is read in the end."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from eventide.common import Duration, Time, Types, WatermarkStrategy
from eventide.datastream import MapFunction, StreamExecutionEnvironment
from eventide.datastream.connectors import Source
from eventide.datastream.window import TimestampedValue, TumblingEventTimeWindows
from eventide.errors import ProgramError
from support.steps import in_steps

pytestmark = pytest.mark.spark

MINUTE_MS = 60_000
PAIR = Types.TUPLE([Types.STRING(), Types.LONG()])


class Minutes(Source):
    """Splits of one element a minute, from a minute of their own on."""

    def __init__(self, **firsts: int) -> None:
        self._firsts = firsts

    def splits(self) -> list[str]:
        return sorted(self._firsts)

    def latest_position(self, split: str) -> int:
        return 100 - self._firsts[split]

    def read(self, split: str, start: int, end: int) -> Iterator[Any]:
        for minute in range(self._firsts[split] + start, self._firsts[split] + end):
            yield TimestampedValue((split, minute), minute * MINUTE_MS)

    def gives_timestamps(self) -> bool:
        return True

    def gives_watermarks(self) -> bool:
        return False

    def get_produced_type(self) -> Any:
        return PAIR


class FailsAt(MapFunction):
    """Fails at one minute, as long as a file is not there."""

    def __init__(self, minute: int, repaired: Path) -> None:
        self._minute, self._repaired = minute, repaired

    def map(self, value: Any) -> Any:
        if value[1] == self._minute and not self._repaired.exists():
            raise OSError("no such minute")
        return value


class Listed(Minutes):
    """Splits of the minutes that are given, which may have more one day."""

    def __init__(self, **minutes: list[int]) -> None:
        self._firsts = self._minutes = minutes

    def latest_position(self, split: str) -> int:
        return len(self._minutes[split])

    def read(self, split: str, start: int, end: int) -> Iterator[Any]:
        for minute in self._minutes[split][start:end]:
            yield TimestampedValue((split, minute), minute * MINUTE_MS)

    def is_bounded(self) -> bool:
        return False


def offsets(checkpoint: Path) -> list[list[dict[str, Any]]]:
    """Where the sources stood at the end of each micro-batch, by Spark's log."""
    logs = sorted((checkpoint / "offsets").iterdir(), key=lambda file: file.name.zfill(9))
    return [
        [json.loads(line) for line in log.read_text().splitlines()[2:]] for log in logs if not log.name.startswith(".")
    ]


@pytest.mark.long
@in_steps
def test_who_is_ahead_waits_over_a_restart_too(spark: SparkSession, tmp_path: Path) -> None:
    checkpoint, repaired = tmp_path / "checkpoint", tmp_path / "repaired"

    def start() -> Any:
        env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2).set_max_rows_per_batch(8)
        env.get_checkpoint_config().set_checkpoint_storage_dir(str(checkpoint))
        strategy = WatermarkStrategy.for_monotonous_timestamps()
        aligned = strategy.with_watermark_alignment("minutes", Duration.of_minutes(10))
        early = env.from_source(Minutes(a=0, b=50), aligned, "early").map(FailsAt(40, repaired), PAIR)
        late = env.from_source(Minutes(c=70), aligned, "late")
        windows = (
            early.union(late)
            .key_by(lambda e: e[0], Types.STRING())
            .window(TumblingEventTimeWindows.of(Time.minutes(5)))
            .reduce(lambda a, b: (a[0], a[1] + b[1]))
        )
        windows.sink_to(lambda rows, _: rows.write.mode("append").json(str(tmp_path / "out")))
        return env.execute_async()

    with pytest.raises(Exception, match="no such minute"):
        start().get_job_execution_result().result()
    planned = offsets(checkpoint)
    assert all(at["a"]["position"] >= 40 or at["b"]["position"] <= 1 for at, _ in planned), "b waits until minute 40"
    assert planned[-1][0]["b"]["rest"] == "held"
    repaired.touch()
    client = start()
    metrics = client.get_job_execution_result().result().metrics
    seen = [json.loads(line) for file in (tmp_path / "out").glob("*.json") for line in file.read_text().splitlines()]
    assert sum(row["f1"] for row in seen) == sum(range(100)) + sum(range(50, 100)) + sum(range(70, 100))
    early_at, late_at = metrics["early"], metrics["late"]
    assert early_at["numSplitsHeld"] == late_at["numSplitsHeld"] == {0: 0}
    planned = offsets(checkpoint)
    for (at, of_late), (_, late_before) in zip(planned[1:], planned, strict=False):
        moved = of_late["c"]["position"] - late_before["c"]["position"]
        lowest = min(at["a"]["position"], 50 + at["b"]["position"])
        assert moved == 0 or lowest + 10 >= 70, "c waits for the others"
    assert len(list((checkpoint / "eventide-alignment").iterdir())) <= 3


@pytest.mark.long
@in_steps
def test_a_split_that_becomes_idle_by_the_clock_alone_lets_the_others_go_on(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    env.set_max_rows_per_batch(5)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_idleness(Duration.of_seconds(12))
    windows = (
        env.from_source(
            Listed(silent=[0], busy=[*range(5, 100)]),
            strategy.with_watermark_alignment("minutes", Duration.of_minutes(10)),
            "minutes",
        )
        .key_by(lambda e: e[0], Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.minutes(5)))
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
    )
    windows.print()
    client = env.execute_async()
    patience = time.monotonic() + 60
    while client.get_metrics().get("minutes", {}).get("numRecordsOut", 0) < 96 and time.monotonic() < patience:
        time.sleep(0.1)
    client.cancel().result()
    planned = [source["busy"] for [source] in offsets(tmp_path / "checkpoint")]
    assert planned[-1]["position"] == 95
    assert {at["position"] for at in planned if at.get("rest") == "held"} == {11}, "it waits while the other may speak"


def test_a_data_frame_cannot_wait(env: StreamExecutionEnvironment, spark: SparkSession) -> None:
    rows = spark.readStream.format("rate").load()
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("timestamp")
    stream = env.from_data_frame(rows, strategy.with_watermark_alignment("all", Duration.of_seconds(1)))
    stream.print()
    with pytest.raises(ProgramError, match="Spark DataFrame, which Spark plans by itself"):
        env.execute()
