"""Watermarks from elements that mark that something is complete: as a generator, and in Flink's older form.

A till sends its sales and, at the end of each hour, a closing line: "all sales of this hour have been sent". The line
is the watermark, and it takes effect right after itself, in the middle of a micro-batch too: all of these sales are in
one.

What to see: each hour has its sum, and the sale of 9:40 that the till sends after the closing line of nine o'clock is
too late. The older form, one object that gives timestamps and watermarks both, says the same.
"""

import warnings
from typing import Any

from eventide.common import Time, Types, Watermark, WatermarkGenerator, WatermarkOutput, WatermarkStrategy
from eventide.datastream import DataStream, OutputTag, StreamExecutionEnvironment
from eventide.datastream.functions import AssignerWithPunctuatedWatermarks
from eventide.datastream.window import TumblingEventTimeWindows

MINUTE_MS = 60_000
Line = tuple[str, int, int]
LINE = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()])
LINES: list[Line] = [  # what it is, the minute of the day, the price
    ("sale", 545, 12),
    ("sale", 575, 3),
    ("closed", 600, 0),  # ten o'clock: the hour from nine is complete
    ("sale", 580, 8),  # too late
    ("sale", 605, 7),
    ("sale", 650, 5),
    ("closed", 660, 0),
]
TOO_LATE = OutputTag("too late", LINE)


class ClosingLines(WatermarkGenerator):
    """A closing line promises that nothing before it follows. Ready made: `eventide.common.PunctuatedWatermarks`."""

    def on_event(self, event: Line, event_timestamp: int, output: WatermarkOutput) -> None:
        if event[0] == "closed":
            output.emit_watermark(Watermark(event_timestamp - 1))

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Nothing: a watermark has been given where there was one to give."""


class TillAssigner(AssignerWithPunctuatedWatermarks):
    """The till's watermarks in Flink's older form, which gives timestamps too."""

    def extract_timestamp(self, value: Line, record_timestamp: int) -> int:
        return value[1] * MINUTE_MS

    def check_and_get_next_watermark(self, last_element: Line, extracted_timestamp: int) -> Watermark | None:
        return Watermark(extracted_timestamp - 1) if last_element[0] == "closed" else None


def sums(lines: DataStream, strategy: Any, prefix: str) -> None:
    earned = (
        lines.assign_timestamps_and_watermarks(strategy)
        .filter(lambda line: line[0] == "sale")
        .window_all(TumblingEventTimeWindows.of(Time.hours(1)))
        .side_output_late_data(TOO_LATE)
        .reduce(lambda a, b: (a[0], a[1], a[2] + b[2]))
    )
    earned.map(lambda line: f"from {line[1] // 60} o'clock: {line[2]}", Types.STRING()).print(prefix)
    late = earned.get_side_output(TOO_LATE)
    late.map(lambda line: f"too late: {line[2]} of {line[1] // 60}:{line[1] % 60}", Types.STRING()).print(prefix)


def main() -> None:
    warnings.simplefilter("ignore", DeprecationWarning)  # the older form asks to be replaced
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    lines = env.from_collection(LINES, LINE)
    strategy = WatermarkStrategy.for_generator(ClosingLines)
    sums(lines, strategy.with_timestamp_assigner(lambda line, _: line[1] * MINUTE_MS), "generator")
    sums(lines, TillAssigner(), "older form")
    env.execute("a till")


if __name__ == "__main__":
    main()
