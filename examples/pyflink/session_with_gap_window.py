"""Calls of birds as songs: a song ends when a bird has been silent for five milliseconds.

What to see: (bird, start of the song, end, number of calls); calls five milliseconds apart are one song still.

A program of PyFlink, whose imports say `eventide`; nothing else was changed.
"""

import argparse
import sys
from collections.abc import Iterable

from eventide.common import Encoder, Time, Types, WatermarkStrategy
from eventide.common.watermark_strategy import TimestampAssigner
from eventide.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from eventide.datastream.connectors.file_system import FileSink, OutputFileConfig, RollingPolicy
from eventide.datastream.window import EventTimeSessionWindows, TimeWindow


class CallTimestampAssigner(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp) -> int:
        return int(value[1])


class CountCalls(ProcessWindowFunction[tuple, tuple, str, TimeWindow]):
    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[tuple]
    ) -> Iterable[tuple]:
        return [(key, context.window().start, context.window().end, len(list(elements)))]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", dest="output", required=False, help="Directory to write results to.")
    known_args, _ = parser.parse_known_args(sys.argv[1:])
    output_path = known_args.output

    env = StreamExecutionEnvironment.get_execution_environment()
    # write all results in one task
    env.set_parallelism(1)

    # define the source
    calls = env.from_collection(
        [("wren", 1), ("wren", 4), ("robin", 5), ("wren", 9), ("robin", 11), ("wren", 20)],
        type_info=Types.TUPLE([Types.STRING(), Types.INT()]),
    )

    # define the watermark strategy
    watermark_strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(CallTimestampAssigner())

    ds = (
        calls.assign_timestamps_and_watermarks(watermark_strategy)
        .key_by(lambda call: call[0], key_type=Types.STRING())
        .window(EventTimeSessionWindows.with_gap(Time.milliseconds(5)))
        .process(CountCalls(), Types.TUPLE([Types.STRING(), Types.INT(), Types.INT(), Types.INT()]))
    )

    # define the sink
    if output_path is not None:
        ds.sink_to(
            sink=FileSink.for_row_format(base_path=output_path, encoder=Encoder.simple_string_encoder())
            .with_output_file_config(
                OutputFileConfig.builder().with_part_prefix("songs").with_part_suffix(".txt").build()
            )
            .with_rolling_policy(RollingPolicy.default_rolling_policy())
            .build()
        )
    else:
        print("Printing result to stdout. Use --output to specify output path.")
        ds.print()

    # submit for execution
    env.execute()
