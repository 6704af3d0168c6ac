"""A running streaming query as a job, and the next query after a failure, as the restart strategy says."""

from __future__ import annotations

import logging
import threading
import time
import uuid
import warnings
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

from eventide.common.accepted import place_in_the_program
from eventide.common.job import (
    BatchProgress,
    Explanation,
    JobClient,
    JobExecutionResult,
    JobID,
    JobRestart,
    JobStatus,
    LastBatches,
    completed,
)
from eventide.common.time import Duration, Time
from eventide.common.words import length
from eventide.errors import ProgramError, StateError, TimersLeftWarning
from eventide.runtime.metrics import JobMetrics, gathered, warning_of_timers
from eventide.spark.checkpoint.strategies import Changes
from eventide.spark.connect import ResultConsumer
from eventide.spark.failures import FENCED, Restarts, is_of_a_gone_server, original
from eventide.spark.progress import ProgressView, about, said_in
from eventide.spark.sinks.program_sinks import Collected, TakenResults

_LOG = logging.getLogger("eventide")
_POLL_S = 0.1
_ENDS_WITHIN_S = 10.0
"""A query that ends by itself is not active for a moment before Spark says that it has ended."""
_CHECK_S = 1.0
_STATUS_S = 1.0
_SET_BACK_S = 2.0
_AT_WORK = ("Processing new data", "No new data but cleaning up state")
"""The messages of `StreamingQuery.status` while a micro-batch runs."""
_POLL_AFTER_SILENCE_S = 60
"""A server that does not answer is asked for ten minutes by PySpark, as is its query for its end at the same time."""


