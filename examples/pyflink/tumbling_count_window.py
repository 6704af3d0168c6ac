"""Eggs in boxes of three: windows that are full after three elements.

What to see: (hen, weight of a full box); the brown hen's last egg waits for two more, and never comes out.

A program of PyFlink, whose imports say `eventide`; nothing else was changed.
"""

import argparse
import sys
from collections.abc import Iterable

from eventide.common import Encoder, Types
from eventide.datastream import StreamExecutionEnvironment, WindowFunction
from eventide.datastream.connectors.file_system import FileSink, OutputFileConfig, RollingPolicy
from eventide.datastream.window import CountWindow


class WeighBox(WindowFunction[tuple, tuple, str, CountWindow]):
    def apply(self, key: str, window: CountWindow, inputs: Iterable[tuple]):
        return [(key, sum(egg[0] for egg in inputs))]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", dest="output", required=False, help="Directory to write results to.")
    known_args, _ = parser.parse_known_args(sys.argv[1:])
    output_path = known_args.output

    env = StreamExecutionEnvironment.get_execution_environment()
    # write all results in one task
    env.set_parallelism(1)

    # define the source
    eggs = env.from_collection(
        [(61, "brown"), (55, "white"), (58, "brown"), (63, "brown"), (57, "white"), (60, "brown"), (54, "white")],
        type_info=Types.TUPLE([Types.INT(), Types.STRING()]),
    )

    ds = (
        eggs.key_by(lambda egg: egg[1], key_type=Types.STRING())
        .count_window(3)
        .apply(WeighBox(), Types.TUPLE([Types.STRING(), Types.INT()]))
    )

    # define the sink
    if output_path is not None:
        ds.sink_to(
            sink=FileSink.for_row_format(base_path=output_path, encoder=Encoder.simple_string_encoder())
            .with_output_file_config(
                OutputFileConfig.builder().with_part_prefix("eggs").with_part_suffix(".txt").build()
            )
            .with_rolling_policy(RollingPolicy.default_rolling_policy())
            .build()
        )
    else:
        print("Printing result to stdout. Use --output to specify output path.")
        ds.print()

    # submit for execution
    env.execute()
