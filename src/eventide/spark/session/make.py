"""The Spark session: the active one, or a good local one; and the settings that a query reads when it starts.

A JVM that is started here writes its standard error without messages that help no user.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import sys
import sysconfig
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from eventide.common.configuration import Configuration
from eventide.errors import ProgramError, getting
from eventide.runtime.python_folder import new_folder
from eventide.spark.connect import over_connect
from eventide.spark.query.data_source import CAN_LIMIT
from eventide.spark.session.java import check_java
from eventide.spark.session.python_files import (
    FOLDER,
    STARTED_BY_SPARK_SUBMIT,
    UNPACKED,
    is_local,
    session_that_is_there,
)

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
STATE_STORE = "spark.sql.streaming.stateStore.providerClass"
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
ROW_COUNT = "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows"
SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
ARROW_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
BATCHES_WITHOUT_DATA = "spark.sql.streaming.noDataMicroBatches.enabled"
TAKES_IN_STEPS = "spark.sql.streaming.triggerAvailableNowWrapper.enabled"
FILE_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
REPORTS = "spark.sql.streaming.numRecentProgressUpdates"
SHORT_TRACEBACKS = "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled"
DISK_FILE_MANAGER = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"

REMOTE = "SPARK_REMOTE"
REMOTE_CONF = "spark.remote"
"""Where PySpark looks for the address of a server of Spark Connect: the environment, and a session's settings."""
_MANY = 100_000
_BYTES_OF_REPORTS = 64 * 2**20
_COPIES = 4
"""A report of Spark's has offsets three times, and about as much as one of them of what tasks said of splits."""
_FEWEST_REPORTS = 10
_PARTITIONS_PER_CORE = 4
"""So that cores stay busy where subtasks have more or less to do, and a machine with more cores finds work too."""

# What each of them does, and why, is in docs/guide/operations.md.
_LOCAL = {
    "spark.app.name": "eventide",
    "spark.master": "local[*]",
    STATE_STORE: ROCKSDB,
    CHANGELOG: "true",
    # Spark's usual one starts 20 processes of `readlink` a micro-batch on a local disk, and deletes a file before it
    # puts another in its place; this one renames over it, which is atomic there.
    FILE_MANAGER: DISK_FILE_MANAGER,
    # Spark keeps apart the workers that shorten tracebacks, as those of sources do, and those that don't, as those with
    # state: with one kind of both, there are half as many, and the second need not start.
    SHORT_TRACEBACKS: "false",
    # A worker that ends without a word leaves a file, which Spark adds to the error: see `FaultLog`.
    "spark.python.worker.faulthandler.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "false",
    REPORTS: "1000",
    "spark.ui.enabled": "false",
    # Spark keeps the plans of 1,000 queries in memory for that page, some 0.4 MB for a micro-batch.
    "spark.sql.ui.retainedExecutions": "50",
    "spark.ui.showConsoleProgress": "false",
}
_ON_THIS_MACHINE_ALONE = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
_MASTER = "spark.master"
_STARTED_WITH = str(Path(__file__).parent / "interpreter")
_EXECUTOR_PATH = "spark.executorEnv.PYTHONPATH"
if hasattr(socket, "AF_UNIX"):
    # On a TCP connection between the JVM and a worker, each side waits 40 ms for the other in every task: small writes
    # are held back until what went before is acknowledged, and acknowledgements are delayed.
    _LOCAL["spark.python.unix.domain.socket.enabled"] = "true"


def find_session(spark: SparkSession | None, configuration: Configuration | None) -> SparkSession:
    """The given session, or the active one, or one of Spark Connect that is asked for, or one made here.

    It is a local one, unless ``spark.master`` says another.

    A session that is made here stores state in RocksDB with changelog checkpointing, makes small micro-batches quick,
    works in UTC, starts workers with the running interpreter, lets them import what this process can, and keeps its log
    quiet. On a cluster, workers start with the interpreter of this one's name, and import what the job brings along.
    ``configuration`` adds to or replaces these settings; it is not applied to a session that exists.

    Raises:
        ProgramError: if a session must be made and there is no Java that Spark can use.
    """
    found = spark or session_that_is_there()
    if found is not None:
        return found
    wanted = {} if configuration is None else configuration.to_dict()
    if REMOTE in os.environ or REMOTE_CONF in wanted:
        return _remote_session(wanted)
    settings: dict[str, bool | float | int | str | None]
    if STARTED_BY_SPARK_SUBMIT in os.environ:
        # The JVM runs, and knows its master.
        known = ("spark.app.name", _MASTER)
        settings = {**{name: value for name, value in _LOCAL.items() if name not in known}, **wanted}
        return SparkSession.builder.config(map=settings).getOrCreate()
    check_java()
    on_cluster = not is_local(wanted.get(_MASTER, _LOCAL[_MASTER]))
    os.environ.setdefault("PYSPARK_PYTHON", _name_of_python() if on_cluster else sys.executable)
    quiet = f"-Dlog4j2.configurationFile={(Path(__file__).parent / 'log4j2.properties').as_uri()}"
    folder = new_folder()
    settings = {
        **_LOCAL,
        **({} if on_cluster else _ON_THIS_MACHINE_ALONE),
        "spark.driver.extraJavaOptions": quiet,
        FOLDER: folder,
        **wanted,
    }
    if on_cluster:
        settings[_EXECUTOR_PATH] = os.pathsep.join(filter(None, [UNPACKED, wanted.get(_EXECUTOR_PATH)]))
    with quiet_jvm(), _our_modules_for_workers(folder, with_packages=on_cluster):
        return SparkSession.builder.config(map=settings).getOrCreate()


