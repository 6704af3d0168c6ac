"""A job from run to run: the end of a query that Spark would let run on for the clock, and restarts after failures."""

import logging
import threading
import time
from types import SimpleNamespace

import pytest

from eventide.common import JobStatus, RestartStrategies
from eventide.datastream.data_stream import CloseableIterator
from eventide.errors import ProgramError, StateError, StorageError, UserFunctionError
from eventide.spark import job as job_module
from eventide.spark.checkpoint.owner import Ownership
from eventide.spark.checkpoint.strategies import Changes
from eventide.spark.failures import FENCED, Restarts
from eventide.spark.job import QueryRun, Savepoints, StreamingJob, TriggerClock
from eventide.spark.progress import ProgressView
from eventide.spark.sinks.program_sinks import Collected


class Query:
    """Stands in for a query of Spark's that is in a micro-batch for the clock when it is stopped.

    As Spark's, it is not active from the moment on at which it is stopped, and then ends in its own time.
    """

    id, name, isActive, recentProgress = "1", "clock", True, []  # noqa: N815 - Spark's names
    lastProgress = SimpleNamespace(batchId=0, timestamp="", observedMetrics={})  # noqa: N815

    def __init__(self, collected, failures):
        self._collected, self._failures, self._has_ended = collected, failures, threading.Event()

    def awaitTermination(self, timeout=None):  # noqa: N802 - Spark's name
        self._has_ended.wait(timeout)
        return timeout is None or not self.isActive

    def stop(self):
        if self._failures:
            raise self._failures.pop()
        if self._has_ended.is_set():
            return
        self.isActive = False
        time.sleep(0.3)
        self._collected.put("of the last micro-batch")
        self._has_ended.set()


def job_of(failures):
    collected = Collected()
    run = QueryRun(Query(collected, failures), lambda: None, is_over=lambda progress: True)
    return job_with(run, lambda: run, RestartStrategies.no_restart(), collected)


class Waiting:
    """Changes of watermarks that wait: the names under which they do."""

    def __init__(self):
        self.names = []

    def ask(self, name, *values):
        self.names.append(name)
        return name


def job_with(run, start, strategy, collected=None, save=lambda target: None, at_end=lambda may_go: None, waiting=None):
    waiting = waiting or Waiting()
    restarts = Restarts("orders", strategy)
    return StreamingJob(
        run,
        start,
        restarts,
        collected or Collected(),
        ProgressView("orders"),
        at_end,
        lambda operator, at: None,
        Savepoints("1", save, None),
        Changes(waiting.ask, lambda: waiting.names),
    )


def test_what_the_last_micro_batch_gives_while_the_query_is_stopped_is_not_dropped():
    assert list(job_of([]).collected()) == ["of the last micro-batch"]


def test_what_a_query_had_begun_when_it_was_over_is_finished_by_one_more_run():
    collected, started = Collected(), []

    def finish(is_saved):
        started.append(True)
        return QueryRun(Query(collected, []), lambda: None, is_over=lambda progress: True)

    run = QueryRun(Query(collected, []), lambda: None, is_over=lambda progress: True, finish=finish)
    job = job_with(run, lambda: run, RestartStrategies.no_restart(), collected)
    assert list(job.collected()) == ["of the last micro-batch"] * 2
    assert started == [True]


def test_a_query_that_ends_by_itself_is_followed_by_none():
    run = QueryRun(Failing(None), lambda: None, finish=lambda is_saved: pytest.fail("there is nothing to finish"))
    job = job_with(run, lambda: run, RestartStrategies.no_restart())
    assert job.get_job_execution_result().result(10) is not None


def job_that_goes_on(asked, saved):
    """A job whose query goes on until it is stopped, and has begun one more micro-batch then."""

    def query():
        return Query(SimpleNamespace(put=lambda value: None), [])

    def finish(is_saved):
        asked.append(is_saved)
        return QueryRun(query(), lambda: None, is_over=lambda progress: True)

    run = QueryRun(query(), lambda: None, finish=finish)
    return job_with(run, lambda: run, RestartStrategies.no_restart(), save=saved.append)