class StreamingJob(JobClient):
    """Follows a query to its end: its counters, its collected elements, its result; and starts it again if it fails.

    Args:
        run: the query that runs.
        start: makes the next run of it, from its checkpoint.
        restarts: says whether there is a next run.
        collected: where the elements of collecting sinks come.
        view: shows what it does.
        at_end: what to do when it has ended for good, told whether nothing more is wanted of its checkpoint.
        explain: says why watermarks stand where they do.
        savepoints: writes those that are asked for.
        changes: the changes of watermark strategies that the program asks for.
    """

    def __init__(
        self,
        run: QueryRun,
        start: Callable[[], QueryRun],
        restarts: Restarts,
        collected: Collected,
        view: ProgressView,
        at_end: Callable[[bool], None],
        explain: Callable[[str | None, int | str | None, str | None], Explanation],
        savepoints: Savepoints,
        changes: Changes,
    ) -> None:
        self._run = run
        self._start = start
        self._restarts = restarts
        self._collected = collected
        self._view = view
        self._at_end = at_end
        self._explain = explain
        self._savepoints = savepoints
        self._changes = changes
        self._started = time.monotonic()
        self._result: Future[JobExecutionResult] = Future()
        self._result.set_running_or_notify_cancel()  # a waiting caller cannot cancel it
        self._metrics = JobMetrics()
        self._progress: LastBatches[BatchProgress] = LastBatches()
        self._next_batch = 0
        self._seen: tuple[int, str] | None = None
        self._at_work: tuple[int, float] | None = None
        """The last finished micro-batch, and since when the one after it has been seen at work."""
        self._asked_for_status = -_STATUS_S
        self._poll_s: float = _POLL_S
        self._id = JobID(str(run.query.id))
        self._is_restarting = self._is_changing = False
        self._cancelled = threading.Event()
        self._between_runs = threading.Lock()
        self._stopping = threading.Thread()
        self._taken: Callable[[], TakenResults | None] = lambda: None
        self._asked = threading.Lock()
        self._made_at = place_in_the_program()
        threading.Thread(target=self._follow, name=f"eventide {run.query.name}", daemon=True).start()

    def get_job_id(self) -> JobID:
        """The id of the query, which stays the same on the same checkpoint."""
        return self._id

    def get_job_status(self) -> Future[JobStatus]:
        return completed(self._status())

    def _status(self) -> JobStatus:
        if not self._result.done():
            return JobStatus.RESTARTING if self._is_restarting else JobStatus.RUNNING
        if self._result.exception() is not None:
            return JobStatus.FAILED
        return JobStatus.CANCELED if self._cancelled.is_set() else JobStatus.FINISHED

    def cancel(self) -> Future[None]:
        """Stop the query; nothing happens to a job that has ended."""
        if self._result.done():
            return completed(None)
        self._cancelled.set()
        with self._between_runs:
            if self._run.taking is not None:
                self._run.taking.release()
            self._collected.close()
            self._run.query.stop()
        try:
            self._result.result()
        except Exception:  # a job that failed is stopped as well; its failure is in its result
            return completed(None)
        return completed(None)

    def trigger_savepoint(self, savepoint_directory: str | None = None) -> Future[str]:
        return self._savepoints.take(savepoint_directory)

    def stop_with_savepoint(
        self, advance_to_end_of_event_time: bool, savepoint_directory: str | None = None
    ) -> Future[str]:
        if advance_to_end_of_event_time:
            raise ProgramError(
                "a job cannot be stopped with all its windows closed: call stop_with_savepoint(False, ...), which "
                "keeps the open windows in the savepoint; or let the sources end"
            )
        with self._between_runs:
            written = self._savepoints.take_at_end(savepoint_directory)
            self._collected.hold_the_rest()
            return written

    def change_watermarks(
        self,
        name: str,
        *,
        max_out_of_orderness: Duration | Time | int | None = None,
        idle_timeout: Duration | Time | int | Literal["off"] | None = None,
        max_allowed_watermark_drift: Duration | Time | int | Literal["off"] | None = None,
    ) -> Future[None]:
        return self._changes.ask(name, max_out_of_orderness, idle_timeout, max_allowed_watermark_drift)

    def get_job_execution_result(self) -> Future[JobExecutionResult]:
        return self._result

    def get_metrics(self) -> dict[str, dict[str, Any]]:
        return self._metrics.values()

    def get_progress(self) -> list[BatchProgress]:
        return list(self._progress)

    def get_restarts(self) -> list[JobRestart]:
        return self._restarts.known()

    def get_time_in_micro_batch(self) -> int:
        at_work = self._at_work
        return 0 if at_work is None or self._result.done() else int((time.monotonic() - at_work[1]) * 1_000)

    def why(self, operator: str | None = None, at: int | str | None = None, key: str | None = None) -> Explanation:
        return self._explain(operator, at, key)

    def collected(self) -> Iterator[Any]:
        """The elements of collecting sinks, as they come; the job goes no further than they are taken.

        A second call returns the same iterator. When the program has forgotten it, the job waits no longer, and later
        elements are not kept.
        """
        with self._asked:  # not with the lock between runs: a run may take long to start
            taken = self._taken()
            if taken is None:
                taken = TakenResults(self._collected, self._end_of_collected)
                self._taken = weakref.ref(taken)
            return taken

    def _end_of_collected(self) -> None:
        if self._run.taking is not None:
            self._run.taking.settle()
        self._result.result()

    def _follow(self) -> None:
        """Run in a thread of its own until the query ends; whatever happens, the result comes, and comes last."""
        failure = self._run_until_the_end()
        with self._between_runs:
            is_saved = self._savepoints.end(failure or self._cancellation())
        self._changes.end()
        with suppress(Exception):
            self._view.close()
        with suppress(Exception):
            self._at_end(is_saved)
        try:
            if failure is None:
                self._tell_of_timers()
                took_ms = int((time.monotonic() - self._started) * 1000)
                self._result.set_result(JobExecutionResult(self._id, took_ms, self._metrics.values()))
            else:
                self._result.set_exception(failure)
        finally:
            self._collected.close()

    def _cancellation(self) -> BaseException | None:
        """The error of a savepoint at the end of a job, if the job was cancelled before it was saved."""
        said = "the job was cancelled before it had finished its micro-batch, so there is no savepoint of its end"
        return StateError(said) if self._cancelled.is_set() else None

    def _run_until_the_end(self) -> BaseException | None:
        """Repeat runs while they fail and the restart strategy allows another; return the last failure, or None.

        A run also ends so that watermark strategies change, or because the clock was set back.
        """
        failure = self._look_until_the_end() or self._finish()
        while (failure is not None or self._is_changing) and not self._cancelled.is_set():
            if failure is not None:
                wait_s = 2 * _CHECK_S if self._is_of_an_older_run(failure) else self._restarts.wait_after(failure)
                if wait_s is None:
                    return failure
                self._is_restarting = True
                if self._cancelled.wait(wait_s):
                    return None
            failure = self._run_again() or self._finish()
        return failure

    def _is_of_an_older_run(self, failure: BaseException) -> bool:
        """Whether an older run wrote down a micro-batch just before it saw that this one owns the checkpoint."""
        is_of_it = str(failure) == FENCED and self._run.check is not None
        if is_of_it:
            _LOG.warning("an older run of the job has written down one more micro-batch, which is begun again")
        return is_of_it

    def _finish(self) -> BaseException | None:
        """After a query was stopped at its end, finish the micro-batch that it had begun; return the error of that."""
        try:
            with self._between_runs:
                self._is_changing = self._is_to_change() and not self._is_over
                is_stopped = self._is_over or self._is_changing
                if self._run.finish is None or not is_stopped or self._cancelled.is_set():
                    return None
                following = self._run.finish(self._savepoints.has_last or self._is_changing)
                if following is None:
                    return None
                self._run = following
        except Exception as error:
            return original(error)
        return self._look_until_the_end()

    def _run_again(self) -> BaseException | None:
        """Start the next run, and look at it until its end; return what made it fail, or not even start."""
        try:
            with self._between_runs:
                if self._cancelled.is_set():
                    return None
                if self._run.check is not None:  # a run that waits to start again must not succeed a younger one
                    self._run.check()
                self._changes.begin()
                self._is_changing = False
                self._run = self._start()
        except Exception as error:
            return original(error)
        self._is_restarting = False
        return self._look_until_the_end()

    def _look_until_the_end(self) -> BaseException | None:
        """Look at the query now and then; return what made it fail, once its last micro-batch is over.

        Spark says that a query is not active from the moment on at which it is stopped, whatever it still does. Only a
        caller that waits without a limit waits for its end.
        """
        self._active_at = self._checked_at = time.monotonic()
        self._is_over = False
        ended: Future[None] = Future()
        threading.Thread(target=_await_end, args=(self._run.query, ended), daemon=True).start()
        of_ours: Exception | None = None
        self._poll_s = _POLL_S
        while True:
            _, running = wait([ended], self._poll_s)
            failure = None if running else ended.exception()
            try:
                if running and self._is_stopped_by_others():
                    self._collected.stop()  # the caller that stopped the query waits for its end, and takes nothing
                if failure is None or not is_of_a_gone_server(failure):
                    self._look()
                if running:
                    self._check_now_and_then()
                if running and self._run.finish is not None:
                    self._is_over = self._is_over or self._savepoints.has_last
                    if not self._is_over:
                        self._changes.look()
                    self._stop_at_the_end(self._savepoints.has_last or self._is_to_change())
            except Exception as error:  # the status of the query is not understood, so it must not go on
                of_ours = of_ours or error
                self._stop_at_the_end(is_over=True)
            if not running:
                of_taking = None if self._run.taking is None else self._run.taking.finish(failure)
                with suppress(Exception):
                    self._run.close()
                if failure is None:
                    return of_ours or of_taking
                succession = self._succession()
                if succession is None:
                    self._run.failed(failure)
                return succession or original(failure)

    def _is_to_change(self) -> bool:
        """Whether the query is to end so that another one goes on from its checkpoint."""
        clock = self._run.clock
        return self._changes.are_due or (clock is not None and clock.was_set_back())

    def _look(self) -> None:
        """Take what progress there is, and see whether the query is over."""
        try:
            last = self._run.query.lastProgress
            # Spark may remember 1,000 micro-batches, and each takes a millisecond to fetch: only for what was missed.
            missed = last is not None and last.batchId > self._next_batch
            recent = self._run.query.recentProgress if missed else []
        except Exception as error:  # that the JVM is gone is for the query's end to say
            self._poll_s = _POLL_AFTER_SILENCE_S if is_of_a_gone_server(error) else _POLL_S
            return
        self._poll_s = _POLL_S
        self._look_at_work(-1 if last is None else last.batchId)
        if last is not None:
            if self._run.is_over is not None:
                self._is_over = self._is_over or self._run.is_over(last)
                self._stop_at_the_end(self._is_over)
            self._take_progress(last, recent or [last])
        if self._run.taking is not None and self._run.taking.failure is not None:
            self._stop_at_the_end(is_over=True)

    def _look_at_work(self, finished: int) -> None:
        """See now and then whether a micro-batch is under way, given the last one that is finished."""
        now = time.monotonic()
        if now < self._asked_for_status + _STATUS_S:
            return
        self._asked_for_status = now
        with suppress(Exception):  # that the JVM is gone is for the query's end to say
            if self._run.query.status["message"] not in _AT_WORK:
                self._at_work = None
            elif self._at_work is None or self._at_work[0] != finished:
                self._at_work = finished, now

    def _check_now_and_then(self) -> None:
        """See whether another run has taken over, once a second; a store that does not answer is asked again."""
        if time.monotonic() >= self._checked_at + _CHECK_S:
            self._checked_at = time.monotonic()
            self._check()

    def _check(self) -> None:
        try:
            if self._run.check is not None:
                self._run.check()
        except OSError as error:
            _LOG.warning("eventide could not check whether another run uses the checkpoint: %s", error)

    def _succession(self) -> StateError | None:
        """The error of a run that another one has succeeded, which stopped it or has its checkpoint by now; or None."""
        try:
            self._check()
        except StateError as error:
            return error
        return None

    def _is_stopped_by_others(self) -> bool:
        """Whether the query has been stopped while an element may wait to be taken; one that has failed goes on.

        Over Spark Connect, elements of a query that has ended by itself still come; one that was stopped does not end.
        """
        with suppress(Exception):  # that the JVM is gone is for the query's end to say
            if self._collected.is_full and not self._stopping.is_alive() and not self._run.query.isActive:
                is_certain = self._run.taking is None or time.monotonic() > self._active_at + _ENDS_WITHIN_S
                return is_certain and self._run.query.exception() is None
        self._active_at = time.monotonic()
        return False

    def _stop_at_the_end(self, is_over: bool) -> None:
        """Stop the query if it is over; the progress of a micro-batch is there when it is committed.

        It may be in a micro-batch for the clock by then, whose elements are still wanted.
        """
        if is_over and not (self._collected.is_full or self._stopping.is_alive()):
            name = f"the end of {self._run.query.name}"
            self._stopping = threading.Thread(target=_stop, args=(self._run.query,), name=name, daemon=True)
            self._stopping.start()

    def _tell_of_timers(self) -> None:
        left = None if self._cancelled.is_set() else warning_of_timers(self._view.title, self._metrics.values())
        if left is not None:
            with suppress(Exception):  # where warnings are errors, the result is returned all the same
                warnings.warn_explicit(left, TimersLeftWarning, *self._made_at)

    def _take_progress(self, last: StreamingQueryProgress, recent: list[StreamingQueryProgress]) -> None:
        if (last.batchId, last.timestamp) == self._seen:
            return
        self._seen = (last.batchId, last.timestamp)
        for progress in recent:
            said = said_in(progress) if progress.batchId >= self._next_batch else None
            if said is not None:
                self._next_batch = progress.batchId + 1
                batch = gathered(
                    progress.batchId, said, self._metrics, **about(progress, self._run.sink_ms(progress.batchId))
                )
                self._progress.append(batch, batch.num_splits)
                self._view.show(list(self._progress))
                if self._run.taking is not None:
                    self._run.taking.committed(progress.batchId)


