"""What a query reads from the session when it starts."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from eventide.spark.session import (
    ARROW_BYTES,
    CHANGELOG,
    DISK_FILE_MANAGER,
    FILE_MANAGER,
    ROCKSDB,
    ROW_COUNT,
    SHUFFLE_PARTITIONS,
    STATE_STORE,
    TAKES_IN_STEPS,
)
from eventide.spark.source import CAN_LIMIT

_settings = threading.RLock()
"""Who holds it has the session's settings for its own; a sink's function of a batch job may start another job."""


@contextmanager
def settings_for_start(
    spark: SparkSession, parallelism: int, checkpoint: str = "", *, rows: bool = False
) -> Iterator[None]:
    """Set what a query reads from the session when it starts, and put the session back as it was.

    ``rows`` says that rows of a DataFrame go to Python.
    """
    wanted: dict[str, str | None] = {
        SHUFFLE_PARTITIONS: str(parallelism),
        STATE_STORE: ROCKSDB,
        CHANGELOG: "true",
        # To count what is stored, Spark reads before it writes; a row is a bucket here, whose number tells nothing.
        ROW_COUNT: "false",
    }
    if rows:
        # Spark adds up the size of all columns behind every row that it sends, unless it need not look at it at all:
        # that is half of what a row costs on its way to Python. The number of rows in a batch is limited anyway.
        wanted[ARROW_BYTES] = str(2**31 - 1)
    if not CAN_LIMIT:
        # Else a run that takes what is there is over with its first micro-batch, be that a repetition of one before it.
        # Spark reads this some time behind the start of a query, so it is not put back.
        spark.conf.set(TAKES_IN_STEPS, "true")
    with _settings:
        if not _is_on_disk(checkpoint) and spark.conf.get(FILE_MANAGER, None) == DISK_FILE_MANAGER:
            wanted[FILE_MANAGER] = None  # for a store of another kind, Spark chooses
        before = {name: spark.conf.get(name, None) for name in wanted}
        try:
            _set(spark, wanted)
            yield
        finally:
            _set(spark, before)


def _is_on_disk(location: str) -> bool:
    scheme, separator, _ = location.partition("://")
    return not separator or scheme == "file"


def _set(spark: SparkSession, settings: dict[str, str | None]) -> None:
    for name, value in settings.items():
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)
