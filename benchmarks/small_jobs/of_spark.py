"""Counts in windows of five seconds, by PySpark alone: prints the first of them, and goes on to the end."""

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name

builder = SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", 2)
spark = builder.config("spark.ui.enabled", "false").getOrCreate()
clicks = spark.readStream.schema("user string, ts long").parquet(sys.argv[1])
timed = clicks.withColumn("time", F.timestamp_millis("ts")).withWatermark("time", "2 seconds")
windows = timed.groupBy(F.window("time", "5 seconds"), "user").count()


def show(batch: DataFrame, _: int) -> None:
    for row in batch.collect():
        print(row, flush=True)


windows.writeStream.foreachBatch(show).outputMode("append").trigger(availableNow=True).start().awaitTermination()
