"""Counts in windows of five seconds, by eventide: prints the first of them, and goes on to the end."""

import sys

from eventide.aggregates import count
from eventide.common import Duration, Time, Types, WatermarkStrategy
from eventide.datastream import StreamExecutionEnvironment
from eventide.datastream.connectors import FileSource
from eventide.datastream.window import TumblingEventTimeWindows

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(2)
clicks = FileSource.parquet(sys.argv[1], type_info=Types.ROW_NAMED(["user", "ts"], [Types.STRING(), Types.LONG()]))
strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(2)).with_timestamp_assigner("ts")
windows = (
    env.from_source(clicks.build(), strategy, "clicks")
    .key_by("user")
    .window(TumblingEventTimeWindows.of(Time.seconds(5)))
)
for row in windows.aggregate(count().alias("clicks")).execute_and_collect():
    print(row, flush=True)
