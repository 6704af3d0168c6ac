"""Jobs from a table to tables, all of one kind.

python lake_job.py FORMAT STEP TABLE ...

- ``write TABLE`` makes the table of events, some files for each device;
- ``create TOTALS LATE`` makes empty tables for results, where a job does not make them itself;
- ``run EVENTS CHECKPOINT TOTALS [LATE [FAILING]]`` runs a job with one table or with two. With a folder for FAILING, a
  third sink fails in each micro-batch once, after the tables have it, and the job starts again;
- ``show TABLE ...`` prints what is in tables, as JSON.

A job begins to work when a line comes on its standard input, so that one life of it can start Spark while the one
before it still works.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from eventide.aggregates import count, sum_
from eventide.common import Duration, Row, Time, WatermarkStrategy
from eventide.common.restart_strategy import RestartStrategies
from eventide.datastream import DataStream, OutputTag, StreamExecutionEnvironment
from eventide.datastream.connectors import FormatSink
from eventide.datastream.window import TumblingEventTimeWindows

DEVICES = ("left", "right")
COMMITS = 3
ROWS = 60
"""The rows of each device in a commit."""

ONE_FILE = {
    "delta": {"maxFilesPerTrigger": "1"},
    "iceberg": {"streaming-max-files-per-micro-batch": "1"},
}
"""A micro-batch for each file: the two devices take turns."""


COLUMNS = "n BIGINT, key STRING, at TIMESTAMP, device STRING"
TOTALS = "key STRING, window STRUCT<start: TIMESTAMP, end: TIMESTAMP>, count BIGINT, n BIGINT"


def event(n: int, device: str) -> Row:
    """The n-th event of a device: out of order, now and then very late."""
    mixed = n * 2_654_435_761 % 2**32
    at = n * 10 + mixed % 90 - (1_500 if mixed % 11 == 0 else 0)
    return Row(n=n, key=f"k{mixed % 7}", at=datetime.fromtimestamp(at / 1_000, UTC), device=device)


def numbers(commit: int) -> range:
    """The numbers of the events of each device in a commit."""
    return range(commit * ROWS, (commit + 1) * ROWS)


def write(spark: SparkSession, kind: str, table: str) -> None:
    """Make the table of events, commit by commit."""
    if kind == "iceberg":
        spark.sql(f"CREATE TABLE {table} ({COLUMNS}) USING iceberg PARTITIONED BY (device)")
    for commit in range(COMMITS):
        rows = [tuple(event(n, device)) for device in DEVICES for n in numbers(commit)]
        writer = spark.createDataFrame(rows, COLUMNS).coalesce(1).write.format(kind).mode("append")
        (writer.partitionBy("device") if kind == "delta" else writer).save(table)


def create(spark: SparkSession, totals: str, late: str) -> None:
    """Make empty tables for the results."""
    spark.sql(f"CREATE TABLE {totals} ({TOTALS}) USING iceberg")
    spark.sql(f"CREATE TABLE {late} ({COLUMNS}) USING iceberg")


def rows_of(env: StreamExecutionEnvironment, kind: str, table: str) -> DataStream:
    """The rows of the table, with a watermark for each device."""
    spark = SparkSession.active()
    devices = sorted(row.device for row in spark.read.format(kind).load(table).select("device").distinct().collect())
    rows = spark.readStream.format(kind).options(**ONE_FILE[kind]).load(table)
    return env.from_data_frame(rows, in_time("at"), split_by=["device"], splits=devices, order_by=["n"])


def in_time(assigner: object) -> WatermarkStrategy:
    return WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(300)).with_timestamp_assigner(assigner)


def results(events: DataStream) -> tuple[DataStream, DataStream]:
    """Totals in windows, and what is late for them."""
    late = OutputTag("late", events.get_type())
    windows = events.key_by("key").window(TumblingEventTimeWindows.of(Time.milliseconds(200)))
    totals = windows.side_output_late_data(late).aggregate(count(), sum_("n").alias("n"))
    return totals, totals.get_side_output(late)


def failing_once(folder: Path) -> Callable[[DataFrame, int], None]:
    """A sink that fails in each micro-batch when it comes for the first time."""

    def fail(rows: DataFrame, batch: int) -> None:
        seen = folder / str(batch)
        if not seen.exists():
            seen.touch()
            raise RuntimeError(f"micro-batch {batch} fails once")

    return fail


def run(
    kind: str, table: str, checkpoint: str, totals: str, late: str | None = None, failing: str | None = None
) -> None:
    """Run a job on what is there of the table of events."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2).set_available_now()
    env.get_checkpoint_config().set_checkpoint_storage_dir(checkpoint)
    sums, rest = results(rows_of(env, kind, table))
    sums.sink_to(FormatSink(kind, {"path": totals}))
    if late is not None:
        rest.sink_to(FormatSink(kind, {"path": late}))
    if failing is not None:
        env.set_restart_strategy(RestartStrategies.fixed_delay_restart(100, 0))
        sums.sink_to(failing_once(Path(failing)))
    env.execute(f"{kind} to {kind}")


def show(spark: SparkSession, kind: str, *tables: str) -> None:
    """Print the rows of tables, in an order of their own, and how many commits have added some."""
    for table in tables:
        rows = spark.read.format(kind).load(table).selectExpr("to_json(struct(*)) AS row").collect()
        if kind == "delta":
            commits = spark.sql(f"DESCRIBE HISTORY delta.`{table}`").where("operation = 'WRITE'").count()
        else:
            commits = spark.read.format(kind).load(f"{table}.snapshots").count()
        print(json.dumps({"rows": sorted(row.row for row in rows), "commits": commits}))


def main(kind: str, step: str, *arguments: str) -> None:
    """Do one step."""
    StreamExecutionEnvironment.get_execution_environment()
    spark = SparkSession.active()
    if step == "write":
        write(spark, kind, *arguments)
    elif step == "create":
        create(spark, *arguments)
    elif step == "show":
        show(spark, kind, *arguments)
    elif sys.stdin.readline():
        run(kind, *arguments)


if __name__ == "__main__":
    main(*sys.argv[1:])
