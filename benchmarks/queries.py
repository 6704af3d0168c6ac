"""One aggregation as a query of Spark's own and as a job of eventide, from a folder of files into another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.data import FILES_PER_BATCH, SCHEMA
from eventide.aggregates import count, sum_
from eventide.common import Duration, Time, WatermarkStrategy
from eventide.datastream import DataStream, StreamExecutionEnvironment
from eventide.datastream.connectors import FileSource, FormatSink
from eventide.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    WindowAssigner,
)
from eventide.spark.host import settings_for_start

PARALLELISM = 2
DISORDER_S = 2


@dataclass(frozen=True)
class Windows:
    """Windows for both engines."""

    ours: WindowAssigner[Any, Any]
    theirs: Callable[[], Column]


TUMBLING = Windows(TumblingEventTimeWindows.of(Time.seconds(5)), lambda: F.window("ts", "5 seconds"))
SLIDING = Windows(
    SlidingEventTimeWindows.of(Time.seconds(60), Time.seconds(5)), lambda: F.window("ts", "60 seconds", "5 seconds")
)
SESSIONS = Windows(EventTimeSessionWindows.with_gap(Time.seconds(1)), lambda: F.session_window("ts", "1 second"))


@dataclass(frozen=True)
class Job:
    """Job of a query: the files it reads, and its windows.

    Attributes:
        files: the folder of the data.
        windows: the windows that are summed up.
        files_per_batch: how many files a micro-batch reads.
        disorder_s: how much later than its time a row may come, in seconds.
    """

    files: Path
    windows: Windows
    files_per_batch: int = FILES_PER_BATCH
    disorder_s: int = DISORDER_S

    def read(self, spark: SparkSession) -> DataFrame:
        """The rows as a stream of Spark's."""
        rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", self.files_per_batch)
        return rows.parquet(str(self.files))

    def strategy(self) -> WatermarkStrategy:
        """When a row was, and how far the watermark stays behind."""
        bounded = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(self.disorder_s))
        return bounded.with_timestamp_assigner("ts")


Side = Callable[[SparkSession, Job, Path], StreamingQuery]
"""Starts a job that writes below a folder."""


def by_spark(spark: SparkSession, job: Job, place: Path) -> StreamingQuery:
    """Spark's own aggregation."""
    return started(spark, spark_sums(spark, job), place)


def spark_sums(spark: SparkSession, job: Job) -> DataFrame:
    """The stream of its results."""
    rows = job.read(spark).withWatermark("ts", f"{job.disorder_s} seconds")
    windows = job.windows.theirs().alias("window")
    return rows.groupBy("user", windows).agg(F.sum("value").alias("total"), F.count("*").alias("n"))


def by_file_source(spark: SparkSession, job: Job, place: Path) -> StreamingQuery:
    """A job of eventide whose rows are read by Arrow, in Python."""
    env = environment(spark, place)
    return submitted(env, sums_of_files(env, job), place)


def sums_of_files(env: StreamExecutionEnvironment, job: Job) -> DataStream:
    """The stream of its results."""
    source = FileSource.parquet(str(job.files)).set_max_files_per_batch(job.files_per_batch).build()
    return sums(env.from_source(source, job.strategy(), "events"), job)


def by_data_frame(spark: SparkSession, job: Job, place: Path) -> StreamingQuery:
    """A job of eventide whose rows are read by Spark."""
    env = environment(spark, place).set_available_now()
    return submitted(env, sums(env.from_data_frame(job.read(spark), job.strategy()), job), place)


OURS: dict[str, Side] = {"FileSource": by_file_source, "from_data_frame": by_data_frame}
SIDES: dict[str, Side] = {"Spark": by_spark, **OURS}


def sums(events: DataStream, job: Job) -> DataStream:
    """The sum and the number of values of each user and window."""
    windows = events.key_by("user").window(job.windows.ours)
    return windows.aggregate(sum_("value").alias("total"), count().alias("n"))


def environment(spark: SparkSession, place: Path) -> StreamExecutionEnvironment:
    """An environment whose job keeps its checkpoint below a folder."""
    env = StreamExecutionEnvironment.get_execution_environment(spark=spark).set_parallelism(PARALLELISM)
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(place / "checkpoint"))
    return env


def submitted(env: StreamExecutionEnvironment, results: DataStream, place: Path) -> StreamingQuery:
    """Start a job that writes Parquet; return its query, which has the times."""
    results.sink_to(FormatSink("parquet", {"path": str(place / "out")}))
    return query_of(env)


def query_of(env: StreamExecutionEnvironment) -> StreamingQuery:
    """Start the job of an environment; return its query."""
    client = env.execute_async("benchmark")
    query = SparkSession.active().streams.get(str(client.get_job_id()))
    if query is None:
        client.get_job_execution_result().result()  # says why it has ended
        raise RuntimeError("a query ended before it could be watched")
    return query


def started(spark: SparkSession, rows: DataFrame, place: Path) -> StreamingQuery:
    """Start a query that writes Parquet, with the settings that a job of eventide gets."""
    writer = rows.writeStream.format("parquet").option("path", str(place / "out")).trigger(availableNow=True)
    with settings_for_start(spark, PARALLELISM):
        return writer.option("checkpointLocation", str(place / "checkpoint")).start()
