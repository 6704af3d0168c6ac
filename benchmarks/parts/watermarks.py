"""Cost of a watermark for each split, and of watermarks that are made in Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.bench import Bench
from benchmarks.checking import check_same, flat
from benchmarks.data import FILES_PER_BATCH, START_MS
from benchmarks.figures import Figure, shown
from benchmarks.queries import DISORDER_S, TUMBLING, Job, environment, submitted, sums
from eventide.common import (
    BatchWatermarkOutput,
    Duration,
    TypeInformation,
    Types,
    VectorizedWatermarkGenerator,
    Watermark,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarkStrategy,
)
from eventide.datastream.connectors import FileSource, Source

_BOUND_MS = DISORDER_S * 1_000
_EVENT = Types.ROW_NAMED(["user", "ts", "value"], [Types.LONG(), Types.LONG(), Types.LONG()])
_SPLITS = (1, 100, 2_000)
_SHARE_OF_ROWS = 5  # of a usual micro-batch: these rows are made in Python while they are timed


class PerElement(WatermarkGenerator):
    """The built-in strategy, written by hand."""

    highest = -(2**63)

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        """Remember the highest timestamp."""
        self.highest = max(self.highest, event_timestamp)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Stay behind it."""
        output.emit_watermark(Watermark(self.highest - _BOUND_MS - 1))


class Counts(PerElement):
    """The built-in strategy, by a generator that has to see each timestamp."""

    count = 0

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        """Remember the highest timestamp, and count."""
        self.highest = max(self.highest, event_timestamp)
        self.count += 1


class Vectorised(VectorizedWatermarkGenerator, PerElement):
    """The built-in strategy, many elements at a time."""

    def on_batch(self, events: Any, timestamps: Any, output: BatchWatermarkOutput) -> None:
        """Remember the highest timestamp."""
        self.highest = max(self.highest, pc.max(timestamps).as_py())


class VectorisedCounts(Vectorised):
    """The built-in strategy, by a generator that has to see each batch."""

    count = 0

    def on_batch(self, events: Any, timestamps: Any, output: BatchWatermarkOutput) -> None:
        """Remember the highest timestamp, and count."""
        self.highest = max(self.highest, pc.max(timestamps).as_py())
        self.count += len(timestamps)


def generators(bench: Bench) -> list[Figure]:
    """Tumbling windows of 5 s, 1,000 keys: watermark generators in Python, beside the built-in one."""
    data = bench.data(1_000, few=True)
    job = Job(bench.files(data), TUMBLING)
    source = FileSource.parquet(str(job.files)).set_max_files_per_batch(FILES_PER_BATCH).set_split_by(_number_of)
    strategies = {
        "built in": job.strategy(),
        "vectorised, keeps the highest timestamp": _supplied(Vectorised),
        "vectorised, counts as well": _supplied(VectorisedCounts),
        "element by element, keeps the highest timestamp": _supplied(PerElement),
        "element by element, counts as well": _supplied(Counts),
    }

    def start(place: Path, strategy: WatermarkStrategy) -> StreamingQuery:
        env = environment(bench.spark, place)
        return submitted(env, sums(env.from_source(source.build(), strategy, "events"), job), place)

    rounds = bench.in_turn(
        {name: lambda place, strategy=strategy: start(place, strategy) for name, strategy in strategies.items()}
    )
    rates = {name: max(bench.throughput(run, data) for run in runs) for name, runs in rounds.items()}
    last = {name: runs[-1] for name, runs in rounds.items()}
    check_same({name: flat(bench.spark.read.parquet(str(run.output))) for name, run in last.items()})
    bench.clear(*last.values())
    built_in = rates.pop("built in")
    return [Figure(name, "rows/s", rate, built_in, beside="built in") for name, rate in rates.items()]


def _number_of(path: str) -> str:
    """Which of the files of a micro-batch it is: each is a split that goes on in the next."""
    return path.rsplit("-", 1)[1]


def _supplied(generator: type[WatermarkGenerator]) -> WatermarkStrategy:
    return WatermarkStrategy.for_generator(generator).with_timestamp_assigner("ts")


class Meters(Source):
    """Rows that are born in Python, in any number of splits: `rows` in each micro-batch, over one second."""

    def __init__(self, splits: int, rows: int, batches: int) -> None:
        self._splits = splits
        self._rows = rows // splits
        self._batches = batches

    def splits(self) -> list[str]:
        """The names of the splits."""
        return [f"meter {number}" for number in range(self._splits)]

    def latest_position(self, split: str) -> int:
        """All there will be."""
        return self._rows * self._batches

    def next_positions(self, positions: Mapping[str, int], max_rows: int | None) -> dict[str, int]:
        """A micro-batch further."""
        return {split: position + self._rows for split, position in positions.items()}

    def read(self, split: str, start: int, end: int) -> Iterator[pa.RecordBatch]:
        """Rows of 1,000 users, each after the one before it."""
        places = np.arange(start, end)
        columns = {"user": places % 1_000, "ts": START_MS + places * 1_000 // self._rows, "value": places}
        yield pa.RecordBatch.from_pydict(columns)

    def get_produced_type(self) -> TypeInformation:
        """Rows of numbers."""
        return _EVENT


def splits(bench: Bench) -> list[Figure]:
    """A watermark for each split: the same rows in 1, 100 and 2,000 splits."""
    rows, batches = bench.sizes.rows_per_batch // _SHARE_OF_ROWS, bench.sizes.batches * 2
    built_in = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(DISORDER_S))
    kinds = {
        "built-in watermarks": built_in.with_timestamp_assigner("ts"),
        "a generator for each": _supplied(VectorisedCounts),
    }
    figures = []
    for kind, strategy in kinds.items():
        took = {n: _milliseconds(bench, Meters(n, rows, batches), strategy, f"{n:,} splits, {kind}") for n in _SPLITS}
        figures += [Figure(f"{n:,} splits, {kind}", "ms", took[n], took[1], beside="1 split") for n in _SPLITS if n > 1]
        bench.say(", ".join(f"{n:,} splits {shown(ms, 'ms')}" for n, ms in took.items()))
    return figures


def _milliseconds(bench: Bench, source: Meters, strategy: WatermarkStrategy, what: str) -> float:
    """The time of a micro-batch."""
    job = Job(bench.place, TUMBLING)

    def start(place: Path) -> StreamingQuery:
        env = environment(bench.spark, place)
        return submitted(env, sums(env.from_source(source, strategy, "meters"), job), place)

    run = bench.run(what, start)
    bench.clear(run)
    return run.steady(bench.sizes.warm_up, bench.sizes.batches * 2) * 1_000
