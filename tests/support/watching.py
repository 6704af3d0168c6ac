"""Jobs of the twin that have ended, and what it takes to look at them."""

import json
import urllib.error
import urllib.request
from contextlib import contextmanager

from eventide.common.job import FinishedJob, JobExecutionResult, JobID
from eventide.dashboard.server import Dashboard
from eventide.dashboard.watched import WatchedJob
from eventide.datastream import OutputTag
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.plan.description import describe
from eventide.testing import ScriptedSource, local_environment
from support.twin import BY_SECOND_FIELD, Contents, plan_of, runner

NASTY = "<script>alert(1)</script>"
LATE = OutputTag("late")
T = 1_700_000_000_000
STEPS = [
    [("a", ("x", T)), ("b", ("y", T + 12))],
    [("a", ("x", T + 25)), ("b", ("x", T + 31))],
    [("a", ("late", T + 1)), ("a", ("x", T + 26))],
]


def finished(progress, metrics=None, name="trips", number=1, description=None, job_id="the id"):
    """A watched job that has ended after some micro-batches."""
    client = FinishedJob(JobExecutionResult(JobID(job_id), 5, metrics or {}), [], progress)
    return WatchedJob(number, name, client, description or {})


def job_of_the_twin(name="trips"):
    """A job with two splits, a window, a late element on a side output, and a name that is markup."""
    stream = local_environment().from_source(ScriptedSource(["a", "b"], STEPS), BY_SECOND_FIELD, "script")
    windows = stream.key_by(lambda e: e[0]).window(TumblingEventTimeWindows.of(10)).side_output_late_data(LATE)
    result = windows.process(Contents()).name(NASTY)
    plan = plan_of(result, result.get_side_output(LATE))
    run = runner(plan)
    progress = [batch.progress for batch in run.batches()]
    return finished(progress, run.metrics(), name, description=describe(plan))


@contextmanager
def served(*jobs):
    """The address of a dashboard with some jobs."""
    dashboard = Dashboard("127.0.0.1", 0)
    try:
        for job in jobs:
            dashboard.watch(job.name, job.client, job.description)
        yield dashboard.url
    finally:
        dashboard.close()


def asked(url, method="GET", **headers):
    """The status, the headers and the text of an answer."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers, method=method), timeout=10) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, error.read().decode()


def json_of(url):
    """The answer of an address."""
    return json.loads(asked(url)[2])