def _stop(query: StreamingQuery) -> None:
    with suppress(Exception):  # it is tried again with the next look at the query
        query.stop()


def _await_end(query: StreamingQuery, ended: Future[None]) -> None:
    """Wait until a query has ended, in a thread of its own."""
    try:
        query.awaitTermination()
    except BaseException as error:
        ended.set_exception(error)
    else:
        ended.set_result(None)


class TriggerClock:
    """Says whether the clock was set back that a query's trigger waits for.

    Spark begins a micro-batch when the clock has come to a time that it has chosen before. After an hour back, that is
    an hour later.
    """

    def __init__(self) -> None:
        self._ahead_s = _wall_clock_ahead_s()
        self._is_set_back = False

    def was_set_back(self) -> bool:
        """Look at the clock again."""
        ahead_s = _wall_clock_ahead_s()
        if self._ahead_s - ahead_s > _SET_BACK_S and not self._is_set_back:
            self._is_set_back = True
            back = length(round(1_000 * (self._ahead_s - ahead_s)))
            _LOG.warning("the clock was set back by %s; a new query begins, as Spark would wait as long", back)
        self._ahead_s = max(self._ahead_s, ahead_s)
        return self._is_set_back


def _wall_clock_ahead_s() -> float:
    """How far the wall clock is ahead of one that is never set."""
    return time.time() - time.monotonic()


