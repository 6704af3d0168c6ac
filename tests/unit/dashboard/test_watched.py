"""Values of a job for its page."""

from concurrent.futures import Future
from types import SimpleNamespace

from eventide.common.job import BatchProgress, JobRestart, JobStatus, completed
from eventide.common.ms import MAX_MS, MIN_MS
from eventide.dashboard.watched import WatchedJob, WatchedJobs
from support.watching import NASTY, T, finished, job_of_the_twin


def test_a_micro_batch_has_what_its_charts_show():
    first, second, third, end = job_of_the_twin().batches()
    assert [one["rows_in"] for one in (first, second, third, end)] == [2, 2, 2, 0]
    assert third["operators"][NASTY] == {
        "in": 2,
        "out": 1,
        "dropped": 0,
        "aside": 1,
        "dead": 0,
        "watermark": T + 25,
        "held": {"numOpenWindows": 2},
    }
    assert third["splits"] == {"count": 2, "silent": 0, "at": [T + 25, T + 25, T + 25, T + 30]}
    assert end["operators"][NASTY]["watermark"] == "end"


def test_only_what_is_new_is_given_again():
    job = job_of_the_twin()
    assert [one["batch"] for one in job.batches(after=1)] == [2, 3]
    assert job.batches(after=3) == []


def test_the_slowest_splits_have_their_whole_way():
    (slow,) = job_of_the_twin().slowest(1)
    assert slow == {"source": "script", "split": "a", "watermarks": [T - 1, T + 24, T + 25, T + 25]}


def test_what_was_said_stands_until_something_else_is_said():
    """A micro-batch in which nothing came for an operator has nothing of it."""
    job = finished(
        [
            BatchProgress(3, {"w": {}}, {"w": 5}, {"s": {"a": MIN_MS, "b": 7}}),
            BatchProgress(4, {"w": {}}, {}, {}),
            BatchProgress(5, {"w": {}}, {"w": MAX_MS}, {"s": {"a": 9}}),
        ]
    )
    first, second, third = job.batches()
    assert [one["operators"]["w"]["watermark"] for one in (first, second, third)] == [5, 5, "end"]
    assert first["splits"] == second["splits"] == {"count": 2, "silent": 1, "at": [7, 7, 7, 7]}
    assert third["splits"] == {"count": 1, "silent": 0, "at": [9, 9, 9, 9]}, "a split that has ended is gone"
    assert job.slowest(5) == [{"source": "s", "split": "a", "watermarks": [None, None, 9]}]
    assert job.last().splits_of == {"s": {"a": 9}}


def test_thousands_of_splits_are_a_band_and_the_slowest():
    splits = {str(n): T + n for n in range(5_000)}
    job = finished([BatchProgress(0, {}, {}, {"s": splits})])
    (batch,) = job.batches()
    assert batch["splits"] == {"count": 5_000, "silent": 0, "at": [T, T + 500, T + 2_500, T + 4_999]}
    assert [one["split"] for one in job.slowest(3)] == ["0", "1", "2"]


def test_a_failure_is_told_in_words():
    failed: Future[object] = Future()
    failed.set_exception(ValueError("a bad element"))
    client = SimpleNamespace(
        get_job_status=lambda: completed(JobStatus.FAILED),
        get_job_execution_result=lambda: failed,
        get_job_id=lambda: "7",
        get_restarts=lambda: [JobRestart(3, 0, "OSError: disk", 10)],
    )
    heading = WatchedJob(1, "trips", client, {}).heading()
    assert (heading["status"], heading["failure"]) == ("failed", "ValueError: a bad element")
    assert (heading["restarts"], heading["last_restart"]) == (3, "OSError: disk")


def test_why_is_what_the_client_says():
    def client(**methods):
        return WatchedJob(1, "trips", SimpleNamespace(get_progress=list, **methods), {})

    def fails(operator):
        raise KeyError(operator)

    assert client(why=lambda operator: f"{operator} waits for split b").why("w") == "w waits for split b"
    assert client(why=fails).why("w") == "That could not be found out: 'w'"


def test_why_is_found_out_once_behind_a_micro_batch():
    asked, known = [], [BatchProgress(0, {}, {}, {})]
    client = SimpleNamespace(get_progress=lambda: known, why=lambda operator: asked.append(operator) or len(asked))
    job = WatchedJob(1, "trips", client, {})
    assert [job.why("w"), job.why("w"), job.why("v")] == ["1", "1", "2"]
    known.append(BatchProgress(1, {}, {}, {}))
    assert job.why("w") == "3"


def test_jobs_that_run_stay_and_of_those_that_ended_the_last():
    def client(status):
        return SimpleNamespace(get_job_status=lambda: completed(status))

    jobs = WatchedJobs()
    jobs.add("runs", client(JobStatus.RUNNING), {})
    for n in range(25):
        jobs.add(str(n), client(JobStatus.FINISHED), {})
    assert [job.name for job in jobs()] == ["runs", *map(str, range(5, 25))]
