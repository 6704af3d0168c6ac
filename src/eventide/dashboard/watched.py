"""A job as its page shows it, in plain values, and as samples for monitoring systems, under Flink's names.

``Telemetry`` has the samples as instruments of OpenTelemetry, which are asked when the program's own exporter wants
them.
"""

from __future__ import annotations

import itertools
import math
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from eventide._secrets import without_secrets
from eventide.common.job import BatchProgress, JobClient, JobStatus, LastBatches
from eventide.common.ms import MAX_MS, MIN_MS
from eventide.common.words import most_pending, summary
from eventide.dashboard.verdict import MetricValues, Verdict

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation

Json: TypeAlias = dict[str, Any]

_ENDED = 20
"""Number of ended jobs that can still be looked at."""

_LONGEST = 100_000
"""The number of characters after which an answer is cut off."""

_FRESH_S = 10.0
"""Seconds after which an answer is computed again without a new micro-batch, because the clock has moved."""

_ENDS = {JobStatus.FINISHED: "It has finished", JobStatus.CANCELED: "It was cancelled"}
"""Ends of a job that are no symptoms."""

_PARTS = (0.0, 0.1, 0.5, 1.0)
"""The watermarks of many splits are shown by these quantiles."""


class WatchedJob:
    """Follows a job by its client; asked by several threads.

    Each micro-batch is looked at once, when somebody asks for it first. What an operator or a split has said stands
    until it says something else.

    Args:
        number: its number, in addresses.
        name: its name.
        client: the running job, or one that has ended.
        description: its graph, as ``eventide.plan.description`` has it.
    """

    def __init__(self, number: int, name: str, client: JobClient, description: Json) -> None:
        self.number = number
        self.name = name
        self.client = client
        self.description = description
        self._lock = threading.Lock()
        self._batches: LastBatches[tuple[Json, dict[str, dict[str, int]]]] = LastBatches()
        """Each micro-batch for the page, and where all splits stood after it."""
        self._watermarks: dict[str, int] = {}
        self._last: BatchProgress | None = None
        self._verdict = Verdict()
        self._asking = threading.Lock()
        self._answers: dict[str, tuple[int | None, float, str]] = {}
        self.names = frozenset(
            str(one["name"]) for kind in ("sources", "operators", "sinks") for one in description.get(kind, ())
        )
        """The names of the job's parts."""

    @property
    def status(self) -> JobStatus:
        """Return the state of the job."""
        return self.client.get_job_status().result()

    @property
    def failure(self) -> str | None:
        """The error that made it fail, in words; None if it did not fail."""
        if self.status is not JobStatus.FAILED:
            return None
        error = self.client.get_job_execution_result().exception()
        return None if error is None else without_secrets(f"{type(error).__name__}: {error}")

    def heading(self) -> Json:
        """Return its name and its state."""
        restarts = self.client.get_restarts()
        return {
            "number": self.number,
            "name": self.name,
            "id": str(self.client.get_job_id()),
            "status": self.status.value,
            "failure": self.failure,
            "restarts": restarts[-1].number if restarts else 0,
            "last_restart": restarts[-1].reason if restarts else None,
        }

    def batches(self, after: int = -1) -> list[Json]:
        """The micro-batches that are known, from the one after a number on."""
        with self._lock:
            self._look()
            return [batch for batch, _ in self._batches if batch["batch"] > after]

    def last(self) -> BatchProgress | None:
        """The last micro-batch, with the watermarks of all operators and splits as far as they have said one."""
        with self._lock:
            self._look()
            return self._last

    def verdict(self, now_ms: int) -> Json:
        """Return whether the job is all right at a time by the clock: in words, and the symptoms that it has."""
        status = self.status
        with self._lock:
            self._look()
            symptoms = self._verdict.look(now_ms, _values(figures(self.client, self._last, now_ms)))
            has_begun = self._last is not None
        if status in _ENDS:
            return {"text": _ENDS[status], "is_well": True, "symptoms": []}
        if status is JobStatus.RESTARTING:
            well = "It is starting again"
        else:
            well = "All is well" if has_begun else "The first micro-batch has not ended yet"
        return {
            "text": "; ".join(one.text for one in symptoms) or well,
            "is_well": not symptoms,
            "symptoms": [asdict(one) for one in symptoms],
        }

    def slowest(self, count: int) -> list[Json]:
        """The splits that are furthest behind, with their watermark in each micro-batch that :meth:`batches` gave."""
        with self._lock:
            if self._last is None:
                self._look()
            last = self._standing()
            known = [(ms, source, split) for source, splits in last.items() for split, ms in splits.items()]
            return [
                {
                    "source": source,
                    "split": without_secrets(split),
                    "watermarks": [watermark(then.get(source, {}).get(split, MIN_MS)) for _, then in self._batches],
                }
                for _, source, split in sorted(known)[:count]
            ]

    def why(self, operator: str) -> str:
        """Why an operator's watermark stands where it does; the last answer while it is fresh, as it takes a while."""
        last = self.last()
        batch = -1 if last is None else last.batch
        with self._asking:
            of_batch, found_s, text = self._answers.get(operator, (None, 0.0, ""))
            if of_batch != batch or time.monotonic() - found_s >= _FRESH_S:
                text = self._found_out(operator)
                self._answers[operator] = batch, time.monotonic(), text
            return text

    def _found_out(self, operator: str) -> str:
        try:
            text = str(self.client.why(operator=operator))
        except Exception as error:  # that a page cannot say it is not a failure of the job
            text = f"The reason could not be determined: {error}"
        text = without_secrets(text)
        return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} … (cut off)"

    def _look(self) -> None:
        """Take what is new."""
        for progress in self.client.get_progress():
            if self._last is None or progress.batch > self._last.batch:
                self._take(progress)

    def _take(self, progress: BatchProgress) -> None:
        if self._last is None:
            self._take_note(_before(progress), progress.began_ms)
        self._watermarks = self._watermarks | progress.watermarks
        splits = self._standing() | progress.splits_of
        self._last = replace(progress, watermarks=self._watermarks, splits_of=splits)
        self._take_note(self._last, progress.ended_ms)
        self._batches.append((self._shown(progress, splits), splits), self._last.num_splits)

    def _take_note(self, progress: BatchProgress, ms: int) -> None:
        """Tell the verdict how the job stood at a time."""
        restarts = [one for one in self.client.get_restarts() if one.at_ms <= ms]
        found = [*_figures(progress, ms), (RESTARTS, restarts[-1].number if restarts else 0, {})]
        self._verdict.look(ms, _values(found))

    def _standing(self) -> dict[str, dict[str, int]]:
        """Where all splits stood after the last micro-batch that was taken."""
        last = self._batches.last()
        return {} if last is None else last[1]

    def _shown(self, progress: BatchProgress, splits: dict[str, dict[str, int]]) -> Json:
        """A micro-batch as the page shows it."""
        return {
            "batch": progress.batch,
            "began_ms": progress.began_ms,
            "took_ms": progress.took_ms,
            "spent_ms": progress.spent_ms,
            "rows_in": progress.rows_in,
            "pending": progress.pending,
            "behind": _most_pending(progress),
            "state_bytes": list(progress.state_bytes),
            "splits": _spread(splits),
            "operators": {
                name: {
                    "in": counted.get("numRecordsIn", 0),
                    "out": counted.get("numRecordsOut", 0),
                    "dropped": counted.get("numLateRecordsDropped", 0),
                    "aside": counted.get("numLateRecordsToSideOutput", 0),
                    "dead": counted.get("numDeadLetters", 0),
                    "watermark": watermark(self._watermarks.get(name, MIN_MS)),
                    "held": progress.held.get(name, {}),
                }
                for name in {**progress.counters, **self._watermarks}
                for counted in (progress.counted.get(name, {}),)
            },
        }

    def summary(self) -> list[tuple[str, str]]:
        """How it stands, in a few lines for a person."""
        return summary(self.client.get_progress())

    def metrics(self, operator: str) -> Json:
        """All that was counted and measured of an operator since the start."""
        return {name: plain(value) for name, value in self.client.get_metrics().get(operator, {}).items()}