@dataclass(frozen=True, slots=True)
class QueryRun:
    """One run of a job.

    Args:
        query: the query.
        close: is called when it has ended.
        is_over: says by a micro-batch's progress that the query is to be stopped, where Spark would go on; None where
            Spark knows itself when it ends.
        taking: takes the elements for the program, where the query runs in another process.
        finish: starts, when the query was stopped because it was over, the run that finishes the micro-batch that it
            had begun by then; None if it had begun none, or the checkpoint is deleted anyway. It is told whether a
            savepoint is to be written. A run that finishes has none: it is over after its first micro-batch.
        check: raises an error if another run has taken over; None if the store, or Spark, sees to that.
        failed: takes note, for the next run, of what made the query fail.
        sink_ms: gives the time that each sink took for the last micro-batch, by name, given its number.
        clock: the clock for which the query's trigger waits; None if it waits for none, or for that of another machine.
    """

    query: StreamingQuery
    close: Callable[[], None]
    is_over: Callable[[StreamingQueryProgress], bool] | None = None
    taking: ResultConsumer | None = None
    finish: Callable[[bool], QueryRun | None] | None = None
    check: Callable[[], None] | None = None
    failed: Callable[[BaseException], None] = lambda _: None
    sink_ms: Callable[[int], dict[str, int]] = lambda _: {}
    clock: TriggerClock | None = None


