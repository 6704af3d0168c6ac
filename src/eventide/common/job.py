"""Jobs as a program sees them: id, status, result, and the client of a running job."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Generic, Literal, Protocol

from eventide._absent import says_what_is_absent
from eventide.common.time import Duration, Time
from eventide.common.type_variables import T
from eventide.errors import ProgramError

__all__ = [
    "BatchProgress",
    "Explanation",
    "FinishedJob",
    "JobClient",
    "JobExecutionResult",
    "JobID",
    "JobRestart",
    "JobStatus",
    "completed",
]


@dataclass(frozen=True, slots=True)
class JobID:
    """The id of a job: on Spark, the id of its streaming query, which stays the same on the same checkpoint."""

    value: str

    def __str__(self) -> str:
        return self.value


class JobStatus(Enum):
    """State of a job: running, ended, or between the two. Flink: ``JobStatus``.

    On Spark, a job is RUNNING, RESTARTING, FINISHED, CANCELED or FAILED; the others exist for programs that name them.
    """

    CREATED = "created"
    RUNNING = "running"
    FAILING = "failing"
    FAILED = "failed"
    CANCELLING = "cancelling"
    CANCELED = "canceled"
    FINISHED = "finished"
    RESTARTING = "restarting"
    SUSPENDED = "suspended"
    RECONCILING = "reconciling"

    def is_globally_terminal_state(self) -> bool:
        """Whether the job will never run again.

        >>> JobStatus.RUNNING.is_globally_terminal_state()
        False
        """
        return self in (JobStatus.FINISHED, JobStatus.CANCELED, JobStatus.FAILED)

    def is_terminal_state(self) -> bool:
        """Whether the job no longer runs: for good, or because it was suspended."""
        return self.is_globally_terminal_state() or self is JobStatus.SUSPENDED


@says_what_is_absent
@dataclass(frozen=True)
class JobExecutionResult:
    """Result of a job that has ended.

    ``metrics`` has, by operator, eventide's own counters, among them ``numLateRecordsDropped`` and
    ``numLateRecordsToSideOutput``, and the metrics of functions. A counter is a number; a gauge has a value for each
    subtask; a meter has ``count`` and ``rate``; a distribution has ``count``, ``sum``, ``min``, ``max`` and ``mean``.
    """

    job_id: JobID
    net_runtime_ms: int
    metrics: dict[str, dict[str, Any]] = field(default_factory=dict)

    def get_job_id(self) -> JobID:
        """The id of the job."""
        return self.job_id

    def get_net_runtime(self) -> int:
        """How long the job ran, in milliseconds."""
        return self.net_runtime_ms


@dataclass(frozen=True, slots=True)
class JobRestart:
    """A failure after which a job was restarted by its restart strategy.

    Attributes:
        number: The number of the restart, from 1.
        at_ms: When it failed, in milliseconds since the epoch.
        reason: The error that made it fail.
        after_ms: The delay before the restart, in milliseconds.
    """

    number: int
    at_ms: int
    reason: str
    after_ms: int


KEPT = 1_000
"""Number of micro-batches whose progress is kept; fewer for a job with many splits."""

KEPT_SPLITS = 200_000
"""Number of split watermarks in all kept progress: some 30 MB."""


class LastBatches(Generic[T]):
    """Entries of the last micro-batches: of 1,000, or of fewer if many splits make each entry large.

    >>> last = LastBatches()
    >>> for batch in range(5):
    ...     last.append(batch, splits=80_000)
    >>> list(last)
    [3, 4]
    """

    def __init__(self) -> None:
        self._kept: deque[tuple[T, int]] = deque()
        self._splits = 0

    def append(self, of_batch: T, splits: int) -> None:
        """Add the entry of one more micro-batch, which has watermarks of `splits` splits; the last always stays."""
        self._kept.append((of_batch, splits))
        self._splits += splits
        while len(self._kept) > KEPT or (self._splits > KEPT_SPLITS and len(self._kept) > 1):
            self._splits -= self._kept.popleft()[1]

    def last(self) -> T | None:
        """The entry of the last micro-batch; None if there was none."""
        return self._kept[-1][0] if self._kept else None

    def __iter__(self) -> Iterator[T]:
        kept = [*self._kept]  # a copy: another thread may add an entry meanwhile
        return iter([of_batch for of_batch, _ in kept])


@dataclass(frozen=True, slots=True)
class BatchProgress:
    """Progress of a job after one micro-batch.

    Attributes:
        batch: The number of the micro-batch, from 0.
        counters: By operator, counters and metrics of functions since the start, as in :class:`JobExecutionResult`.
        watermarks: The watermark of each operator, in milliseconds.
        splits_of: The watermark of each split, in milliseconds, by the name of its source, or of its user-defined
            watermark generator.
        counted: By operator, eventide's own counters, of this micro-batch alone.
        rows_in: How many elements the sources read in this micro-batch.
        held: By operator, how much it holds, where a count is available: ``numOpenWindows`` (windows of time, each
            once for all keys), ``numOpenSessions``, ``numKeys``, ``numTimers``, ``numElements``.
        began_ms: When it began, in milliseconds since the epoch.
        took_ms: How long it took, in milliseconds.
        spent_ms: The time spent on each phase, in milliseconds: ``planning``, ``running`` (reading, operators),
            ``sinks`` (as far as ``sink_ms`` has them; the rest is in ``running``), ``committing`` (the checkpoint's
            logs), ``other``.
        sink_ms: For each sink, by its name, the time in milliseconds that it took after all operators had run; for the
            only sink of a job, which writes while they run, the time of its commit. Sinks without a commit of their own
            are missing, and so are all over Spark Connect.
        pending: For each source, how many elements it had beyond this micro-batch when that was planned: 0 without a
            limit of rows. Sources that cannot tell are missing. A DataFrame that reads Kafka is named as Spark
            describes it.
        pending_of: For each of these sources, how many elements each split had; of many splits, only the 200 that had
            most.
        state_bytes: For each stage of operators, the bytes of its state in files, as Spark's state store knew them at
            its last snapshot, some micro-batches ago; empty without a state store. For a job that is known by its
            checkpoint, the bytes of the values in it.

    >>> BatchProgress(0, {}, {}, {"orders": {"0": 7_000, "1": 9_000}}).splits
    {'0': 7000, '1': 9000}
    """

    batch: int
    counters: dict[str, dict[str, Any]]
    watermarks: dict[str, int]
    splits_of: dict[str, dict[str, int]]
    counted: dict[str, dict[str, int]] = field(default_factory=dict)
    rows_in: int = 0
    held: dict[str, dict[str, int]] = field(default_factory=dict)
    began_ms: int = 0
    took_ms: int = 0
    spent_ms: dict[str, int] = field(default_factory=dict)
    state_bytes: tuple[int, ...] = ()
    sink_ms: dict[str, int] = field(default_factory=dict)
    pending: dict[str, int] = field(default_factory=dict)
    pending_of: dict[str, dict[str, int]] = field(default_factory=dict)

    @property
    def splits(self) -> dict[str, int]:
        """The watermark of each split, in milliseconds; with the name of its source before it if there are several."""
        several = len(self.splits_of) > 1
        return {
            f"{source}/{split}" if several else split: ms
            for source, splits in self.splits_of.items()
            for split, ms in splits.items()
        }

    @property
    def num_splits(self) -> int:
        """The number of splits with a watermark."""
        return sum(map(len, self.splits_of.values()))

    @property
    def ended_ms(self) -> int:
        """The end of the micro-batch, in milliseconds since the epoch."""
        return self.began_ms + self.took_ms


class Explanation(Protocol):
    """Why watermarks stand where they do: an :class:`eventide.why.Why`, which :meth:`JobClient.why` returns.

    Print it, or take its parts.
    """

    @property
    def answer(self) -> str:
        """The cause in one sentence, or that nothing is wrong."""

    @property
    def standings(self) -> Sequence[Any]:
        """Where each operator stands, and which splits hold it: of :class:`eventide.why.OperatorStanding`."""

    @property
    def windows(self) -> Sequence[tuple[Any, Any]]:
        """The windows that were asked for, each with the standing of its operator."""

    @property
    def keys(self) -> Sequence[Any]:
        """The state of each operator for the key that was asked for: of :class:`eventide.why.KeyAnswer`."""

    @property
    def advice(self) -> Sequence[Any]:
        """Certain faults, the most important ones first: of :class:`eventide.why.Finding`."""

    @property
    def notes(self) -> Sequence[str]:
        """Facts that are no faults, and good to know."""

    @property
    def asked_ms(self) -> int:
        """When it was asked for, by the clock, in milliseconds."""

    def to_json(self) -> dict[str, Any]:
        """The answer as JSON values; times are milliseconds."""


_NO_SAVEPOINT = (
    "there is no running job to take a savepoint of: jobs have savepoints while they run on Spark as streams; for a "
    "job that has ended, `eventide savepoint CHECKPOINT TARGET` writes one"
)


_NO_CHANGE = (
    "watermark strategies change while a job runs on Spark as a stream, and this one does not; change the program, or, "
    "if it has a checkpoint, call `eventide watermarks CHECKPOINT`, which stores a change for the next start"
)


@says_what_is_absent
class JobClient(ABC):
    """A running job. Methods that return a future in PyFlink return one here too: call its ``result()``."""

    @abstractmethod
    def get_job_id(self) -> JobID:
        """The id of the job."""

    @abstractmethod
    def get_job_status(self) -> Future[JobStatus]:
        """Return the state of the job."""

    @abstractmethod
    def cancel(self) -> Future[None]:
        """Stop the job; it can continue later from its checkpoint, which repeats an interrupted micro-batch."""

    def trigger_savepoint(self, savepoint_directory: str | None = None) -> Future[str]:
        """Start to write a savepoint of the state after the last finished micro-batch, while the job continues.

        A job that starts from it with ``env.from_savepoint(...)`` reads again what this job reads after that
        micro-batch. Use it for a copy of the job with its own output, such as a new version on trial, or for a backup.

        Args:
            savepoint_directory: The parent of the savepoint's own directory; by default the one of
                ``env.set_default_savepoint_directory(...)``.

        Returns:
            The directory of the savepoint, when it is complete. Its ``result()`` raises a StateError if no micro-batch
            is finished yet, or the job removes old state faster than it can be copied.

        Raises:
            ProgramError: No directory is known, or the job does not run on Spark as a stream.
        """
        raise ProgramError(_NO_SAVEPOINT)

    def stop_with_savepoint(
        self, advance_to_end_of_event_time: bool, savepoint_directory: str | None = None
    ) -> Future[str]:
        """Stop the job after the current micro-batch, and write a savepoint of its state.

        The job then ends like a job whose sources have ended, and has such a result. A job that starts from the
        savepoint reads and writes everything exactly once.

        Args:
            advance_to_end_of_event_time: Must be False: no watermark is sent that closes all windows.
            savepoint_directory: As with :meth:`trigger_savepoint`.

        Returns:
            The directory of the savepoint, when it is complete. Its ``result()`` raises what made the job fail.

        Raises:
            ProgramError: As with :meth:`trigger_savepoint`, or the end of event time is asked for.
        """
        raise ProgramError(_NO_SAVEPOINT)

    def change_watermarks(
        self,
        name: str,
        *,
        max_out_of_orderness: Duration | Time | int | None = None,
        idle_timeout: Duration | Time | int | Literal["off"] | None = None,
        max_allowed_watermark_drift: Duration | Time | int | Literal["off"] | None = None,
    ) -> Future[None]:
        """Change values of a watermark strategy, from the next micro-batch on. Not in Flink.

        The job finishes the current micro-batch, and continues with a new query. The watermark never goes back: it
        stays until elements advance it under the new bound. The change is kept with the checkpoint, and applies to
        every later run, until the program declares another value than it does now.

        Args:
            name: The name of the source with the strategy; downstream of an operator, the name of the stream with the
                strategy.
            max_out_of_orderness: The bound of ``for_bounded_out_of_orderness``; unchanged by default.
            idle_timeout: How long a split may be silent; ``"off"``: no split becomes idle by itself.
            max_allowed_watermark_drift: How far a split may be ahead of its group; ``"off"``: the source does not wait
                for the group, nor the group for it.

        Returns:
            A future that is done when the change has taken effect.

        Raises:
            ProgramError: The strategy is unknown or has no such value, or the job does not run on Spark as a stream.
        """
        raise ProgramError(_NO_CHANGE)

    @abstractmethod
    def get_job_execution_result(self) -> Future[JobExecutionResult]:
        """The result, when the job has ended; its ``result()`` waits, and raises what made the job fail."""

    @abstractmethod
    def get_metrics(self) -> dict[str, dict[str, Any]]:
        """Counters, and metrics of functions, by operator, up to the last finished micro-batch."""

    @abstractmethod
    def get_progress(self) -> list[BatchProgress]:
        """Counters and watermarks after each of the last 1,000 micro-batches; empty for a job without micro-batches.

        For a job with more than 200 splits, fewer are kept: up to 200,000 split watermarks in all.
        """

    @abstractmethod
    def why(self, operator: str | None = None, at: int | str | None = None, key: str | None = None) -> Explanation:
        """Explain why watermarks are where they are, and windows do not fire, after the last finished micro-batch.

        Print it, or use its ``to_json()``. Not in Flink.

        Args:
            operator: The name or the id of one operator; by default, all operators.
            at: An event time, whose windows are explained: ISO 8601, in UTC without a zone, or milliseconds.
            key: A key as text, with commas between several fields: the fixed windows in which it has contents are
                explained.

        Returns:
            An :class:`eventide.why.Why`.

        Raises:
            ProgramError: ``at`` is not a time, or the job has no state.
            StateError: There is no such operator, or no micro-batch is finished yet.
        """

    def get_restarts(self) -> list[JobRestart]:
        """The last 1,000 failures after which the restart strategy restarted the job. Not in PyFlink."""
        return []

    def get_time_in_micro_batch(self) -> int:
        """How long the current micro-batch has taken so far, in milliseconds; 0 between two. Not in PyFlink."""
        return 0

    @abstractmethod
    def collected(self) -> Iterator[Any]:
        """The elements of the job's collecting sink, as they arrive; ends with the job."""


