"""From Spark's report of a failure back to an error of ours."""

import pytest

from eventide.errors import DataError, StateError
from eventide.spark.failures import original


@pytest.mark.parametrize(
    ("report", "kind", "message"),
    [
        ("worker: eventide.errors.DataError: it is bad\n SQLSTATE: 39000", DataError, "it is bad"),
        ("worker: eventide.errors.TypeMismatch: it is bad\n  at org.spark.Task(Task.scala)", DataError, "it is bad"),
        (
            "[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update to the log. Multiple streaming jobs detected for 7.",
            StateError,
            "another run of this job goes on with its checkpoint, and this one has stopped: only one of the two could "
            "write down what comes next; let only one run at a time use a checkpoint",
        ),
    ],
)
def test_the_error_of_ours_is_found_in_what_spark_reports(report, kind, message):
    reported = RuntimeError(report)
    error = original(reported)
    assert (type(error), str(error), error.__cause__) == (kind, message, reported)


def test_an_error_that_is_not_ours_stays_as_it_is():
    reported = RuntimeError("the disk is on fire")
    assert original(reported) is reported
