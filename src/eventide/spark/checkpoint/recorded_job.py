"""A job as its checkpoint tells of it, wherever it runs, and if it does not."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from typing import Any

from pyspark.sql import SparkSession

from eventide.common.job import (
    BatchProgress,
    JobClient,
    JobExecutionResult,
    JobID,
    JobStatus,
    LastBatches,
    completed,
)
from eventide.errors import ProgramError
from eventide.spark.checkpoint.inspection import Inspection, MicroBatch
from eventide.spark.checkpoint.state_reader import evidence, inspected
from eventide.why import Why, why
from eventide.why.evidence import Evidence
from eventide.why.standing import source_name, standings

_SILENT_MS = 60_000
_FRESH_MS = 1_000


class RecordedJob(JobClient):
    """The client of a job that is known by its checkpoint alone: it can be looked at, and not be stopped.

    Each time its progress is asked for, the last committed micro-batch is read, if there is a new one; the counts of
    those between are added. Counters are those that operators keep in their state, since that began. The size of state
    is the bytes of its values.

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
        self._progress: LastBatches[BatchProgress] = LastBatches()
        self._rows: dict[str, int] = {}
        self._looking = threading.Lock()
        self._found: tuple[int, Inspection] | None = None

    def get_job_id(self) -> JobID:
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
        """Return the counts of operators since their state began."""
        last = self._progress.last()
        return {} if last is None else last.counters

    def get_progress(self) -> list[BatchProgress]:
        with self._looking:
            found = self._files()
            last = self._progress.last()
            if found.committed is not None and (last is None or found.committed.number > last.batch):
                batch = self._next(found, evidence(self._spark, self._location, self._clock()))
                self._progress.append(batch, batch.num_splits)
            return list(self._progress)

    def get_time_in_micro_batch(self) -> int:
        """The age of the plan of a micro-batch that is not committed; also where the job has ended in it."""
        unfinished = self._files().unfinished
        return 0 if unfinished is None or unfinished.planned_ms is None else self._clock() - unfinished.planned_ms

    def why(self, operator: str | None = None, at: int | str | None = None, key: str | None = None) -> Why:
        """Answer from the state that the last committed micro-batch left in the checkpoint."""
        return why(evidence(self._spark, self._location, self._clock()), operator, at, key)

    def collected(self) -> Iterator[Any]:
        """Refused: elements come where the job runs."""
        raise ProgramError("the elements of a job come where it runs, and not from its checkpoint")

    def _files(self) -> Inspection:
        """Return the contents of the files, as they are or were a moment ago."""
        now_ms = self._clock()
        if self._found is None or now_ms - self._found[0] >= _FRESH_MS:
            self._found = now_ms, inspected(self._spark, self._location)
        return self._found[1]

    def _next(self, found: Inspection, known: Evidence) -> BatchProgress:
        """The progress after the micro-batch that was committed last, with the counts since the one before it."""
        counters = known.counters()
        rows = _rows_by_source(known)
        last = self._progress.last()
        before = counters if last is None else last.counters
        rows_before = rows if last is None else self._rows
        self._rows = rows
        splits: dict[str, dict[str, int]] = {}
        found_standings = standings(known)
        for standing in found_standings:
            for split in standing.splits:
                splits.setdefault(split.source, {})[split.name] = split.watermark
        return BatchProgress(
            batch=known.batch or 0,
            counters={name: dict(values) for name, values in counters.items()},
            watermarks={one.name: one.watermark for one in found_standings},
            splits_of=splits,
            counted={name: _less(values, before.get(name, {})) for name, values in counters.items()},
            rows_in=sum(_less(rows, rows_before).values()),
            held={one.name: known.held(one.operator) for one in found_standings},
            state_bytes=known.state_bytes,
            **_times(found.committed, known.asked_ms),
        )


def _rows_by_source(known: Evidence) -> dict[str, int]:
    """How many elements each source has given, as the later operator that had most of them remembers."""
    rows: dict[str, int] = {}
    for operator in known.operators:
        log = known.log(operator)
        for edge in known.valve(operator).edges.values():
            of_edge = [record.rows for (name, _), record in log.splits.items() if name == edge["name"]]
            of_edge += [record.rows for name, record in log.ended.items() if name == edge["name"]]
            source = source_name(known, edge)
            rows[source] = max(rows.get(source, 0), sum(of_edge))
    return rows


def _times(batch: MicroBatch | None, asked_ms: int) -> dict[str, Any]:
    """When a micro-batch began, and how long it took until it was written down as planned, and as committed."""
    if batch is None or batch.planned_ms is None or batch.committed_ms is None:
        return {"began_ms": asked_ms}
    logged_ms = min(max(batch.logged_ms or batch.planned_ms, batch.planned_ms), batch.committed_ms)
    return {
        "began_ms": batch.planned_ms,
        "took_ms": max(0, batch.committed_ms - batch.planned_ms),
        "spent_ms": {"planning": logged_ms - batch.planned_ms, "running": batch.committed_ms - logged_ms},
    }


def _less(values: Mapping[str, int], before: Mapping[str, Any]) -> dict[str, int]:
    return {name: number - before.get(name, 0) for name, number in values.items()}
