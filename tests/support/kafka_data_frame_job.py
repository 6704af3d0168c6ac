"""A job that reads a topic with Spark's own connector, from its earliest records or from where a savepoint stood.

python kafka_data_frame_job.py JARS SERVERS TOPIC OUTPUT CHECKPOINT PARALLELISM [SAVEPOINT]

It writes a line for each key and window of a second that is complete: the key, the window's end, the sum.
"""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession

from eventide.aggregates import sum_
from eventide.common import Duration, Time, Types, WatermarkStrategy
from eventide.datastream import StreamExecutionEnvironment
from eventide.datastream.connectors import FormatSink
from eventide.datastream.window import TumblingEventTimeWindows


def main(jars: str, servers: str, topic: str, output: str, checkpoint: str, parallelism: str, saved: str = "") -> None:
    spark = SparkSession.builder.master("local[2]").config("spark.jars", jars).getOrCreate()
    spark.conf.set("spark.sql.shuffle.partitions", parallelism)
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(int(parallelism)).set_available_now()
    env.get_checkpoint_config().set_checkpoint_storage_dir(checkpoint)
    begin = json.dumps(env.from_savepoint(saved).saved_position()) if saved else "earliest"
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", topic)
        .option("startingOffsets", begin)
        .load()
        .selectExpr("partition", "cast(cast(value as string) as bigint) as n", "timestamp")
        .selectExpr("*", "n % 3 as key")
    )
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(500)).with_timestamp_assigner(
        "timestamp"
    )
    numbers = env.from_data_frame(records, strategy, split_by=["partition"])
    sums = numbers.key_by("key").window(TumblingEventTimeWindows.of(Time.seconds(1))).aggregate(sum_("n").alias("sum"))
    lines = sums.map(lambda row: f"{row['key']} {row['window'].end} {row['sum']}", Types.STRING())
    lines.sink_to(FormatSink("text", {"path": output}))
    env.execute()


if __name__ == "__main__":
    main(*sys.argv[1:])