def completed(value: T) -> Future[T]:
    """A future that is done.

    >>> completed(3).result()
    3
    """
    future: Future[T] = Future()
    future.set_result(value)
    return future


class FinishedJob(JobClient):
    """The client of a job that ended before its client was returned."""

    def __init__(
        self,
        result: JobExecutionResult,
        collected: list[Any],
        progress: Sequence[BatchProgress] = (),
        explain: Callable[[str | None, int | str | None, str | None], Explanation] | None = None,
    ) -> None:
        self._result = result
        self._collected = collected
        self._progress = progress
        self._explain = explain

    def get_job_id(self) -> JobID:
        return self._result.job_id

    def get_job_status(self) -> Future[JobStatus]:
        return completed(JobStatus.FINISHED)

    def cancel(self) -> Future[None]:
        return completed(None)

    def get_job_execution_result(self) -> Future[JobExecutionResult]:
        return completed(self._result)

    def get_metrics(self) -> dict[str, dict[str, Any]]:
        return self._result.metrics

    def get_progress(self) -> list[BatchProgress]:
        return list(self._progress)

    def why(self, operator: str | None = None, at: int | str | None = None, key: str | None = None) -> Explanation:
        if self._explain is None:
            raise ProgramError(
                "a job in batch mode has one watermark, at its end, and leaves no state that why() could read"
            )
        return self._explain(operator, at, key)

    def collected(self) -> Iterator[Any]:
        return iter(self._collected)
