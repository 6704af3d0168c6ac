"""The load of two pumps over the last six milliseconds, every three.

What to see: each reading counts in two windows: (pump, start of the window, end, sum of the load).

A program of PyFlink, whose imports say `eventide`; nothing else was changed.
"""

import argparse
import sys
from collections.abc import Iterable

from eventide.common import Encoder, Time, Types, WatermarkStrategy
from eventide.common.watermark_strategy import TimestampAssigner
from eventide.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from eventide.datastream.connectors.file_system import FileSink, OutputFileConfig, RollingPolicy
from eventide.datastream.window import SlidingEventTimeWindows, TimeWindow


class ReadingTimestampAssigner(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp) -> int:
        return int(value[2])


class SumLoad(ProcessWindowFunction[tuple, tuple, str, TimeWindow]):
    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[tuple]
    ) -> Iterable[tuple]:
        return [(key, context.window().start, context.window().end, sum(reading[1] for reading in elements))]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", dest="output", required=False, help="Directory to write results to.")
    known_args, _ = parser.parse_known_args(sys.argv[1:])
    output_path = known_args.output

    env = StreamExecutionEnvironment.get_execution_environment()
    # write all results in one task
    env.set_parallelism(1)

    # define the source
    readings = env.from_collection(
        [("pump-1", 40, 3), ("pump-2", 15, 4), ("pump-1", 10, 7), ("pump-1", 5, 8), ("pump-2", 20, 11)],
        type_info=Types.TUPLE([Types.STRING(), Types.INT(), Types.INT()]),
    )

    # define the watermark strategy
    watermark_strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        ReadingTimestampAssigner()
    )

    ds = (
        readings.assign_timestamps_and_watermarks(watermark_strategy)
        .key_by(lambda reading: reading[0], key_type=Types.STRING())
        .window(SlidingEventTimeWindows.of(Time.milliseconds(6), Time.milliseconds(3)))
        .process(SumLoad(), Types.TUPLE([Types.STRING(), Types.INT(), Types.INT(), Types.INT()]))
    )

    # define the sink
    if output_path is not None:
        ds.sink_to(
            sink=FileSink.for_row_format(base_path=output_path, encoder=Encoder.simple_string_encoder())
            .with_output_file_config(
                OutputFileConfig.builder().with_part_prefix("load").with_part_suffix(".txt").build()
            )
            .with_rolling_policy(RollingPolicy.default_rolling_policy())
            .build()
        )
    else:
        print("Printing result to stdout. Use --output to specify output path.")
        ds.print()

    # submit for execution
    env.execute()
