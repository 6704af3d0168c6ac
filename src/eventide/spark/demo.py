"""The demo's stream as Spark reads it, and what Spark's own watermark makes of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from eventide.spark.session.make import settings_for_start

_QUERY = "eventide_demo"
_SCHEMA = "station STRING, measured_at TIMESTAMP, arrived_at TIMESTAMP, celsius DOUBLE"


@dataclass(frozen=True, slots=True)
class SparkCount:
    """Result of Spark: counts by station and hour, its last watermark, and how many rows it says that it dropped."""

    counts: Counter[tuple[str, int]]
    watermark_ms: int
    dropped: int


def stream_of(spark: SparkSession, folder: Path) -> DataFrame:
    """The files in a folder, in the order of their times: one for each micro-batch."""
    return spark.readStream.schema(_SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder))


def counted_by_spark(readings: DataFrame, bound_ms: int, parallelism: int, checkpoint: Path) -> SparkCount:
    """Count the readings of each station and hour with ``withWatermark``, which is one for the whole query."""
    spark = readings.sparkSession
    counts = readings.withWatermark("measured_at", f"{bound_ms} milliseconds").groupBy(
        "station", F.window("measured_at", "1 hour")
    )
    writer = counts.count().writeStream.outputMode("append").format("memory").queryName(_QUERY)
    with settings_for_start(spark, parallelism):
        query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination()
    rows = spark.table(_QUERY).select("station", F.unix_millis("window.start").alias("hour"), "count").collect()
    spark.catalog.dropTempView(_QUERY)
    progress = list({one.batchId: one for one in query.recentProgress}.values())
    last = max(datetime.fromisoformat(one.eventTime["watermark"]) for one in progress)
    return SparkCount(
        counts=Counter({(row.station, row.hour): row["count"] for row in rows}),
        watermark_ms=round(last.timestamp() * 1_000),
        dropped=sum(operator.numRowsDroppedByWatermark for one in progress for operator in one.stateOperators),
    )