def test_a_job_that_is_stopped_with_a_savepoint_finishes_its_micro_batch_before_it_is_saved():
    asked, saved = [], []
    job = job_that_goes_on(asked, saved)
    target = job.stop_with_savepoint(False, "/saves/").result(10)
    assert target.startswith("/saves/savepoint-1-")
    assert (asked, saved) == ([True], [target])
    assert job.get_job_execution_result().result(10) is not None
    assert job.get_job_status().result() is JobStatus.FINISHED
    with pytest.raises(ProgramError, match="the job has ended; `eventide savepoint CHECKPOINT TARGET` writes"):
        job.stop_with_savepoint(False, "/saves")


def test_a_job_that_is_cancelled_meanwhile_has_no_savepoint_of_its_end():
    asked, saved = [], []
    job = job_that_goes_on(asked, saved)
    written = job.stop_with_savepoint(False, "/saves")
    job.cancel()
    with pytest.raises(StateError, match="the job was cancelled before it had finished its micro-batch"):
        written.result(10)
    assert (asked, saved) == ([], [])


def test_a_savepoint_that_fails_tells_its_caller_and_the_job_goes_on():
    job = job_that_goes_on([], [])
    with pytest.raises(ProgramError, match="no directory is known for the savepoint"):
        job.trigger_savepoint()
    job = job_with(
        run := QueryRun(Query(SimpleNamespace(put=lambda value: None), []), lambda: None),
        lambda: run,
        RestartStrategies.no_restart(),
        save=lambda target: pytest.fail("nothing is committed"),
    )
    assert "nothing is committed" in str(job.trigger_savepoint("/saves").exception(10))
    assert job.get_job_status().result() is JobStatus.RUNNING
    job.cancel()


def job_that_changes(waiting, events):
    """A job whose query goes on until it is stopped, and has begun one more micro-batch then."""

    def run(name, **settings):
        events.append(f"{name} with {len(waiting.names)} waiting")
        return QueryRun(Query(SimpleNamespace(put=lambda value: None), []), lambda: None, **settings)

    def start():
        waiting.names.clear()
        return run("the next query", finish=finish)

    def finish(is_wanted):
        return run("the query that finishes", is_over=lambda progress: True) if is_wanted else None

    return job_with(run("a query", finish=finish), start, RestartStrategies.no_restart(), waiting=waiting)


def test_watermarks_change_between_two_queries_after_the_micro_batch_that_was_begun():
    waiting, events = Waiting(), []
    job = job_that_changes(waiting, events)
    job.change_watermarks("orders", max_out_of_orderness=5).result(30)
    assert events == [
        "a query with 0 waiting",
        "the query that finishes with 1 waiting",
        "the next query with 0 waiting",
    ]
    assert job.get_job_status().result() is JobStatus.RUNNING
    assert job.get_restarts() == []
    job.cancel()
    with pytest.raises(ProgramError, match="the job has ended; `eventide watermarks CHECKPOINT` stores a change"):
        job.change_watermarks("orders", max_out_of_orderness=5)


def test_a_change_of_another_process_is_seen_by_the_job():
    waiting, events = Waiting(), []
    job = job_that_changes(waiting, events)
    waiting.names.append("of a command")
    deadline = time.monotonic() + 60
    while waiting.names:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert events[1:] == ["the query that finishes with 1 waiting", "the next query with 0 waiting"]
    job.cancel()


def test_a_job_that_ends_before_a_change_tells_its_caller():
    waiting = Waiting()
    run = QueryRun(Query(SimpleNamespace(put=lambda value: None), []), lambda: None)  # one that only finishes
    job = job_with(run, lambda: run, RestartStrategies.no_restart(), waiting=waiting)
    changed = job.change_watermarks("orders", idle_timeout="off")
    job.cancel()
    with pytest.raises(StateError, match="the job has ended before its watermark strategies could change"):
        changed.result(30)
    assert waiting.names == ["orders"], "it waits for the next start"


