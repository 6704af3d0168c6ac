"""How far splits are apart, and how many rows wait for the slowest, with and without watermark alignment.

Counted, not timed, on the Spark-free runtime: planning is the same there.
"""

from __future__ import annotations

import bisect
import random
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate

import pyarrow as pa

from benchmarks.bench import Bench
from benchmarks.data import START_MS
from benchmarks.figures import Figure
from eventide.common import Duration, TypeInformation, Types, WatermarkStrategy
from eventide.datastream.connectors import Source
from eventide.datastream.connectors.source import TimestampedBatch
from eventide.local.runner import LocalRunner
from eventide.testing import local_environment

_HOUR_MS = 3_600_000
_HOURS = 10
_DELAY_MS = 5_000
_DRIFT = Duration.of_minutes(10)
_GAP_MS = range(4 * _HOUR_MS, 6 * _HOUR_MS)
_ROWS_AT_ONCE = 20_000
_ROW = Types.ROW_NAMED(["ts"], [Types.LONG()])


class History(Source):
    """Ten hours: eight splits of a row a second, and one of ten, which says nothing for two hours.

    Args:
        finds_times: whether it finds positions by event time.
    """

    def __init__(self, finds_times: bool) -> None:
        self._finds_times = finds_times
        numbers = random.Random(3)
        self.timestamps = {f"thin-{number}": _timestamps(numbers, 1_000, range(0)) for number in range(8)}
        self.timestamps["dense"] = _timestamps(numbers, 100, _GAP_MS)
        self.highest = {split: list(accumulate(values, max)) for split, values in self.timestamps.items()}

    def splits(self) -> list[str]:
        """All, from the start."""
        return list(self.timestamps)

    def latest_position(self, split: str) -> int:
        """The end of a split."""
        return len(self.timestamps[split])

    def read(self, split: str, start: int, end: int) -> Iterator[TimestampedBatch]:
        """Rows that are their timestamps."""
        values = pa.array(self.timestamps[split][start:end], pa.int64())
        yield TimestampedBatch(pa.record_batch({"ts": values}), values)

    def positions_at(
        self, timestamp_ms: int, positions: Mapping[str, int], column: str | None = None
    ) -> dict[str, int] | None:
        """The position after the last row before which none is later."""
        if not self._finds_times:
            return None
        return {split: bisect.bisect_right(self.highest[split], timestamp_ms) for split in positions}

    def gives_timestamps(self) -> bool:
        """True, because they are in the rows."""
        return True

    def gives_watermarks(self) -> bool:
        """False, because they are the strategy's."""
        return False

    def get_produced_type(self) -> TypeInformation:
        """One number."""
        return _ROW


@dataclass(frozen=True)
class Distance:
    """Distances seen between micro-batches."""

    minutes_apart: float
    """Between the furthest split and the slowest, the median."""
    most_rows_waiting: int
    """Read, and above the slowest watermark."""


def alignment(bench: Bench) -> list[Figure]:
    """Ten hours in nine splits, 20,000 rows in a micro-batch, a drift of 10 minutes; counted between micro-batches."""
    none = _watched(History(finds_times=False), WatermarkStrategy.for_bounded_out_of_orderness(_delay()))
    aligned = WatermarkStrategy.for_bounded_out_of_orderness(_delay()).with_watermark_alignment("all", _DRIFT)
    ways = {"Flink's rule": History(finds_times=False), "planned to one time": History(finds_times=True)}
    figures = []
    for way, history in ways.items():
        found = _watched(history, aligned)
        apart, waiting = f"splits are apart (median), {way}", f"rows that wait (at most), {way}"
        figures.append(Figure(apart, "min", found.minutes_apart, none.minutes_apart, "not aligned"))
        figures.append(Figure(waiting, "rows", found.most_rows_waiting, none.most_rows_waiting, "not aligned"))
    return figures


def _watched(history: History, strategy: WatermarkStrategy) -> Distance:
    env = local_environment()
    rows = env.from_source(history, strategy, "history")
    runner = LocalRunner(env.get_plan(rows.filter(lambda row: False)), _ROWS_AT_ONCE)
    apart, waiting = [], []
    for _ in runner.batches():
        positions = {split: at["position"] for split, at in runner.checkpoint.offsets["history"].items()}
        watermarks = {split: history.highest[split][at - 1] - _DELAY_MS - 1 for split, at in positions.items() if at}
        slowest = min(watermarks.values())
        apart.append((max(watermarks.values()) - slowest) / 60_000)
        waiting.append(sum(_above(slowest, history.timestamps[split][:at]) for split, at in positions.items()))
    return Distance(statistics.median(apart), max(waiting))


def _above(watermark: int, timestamps: list[int]) -> int:
    return sum(timestamp > watermark for timestamp in timestamps)


def _timestamps(numbers: random.Random, each_ms: int, gap_ms: range) -> list[int]:
    times = (START_MS + at - numbers.randrange(_DELAY_MS) for at in range(0, _HOURS * _HOUR_MS, each_ms))
    return [time for time in times if time - START_MS not in gap_ms]


def _delay() -> Duration:
    return Duration.of_millis(_DELAY_MS)
