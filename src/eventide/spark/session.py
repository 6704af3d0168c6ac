"""The Spark session: the active one, or a good local one."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from eventide.common.configuration import Configuration
from eventide.spark.console import quiet_jvm
from eventide.spark.java import check_java

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
STATE_STORE = "spark.sql.streaming.stateStore.providerClass"
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
ROW_COUNT = "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows"
SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
ARROW_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
FILE_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
DISK_FILE_MANAGER = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"

# What each of them does, and why, is in docs/guide/operations.md.
_LOCAL = {
    "spark.app.name": "eventide",
    "spark.master": "local[*]",
    STATE_STORE: ROCKSDB,
    CHANGELOG: "true",
    # Spark's usual one starts 20 processes of `readlink` a micro-batch on a local disk, and deletes a file before it
    # puts another in its place; this one renames over it, which is atomic there.
    FILE_MANAGER: DISK_FILE_MANAGER,
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}
if hasattr(socket, "AF_UNIX"):
    # On a TCP connection between the JVM and a worker, each side waits 40 ms for the other in every task: small writes
    # are held back until what went before is acknowledged, and acknowledgements are delayed.
    _LOCAL["spark.python.unix.domain.socket.enabled"] = "true"


def find_session(spark: SparkSession | None, configuration: Configuration | None) -> SparkSession:
    """The given session, or the active one, or a local one made here.

    A session that is made here stores state in RocksDB with changelog checkpointing, makes small micro-batches quick,
    works in UTC, starts workers with the running interpreter, lets them import what this process can, and keeps its log
    quiet. ``configuration`` adds to or replaces these settings; it is not applied to a session that exists.

    Raises:
        ProgramError: if a session must be made and there is no Java that Spark can use.
    """
    found = spark or SparkSession.getActiveSession()
    if found is not None:
        return found
    check_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    quiet = f"-Dlog4j2.configurationFile={(Path(__file__).parent / 'log4j2.properties').as_uri()}"
    settings: dict[str, bool | float | int | str | None] = {**_LOCAL, "spark.driver.extraJavaOptions": quiet}
    if configuration is not None:
        settings |= configuration.to_dict()
    with quiet_jvm(), _our_modules_for_workers():
        return SparkSession.builder.config(map=settings).getOrCreate()


@contextmanager
def _our_modules_for_workers() -> Iterator[None]:
    """Have the JVM, and with it its workers, start with this process's own module path: a script's folder is on it."""
    before = os.environ.get("PYTHONPATH")
    ours = [path or os.getcwd() for path in sys.path if not path.startswith((sys.prefix, sys.base_prefix))]
    os.environ["PYTHONPATH"] = os.pathsep.join(ours)
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before
