"""The count with Spark's own means: `withWatermark`, one watermark for the whole query."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from flights import BOUND, Counts, hour_of
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name

if TYPE_CHECKING:
    from rich.console import Console

_SCHEMA = "origin STRING, flight STRING, destination STRING, took_off TIMESTAMP, reported TIMESTAMP"
_QUERY = "departures_with_spark"


@dataclass(frozen=True)
class SparkResult:
    """Result of Spark: the counts, and its progress: the watermark of each micro-batch is in milliseconds."""

    counts: Counts
    rows_in: int
    metric: int
    open_windows: int
    watermarks: list[int]


def read_stream(folder: Path) -> DataFrame:
    """The stream as a DataFrame, for eventide and for Spark: each micro-batch reads one file."""
    return SparkSession.active().readStream.schema(_SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder))


def count_with_spark(reports: DataFrame, checkpoint: Path, parallelism: int, console: Console) -> SparkResult:
    """Count the departures of each airport and hour."""
    reports.sparkSession.conf.set("spark.sql.shuffle.partitions", parallelism)
    query = (
        reports.withWatermark("took_off", f"{BOUND.total_seconds():.0f} seconds")
        .groupBy("origin", F.window("took_off", "1 hour"))
        .count()
        .writeStream.outputMode("append")
        .format("memory")
        .queryName(_QUERY)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    with console.status("Spark: starting") as status:
        while not query.awaitTermination(0.2):
            if query.lastProgress:
                status.update(f"Spark: micro-batch {query.lastProgress.batchId}")
    progress = list({p.batchId: p for p in query.recentProgress}.values())
    return SparkResult(
        counts=_counts(reports),
        rows_in=sum(p.numInputRows for p in progress),
        metric=sum(operator.numRowsDroppedByWatermark for p in progress for operator in p.stateOperators),
        open_windows=progress[-1].stateOperators[0].numRowsTotal,
        watermarks=[_milliseconds(p.eventTime["watermark"]) for p in progress],
    )


def _counts(reports: DataFrame) -> Counts:
    table = reports.sparkSession.table(_QUERY)
    rows: list[Any] = table.select("origin", F.unix_millis("window.start").alias("hour"), "count").collect()
    return Counter({(row.origin, hour_of(row.hour)): row["count"] for row in rows})


def _milliseconds(instant: str) -> int:
    return int(pd.Timestamp(instant).timestamp() * 1000)


def watermarks_for_late_rows(result: SparkResult) -> list[int]:
    """The watermark that decides in each micro-batch which rows are late: that of the micro-batch before."""
    return [0, *result.watermarks[:-1]]


def rows_lost(rows: pd.DataFrame, result: SparkResult) -> pd.Series:
    """Which rows Spark drops, by its rule: those whose hour ended at or before the watermark."""
    watermark = rows["batch"].map(dict(enumerate(watermarks_for_late_rows(result))))
    end_of_hour = rows["took_off"].dt.floor("h") + pd.Timedelta(hours=1)
    return end_of_hour <= pd.to_datetime(watermark, unit="ms", utc=True)