def test_a_new_query_begins_when_the_clock_is_set_back_for_which_the_trigger_waits(monkeypatch, caplog):
    ahead_s, looks, started = [7_200.0], [], []

    def look():
        looks.append(ahead_s[0])
        return ahead_s[0]

    monkeypatch.setattr(job_module, "_wall_clock_ahead_s", look)

    def run():
        query = Query(SimpleNamespace(put=lambda value: None), [])
        return QueryRun(query, lambda: None, finish=lambda is_wanted: None, clock=TriggerClock())

    def start():
        started.append(ahead_s[0])
        return run()

    job = job_with(run(), start, RestartStrategies.no_restart())
    with caplog.at_level("WARNING", "eventide"):
        for moved_s in (-1.0, +3_600.0, -3_600.0):  # back by less than matters, forth, back to what it was
            ahead_s[0] += moved_s
            seen = len(looks)
            while len(looks) < seen + 3:
                time.sleep(0.01)
    while not started:
        time.sleep(0.01)
    assert job.get_job_status().result() is JobStatus.RUNNING
    assert (started, job.get_restarts()) == ([7_199.0], [])
    assert [record.getMessage() for record in caplog.records] == [
        "the clock was set back by 1 h; a new query begins, as Spark would wait as long"
    ]
    job.cancel()


def test_a_run_stops_when_another_one_has_taken_over(monkeypatch):
    monkeypatch.setattr(job_module, "_CHECK_S", 0.0)
    answers = [OSError("the store does not answer"), StateError("another run has begun")]

    def check():
        raise answers[0] if len(answers) == 1 else answers.pop(0)

    run = QueryRun(Query(SimpleNamespace(put=lambda value: None), []), lambda: None, check=check)
    following = job_with(run, lambda: pytest.fail("it is not started again"), THREE_TIMES)
    assert str(following.get_job_execution_result().exception(30)) == "another run has begun"


def test_a_run_that_was_succeeded_says_so_whatever_it_fails_with_and_is_not_started_again():
    def check():
        raise StateError("another run has begun")

    noted = []
    run = QueryRun(Failing(OSError("interrupted")), lambda: None, check=check, failed=noted.append)
    result = job_with(run, lambda: pytest.fail("it is not started again"), THREE_TIMES).get_job_execution_result()
    assert (str(result.exception(30)), noted) == ("another run has begun", [])


@pytest.mark.parametrize("owns", [True, False])
def test_a_run_goes_on_when_an_older_one_has_been_first_once_more(monkeypatch, owns):
    monkeypatch.setattr(job_module, "_CHECK_S", 0.0)

    def check():
        if not owns:
            raise StateError("another run has begun")

    started = []

    def start():
        started.append(QueryRun(Failing(None), lambda: None))
        return started[-1]

    fenced = QueryRun(Failing(StateError(FENCED)), lambda: None, check=check)
    result = job_with(fenced, start, RestartStrategies.no_restart()).get_job_execution_result()
    assert (result.exception(30) is None) == owns == (len(started) == 1)


@pytest.mark.parametrize("is_full", [False, True])
def test_the_checkpoint_may_go_at_the_end_unless_a_savepoint_of_it_could_not_be_written(is_full):
    def save(target):
        if is_full:
            raise StorageError("no room")

    ended = []
    run = QueryRun(Query(SimpleNamespace(put=lambda value: None), []), lambda: None, finish=lambda is_saved: None)
    job = job_with(run, lambda: run, RestartStrategies.no_restart(), save=save, at_end=ended.append)
    assert (job.stop_with_savepoint(False, "/saves").exception(10) is None) is not is_full
    assert job.get_job_execution_result().result(10) is not None
    assert ended == [not is_full]


def test_stopping_is_tried_again_when_spark_refuses():
    assert list(job_of([TimeoutError()]).collected()) == ["of the last micro-batch"]


class Failing:
    """Stands in for a query that has ended, with a failure or without."""

    id, name, isActive, recentProgress, lastProgress = "1", "orders", False, [], None  # noqa: N815 - Spark's names

    def __init__(self, failure):
        self._failure = failure

    def awaitTermination(self):  # noqa: N802 - Spark's name
        if self._failure is not None:
            raise self._failure

    def exception(self):
        return self._failure

    def stop(self):
        pass


