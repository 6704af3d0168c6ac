"""From Spark's report of a failed query back to the error of eventide that caused it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from eventide import errors
from eventide.spark.session.missing import what_is_missing

_OURS = re.compile(r"eventide\.errors\.(\w+): (.*?)(?=\n SQLSTATE: |\n+\s*at [\w.$]+\(|\Z)", re.DOTALL)

_SECOND_RUN = "CONCURRENT_STREAM_LOG_UPDATE"
_LATE_PROCESS = "Python worker failed to connect back"
ONE_RUN_ONLY = "let only one run at a time use a checkpoint"
_NOT_THERE = re.compile(r"does not exist|No such file|Wrong FS")
_SCHEMA_OF_STATE = re.compile(r"((?:[a-z][\w+.-]*:)?/[^\n]*?)/state/\d+/_stateSchema/")
_STATE_FILE = re.compile(r"CANNOT_LOAD_STATE_STORE[^\n]*?((?:[a-z][\w+.-]*:)?/[^\n]*?)(/state/\d+/\d+/[\w./-]*\w)")
FENCED = (
    "another run of this job goes on with its checkpoint, and this one has stopped: only one of the two could write "
    f"down what comes next; {ONE_RUN_ONLY}"
)
_MOVED = (
    "this checkpoint has been moved or copied: Spark writes whole paths into it, and looks for its state in {place}, "
    "where it was written. Put it back there; to go on elsewhere, take a savepoint of it where it was, and begin with "
    "env.from_savepoint(...)"
)

_GONE = (
    "an executor does not find what the job has stored: there is no {place}{file}. Every machine of the cluster must "
    "reach the checkpoint, which lies where env.get_checkpoint_config().set_checkpoint_storage_dir(...) says, else on "
    "the disk of a single one; and only the job may delete files in it. What is gone cannot be had again: start with "
    "a new checkpoint, or from a savepoint"
)

_NO_SESSION = re.compile(r"INVALID_HANDLE\.SESSION_|\[NO_ACTIVE_SESSION\]")
_NO_ANSWER = "StatusCode.UNAVAILABLE"
_OF_CONNECT = "SparkConnectGrpcException"
_GO_ON = "when the program is started again, it goes on from its checkpoint, and gets the results that it had not read"
_SESSION_GONE = (
    "the server of Spark Connect does not know the session of this job any more: it has been started again, or the "
    f"session was stopped; {_GO_ON}"
)
_SERVER_GONE = f"the server of Spark Connect does not answer any more; {_GO_ON}"


def original(error: BaseException) -> BaseException:
    """The error that a worker raised, with its full message; Spark's own error where the cause is not ours.

    That another run uses the checkpoint, that it was moved, that state is not where an executor looks, that a process
    lacks what the program needs, or that the server of Spark Connect is gone, is said in words of ours.
    """
    found = _OURS.findall(str(error))
    if not found and _SECOND_RUN in str(error):
        found = [("StateError", FENCED)]
    if not found and (place := _moved_from(str(error))) is not None:
        found = [("StateError", _MOVED.format(place=place))]
    if not found and (gone := _gone_from(str(error))) is not None:
        found = [("StateError", gone)]
    if not found and (missing := what_is_missing(str(error))) is not None:
        found = [("ProgramError", missing)]
    if not found and _NO_SESSION.search(str(error)):
        found = [("StateError", _SESSION_GONE)]
    if not found and _is_without_answer(error):
        found = [("EventideError", _SERVER_GONE)]
    if not found:
        return error
    name, message = found[0]
    kind = getattr(errors, name, errors.EventideError)
    if kind is errors.TypeMismatch:
        kind = errors.DataError
    ours: BaseException = kind(message.rstrip())
    ours.__cause__ = error
    return ours


def _moved_from(said: str) -> str | None:
    """Where a checkpoint has been written, if Spark does not find its state because it is not there any more."""
    path = _SCHEMA_OF_STATE.search(said)
    return path.group(1) if path is not None and _NOT_THERE.search(said) else None


def _gone_from(said: str) -> str | None:
    """Return the message for an executor that does not find a file of the state."""
    path = _STATE_FILE.search(said)
    return _GONE.format(place=path[1], file=path[2]) if path is not None and _NOT_THERE.search(said) else None


def _is_without_answer(error: BaseException) -> bool:
    """Whether it is PySpark that has asked long enough; a function of the program may talk to servers too."""
    return type(error).__name__ == _OF_CONNECT and _NO_ANSWER in str(error)


@contextmanager
def in_our_words() -> Iterator[None]:
    """Raise the :func:`original` error in place of Spark's."""
    try:
        yield
    except Exception as error:
        found = original(error)
        if found is error:
            raise
        raise found from error


def is_for_good(error: BaseException) -> bool:
    """Whether a job that failed would fail again however often it is started: by what its program is, or its state."""
    return isinstance(error, errors.ProgramError | errors.StateError)


def is_of_a_gone_server(error: BaseException) -> bool:
    """Whether the server of Spark Connect is not there any more, or has begun anew: it has no answers for the job."""
    return _NO_SESSION.search(str(error)) is not None or _is_without_answer(error)


def is_of_a_late_process(error: BaseException) -> bool:
    """Whether a process of Python was not there in time: Spark waits ten seconds for it, which no setting changes."""
    return _LATE_PROCESS in str(error)
