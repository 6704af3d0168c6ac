"""Parking as sessions: every ticket says itself for how long it is good.

What to see: (car, start of the stay, end, number of tickets); a ticket in time prolongs the stay.

A program of PyFlink, whose imports say `eventide`; nothing else was changed.
"""

import argparse
import sys
from collections.abc import Iterable

from eventide.common import Encoder, Types, WatermarkStrategy
from eventide.common.watermark_strategy import TimestampAssigner
from eventide.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from eventide.datastream.connectors.file_system import FileSink, OutputFileConfig, RollingPolicy
from eventide.datastream.window import EventTimeSessionWindows, SessionWindowTimeGapExtractor, TimeWindow


class TicketTimestampAssigner(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp) -> int:
        return int(value[1])


class TicketGapExtractor(SessionWindowTimeGapExtractor):
    def extract(self, element: tuple) -> int:
        return element[2]


class CountTickets(ProcessWindowFunction[tuple, tuple, str, TimeWindow]):
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

    # define the source: car, time of the ticket, how long it is good
    tickets = env.from_collection(
        [("red", 1, 20), ("blue", 2, 3), ("blue", 5, 10), ("red", 15, 2), ("blue", 30, 1)],
        type_info=Types.TUPLE([Types.STRING(), Types.INT(), Types.INT()]),
    )

    # define the watermark strategy
    watermark_strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        TicketTimestampAssigner()
    )

    ds = (
        tickets.assign_timestamps_and_watermarks(watermark_strategy)
        .key_by(lambda ticket: ticket[0], key_type=Types.STRING())
        .window(EventTimeSessionWindows.with_dynamic_gap(TicketGapExtractor()))
        .process(CountTickets(), Types.TUPLE([Types.STRING(), Types.INT(), Types.INT(), Types.INT()]))
    )

    # define the sink
    if output_path is not None:
        ds.sink_to(
            sink=FileSink.for_row_format(base_path=output_path, encoder=Encoder.simple_string_encoder())
            .with_output_file_config(
                OutputFileConfig.builder().with_part_prefix("stays").with_part_suffix(".txt").build()
            )
            .with_rolling_policy(RollingPolicy.default_rolling_policy())
            .build()
        )
    else:
        print("Printing result to stdout. Use --output to specify output path.")
        ds.print()

    # submit for execution
    env.execute()
