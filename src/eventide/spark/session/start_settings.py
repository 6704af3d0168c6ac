"""Settings that a query reads from the session when it starts."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from eventide.spark.query.data_source import CAN_LIMIT
from eventide.spark.session.make import (
    ARROW_BYTES,
    BATCHES_WITHOUT_DATA,
    CHANGELOG,
    DISK_FILE_MANAGER,
    FILE_MANAGER,
    ROCKSDB,
    ROW_COUNT,
    SHUFFLE_PARTITIONS,
    STATE_STORE,
    TAKES_IN_STEPS,
)


@dataclass(slots=True, eq=False)
class _Holding:
    """Settings of a session that stay as they are as long as somebody needs them.

    Attributes:
        spark: the session.
        wanted: what is set, None where nothing must be.
        before: what was set before.
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
    spark: SparkSession, parallelism: int, checkpoint: str = "", *, rows: bool = False, ends_with_data: bool = False
) -> Iterator[None]:
    """Set what a query reads from the session when it starts, and put the session back as it was.

    A batch job reads it in all that it does. So others wait until it is over, unless they want the same: a job that
    starts again, or one that a sink's function of the batch job starts and waits for.

    ``rows`` says that rows of a DataFrame go to Python. ``ends_with_data`` says that a query whose operators follow the
    clock ends by itself after the micro-batch with the last data.
    """
    wanted: dict[str, str | None] = {
        SHUFFLE_PARTITIONS: str(parallelism),
        STATE_STORE: ROCKSDB,
        CHANGELOG: "true",
        # To count what is stored, Spark reads before it writes; a row is a bucket here, whose number tells nothing.
        ROW_COUNT: "false",
    }
    if ends_with_data:
        # Spark would begin one more micro-batch for the clock, and another one after that. Stopped from outside, the
        # query leaves one that it has begun and not committed.
        wanted[BATCHES_WITHOUT_DATA] = "false"
    if rows:
        # Spark adds up the size of all columns after every row that it sends, unless it need not look at it at all:
        # that is half of what a row costs on its way to Python. The number of rows in a batch is limited anyway.
        wanted[ARROW_BYTES] = str(2**31 - 1)
    if not CAN_LIMIT:
        # Else a run that takes what is there is over with its first micro-batch, be that a repetition of one before it.
        # Spark reads this some time after the start of a query, so it is not put back.
        spark.conf.set(TAKES_IN_STEPS, "true")
    if not _is_on_disk(checkpoint):
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


def _is_on_disk(location: str) -> bool:
    scheme, separator, _ = location.partition("://")
    return not separator or scheme == "file"


def _set(spark: SparkSession, settings: dict[str, str | None]) -> None:
    for name, value in settings.items():
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)