class WatchedJobs:
    """The jobs that somebody looks at: all that run, and the last of those that have ended."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._jobs: list[WatchedJob] = []

    def add(self, name: str, client: JobClient, description: Json) -> None:
        """Take one more job."""
        with self._lock:
            self._jobs.append(WatchedJob(next(self._numbers), name, client, description))
            ended = [job for job in self._jobs if job.status.is_terminal_state()]
            for job in ended[:-_ENDED]:
                self._jobs.remove(job)

    def __call__(self) -> list[WatchedJob]:
        """Return the watched jobs, the oldest first."""
        with self._lock:
            return list(self._jobs)


def watermark(ms: int) -> int | str | None:
    """A watermark for JSON, whose numbers are not long enough for the two that mean something else.

    >>> watermark(5), watermark(MIN_MS), watermark(MAX_MS)
    (5, None, 'end')
    """
    return None if ms == MIN_MS else "end" if ms == MAX_MS else ms


def plain(value: object) -> Any:
    """A metric for JSON: values that JSON lacks are text.

    >>> plain({"rate": float("nan"), 0: 1})
    {'rate': 'nan', '0': 1}
    """
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, int | float | str) else str(value)


def _spread(splits_of: dict[str, dict[str, int]]) -> Json:
    """How many splits there are, how many have not spoken, and where those are that have, by quantiles."""
    known = sorted(ms for splits in splits_of.values() for ms in splits.values())
    spoken = [ms for ms in known if MIN_MS < ms < MAX_MS]
    at = [spoken[round(part * (len(spoken) - 1))] for part in _PARTS] if spoken else None
    return {"count": len(known), "silent": sum(1 for ms in known if ms == MIN_MS), "at": at}


def _most_pending(progress: BatchProgress) -> Json | None:
    """The split in which most elements wait; None if none waits."""
    found = most_pending(progress)
    return None if found is None else {"source": found[0], "split": without_secrets(found[1]), "records": found[2]}


MOST_SPLITS = 100
"""Watermarks and pending elements are told of each split where there are no more: each is a time series of its own."""


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
    Series("numRecordsOut", "Elements that an operator, or a source, emitted.", is_counter=True),
    Series("numLateRecordsDropped", "Elements that came too late, and were dropped.", is_counter=True),
    Series("numLateRecordsToSideOutput", "Elements that came too late, and went to a side output.", is_counter=True),
    Series("numRecordsWithoutWindow", "Elements that belong to no window.", is_counter=True),
    Series("numRecordsWithoutTimestamp", "Elements that had no timestamp, and were left out.", is_counter=True),
    Series(
        "numDeadLetters", "Elements and timers that could not be handled, and became dead letters.", is_counter=True
    ),
    Series("numDeadLettersLeftOut", "Dead letters above the limit, which were not emitted.", is_counter=True),
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
SILENT = Series("numSilentSplits", "Splits that have given no watermark yet, and hold back all others.")
PENDING = Series("pendingRecords", "Elements that a source had beyond the last micro-batch when that was planned.")
SPLIT_PENDING = Series(
    "splitPendingRecords",
    f"Elements that a split had beyond the last micro-batch; up to {MOST_SPLITS} splits of a job.",
)
HIGHEST_PENDING = Series("highestSplitPendingRecords", "Elements beyond the last micro-batch in the split with most.")
BATCH = Series("lastMicroBatch", "The number of the last micro-batch.")
BATCH_ENDED = Series("lastMicroBatchEnded", "When the last micro-batch ended, since the epoch.", "ms")
BATCH_ROWS = Series("lastMicroBatchRows", "Elements that sources gave in the last micro-batch.")
BATCH_NOW = Series("currentMicroBatchTime", "How long the micro-batch under way has taken so far; 0 between two.", "ms")
BATCH_TIME = Series("lastMicroBatchTime", "How long the last micro-batch took, by what it was spent on.", "ms")
SINK_TIME = Series("lastSinkCommitTime", "How long a sink took to write, or to commit, the last micro-batch.", "ms")
STATE = Series(
    "stateSize", "The state of a stage of operators in files, at the last snapshot of the state store.", "bytes"
)
RUNNING = Series("isRunning", "1 while a job runs, 0 when it has ended.")
RESTARTS = Series("numRestarts", "How often a job has been started again after a failure.")
FAILURES = Series("currentMicroBatchFailures", "How often in a row the current micro-batch has failed.")
WITHOUT_PROGRESS = Series(
    "timeWithoutProgress", "How long a job that has work to do has finished no micro-batch; 0 if it has none.", "ms"
)
OWN = Series("functionMetric", "A metric of a function, by its name, subtask and statistic where it has such.")

METRICS = (
    *COUNTERS,
    *HELD,
    *(INPUT_WATERMARK, OUTPUT_WATERMARK, LAG, SPLIT_WATERMARK, LOWEST_SPLIT, HIGHEST_SPLIT, SPLITS, SILENT),
    *(PENDING, SPLIT_PENDING, HIGHEST_PENDING, BATCH, BATCH_ENDED, BATCH_ROWS, BATCH_NOW, BATCH_TIME, SINK_TIME, STATE),
    *(RUNNING, RESTARTS, FAILURES, WITHOUT_PROGRESS, OWN),
)
"""All that there are."""


Figure: TypeAlias = tuple[Series, float, dict[str, str]]
"""A metric, its value, and the labels beside those of the job."""


def samples(jobs: Iterable[WatchedJob], now_ms: int) -> Iterator[Sample]:
    """Give the samples of some jobs, the oldest first, at a time by the clock.

    Of several runs of one job, which have its id, the last one counts: with another, each sample would be there twice.
    """
    for job in {str(job.client.get_job_id()): job for job in jobs}.values():
        labels = {"job": job.name, "job_id": str(job.client.get_job_id())}
        for metric, value, more in figures(job.client, job.last(), now_ms):
            yield Sample(metric, {**labels, **more}, value)


def figures(client: JobClient, last: BatchProgress | None, now_ms: int) -> Iterator[Figure]:
    """Give the figures of a job after its last finished micro-batch, at a time by the clock."""
    is_running = not client.get_job_status().result().is_terminal_state()
    restarts = client.get_restarts()
    working_ms = client.get_time_in_micro_batch()
    failed = [restart for restart in restarts if last is None or restart.at_ms > last.ended_ms]
    works_since = [*([now_ms - working_ms] if working_ms else []), *(restart.at_ms for restart in failed)]
    if last is not None and any(last.pending.values()):
        works_since.append(last.ended_ms)
    yield RUNNING, int(is_running), {}
    yield RESTARTS, restarts[-1].number if restarts else 0, {}
    yield FAILURES, len(failed), {}
    yield WITHOUT_PROGRESS, max(0, now_ms - min(works_since)) if works_since and is_running else 0, {}
    yield BATCH_NOW, working_ms, {}
    if last is not None:
        yield from _figures(last, now_ms)


def _figures(progress: BatchProgress, now_ms: int) -> Iterator[Figure]:
    own = {metric.name for metric in COUNTERS}
    for operator, values in progress.counters.items():
        for metric in COUNTERS:
            if metric.name in values:
                yield metric, values[metric.name], {"operator": operator}
        for name, value in values.items():
            if name not in own:
                yield from _of_function(operator, name, value)
    for operator, held in progress.held.items():
        for metric in HELD:
            if metric.name in held:
                yield metric, held[metric.name], {"operator": operator}
    for operator, ms in progress.watermarks.items():
        if MIN_MS < ms < MAX_MS:  # one that has not come yet, and the one of the end, are no times
            for metric, value in ((INPUT_WATERMARK, ms), (OUTPUT_WATERMARK, ms), (LAG, now_ms - ms)):
                yield metric, value, {"operator": operator}
    yield from _of_splits(progress)
    yield BATCH, progress.batch, {}
    yield BATCH_ENDED, progress.ended_ms, {}
    yield BATCH_ROWS, progress.rows_in, {}
    yield from _of_pending(progress)
    for what, ms in (progress.spent_ms or {"all": progress.took_ms}).items():
        yield BATCH_TIME, ms, {"on": what}
    for sink, ms in progress.sink_ms.items():
        yield SINK_TIME, ms, {"sink": sink}
    for stage, size in enumerate(progress.state_bytes, start=1):
        yield STATE, size, {"stage": str(stage)}


def _before(progress: BatchProgress) -> BatchProgress:
    """The counts of a job before a micro-batch, and nothing else."""
    counters = {
        operator: {
            name: value - progress.counted.get(operator, {}).get(name, 0)
            for name, value in values.items()
            if isinstance(value, int)
        }
        for operator, values in progress.counters.items()
    }
    return BatchProgress(progress.batch, counters, {}, {}, began_ms=progress.began_ms)


def _values(found: Iterable[Figure]) -> MetricValues:
    values: dict[str, dict[str, float]] = {}
    for metric, value, labels in found:
        values.setdefault(metric.name, {})["/".join(labels.values())] = value
    return values


def _of_function(operator: str, name: str, value: object) -> Iterator[Figure]:
    """A counter is a number; a gauge has one for each subtask; a meter and a distribution have several by name."""
    parts = value if isinstance(value, Mapping) else {"": value}
    for part, number in parts.items():
        if isinstance(number, int | float) and not isinstance(number, bool):
            subtask, statistic = (str(part), "") if isinstance(part, int) else ("", part)
            yield OWN, number, {"operator": operator, "name": name, "subtask": subtask, "statistic": statistic}


def _of_splits(progress: BatchProgress) -> Iterator[Figure]:
    each = sum(map(len, progress.splits_of.values())) <= MOST_SPLITS
    for source, splits in progress.splits_of.items():
        spoken = {split: ms for split, ms in splits.items() if MIN_MS < ms < MAX_MS}
        yield SPLITS, len(splits), {"source": source}
        yield SILENT, sum(1 for ms in splits.values() if ms == MIN_MS), {"source": source}
        if spoken:
            yield LOWEST_SPLIT, min(spoken.values()), {"source": source}
            yield HIGHEST_SPLIT, max(spoken.values()), {"source": source}
        for split, ms in spoken.items() if each else ():
            yield SPLIT_WATERMARK, ms, {"source": source, "split": without_secrets(split)}


def _of_pending(progress: BatchProgress) -> Iterator[Figure]:
    each = sum(map(len, progress.pending_of.values())) <= MOST_SPLITS
    for source, records in progress.pending.items():
        splits = progress.pending_of.get(source, {})
        yield PENDING, records, {"source": source}
        if splits:
            yield HIGHEST_PENDING, max(splits.values()), {"source": source}
        for split, of_split in splits.items() if each else ():
            yield SPLIT_PENDING, of_split, {"source": source, "split": without_secrets(split)}


def name_of(metric: Series) -> str:
    """The name of a metric in OpenTelemetry's style, where capital letters do not count.

    >>> name_of(Series("watermarkLag", ""))
    'eventide.watermark_lag'
    """
    return "eventide." + re.sub("([A-Z])", r"_\1", metric.name).lower()


class Telemetry:
    """The instruments of a meter provider. What they say goes where the program has the provider send it."""

    _known: ClassVar[dict[int, Telemetry]] = {}
    _making: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, provider: MeterProvider) -> None:
        self._jobs = WatchedJobs()
        self._provider = provider
        meter = provider.get_meter("eventide")
        for metric in METRICS:
            make: Callable[..., Any] = (
                meter.create_observable_counter if metric.is_counter else meter.create_observable_gauge
            )
            make(name_of(metric), [self._asked(metric)], unit=metric.unit, description=metric.text)

    @classmethod
    def of(cls, provider: MeterProvider | None) -> Telemetry:
        """The instruments of a provider, made once; of the one that the process has, if none is given.

        Raises:
            ImportError: OpenTelemetry is not installed.
        """
        from opentelemetry.metrics import get_meter_provider

        wanted = provider or get_meter_provider()
        with cls._making:
            if id(wanted) not in cls._known:
                cls._known[id(wanted)] = cls(wanted)
            return cls._known[id(wanted)]

    def watch(self, name: str, client: JobClient, description: dict[str, Any]) -> None:
        """Tell of a job, and of twenty that have ended."""
        self._jobs.add(name, client, description)

    def _asked(self, metric: Series) -> Callable[[CallbackOptions], Iterable[Observation]]:
        from opentelemetry.metrics import Observation

        def observe(_: CallbackOptions) -> Iterable[Observation]:
            for sample in samples(self._jobs(), time.time_ns() // 1_000_000):
                if sample.metric is metric:
                    yield Observation(sample.value, dict(sample.labels))

        return observe
