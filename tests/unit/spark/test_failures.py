"""From Spark's report of a failure back to an error of ours, or to one sentence on what is missing."""

import sys

import pytest
from pyspark.sql import SparkSession

from eventide.errors import MEMORY_ADVICE as MEMORY
from eventide.errors import DataError, EventideError, ProgramError, StateError, StorageError
from eventide.spark.failures import in_our_words, is_for_good, original, what_is_missing
from eventide.spark.session.python_files import FOLDER, STARTED_BY_SPARK_SUBMIT, why_it_takes_none

MOVED = (
    "this checkpoint has been moved or copied: Spark writes whole paths into it, and looks for its state in {}, where "
    "it was written. Put it back there; to go on elsewhere, take a savepoint of it where it was, and begin with "
    "env.from_savepoint(...)"
)

FULL = (
    "a disk is full: Spark cannot write {}. It writes to {}, to the directories of file sinks, and to spark.local.dir; "
    "'df' shows which of these disks is full. When there is room, start the job again: it goes on from its checkpoint"
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
            "another run of this job goes on with its checkpoint, and this one has stopped: only one of the two can "
            "write the next entry of the checkpoint; let only one run at a time use a checkpoint",
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
            "an executor cannot find what the job has stored: there is no "
            "file:/tmp/eventide-1/state/0/1/12.changelog. Every machine of the cluster must reach the checkpoint, which"
            " lies where env.get_checkpoint_config().set_checkpoint_storage_dir(...) says, else on the disk of a single"
            " one; and only the job may delete files in it. What is lost cannot be recovered: start with a new "
            "checkpoint, or from a savepoint",
        ),
        *[
            (f"Query failed: {report}", StorageError, FULL.format(*names))
            for report, names in (
                (
                    "Lost task 0.0 in stage 2.0 (TID 7) (10.0.0.2 executor 3): java.io.IOException: No space left on "
                    "device\n\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)",
                    ("a file on the executor 3 (10.0.0.2)", "the checkpoint"),
                ),
                (
                    "java.io.FileNotFoundException: /a/cp/offsets/.1.tmp (No space left on device)\n"
                    "=== Streaming Query ===\nLogical Plan: [queryName=a, checkpointLocation=file:/a/cp], Append",
                    ("/a/cp/offsets/.1.tmp", "the checkpoint file:/a/cp"),
                ),
                (
                    "RocksDBException: While appending to file: /local/7.sst: No space left on device",
                    ("/local/7.sst", "the checkpoint"),
                ),
                ("OSError: [Errno 122] Disk quota exceeded: '/home/a'", ("/home/a", "the checkpoint")),
            )
        ],
        (
            "Job aborted: Lost task 0.0: org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)",
            EventideError,
            "a Python worker of Spark has ended without an error, most often because the system had no memory left for "
            f"it; when the job is started again, it finds out which element was the cause, if it was one; {MEMORY}",
        ),
        *[
            (
                f"Lost task 0.0: Traceback (most recent call last):\n  File 'a.py'\n{raised}\n\tat org.Task(A.scala)",
                EventideError,
                f"the memory of a Python worker of Spark was not enough; {MEMORY}",
            )
            for raised in (
                "MemoryError",
                "pyarrow.lib.ArrowMemoryError: malloc of size 8 failed",
                "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 8. GiB",
            )
        ],
        (
            "Job aborted due to stage failure: java.lang.OutOfMemoryError: Java heap space",
            EventideError,
            f"the memory of Spark's JVM was not enough; {MEMORY}",
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


CHAINED = (
    "\n\nThe above exception was the direct cause of the following exception:\n\nTraceback (most recent call last):\n"
    "  File 'a.py', line 1, in parse\n"
)


def test_of_a_chain_of_errors_the_last_is_told_that_has_the_text_of_its_cause():
    cause, placed = "it is bad", "in operator 'parse' (element 7): it is bad"
    reported = RuntimeError(
        f"eventide.errors.DataError: {cause}{CHAINED}eventide.errors.DataError: {placed}{CHAINED}"
        f"eventide.errors.DataError: after the source: {placed}\n\n\tat org.spark.Task(Task.scala)"
    )
    assert str(original(reported)) == f"after the source: {placed}"


def test_a_chain_in_the_text_of_an_error_is_a_part_of_it():
    text = f"in operator 'parse': the user's function raised KeyError. Its traceback:\nTypeError: x{CHAINED}KeyError: 1"
    reported = RuntimeError(f"eventide.errors.UserFunctionError: {text}\n\n\tat org.spark.Task(Task.scala)")
    assert str(original(reported)) == text


def test_the_text_of_a_program_in_the_plan_of_a_query_says_nothing_of_a_disk():
    reported = RuntimeError("it is broken\n=== Streaming Query ===\n+- Filter (text = No space left on device)")
    assert original(reported) is reported


def test_an_error_of_ours_that_names_its_file_stays_as_it_is():
    raised = StorageError("/a/runs cannot be written: No space left on device; when there is room, start the job again")
    assert original(raised) is raised


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


BRING = (
    "install eventide on every machine, or let get_execution_environment(Configuration.from_dict("
    "{'spark.master': ...})) make the session, which brings it along"
)
JARS = (
    "name the package that has it in spark.jars.packages before the session is made: for S3, "
    "org.apache.hadoop:hadoop-aws in the version of PySpark's own Hadoop"
)
TASK = '  File "/opt/spark/python/lib/pyspark.zip/pyspark/worker.py", line 4207, in invoke_udf\n'
PLANNER = '  File "/opt/spark/python/lib/pyspark.zip/pyspark/sql/worker/create_data_source.py", line 9, in main\n'


class Session:
    """A session with some settings."""

    def __init__(self, **settings: str):
        self.conf = settings


def no(module: str) -> str:
    return f"ModuleNotFoundError: No module named {module!r}\n SQLSTATE: 39000"


@pytest.mark.parametrize(
    ("report", "sentence"),
    [
        (
            TASK + no("orders"),
            "on an executor, Python finds no module 'orders'; bring it along with env.add_python_file(...) if it is a "
            "module of the program, and with env.set_python_requirements(...) if it is an installed package",
        ),
        (
            "Lost task 0.3 in stage 3.0 (TID 5) (10.0.0.7 executor 1): \n" + TASK + no("eventide"),
            "on the executor 1 (10.0.0.7), Python finds no module 'eventide'; " + BRING,
        ),
        (
            PLANNER + no("eventide.spark"),
            "beside the driver, where sources are planned, Python finds no module 'eventide.spark'; " + BRING,
        ),
        (
            "[PYTHON_DATA_SOURCE_ERROR] Failed to create Python data source instance: Traceback:\n"
            '  File "/opt/eventide/spark/source.py", line 11, in <module>\n    import pyarrow as pa\n' + no("pyarrow"),
            "beside the driver, where sources are planned, Python finds no module 'pyarrow'; bring it along with "
            "env.add_python_file(...) if it is a module of the program, and with env.set_python_requirements(...) if "
            "it is an installed package",
        ),
        (
            "An exception was thrown from the Python worker: Traceback (most recent call last):\n"
            '  File "/opt/eventide/spark/data_frame.py", line 9, in <module>\n' + no("eventide.plan"),
            f"on an executor, Python finds no module 'eventide.plan'; {BRING}",
        ),
        (
            '(10.0.0.7 executor 0): java.io.IOException: Cannot run program "python3.11": error=2, No such file',
            "on the executor 0 (10.0.0.7), there is no Python interpreter 'python3.11'; say with "
            "env.set_python_executable(...), or with PYSPARK_PYTHON before the session is made, which interpreter is "
            "there on every machine, the driver's included",
        ),
        (
            TASK + "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9 than that in driver: 3.11, "
            "PySpark cannot run with different minor versions.",
            "on an executor, Python is 3.9, and the program runs in 3.11; say with "
            "env.set_python_executable(...), or with PYSPARK_PYTHON before the session is made, which interpreter is "
            "there on every machine, the driver's included",
        ),
        (
            "java.lang.ClassNotFoundException: Class org.apache.hadoop.fs.s3a.S3AFileSystem "
            "not found\n\tat org.apache.hadoop.conf.Configuration.getClass(Configuration.java:2724)",
            "Spark has no class org.apache.hadoop.fs.s3a.S3AFileSystem, which opens a location of the program's; "
            + JARS,
        ),
        (
            'org.apache.hadoop.fs.UnsupportedFileSystemException: No FileSystem for scheme "s3"\n\tat org',
            f"Spark knows no file system for s3://; {JARS}. S3 is s3a:// there",
        ),
        (
            "fs.AbstractFileSystem.gs.impl=null: No AbstractFileSystem configured for scheme: gs",
            f"Spark knows no file system for gs://; {JARS}. S3 is s3a:// there",
        ),
    ],
)
def test_what_is_missing_is_named_with_its_place(report, sentence):
    error = original(RuntimeError(report))
    assert (type(error), str(error)) == (ProgramError, sentence)


@pytest.mark.parametrize("module", ["orders", "eventide"])
@pytest.mark.parametrize("by_spark_submit", [True, False])
def test_a_session_that_takes_no_modules_is_not_told_to_bring_them(monkeypatch, module, by_spark_submit):
    monkeypatch.delenv(STARTED_BY_SPARK_SUBMIT, raising=False)
    if by_spark_submit:
        monkeypatch.setenv(STARTED_BY_SPARK_SUBMIT, "4321")
    of_others = Session()
    monkeypatch.setattr(SparkSession, "active", lambda: of_others)
    said = what_is_missing(TASK + no(module))
    assert said == f"on an executor, Python finds no module {module!r}; {why_it_takes_none(of_others)}"
    assert ("start the program with python in place of spark-submit" in said) is by_spark_submit


class LocalSession(Session):
    """A session of the user's on this machine, which starts its workers with some Python."""

    def __init__(self, python: str):
        super().__init__(**{"spark.master": "local[2]"})
        self.sparkContext = self
        self.pythonExec = python


@pytest.mark.parametrize(
    "report",
    [
        TASK + no("eventide"),
        PLANNER + no("cloudpickle"),
        TASK + "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9 than that in driver: 3.11",
        PLANNER + "[PACKAGE_NOT_INSTALLED] PyArrow >= 18.0.0 must be installed; however, it was not found.",
        'Cannot run program "/nowhere/python": error=2, No such file',
    ],
    ids=["no eventide", "no module", "another version", "no package", "no interpreter"],
)
def test_where_the_workers_run_in_another_python_both_are_named_and_the_line_to_set(monkeypatch, report):
    monkeypatch.setattr(SparkSession, "active", lambda: LocalSession("/nowhere/python"))
    said = what_is_missing(report)
    assert said is not None
    assert said.endswith(
        f"; the workers of this Spark session run in /nowhere/python, and the program runs in {sys.executable}: before "
        "the session is made, set os.environ['PYSPARK_PYTHON'] = sys.executable in the program, or start it with "
        f"PYSPARK_PYTHON={sys.executable}"
    )


def test_the_python_of_the_program_is_not_blamed(monkeypatch):
    monkeypatch.setattr(SparkSession, "active", lambda: LocalSession(sys.executable))
    said = what_is_missing(TASK + no("orders"))
    assert said is not None
    assert "PYSPARK_PYTHON" not in said


def test_a_session_of_eventides_is_told_to_bring_modules(monkeypatch):
    monkeypatch.setattr(SparkSession, "active", lambda: Session(**{FOLDER: "/tmp/folder"}))
    assert what_is_missing(TASK + no("eventide")) == f"on an executor, Python finds no module 'eventide'; {BRING}"


def test_a_function_of_the_users_on_the_driver_may_lack_a_module_too():
    assert what_is_missing('  File "/home/me/main.py", line 3, in write\n' + no("boto3")) is None


@pytest.mark.parametrize(
    "program", ['"python3.11": error=12, Cannot allocate memory', '"chmod": error=2, No such file']
)
def test_what_passes_or_is_no_interpreter_is_not_called_missing(program):
    assert what_is_missing(f"java.io.IOException: Cannot run program {program}") is None


def test_what_is_missing_is_told_while_a_checkpoint_is_looked_at_too():
    with pytest.raises(ProgramError, match="Spark knows no file system for moon://"), in_our_words():
        raise RuntimeError('No FileSystem for scheme "moon"')


def test_another_error_stays_as_it_is():
    with pytest.raises(KeyError, match="key"), in_our_words():
        raise KeyError("key")


@pytest.mark.parametrize(
    ("said", "file"),
    [
        (
            "[STREAM_FAILED] Query [id = 9d] terminated with exception: Checksum error: file:/jobs/a/offsets/3 at 512 "
            "exp: 343259337 got: 1385287692 SQLSTATE: XXKST",
            "file:/jobs/a/offsets/3",
        ),
        (
            "Caused by: org.apache.hadoop.fs.ChecksumException: Checksum error: file:/jobs/a/state/0/0/4.changelog at "
            "512 exp: 1382930453 got: 1101462858\n\tat org.apache.hadoop.fs.FSInputChecker.verifySums",
            "file:/jobs/a/state/0/0/4.changelog",
        ),
        (
            "[CHECKPOINT_FILE_CHECKSUM_VERIFICATION_FAILED] Checksum verification failed, the file may be corrupted. "
            "File: s3a://jobs/a/state/0/0/4_1f.changelog\nExpected (file size: 7, checksum: 1)",
            "s3a://jobs/a/state/0/0/4_1f.changelog",
        ),
    ],
)
def test_a_damaged_file_of_spark_is_named_in_words_of_ours(said: str, file: str) -> None:
    found = original(Exception(said))
    assert type(found) is StateError
    assert str(found).startswith(f"{file} is not as it was written: it does not match the checksum")
    assert is_for_good(found)
