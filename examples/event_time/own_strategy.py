"""A `WatermarkStrategy` of your own, over a folder of text files.

A strategy is a class with two methods: one makes the assigner of timestamps of a split, the other makes its watermark
generator. The generator here is a built-in one with a rule more: the line "closed" says that its second is complete.

What to see: WARNING 3 and WARNING 7 are in one window although they are out of order, and the line of second 12 is in
the next one. Lines that are no warnings are left out. The file whose name begins with "_" is not read.
"""

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from eventide.common import (
    BoundedOutOfOrdernessWatermarks,
    Duration,
    Time,
    TimestampAssigner,
    Types,
    Watermark,
    WatermarkGeneratorContext,
    WatermarkOutput,
    WatermarkStrategy,
)
from eventide.datastream import (
    AllWindowFunction,
    FilePathFilter,
    FileProcessingMode,
    StreamExecutionEnvironment,
)
from eventide.datastream.connectors.file_system import StreamFormat
from eventide.datastream.window import TimeWindow, TumblingEventTimeWindows

FILES = {"machine.log": ["INFO 1", "WARNING 7", "WARNING 3", "closed 9", "WARNING 12"], "_notes.log": ["WARNING 5"]}


def second(line: str) -> int:
    return int(line.split()[1])


class SecondOfLine(TimestampAssigner):
    """Reads the time from the line."""

    def extract_timestamp(self, value: str, record_timestamp: int) -> int:
        return second(value) * 1000


class WithClosing(BoundedOutOfOrdernessWatermarks):
    """Trails the highest timestamp by a bound; the line "closed" says that nothing before it will follow."""

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        super().on_event(event, event_timestamp, output)
        if event.startswith("closed"):
            output.emit_watermark(Watermark(event_timestamp))


class OfLines(WatermarkStrategy):
    """Where the time of a line is, and how watermarks follow."""

    def __init__(self, bound: Duration) -> None:
        self._bound = bound

    def create_timestamp_assigner(self, context: WatermarkGeneratorContext) -> TimestampAssigner:
        return SecondOfLine()

    def create_watermark_generator(self, context: WatermarkGeneratorContext) -> WithClosing:
        return WithClosing(self._bound)


class Listed(AllWindowFunction[str, str, TimeWindow]):
    """One line for a window."""

    def apply(self, window: TimeWindow, inputs: Iterable[str]) -> Iterator[str]:
        yield f"from second {window.start // 1000}: {', '.join(sorted(inputs))}"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name, lines in FILES.items():
            (Path(folder) / name).write_text("\n".join(lines))
        env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
        default = FilePathFilter.create_default_filter()
        text = StreamFormat.text_line_format()
        lines = env.read_file(text, folder, FileProcessingMode.PROCESS_ONCE, 100, default, Types.STRING())
        (
            lines.assign_timestamps_and_watermarks(
                OfLines(Duration.of_seconds(20)).with_idleness(Duration.of_minutes(1))
            )
            .filter(lambda line: line.startswith("WARNING"))
            .window_all(TumblingEventTimeWindows.of(Time.seconds(10)))
            .apply(Listed(), Types.STRING())
            .print()
        )
        env.execute("warnings")


if __name__ == "__main__":
    main()
