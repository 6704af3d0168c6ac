"""The end of a job whose query Spark would let run on for the clock."""

import threading
import time

from eventide.spark.collected import Collected
from eventide.spark.job import StreamingJob
from eventide.spark.progress_view import ProgressView


class Query:
    """Stands in for a query of Spark's that is in a micro-batch for the clock when it is stopped.

    As Spark's, it is not active from the moment on at which it is stopped, and then ends in its own time.
    """

    id, name, isActive, recentProgress, lastProgress = "1", "clock", True, [], object()  # noqa: N815 - Spark's names

    def __init__(self, collected, failures):
        self._collected, self._failures, self._has_ended = collected, failures, threading.Event()

    def awaitTermination(self, timeout=None):  # noqa: N802 - Spark's name
        self._has_ended.wait(timeout)
        return timeout is None or not self.isActive

    def stop(self):
        if self._failures:
            raise self._failures.pop()
        self.isActive = False
        time.sleep(0.3)
        self._collected.put("of the last micro-batch")
        self._has_ended.set()


def job_of(failures):
    collected = Collected()
    query = Query(collected, failures)
    return StreamingJob(
        query, collected, ProgressView("clock"), lambda: None, lambda operator, at: None, is_over=lambda progress: True
    )


def test_what_the_last_micro_batch_gives_while_the_query_is_stopped_is_not_dropped():
    assert list(job_of([]).collected()) == ["of the last micro-batch"]


def test_stopping_is_tried_again_when_spark_refuses():
    assert list(job_of([TimeoutError()]).collected()) == ["of the last micro-batch"]
