"""Whether several sides gave the same rows."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the customary name

COLUMNS = ("user", "start", "end", "total", "n")


def flat(results: DataFrame) -> DataFrame:
    """The results of windows with one column for each thing."""
    return results.select("user", "window.start", "window.end", "total", "n")


def check_same(results: Mapping[str, DataFrame]) -> int:
    """Check that all give the same rows for the windows that all have closed; return how many rows that are.

    A side that has closed a window has closed all that end no later. Rows are compared by how many there are and by
    a sum of hashes, and one by one only if these differ.

    Raises:
        ValueError: with some of the rows that differ.
    """
    until = min(rows.agg(F.max("end")).first()[0] for rows in results.values())
    closed = {side: rows.where(F.col("end") <= F.lit(until)) for side, rows in results.items()}
    sums = {side: _sum(rows) for side, rows in closed.items()}
    first, *others = closed
    for other in others:
        if sums[first] != sums[other]:
            more, less = closed[first].exceptAll(closed[other]), closed[other].exceptAll(closed[first])
            raise ValueError(f"{first} alone has {more.head(3)}, {other} alone has {less.head(3)}")
    return int(sums[first][0])


def _sum(rows: DataFrame) -> tuple[int, int]:
    hashed = F.xxhash64(*[rows[name] for name in COLUMNS]).cast("decimal(38, 0)")
    count, total = rows.agg(F.count("*"), F.sum(hashed)).first()
    return count, total
