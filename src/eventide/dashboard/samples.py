"""Samples of jobs for monitoring systems, under Flink's names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from eventide._secrets import without_secrets
from eventide.common.job import BatchProgress
from eventide.common.ms import MAX_MS, MIN_MS
from eventide.dashboard.watched import WatchedJob

MOST_SPLITS = 100
"""The watermark of each split is told where there are no more: each is a time series of its own."""


@dataclass(frozen=True, slots=True)
class Series:
    """A kind of sample: its name, what it says, its unit, and whether it only goes up."""

    name: str
    text: str
    unit: str = ""
    is_counter: bool = False


@dataclass(frozen=True, slots=True)
class Sample:
    """A metric of something, told by its labels, at this moment."""

    metric: Series
    labels: Mapping[str, str]
    value: float


COUNTERS = (
    Series("numRecordsIn", "Elements that came to an operator.", is_counter=True),
    Series("numRecordsOut", "Elements that an operator, or a source, put out.", is_counter=True),
    Series("numLateRecordsDropped", "Elements that came too late, and were dropped.", is_counter=True),
    Series("numLateRecordsToSideOutput", "Elements that came too late, and went to a side output.", is_counter=True),
    Series("numRecordsWithoutWindow", "Elements that no window wanted.", is_counter=True),
    Series("numRecordsWithoutTimestamp", "Elements that had no timestamp, and were left out.", is_counter=True),
    Series("numDeadLetters", "What could not be handled, and became a dead letter.", is_counter=True),
    Series("numPartsLost", "Parts of a source that were gone before they were read.", is_counter=True),
)
HELD = (
    Series("numOpenWindows", "Windows of time that wait for the watermark."),
    Series("numOpenSessions", "Sessions that are open, or may still be added to."),
    Series("numKeys", "Keys that have state."),
    Series("numTimers", "Timers that are set."),
    Series("numElements", "Elements that a join keeps."),
)
INPUT_WATERMARK = Series("currentInputWatermark", "The watermark that came to an operator, since the epoch.", "ms")
OUTPUT_WATERMARK = Series("currentOutputWatermark", "The watermark that an operator passed on, since the epoch.", "ms")
LAG = Series("watermarkLag", "How far the watermark of an operator lags behind the clock.", "ms")
SPLIT_WATERMARK = Series("currentWatermark", f"The watermark of a split; up to {MOST_SPLITS} splits of a job.", "ms")
LOWEST_SPLIT = Series("lowestSplitWatermark", "The watermark of the split that is furthest behind.", "ms")
HIGHEST_SPLIT = Series("highestSplitWatermark", "The watermark of the split that is furthest ahead.", "ms")
SPLITS = Series("numSplits", "Splits that a source has.")
SILENT = Series("numSilentSplits", "Splits that have given no watermark yet, and hold all others.")
BATCH = Series("lastMicroBatch", "The number of the last micro-batch.")
BATCH_ENDED = Series("lastMicroBatchEnded", "When the last micro-batch ended, since the epoch.", "ms")
BATCH_ROWS = Series("lastMicroBatchRows", "Elements that sources gave in the last micro-batch.")
BATCH_TIME = Series("lastMicroBatchTime", "How long the last micro-batch took, by what it was spent on.", "ms")
STATE = Series(
    "stateSize", "The state of a stage of operators in files, at the last snapshot of the state store.", "bytes"
)
RUNNING = Series("isRunning", "1 while a job runs, 0 when it has ended.")
RESTARTS = Series("numRestarts", "How often a job has been started again after a failure.")
OWN = Series("functionMetric", "A metric of a function, by its name, subtask and statistic where it has such.")

METRICS = (
    *COUNTERS,
    *HELD,
    *(INPUT_WATERMARK, OUTPUT_WATERMARK, LAG, SPLIT_WATERMARK, LOWEST_SPLIT, HIGHEST_SPLIT, SPLITS, SILENT),
    *(BATCH, BATCH_ENDED, BATCH_ROWS, BATCH_TIME, STATE, RUNNING, RESTARTS, OWN),
)
"""All that there are."""


@dataclass(frozen=True, slots=True)
class _OfJob:
    job: WatchedJob
    progress: BatchProgress
    now_ms: int
    labels: dict[str, str] = field(default_factory=dict)

    def sample(self, metric: Series, value: float, **labels: str) -> Sample:
        return Sample(metric, {**self.labels, **labels}, value)

    def counted(self) -> Iterator[Sample]:
        own = {metric.name for metric in COUNTERS}
        for operator, values in self.progress.counters.items():
            for metric in COUNTERS:
                if metric.name in values:
                    yield self.sample(metric, values[metric.name], operator=operator)
            for name, value in values.items():
                if name not in own:
                    yield from self.of_function(operator, name, value)
        for operator, held in self.progress.held.items():
            for metric in HELD:
                if metric.name in held:
                    yield self.sample(metric, held[metric.name], operator=operator)

    def of_function(self, operator: str, name: str, value: Any) -> Iterator[Sample]:
        """A counter is a number; a gauge has one for each subtask; a meter and a distribution have several by name."""
        parts = value if isinstance(value, Mapping) else {"": value}
        for part, number in parts.items():
            if isinstance(number, int | float) and not isinstance(number, bool):
                subtask, statistic = (str(part), "") if isinstance(part, int) else ("", part)
                yield self.sample(OWN, number, operator=operator, name=name, subtask=subtask, statistic=statistic)

    def watermarks(self) -> Iterator[Sample]:
        """Give the watermarks that are times: one that has not come yet, and the one of the end, are none."""
        for operator, ms in self.progress.watermarks.items():
            if MIN_MS < ms < MAX_MS:
                yield self.sample(INPUT_WATERMARK, ms, operator=operator)
                yield self.sample(OUTPUT_WATERMARK, ms, operator=operator)
                yield self.sample(LAG, self.now_ms - ms, operator=operator)

    def splits(self) -> Iterator[Sample]:
        splits_of = self.progress.splits_of
        each = sum(map(len, splits_of.values())) <= MOST_SPLITS
        for source, splits in splits_of.items():
            spoken = {split: ms for split, ms in splits.items() if MIN_MS < ms < MAX_MS}
            yield self.sample(SPLITS, len(splits), source=source)
            yield self.sample(SILENT, sum(1 for ms in splits.values() if ms == MIN_MS), source=source)
            if spoken:
                yield self.sample(LOWEST_SPLIT, min(spoken.values()), source=source)
                yield self.sample(HIGHEST_SPLIT, max(spoken.values()), source=source)
            for split, ms in spoken.items() if each else ():
                yield self.sample(SPLIT_WATERMARK, ms, source=source, split=without_secrets(split))

    def batch(self) -> Iterator[Sample]:
        progress = self.progress
        yield self.sample(BATCH, progress.batch)
        yield self.sample(BATCH_ENDED, progress.ended_ms)
        yield self.sample(BATCH_ROWS, progress.rows_in)
        for what, ms in (progress.spent_ms or {"all": progress.took_ms}).items():
            yield self.sample(BATCH_TIME, ms, on=what)
        for stage, size in enumerate(progress.state_bytes, start=1):
            yield self.sample(STATE, size, stage=str(stage))


def samples(jobs: Iterable[WatchedJob], now_ms: int) -> Iterator[Sample]:
    """Give the samples of some jobs at a time by the clock."""
    for job in jobs:
        labels = {"job": job.name, "job_id": str(job.client.get_job_id())}
        yield Sample(RUNNING, labels, 0 if job.status.is_terminal_state() else 1)
        restarts = job.client.get_restarts()
        yield Sample(RESTARTS, labels, restarts[-1].number if restarts else 0)
        progress = job.last()
        if progress is not None:
            of = _OfJob(job, progress, now_ms, labels)
            yield from of.counted()
            yield from of.watermarks()
            yield from of.splits()
            yield from of.batch()
