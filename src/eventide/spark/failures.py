"""From Spark's report of a failed query to the error of eventide that caused it, or to what is missing.

``Restarts`` says whether the job is then started again.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import is_remote

from eventide import errors
from eventide._secrets import without_secrets
from eventide.common.job import KEPT, JobRestart
from eventide.common.restart_strategy import RestartStrategies, RestartStrategyConfiguration
from eventide.common.words import length
from eventide.errors import DEAD_LETTER_ADVICE
from eventide.runtime.invoke import LETHAL, CallMark
from eventide.spark.session.python_files import is_local, session_that_is_there, why_it_takes_none

_LOG = logging.getLogger("eventide")
_WHEN_LATE = RestartStrategies.failure_rate_restart(failure_rate=5, failure_interval=600_000, delay_interval=1_000)
"""The strategy for losses of a busy machine, which are no failures of the job, whatever its own strategy is."""
_OURS = re.compile(r"eventide\.errors\.(\w+): (.*?)(?=\n SQLSTATE: |\n+\s*at [\w.$]+\(|\Z)", re.DOTALL)

_CHAINED = "\n\nThe above exception was the direct cause of the following exception:\n"
_SECOND_RUN = "CONCURRENT_STREAM_LOG_UPDATE"
_LATE_PROCESS = "Python worker failed to connect back"
ONE_RUN_ONLY = "let only one run at a time use a checkpoint"
_NOT_THERE = re.compile(r"does not exist|No such file|Wrong FS")
_SCHEMA_OF_STATE = re.compile(r"((?:[a-z][\w+.-]*:)?/[^\n]*?)/state/\d+/_stateSchema/")
_STATE_FILE = re.compile(r"CANNOT_LOAD_STATE_STORE[^\n]*?((?:[a-z][\w+.-]*:)?/[^\n]*?)(/state/\d+/\d+/[\w./-]*\w)")
_CHANGED = re.compile(r"Checksum error: ([^\n]+?) at \d+ exp|the file may be corrupted\. File: ([^\n]+)")
FENCED = (
    "another run of this job goes on with its checkpoint, and this one has stopped: only one of the two can write the "
    f"next entry of the checkpoint; {ONE_RUN_ONLY}"
)
SUCCEEDED = (
    "another run of this job has begun with its checkpoint, and this one has stopped, because the newer run goes on; "
    f"{ONE_RUN_ONLY}"
)
_MOVED = (
    "this checkpoint has been moved or copied: Spark writes whole paths into it, and looks for its state in {place}, "
    "where it was written. Put it back there; to go on elsewhere, take a savepoint of it where it was, and begin with "
    "env.from_savepoint(...)"
)

_DAMAGED = (
    "{file} is not as it was written: it does not match the checksum that Hadoop or Spark stored. Put a copy of it "
    "back; if it belongs to a checkpoint and there is no copy, start with a new checkpoint location, or from a "
    "savepoint"
)

_GONE = (
    "an executor cannot find what the job has stored: there is no {place}{file}. Every machine of the cluster must "
    "reach the checkpoint, which lies where env.get_checkpoint_config().set_checkpoint_storage_dir(...) says, else on "
    "the disk of a single one; and only the job may delete files in it. What is lost cannot be recovered: start with a "
    "new checkpoint, or from a savepoint"
)

_NO_ROOM = r"(?:No space left on device|Disk quota exceeded|There is not enough space on the disk)"
_FULL = re.compile(rf"(?P<file>(?:[a-z][\w+.-]*:)?/[^\s:]+)(?:: | \(){_NO_ROOM}|{_NO_ROOM}(?:: '(?P<named>[^']+)')?")
_LOCATION = re.compile(r"checkpointLocation=(?P<location>[^,\]]+)")
_PLAN = "=== Streaming Query ==="
"""Begins the part of Spark's report that shows the plan of the query, with text of the program."""