class Runs:
    """Gives a run for each of some failures, None for one that goes well; one that is a string does not even start."""

    def __init__(self, *failures):
        self._failures = [*failures]
        self.closed = 0

    def __call__(self):
        failure = self._failures.pop(0)
        if isinstance(failure, str):
            raise ConnectionError(failure)
        return QueryRun(Failing(failure), self._close)

    def _close(self):
        self.closed += 1


def outcome_of(strategy, *failures):
    runs = Runs(*failures)
    job = job_with(runs(), runs, strategy)
    failure = job.get_job_execution_result().exception(timeout=30)
    return job, failure, runs


THREE_TIMES = RestartStrategies.fixed_delay_restart(3, 0)


def test_a_process_of_python_that_is_late_is_tried_again_a_few_times_whatever_the_strategy():
    late = RuntimeError("Query terminated with exception: Python worker failed to connect back.")
    job, failure, _ = outcome_of(RestartStrategies.no_restart(), late, None)
    assert failure is None
    assert len(job.get_restarts()) == 1
    restarts = Restarts("orders", THREE_TIMES)
    assert [restarts.wait_after(late) for _ in range(9)] == [1] * 5 + [0] * 3 + [None]
    assert Restarts("orders", RestartStrategies.no_restart()).wait_after(RuntimeError("disk full")) is None


def test_a_job_that_failed_is_started_again_and_says_why(caplog):
    with caplog.at_level(logging.WARNING, logger="eventide"):
        job, failure, runs = outcome_of(THREE_TIMES, UserFunctionError("no such host"), OSError("disk"), None)
    assert failure is None
    assert job.get_job_status().result() is JobStatus.FINISHED
    assert [(one.number, one.reason, one.after_ms) for one in job.get_restarts()] == [
        (1, "UserFunctionError: no such host", 0),
        (2, "OSError: disk", 0),
    ]
    assert [record.getMessage() for record in caplog.records if record.name == "eventide"] == [
        "the job 'orders' has failed, and is started again in 0 ms (restart 1); the reason: "
        "UserFunctionError: no such host",
        "the job 'orders' has failed, and is started again in 0 ms (restart 2); the reason: OSError: disk",
    ]
    assert runs.closed == 3


def test_what_a_program_has_not_taken_yet_when_the_job_fails_does_not_end_what_it_collects():
    collected = Collected(most_waiting=2)
    for element in (1, 2):
        collected.put(element)
    runs, starts, again = Runs(OSError("disk"), None), threading.Event(), threading.Event()

    def start():
        starts.set()
        again.wait()
        return runs()

    job = job_with(runs(), start, THREE_TIMES, collected)
    starts.wait()
    taken = job.collected()
    assert next(taken) == 1
    collected.put(3)  # the queue is full, and is not read while the job starts again
    again.set()
    job.get_job_execution_result().result(timeout=30)
    assert [*taken] == [2, 3]
    assert len(job.get_restarts()) == 1


def test_a_job_has_one_iterator_of_what_it_collects_as_long_as_anybody_has_it():
    job, _, _ = outcome_of(THREE_TIMES, None)
    taken = job.collected()
    assert job.collected() is taken


def test_a_job_that_has_ended_is_not_cancelled():
    job, _, _ = outcome_of(THREE_TIMES, None)
    job.cancel().result()
    assert job.get_job_status().result() is JobStatus.FINISHED


def test_it_gives_up_with_the_last_reason_and_says_how_often_it_was_tried():
    failures = [ValueError(str(number)) for number in range(4)]
    job, failure, _ = outcome_of(THREE_TIMES, *failures)
    assert failure is failures[-1]
    assert failure.__notes__ == [
        "This is the last failure of the job 'orders', which was started again 3 times. Its restart strategy: Restart "
        "with fixed delay (0:00:00). #3 restart attempts."
    ]
    assert job.get_job_status().result() is JobStatus.FAILED


def test_a_run_that_does_not_start_counts_as_one_that_failed():
    job, failure, _ = outcome_of(THREE_TIMES, OSError("disk"), "nobody there", None)
    assert failure is None
    assert [one.reason for one in job.get_restarts()] == ["OSError: disk", "ConnectionError: nobody there"]


