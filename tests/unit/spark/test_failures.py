"""From Spark's report of a failure back to an error of ours."""

import pytest

from eventide.errors import DataError, EventideError, StateError
from eventide.spark.failures import original

MOVED = (
    "this checkpoint has been moved or copied: Spark writes whole paths into it, and looks for its state in {}, where "
    "it was written. Put it back there; to go on elsewhere, take a savepoint of it where it was, and begin with "
    "env.from_savepoint(...)"
)

GO_ON = "when the program is started again, it goes on from its checkpoint, and gets the results that it had not read"


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
        (
            "Query failed: File file:/a/cp/state/0/_stateSchema/default/0_1 does not exist",
            StateError,
            MOVED.format("file:/a/cp"),
        ),
        (
            "Wrong FS: s3a://b/cp/state/2/_stateSchema/default/0_1, expected: file:///",
            StateError,
            MOVED.format("s3a://b/cp"),
        ),
        (
            "SparkException: [CANNOT_LOAD_STATE_STORE.CANNOT_READ_STREAMING_STATE_FILE] An error occurred during "
            "loading state. Error reading streaming state file of file:/tmp/eventide-1/state/0/1/12.changelog does not "
            "exist. If the stream job is restarted with a new or updated state operation, please create a new one.",
            StateError,
            "an executor does not find what the job has stored: there is no "
            "file:/tmp/eventide-1/state/0/1/12.changelog. Every machine of the cluster must reach the checkpoint, which"
            " lies where env.get_checkpoint_config().set_checkpoint_storage_dir(...) says, else on the disk of a single"
            " one; and only the job may delete files in it. What is gone cannot be had again: start with a new "
            "checkpoint, or from a savepoint",
        ),
        (
            "[RESPONSE_ALREADY_RECEIVED] INVALID_HANDLE.SESSION_NOT_FOUND on the server but responses were received.",
            StateError,
            "the server of Spark Connect does not know the session of this job any more: it has been started again, or "
            f"the session was stopped; {GO_ON}",
        ),
    ],
)
def test_the_error_of_ours_is_found_in_what_spark_reports(report, kind, message):
    reported = RuntimeError(report)
    error = original(reported)
    assert (type(error), str(error), error.__cause__) == (kind, message, reported)


class SparkConnectGrpcException(Exception):
    """Called as PySpark's."""


UNAVAILABLE = "<_InactiveRpcError of RPC that terminated with: status = StatusCode.UNAVAILABLE>"


def test_a_server_that_does_not_answer_is_said_to_be_one_where_pyspark_has_asked_it():
    error = original(SparkConnectGrpcException(UNAVAILABLE))
    said = f"the server of Spark Connect does not answer any more; {GO_ON}"
    assert (type(error), str(error)) == (EventideError, said)
    of_a_function = RuntimeError(UNAVAILABLE)
    assert original(of_a_function) is of_a_function


def test_an_error_that_is_not_ours_stays_as_it_is():
    reported = RuntimeError("the disk is on fire")
    assert original(reported) is reported