_ENDED = "Python worker exited unexpectedly"
_MEMORY = {
    r"(?m)^(?:MemoryError|pyarrow\.lib\.ArrowMemoryError|numpy\.\w+(?:\.\w+)*\._ArrayMemoryError)\b": "the memory of a "
    "Python worker of Spark was not enough",
    _ENDED: "a Python worker of Spark has ended without an error, most often because the system had no memory left "
    "for it; when the job is started again, it finds out which element was the cause, if it was one",
    r"java\.lang\.OutOfMemoryError|OversizedAllocationException": "the memory of Spark's JVM was not enough",
}

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

    That another run uses the checkpoint, that it was moved, that a file of it is gone or damaged, that a disk is full,
    that a process lacks what the program needs, that memory was short, or that the server of Spark Connect is gone, is
    said in words of ours.
    """
    ours = _translated(error)
    if ours is None:
        return error
    ours.__cause__ = error
    return ours


def _translated(error: BaseException) -> BaseException | None:
    """The error of eventide for one of Spark's; None if there is none."""
    said = str(error)
    if found := _ours(said):
        kind: type[BaseException] = getattr(errors, found[1], errors.EventideError)
        return (errors.DataError if kind is errors.TypeMismatch else kind)(found[2].rstrip())
    if _SECOND_RUN in said:
        return errors.StateError(FENCED)
    if not isinstance(error, errors.EventideError) and (full := _full(said)) is not None:
        return errors.StorageError(full)
    if (of_state := _moved(said) or _gone(said) or _damaged(said)) is not None:
        return errors.StateError(of_state)
    if (missing := what_is_missing(said)) is not None:
        return errors.ProgramError(missing)
    if is_of_an_ended_process(error) and (mark := CallMark.found_in(said)) is not None:
        at = f"in operator {mark.operator!r}, {mark.during} (element {mark.element})"
        return errors.DataError(f"{at}: {LETHAL}; {DEAD_LETTER_ADVICE}")
    if (memory := _short_of_memory(said)) is not None:
        return errors.EventideError(memory)
    if _NO_SESSION.search(said):
        return errors.StateError(_SESSION_GONE)
    return errors.EventideError(_SERVER_GONE) if _is_without_answer(error) else None


def _ours(said: str) -> re.Match[str] | None:
    """The error of eventide in a report; of a chain the last one, which has the text of its cause, and the place.

    The text of an error may have a chain of its own, of errors that a function of the user raised: its last one does
    not repeat the text before.
    """
    found = _OURS.search(said)
    while found is not None and _CHAINED in found[2]:
        text, _, after = found[2].partition(_CHAINED)
        wraps = next((one for one in _OURS.finditer(after) if text.rstrip() in one[2]), None)
        if wraps is None:
            break
        found = wraps
    return found


def _moved(said: str) -> str | None:
    """Return the message for a checkpoint whose state Spark does not find where it was written."""
    path = _SCHEMA_OF_STATE.search(said)
    return _MOVED.format(place=path[1]) if path is not None and _NOT_THERE.search(said) else None


def _gone(said: str) -> str | None:
    """Return the message for an executor that does not find a file of the state."""
    path = _STATE_FILE.search(said)
    return _GONE.format(place=path[1], file=path[2]) if path is not None and _NOT_THERE.search(said) else None


def _damaged(said: str) -> str | None:
    """Return the message for a file whose content has changed."""
    file = _CHANGED.search(said)
    return None if file is None else _DAMAGED.format(file=file[1] or file[2])


def _full(said: str) -> str | None:
    """Return the message for a disk that was full when Spark wrote a file, which Spark often does not name."""
    report, _, plan = said.partition(_PLAN)
    found = _FULL.search(report)
    if found is None:
        return None
    executor, location = _EXECUTOR.search(report), _LOCATION.search(plan)
    where = "" if executor is None else f" on the executor {executor['name']} ({executor['host']})"
    checkpoint = "the checkpoint" if location is None else f"the checkpoint {location['location']}"
    return (
        f"a disk is full: Spark cannot write {found['file'] or found['named'] or 'a file'}{where}. It writes to "
        f"{checkpoint}, to the directories of file sinks, and to spark.local.dir; 'df' shows which of these disks is "
        "full. When there is room, start the job again: it goes on from its checkpoint"
    )