def _name_of_python() -> str:
    """The name of the running interpreter on any machine, if one of its version is found under that name here."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return name if shutil.which(name) else sys.executable


def cores(spark: SparkSession) -> int:
    """The number of cores that Spark counts on: its number of tasks where no other is set."""
    if over_connect():
        return int(spark.range(0, _MANY).select(F.spark_partition_id()).distinct().count())
    return int(spark.sparkContext.defaultParallelism)


def shuffle_partitions(spark: SparkSession, parallelism: int) -> int:
    """The number of shuffle partitions, and so of tasks in a stage, that a streaming job on a new checkpoint has.

    A partition costs a task, a state store and two ways into Python in every micro-batch, however little there is to
    do, and a subtask within one next to nothing. On a cluster each subtask has a partition of its own. In a local
    session, several share one where there are more subtasks than cores can be busy with: the number is a divisor of the
    parallelism, so that partitions have equally many, and leaves `_PARTITIONS_PER_CORE` to each core. It stays with the
    checkpoint, as Spark writes it down there.
    """
    if over_connect() or not is_local(spark.sparkContext.master or ""):
        return parallelism
    enough = min(_PARTITIONS_PER_CORE * cores(spark), parallelism)
    return next(number for number in range(enough, parallelism + 1) if parallelism % number == 0)


def _remote_session(wanted: Mapping[str, str]) -> SparkSession:
    """A session of Spark Connect, at the address in SPARK_REMOTE or in the settings, with these."""
    try:
        return SparkSession.builder.config(map={**wanted}).getOrCreate()
    except ImportError as error:
        raise ProgramError(f"{error}; what Spark Connect needs comes with: {getting('connect')}") from error


@contextmanager
def _our_modules_for_workers(folder: str, *, with_packages: bool) -> Iterator[None]:
    """Start the JVM, and with it its Python processes, with this process's own module path and a folder after it.

    Before all, they have a ``sitecustomize`` of ours, which Python runs at its start. A script's folder is on the path.
    The packages of this interpreter are too where another one may be started.
    """
    before = os.environ.get("PYTHONPATH")
    ours = [path or os.getcwd() for path in sys.path if not is_found_anyway(path, with_packages=with_packages)]
    os.environ["PYTHONPATH"] = os.pathsep.join([_STARTED_WITH, *ours, folder])
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


def is_found_anyway(path: str, *, with_packages: bool) -> bool:
    """Whether an interpreter looks at a place by itself: its own library, and, if it is this one, its packages.

    >>> is_found_anyway("/usr/src/app", with_packages=False), is_found_anyway(os.__file__, with_packages=True)
    (False, True)
    """
    place = Path(path)
    if place.name in {"site-packages", "dist-packages"}:
        return not with_packages and any(place.is_relative_to(prefix) for prefix in (sys.prefix, sys.base_prefix))
    libraries = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib")}
    is_zipped = place.suffix == ".zip" and str(place.parent) in {str(Path(library).parent) for library in libraries}
    return is_zipped or any(place.is_relative_to(library) for library in libraries)


@dataclass(slots=True, eq=False)
class _Holding:
    """Settings of a session that stay as they are as long as somebody needs them.

    Attributes:
        spark: the session.
        wanted: the settings, None if one must not be set.
        before: the settings before.
        holders: the threads that need it.
    """

    spark: SparkSession
    wanted: dict[str, str | None]
    before: dict[str, str | None]
    holders: list[int] = field(default_factory=list)


_holdings: list[_Holding] = []
"""The held settings: one, and more where a thread that holds one needs other settings within it."""
_changed = threading.Condition()


@contextmanager
def settings_for_start(
    spark: SparkSession,
    partitions: int,
    checkpoint: str = "",
    *,
    rows: bool = False,
    only_with_data: bool = False,
    offsets_bytes: int = 0,
) -> Iterator[None]:
    """Set what a query reads from the session when it starts, and put the session back as it was.

    A batch job reads it in all that it does. So others wait until it is over, unless they want the same: a job that
    starts again, or one that a sink's function of the batch job starts and waits for.

    ``partitions`` is the number of shuffle partitions. ``rows`` says that rows of a DataFrame go to Python.
    ``only_with_data`` says that a query has no micro-batches for the clock alone: if it takes what is there, it ends by
    itself after the last data. ``offsets_bytes`` is what the offsets of a micro-batch take: Spark keeps fewer reports
    of progress where that is much.
    """
    wanted: dict[str, str | None] = {
        SHUFFLE_PARTITIONS: str(partitions),
        STATE_STORE: ROCKSDB,
        CHANGELOG: "true",
        # To count what is stored, Spark reads before it writes; a row is a bucket here, whose number tells nothing.
        ROW_COUNT: "false",
    }
    if only_with_data:
        # Spark would begin one more micro-batch for the clock, and another one after that. Stopped from outside, the
        # query leaves one that it has begun and not committed.
        wanted[BATCHES_WITHOUT_DATA] = "false"
    if rows:
        # Spark adds up the size of all columns after every row that it sends, unless it need not look at it at all:
        # that is half of what a row costs on its way to Python. The number of rows in a batch is limited anyway.
        wanted[ARROW_BYTES] = str(2**31 - 1)
    reports = max(_FEWEST_REPORTS, _BYTES_OF_REPORTS // (_COPIES * max(1, offsets_bytes)))
    if offsets_bytes and reports < int(spark.conf.get(REPORTS, "1000") or 0):
        wanted[REPORTS] = str(reports)
    if not CAN_LIMIT:
        # Else a run that takes what is there is over with its first micro-batch, be that a repetition of one before it.
        # Spark reads this some time after the start of a query, so it is not put back.
        spark.conf.set(TAKES_IN_STEPS, "true")
    if "://" in checkpoint and not checkpoint.startswith("file://"):
        wanted[FILE_MANAGER] = None  # for a store of another kind, Spark chooses
    with _held(spark, wanted):
        yield


@contextmanager
def _held(spark: SparkSession, wanted: dict[str, str | None]) -> Iterator[None]:
    me = threading.get_ident()
    with _changed:
        _changed.wait_for(lambda: _may_share(spark, wanted) or _may_set(me))
        if not _may_share(spark, wanted):
            before = {name: spark.conf.get(name, None) for name in wanted}
            if before.get(FILE_MANAGER) != DISK_FILE_MANAGER:
                before.pop(FILE_MANAGER, None)  # one that the user has chosen stays
            _set(spark, {name: wanted[name] for name in before})
            _holdings.append(_Holding(spark, wanted, before))
        holding = _holdings[-1]
        holding.holders.append(me)
    try:
        yield
    finally:
        with _changed:
            holding.holders.remove(me)
            if not holding.holders:
                _holdings.remove(holding)
                _set(holding.spark, holding.before)
            _changed.notify_all()


def _may_share(spark: SparkSession, wanted: dict[str, str | None]) -> bool:
    """Whether the settings are those already, and will be as long as anybody holds them."""
    return len(_holdings) == 1 and _holdings[0].spark is spark and _holdings[0].wanted == wanted


def _may_set(me: int) -> bool:
    """Whether only this thread needs settings."""
    return all(holder == me for holding in _holdings for holder in holding.holders)


def _set(spark: SparkSession, settings: dict[str, str | None]) -> None:
    for name, value in settings.items():
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)


_NOISE = re.compile(
    r"Streaming TransformWithStateIn\w+ Python worker|Starting Streaming TransformWithStateIn\w+"
    r"|WARNING: Using incubator modules|Setting default log level|To adjust logging level"
    r"|Setting Spark log level|Using Spark's default log4j profile|Picked up JAVA_TOOL_OPTIONS"
    # When a query is stopped, its workers have no reader, and Spark reports errors that mean nothing.
    r'|  File ".*pyspark/daemon\.py", line \d+, in (?:manager|worker)$'
    r'|Exception in thread "stream execution thread for .* java\.lang\.StackOverflowError$'
    r"|\tat java\.base/java\.util\.regex\.Pattern"
)
_REST_OF_NOISE = re.compile(r"\s*$| {4}\S| +[~^]+$|BrokenPipeError: |ConnectionResetError: ")
_TRACEBACK = "Traceback (most recent call last):\n"


@contextmanager
def quiet_jvm() -> Iterator[None]:
    """Filter the standard error of a JVM that starts inside this block.

    Spark's Python workers tell of every stateful query that they start, on the JVM's standard error, and no setting
    turns that off. Everything else, what user functions print among it, comes through as it is.
    """
    reading, writing = os.pipe()
    console = os.dup(2)
    sys.stderr.flush()
    os.dup2(writing, 2)
    os.close(writing)
    threading.Thread(target=_pass_on, args=(reading, console), name="eventide jvm stderr", daemon=True).start()
    try:
        yield
    finally:
        os.dup2(console, 2)


def _pass_on(reading: int, console: int) -> None:
    is_noise, held = False, ""
    with os.fdopen(reading, "r", errors="replace", buffering=1) as lines:
        for line in lines:
            if line == _TRACEBACK:
                held += line  # its next line names the query
                continue
            is_noise = bool(_NOISE.match(line) or (is_noise and _REST_OF_NOISE.match(line)))
            if not is_noise:
                os.write(console, (held + line).encode())
            held = ""
