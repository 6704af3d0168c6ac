"""Asks Spark which parts of a job's query its real-time mode takes.

python real_time_job.py JARS SERVERS TOPIC CHECKPOINTS

It prints a JSON object: for each part, what Spark refuses; null if a micro-batch ends well. Real-time mode reads from
Kafka alone, so all parts but the source begin with a topic.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from eventide.aggregates import count
from eventide.common import Duration, Row, Types, WatermarkStrategy
from eventide.datastream import DataStream, StreamExecutionEnvironment
from eventide.datastream.connectors import Source
from eventide.datastream.window import TumblingEventTimeWindows

ROWS = Types.ROW_NAMED(["key", "n"], [Types.STRING(), Types.LONG()])


class Numbers(Source):
    """One split of rows."""

    def splits(self):
        return ["all"]

    def latest_position(self, split):
        return 10

    def read(self, split, start, end):
        yield from (Row(key="a", n=n) for n in range(start, end))

    def get_produced_type(self):
        return ROWS


def asked(spark: SparkSession, servers: str, topic: str) -> dict[str, Callable[[], DataStreamWriter]]:
    """The parts, each as a query that has nothing else which real-time mode would refuse before it."""
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1)).with_timestamp_assigner("at")

    def topic_rows() -> DataFrame:
        records = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers)
        records = records.option("subscribe", topic).option("startingOffsets", "earliest").load()
        return records.selectExpr("cast(key AS STRING) AS key", "timestamp AS at", "partition")

    def stream() -> DataStream:
        env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
        return env.from_data_frame(topic_rows(), strategy, split_by=["partition"])

    def windows() -> DataFrame:
        tumbling = TumblingEventTimeWindows.of(Duration.of_seconds(10))
        return stream().key_by("key").window(tumbling).aggregate(count()).to_data_frame()

    def source() -> DataFrame:
        env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
        return env.from_source(Numbers(), WatermarkStrategy.no_watermarks(), "numbers").to_data_frame()

    return {
        "Spark's own columns": lambda: topic_rows().writeStream.format("console"),
        "functions on elements": lambda: stream().map(_same, ROWS).to_data_frame().writeStream.format("console"),
        "windows, state and timers": lambda: windows().writeStream.format("console"),
        "sources in Python": lambda: source().writeStream.format("console"),
        "sinks": lambda: topic_rows().writeStream.foreachBatch(_nothing),
    }


UNCHECKED = ("functions on elements", "windows, state and timers")
"""The parts that are asked once more without Spark's list of what it allows."""


def _same(row):
    return Row(key=row["key"], n=0)


def _nothing(rows, batch):
    pass


def answer(writer: DataStreamWriter, checkpoint: Path) -> list[str] | None:
    """The condition and the classes that Spark names when it refuses a query; None if that finishes a micro-batch."""
    try:
        options = writer.outputMode("update").option("checkpointLocation", str(checkpoint))
        query = options.trigger(realTime="5 seconds").start()
        try:
            while query.lastProgress is None:
                query.awaitTermination(1)
        finally:
            query.stop()
    except PySparkException as error:
        said = str(error).partition("\n")[0]
        conditions = [name for name in re.findall(r"\[([A-Z_]+(?:\.\w+)?)\]", said) if name != "STREAM_FAILED"]
        return [*conditions, *re.findall(r"org\.apache\.spark\.sql\.execution\.[\w.]+\.(\w+)", said)]
    return None


def main(jars: str, servers: str, topic: str, checkpoints: str) -> None:
    spark = (
        SparkSession.builder.master("local[4]")
        .config("spark.jars", jars)
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.streaming.stateStore.checkpointFormatVersion", "2")
        .config(
            "spark.sql.streaming.stateStore.providerClass",
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        )
        .getOrCreate()
    )
    parts = asked(spark, servers, topic)
    answers = {name: answer(make(), Path(checkpoints, str(i))) for i, (name, make) in enumerate(parts.items())}
    spark.conf.set("spark.sql.streaming.realTimeMode.allowlistCheck", "false")
    for i, name in enumerate(UNCHECKED):
        answers[f"{name}, unchecked"] = answer(parts[name](), Path(checkpoints, f"unchecked-{i}"))
    print(json.dumps(answers))


if __name__ == "__main__":
    main(*sys.argv[1:])