def _short_of_memory(said: str) -> str | None:
    """Return the message where memory was short, as far as Spark's words tell; None for another failure."""
    short = next((lack for says, lack in _MEMORY.items() if re.search(says, said)), None)
    return None if short is None else f"{short}; {errors.MEMORY_ADVICE}"


def _is_without_answer(error: BaseException) -> bool:
    """Whether PySpark has given up asking; a function of the program may talk to servers too."""
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
    """Whether the server of Spark Connect is not there any more, or has restarted: it has no answers for the job."""
    return _NO_SESSION.search(str(error)) is not None or _is_without_answer(error)


def is_of_an_ended_process(error: BaseException) -> bool:
    """Whether a Python process of Spark's has ended by itself in a task, with no exception."""
    return _ENDED in str(error)


def is_of_a_late_process(error: BaseException) -> bool:
    """Whether a process of Python was not there in time: Spark waits ten seconds for it, which no setting changes."""
    return _LATE_PROCESS in str(error)


_SAME_EVERYWHERE = (
    "say with env.set_python_executable(...), or with PYSPARK_PYTHON before the session is made, which interpreter is "
    "there on every machine, the driver's included"
)
_SAME_AT_SERVER = "start the server of Spark Connect with PYSPARK_PYTHON naming one that is there on every machine"
_JARS = (
    "name the package that has it in spark.jars.packages before the session is made: for S3, "
    "org.apache.hadoop:hadoop-aws in the version of PySpark's own Hadoop"
)

_NOT_FOUND = {
    r"ModuleNotFoundError: No module named '([^']+)'": r"Python finds no module '\1'",
    r"PACKAGE_NOT_INSTALLED\] (\S+)": r"Python finds no package \1",
}
_OTHER_PYTHON = {
    r"different version: ([\d.]+) than that in driver: ([\d.]+)": r"Python is \1, and the program runs in \2",
    # It is not there, or must not be run; that memory is short, say, passes.
    r'(?s)Cannot run program "([^"]*python[^"/]*)".*?error=(?:2|13)\b': r"there is no Python interpreter '\1'",
}
_NO_JAR = {
    r"ClassNotFoundException: Class (org\.apache\.hadoop\.fs\.\S+) not found": (
        rf"Spark has no class \1, which opens a location of the program's; {_JARS}"
    ),
    r'No (?:Abstract)?FileSystem (?:configured )?for scheme:? "?([\w+.-]+)': (
        rf"Spark knows no file system for \1://; {_JARS}. S3 is s3a:// there"
    ),
}
"""Spark's words for each missing part, and the sentence for it."""

_EXECUTOR = re.compile(r"\((?P<host>\S+) executor (?P<name>\S+)\)")
_TASK = re.compile(r"/pyspark/worker\.py|An exception was thrown from the Python worker")
"""The module of an executor's Python process, and the beginning of Spark's message about its failure.

A session that the user makes leaves PySpark's own lines out of a traceback that has others.
"""
_PLANNER = re.compile(r"/pyspark/sql/(worker|streaming)/\w+\.py|\[PYTHON_DATA_SOURCE_ERROR\]")
"""The module of the Python process that plans beside the driver, and Spark's name for its failure."""


