"""The Spark session: the active one, or a good local one."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from eventide.common.configuration import Configuration
from eventide.errors import ProgramError
from eventide.runtime.python_folder import new_folder
from eventide.spark.connect.server import over_connect
from eventide.spark.session.console import quiet_jvm
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
SHORT_TRACEBACKS = "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled"
DISK_FILE_MANAGER = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"

REMOTE = "SPARK_REMOTE"
REMOTE_CONF = "spark.remote"
"""Where PySpark looks for the address of a server of Spark Connect: the environment, and a session's settings."""
_MANY = 100_000

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
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
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
    if REMOTE in os.environ or (configuration is not None and configuration.contains_key(REMOTE_CONF)):
        return _remote_session(configuration)
    wanted = {} if configuration is None else configuration.to_dict()
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
        of_the_users = wanted.get(_EXECUTOR_PATH)
        settings[_EXECUTOR_PATH] = os.pathsep.join([UNPACKED, *([of_the_users] if of_the_users else [])])
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


def _remote_session(configuration: Configuration | None) -> SparkSession:
    """A session of Spark Connect, at the address in SPARK_REMOTE or in the configuration, with its settings."""
    try:
        settings: dict[str, bool | float | int | str | None] = {**configuration.to_dict()} if configuration else {}
        return SparkSession.builder.config(map=settings).getOrCreate()
    except ImportError as error:
        raise ProgramError(f"{error}; what Spark Connect needs comes with: pip install 'eventide[connect]'") from error


@contextmanager
def _our_modules_for_workers(folder: str, *, with_packages: bool) -> Iterator[None]:
    """Have the JVM, and with it its Python processes, start with this process's own module path, and a folder after it.

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