@pytest.mark.parametrize("strategy", [RestartStrategies.no_restart(), RestartStrategies.fall_back_restart()])
def test_a_job_without_a_strategy_fails_at_once(strategy):
    error = OSError("disk")
    job, failure, _ = outcome_of(strategy, error)
    assert (failure, job.get_restarts(), hasattr(failure, "__notes__")) == (error, [], False)


def test_what_can_never_go_well_is_not_tried_again():
    error = StateError("another run of this job goes on with its checkpoint")
    job, failure, _ = outcome_of(THREE_TIMES, error)
    assert (failure, job.get_restarts()) == (error, [])


class Gone(Failing):
    """Stands in for a query whose server has begun anew; it knows whether it is asked when that is clear."""

    has_failed, is_asked = False, False

    def awaitTermination(self):  # noqa: N802 - Spark's name
        self.has_failed = True
        super().awaitTermination()

    @property
    def lastProgress(self):  # noqa: N802 - Spark's name
        self.is_asked |= self.has_failed


def test_a_server_that_is_gone_is_not_asked_how_the_query_stands_nor_tried_again():
    query = Gone(RuntimeError("[INVALID_HANDLE.SESSION_CHANGED] The handle is invalid."))
    run = QueryRun(query, lambda: None)
    job = job_with(run, lambda: run, THREE_TIMES)
    with pytest.raises(StateError, match="does not know the session of this job any more"):
        job.get_job_execution_result().result(timeout=30)
    assert (query.is_asked, job.get_restarts()) == (False, [])


def test_a_job_that_waits_is_restarting_and_can_be_cancelled():
    runs = Runs(OSError("disk"))
    job = job_with(runs(), runs, RestartStrategies.fixed_delay_restart(1, 3_600_000))
    while not job.get_restarts():
        time.sleep(0.01)
    while job.get_job_status().result() is not JobStatus.RESTARTING:
        time.sleep(0.01)
    CloseableIterator(job).close()
    assert job.get_job_status().result() is JobStatus.CANCELED
    assert runs.closed == 1


@pytest.mark.parametrize(
    ("error", "warned", "looks_a_minute_later"),
    [(ProgramError("no Arrow"), 0, False), (StorageError("no answer"), 1, True)],
)
def test_a_job_does_not_ask_a_store_again_at_once_that_gives_no_answer(
    monkeypatch, caplog, error, warned, looks_a_minute_later
):
    looks, now = [], [100.0]
    monkeypatch.setattr("eventide.spark.checkpoint.strategies.time.monotonic", lambda: now[0])

    def waiting():
        looks.append(now[0])
        raise error

    changes = Changes(lambda *_: "", waiting)
    with caplog.at_level("WARNING", "eventide"):
        for second in (0, 5, 55, 65):
            now[0] = 100.0 + second
            changes.look()
    assert looks == [100.0] + [165.0] * looks_a_minute_later
    assert len(caplog.records) == len(looks) * warned
    assert not changes.are_due


def test_a_job_that_waits_to_start_again_does_not_take_the_checkpoint_back(tmp_path):
    """A younger run that has begun meanwhile goes on."""
    place, younger = str(tmp_path), []
    first = Ownership(place, "older").claim()

    class Checked:
        def __init__(self):
            self.failures = [None, OSError("the store does not answer")]

        def __call__(self):
            if self.failures and (failure := self.failures.pop(0)) is not None:
                younger.append(Ownership(place, "younger").claim())
                raise failure
            first.check()

    run = QueryRun(Failing(UserFunctionError("a broker was away")), lambda: None, check=Checked())
    job = job_with(run, lambda: pytest.fail("it is not started again"), RestartStrategies.fixed_delay_restart(5, 0))
    assert "another run of this job has begun" in str(job.get_job_execution_result().exception(30))
    younger[0].check()


def test_a_savepoint_at_the_end_does_not_wait_for_elements_to_be_taken():
    collected = Collected(most_waiting=1)
    collected.put("taken later")
    query = Query(collected, [])
    run = QueryRun(query, lambda: None, finish=lambda is_saved: None)
    job = job_with(run, lambda: run, RestartStrategies.no_restart(), collected)
    assert job.stop_with_savepoint(False, "/savepoints").result(30).startswith("/savepoints/")
    assert list(collected) == ["taken later", "of the last micro-batch"]
