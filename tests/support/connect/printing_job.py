"""A program that prints the largest of every five numbers below 200, in twenty micro-batches, and writes them to files.

Usage: printing_job.py CHECKPOINT FILES [TRIES], with the address of the server in SPARK_REMOTE. PySpark tries so often
to reach it when it does not answer, at most a second apart.
"""

import sys

from pyspark.sql import SparkSession

from eventide.common import Row, Time, Types, WatermarkStrategy
from eventide.datastream import StreamExecutionEnvironment
from eventide.datastream.connectors import FormatSink, NumberSequenceSource
from eventide.datastream.window import TumblingEventTimeWindows


class Largest:
    """A class of the main file, which the server does not have."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __repr__(self) -> str:
        return str(self.number)


env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1).set_max_rows_per_batch(10)
if len(sys.argv) > 3:
    from pyspark.sql.connect.client.retries import DefaultPolicy

    SparkSession.active().client.set_retry_policies([DefaultPolicy(int(sys.argv[3]), max_backoff=1_000)])
env.get_checkpoint_config().set_checkpoint_storage_dir(sys.argv[1])
in_order = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda number, _: number)
numbers = env.from_source(NumberSequenceSource(0, 199), in_order, "numbers")
windows = numbers.key_by(lambda _: 0, Types.INT()).window(TumblingEventTimeWindows.of(Time.milliseconds(5)))
largest = windows.reduce(max)
largest.map(Largest).print()
as_rows = largest.map(lambda number: Row(number=number), Types.ROW_NAMED(["number"], [Types.LONG()]))
as_rows.sink_to(FormatSink("parquet", {"path": sys.argv[2]}))
env.execute("printing")