class Savepoints:
    """Writes savepoints of a job: while it runs, and one when it has ended.

    Args:
        job: the id of the job, with which their names begin.
        save: writes a savepoint of the last micro-batch that is committed into a new directory.
        directory: where they are written if no place is named.

    Each call gives the directory of a savepoint, once it is complete.

    Raises:
        ProgramError: if no directory is known, or the job has ended.
    """

    def __init__(self, job: str, save: Callable[[str], None], directory: str | None) -> None:
        self._prefix = f"savepoint-{job[:6]}-"
        self._save = save
        self._directory = directory
        self._last: tuple[str, Future[str]] | None = None
        self._has_ended = False

    @property
    def has_last(self) -> bool:
        """Whether the job is to end soon, with a savepoint of its end."""
        return self._last is not None

    def take(self, directory: str | None) -> Future[str]:
        """Write a savepoint now, in a thread of its own."""
        target, written = self._new(directory)
        threading.Thread(target=self._write, args=(target, written), name=target, daemon=True).start()
        return written

    def take_at_end(self, directory: str | None) -> Future[str]:
        """Write a savepoint when the job has ended; each call returns the same one."""
        if self._last is None or self._has_ended:
            self._last = self._new(directory)
        return self._last[1]

    def end(self, failure: BaseException | None) -> bool:
        """Write the savepoint of the end, unless the job has failed; return False if it could not be written."""
        if self._last is not None:
            self._write(*self._last, failure)
        self._has_ended = True
        return failure is not None or self._last is None or self._last[1].exception() is None

    def _new(self, directory: str | None) -> tuple[str, Future[str]]:
        directory = directory or self._directory
        if directory is None:
            raise ProgramError(
                "no directory is known for the savepoint: name one, or call env.set_default_savepoint_directory(...)"
            )
        if self._has_ended:
            raise ProgramError(
                "the job has ended; `eventide savepoint CHECKPOINT TARGET` writes a savepoint of its checkpoint"
            )
        written: Future[str] = Future()
        written.set_running_or_notify_cancel()  # a waiting caller cannot cancel it
        return f"{directory.rstrip('/')}/{self._prefix}{uuid.uuid4().hex[:12]}", written

    def _write(self, target: str, written: Future[str], failure: BaseException | None = None) -> None:
        try:
            if failure is None:
                self._save(target)
        except BaseException as error:
            failure = error
        if failure is None:
            written.set_result(target)
        else:
            written.set_exception(failure)
