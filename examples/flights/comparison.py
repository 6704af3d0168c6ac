"""Fate of every row on both sides, checked against a plain count of the data at rest."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd
from flights import AIRPORTS, Counts, plain_count
from with_spark import SparkResult, rows_lost

if TYPE_CHECKING:
    from with_eventide import EventideResult

_CLOSING_ROWS = len(AIRPORTS)


class DoesNotAddUp(Exception):
    """A number of the demo contradicts another."""


@dataclass(frozen=True)
class Fate:
    """Fate of the rows on one side."""

    rows_in: int
    counted: int
    late: int
    wrong_hours: int
    metric: int

    @property
    def lost(self) -> int:
        """The rows that came in and came out nowhere."""
        return self.rows_in - self.counted - self.late


@dataclass(frozen=True)
class Comparison:
    """Both sides; the rows, with whether each was ``lost`` by Spark or ``late`` for eventide; the number of counts."""

    eventide: Fate
    spark: Fate
    rows: pd.DataFrame
    hours: int


def compare(rows: pd.DataFrame, eventide: EventideResult, spark: SparkResult) -> Comparison:
    """Account for every row on both sides.

    Raises:
        DoesNotAddUp: if a row is missing that no rule explains, or a side said something else than it did.
    """
    truth = plain_count(rows)
    late = Counter((row.origin, pd.Timestamp(row.took_off, tz="UTC").floor("h")) for row in eventide.late)
    rows = rows.assign(lost=rows_lost(rows, spark), late=_is_late(rows, eventide))
    _demand(eventide.rows_in == spark.rows_in == len(rows) + _CLOSING_ROWS, "both sides read every row once")
    _demand(eventide.counts + late == truth, "counted and late rows of eventide are all rows, hour by hour")
    _demand(eventide.metric == len(eventide.late), "eventide's counter of late rows is right")
    _demand(spark.open_windows == _CLOSING_ROWS, "nothing but the closing rows waits in Spark's state")
    _demand(spark.counts + plain_count(rows[rows["lost"]]) == truth, "Spark's rule explains what is missing")
    groups = rows[rows["lost"]].groupby(["batch", "origin", rows["took_off"].dt.floor("h")]).ngroups
    _demand(spark.metric == groups, "Spark's counter counts the groups of rows that it drops in each micro-batch")
    return Comparison(
        eventide=_fate(eventide.counts, truth, eventide.rows_in, len(eventide.late), eventide.metric),
        spark=_fate(spark.counts, truth, spark.rows_in, 0, spark.metric),
        rows=rows,
        hours=len(truth),
    )


def _is_late(rows: pd.DataFrame, eventide: EventideResult) -> pd.Series:
    late = {(row.flight, pd.Timestamp(row.took_off, tz="UTC")) for row in eventide.late}
    return pd.Series([key in late for key in zip(rows["flight"], rows["took_off"], strict=True)], index=rows.index)


def _fate(counts: Counts, truth: Counts, rows_in: int, late: int, metric: int) -> Fate:
    wrong = sum(counts[key] != n for key, n in truth.items())
    return Fate(rows_in - _CLOSING_ROWS, counts.total(), late, wrong, metric)


def _demand(holds: bool, what: str) -> None:
    if not holds:
        raise DoesNotAddUp(f"this should be so, and is not: {what}")
