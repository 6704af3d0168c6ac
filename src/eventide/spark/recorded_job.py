"""A job as its checkpoint tells of it, wherever it runs, and if it does not."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

from pyspark.sql import SparkSession

from eventide.common.job import KEPT, BatchProgress, JobClient, JobExecutionResult, JobID, JobStatus, completed
from eventide.errors import ProgramError
from eventide.runtime.metrics import LATE_DROPPED, LATE_TO_SIDE_OUTPUT, RECORDS_IN
from eventide.spark.evidence import evidence
from eventide.spark.inspection import Inspection, inspect
from eventide.why import Why, why
from eventide.why.evidence import Evidence
from eventide.why.standing import Standing, standings

_SILENT_MS = 60_000
_FRESH_MS = 1_000


class RecordedJob(JobClient):
    """The client of a job that is known by its checkpoint alone: it can be looked at, and not be stopped.

    Each time somebody asks for its progress, the last committed micro-batch is looked at, if it is another one than
    before; those between are not known. What is counted is what operators remember in their state: elements of splits,
    and late ones, since the state began.

    Args:
        spark: the session that reads the state.
        location: the checkpoint's directory.
        clock: gives the time, in milliseconds.
    """

    def __init__(
        self, spark: SparkSession, location: str, clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    ) -> None:
        self._spark = spark
        self._location = location
        self._clock = clock
        self._progress: list[BatchProgress] = []
        self._looking = threading.Lock()
        self._found: tuple[int, Inspection] | None = None

    def get_job_id(self) -> JobID:
        """The id of the query."""
        return JobID(self._files().query or "not started")

    def get_job_status(self) -> Future[JobStatus]:
        """RUNNING if a micro-batch was planned or committed within the last minute, else SUSPENDED."""
        found = self._files()
        times = [ms for one in (found.committed, found.unfinished) if one for ms in (one.planned_ms, one.committed_ms)]
        last_ms = max((ms for ms in times if ms is not None), default=0)
        runs = self._clock() - last_ms < _SILENT_MS
        return completed(JobStatus.RUNNING if runs else JobStatus.SUSPENDED)

    def cancel(self) -> Future[None]:
        """Refused: it runs elsewhere, if it does."""
        raise ProgramError("a job that is known by its checkpoint cannot be stopped from here; stop it where it runs")

    def get_job_execution_result(self) -> Future[JobExecutionResult]:
        """Refused: the checkpoint does not tell how a job ended."""
        raise ProgramError("a checkpoint does not tell how its job ended")

    def get_metrics(self) -> dict[str, dict[str, Any]]:
        """What operators remember of their elements."""
        return self._progress[-1].counters if self._progress else {}

    def get_progress(self) -> list[BatchProgress]:
        """What is known behind the micro-batches that were looked at."""
        with self._looking:
            found = self._files()
            last = self._progress[-1].batch if self._progress else -1
            if found.committed is not None and found.committed.number > last:
                known = evidence(self._spark, self._location, self._clock())
                self._progress = [*self._progress, self._next(found, known)][-KEPT:]
            return list(self._progress)

    def why(self, operator: str | None = None, at: int | str | None = None, key: str | None = None) -> Why:
        """What the last micro-batch that is committed left in the checkpoint."""
        return why(evidence(self._spark, self._location, self._clock()), operator, at, key)

    def collected(self) -> Iterator[Any]:
        """Refused: elements come where the job runs."""
        raise ProgramError("the elements of a job come where it runs, and not from its checkpoint")

    def _files(self) -> Inspection:
        """What the files say, as they are or were a moment ago."""
        now_ms = self._clock()
        if self._found is None or now_ms - self._found[0] >= _FRESH_MS:
            self._found = now_ms, inspect(self._location)
        return self._found[1]

    def _next(self, found: Inspection, known: Evidence) -> BatchProgress:
        found_standings = standings(known)
        counters = {one.name: _counted(one) for one in found_standings}
        before = self._progress[-1].counters if self._progress else counters
        splits: dict[str, dict[str, int]] = {}
        for standing in found_standings:
            for split in standing.splits:
                splits.setdefault(split.source, {})[split.name] = split.watermark
        batch = found.committed
        planned = None if batch is None else batch.planned_ms
        committed = None if batch is None else batch.committed_ms
        began_ms = planned or committed or known.asked_ms
        counted = {name: _less(values, before.get(name, {})) for name, values in counters.items()}
        return BatchProgress(
            batch=known.batch or 0,
            counters={name: dict(values) for name, values in counters.items()},
            watermarks={one.name: one.watermark for one in found_standings},
            splits_of=splits,
            counted=counted,
            rows_in=max((values.get(RECORDS_IN, 0) for values in counted.values()), default=0),
            began_ms=began_ms,
            took_ms=max(0, (committed or began_ms) - began_ms),
        )


def _counted(standing: Standing) -> dict[str, int]:
    """What an operator remembers: of elements, those that came from splits without an operator between."""
    windows = standing.operator["windows"]
    late = LATE_DROPPED if windows is None or windows["late_tag"] is None else LATE_TO_SIDE_OUTPUT
    counts = {RECORDS_IN: standing.rows, late: standing.late.behind.total}
    return {name: number for name, number in counts.items() if number}


def _less(values: dict[str, int], before: dict[str, Any]) -> dict[str, int]:
    return {name: number - before.get(name, 0) for name, number in values.items()}