def what_is_missing(text: str) -> str | None:
    """A sentence, where something is missing: what, where, and what to do; None for another failure.

    >>> what_is_missing('Cannot run program "/opt/python": error=2, No such file').partition(";")[0]
    "beside the driver, where sources are planned, there is no Python interpreter '/opt/python'"
    """
    is_of_spark = _TASK.search(text) is not None or _PLANNER.search(text) is not None
    for says, lack in (_NOT_FOUND if is_of_spark else {}).items():
        if found := re.search(says, text):
            return f"{_where(text)}, {found.expand(lack)}; {_another_python() or _advice(found[1])}"
    for says, lack in _OTHER_PYTHON.items():
        if found := re.search(says, text):
            same = _SAME_AT_SERVER if is_remote() else _SAME_EVERYWHERE
            return f"{_where(text)}, {found.expand(lack)}; {_another_python() or same}"
    for says, lack in _NO_JAR.items():
        if found := re.search(says, text):
            return found.expand(lack)
    return None


def _where(text: str) -> str:
    if found := _EXECUTOR.search(text):
        return f"on the executor {found['name']} ({found['host']})"
    return "on an executor" if _TASK.search(text) else "beside the driver, where sources are planned"


def _another_python() -> str | None:
    """Name the Python that a session starts, and how to set the program's instead; None if both are one.

    A session that the user makes starts the first ``python3`` on the path, which differs from the program's
    where its virtual environment is not activated.
    """
    session = None if is_remote() else session_that_is_there()
    if session is None or not is_local(str(session.conf.get("spark.master", ""))):
        return None
    named = session.sparkContext.pythonExec
    there = shutil.which(named) or named
    if os.path.dirname(there) == os.path.dirname(sys.executable):
        return None
    return (
        f"the workers of this Spark session run in {there}, and the program runs in {sys.executable}: before the "
        "session is made, set os.environ['PYSPARK_PYTHON'] = sys.executable in the program, or start it with "
        f"PYSPARK_PYTHON={sys.executable}"
    )


def _advice(module: str) -> str:
    if is_remote():
        return (
            "install it where the server of Spark Connect runs, or bring it along with env.add_python_file(...) if it "
            "is a module of the program"
        )
    session = session_that_is_there()
    if session is not None and (why := why_it_takes_none(session)) is not None:
        return why
    if module.partition(".")[0] == "eventide":
        return (
            "install eventide on every machine, or let get_execution_environment(Configuration.from_dict("
            "{'spark.master': ...})) make the session, which brings it along"
        )
    return (
        "bring it along with env.add_python_file(...) if it is a module of the program, and with "
        "env.set_python_requirements(...) if it is an installed package"
    )


class Restarts:
    """Says after each failure of a job whether it is started again; remembers that, and logs it with the job's name."""

    def __init__(self, job: str, strategy: RestartStrategyConfiguration) -> None:
        self._job = job
        self._strategy = strategy
        self._wait_after, self._wait_when_late = strategy.backoff(), _WHEN_LATE.backoff()
        self._known: deque[JobRestart] = deque(maxlen=KEPT)

    def known(self) -> list[JobRestart]:
        """The last restarts."""
        return list(self._known)

    def wait_after(self, failure: BaseException) -> float | None:
        """How many seconds to wait before the next run; None if there is none, which a note on the failure tells."""
        number = self._known[-1].number if self._known else 0
        wait_ms = self._wait_ms_after(failure)
        if wait_ms is None:
            if number:
                times = "once" if number == 1 else f"{number} times"
                failure.add_note(
                    f"This is the last failure of the job {self._job!r}, which was started again {times}. Its restart "
                    f"strategy: {self._strategy.get_description()}"
                )
            return None
        reason = without_secrets(f"{type(failure).__name__}: {failure}")
        self._known.append(JobRestart(number + 1, time.time_ns() // 1_000_000, reason, wait_ms))
        said = "the job %r has failed, and is started again in %s (restart %d); the reason: %s"
        _LOG.warning(said, self._job, length(wait_ms), number + 1, reason)
        return wait_ms / 1000

    def _wait_ms_after(self, failure: BaseException) -> int | None:
        now_ms = time.monotonic_ns() // 1_000_000
        if is_for_good(failure):
            return None
        if is_of_a_late_process(failure) and (wait_ms := self._wait_when_late(now_ms)) is not None:
            return wait_ms
        return self._wait_after(now_ms)
