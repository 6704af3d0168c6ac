"""A job that looks at the clock in each way that there is: idle splits, windows of processing time, and timers.

python stepped_job.py CHECKPOINT OUTPUT INPUT [STEPS]

Its source has a split for each of two files below INPUT, and one element for each byte of a file. STEPS, as JSON, has
the numbers of elements of the split that is ahead. While the job handles one, it sets its own clock: when the element
is read, and again in the stage after the shuffle, to the hours that STEPS has for both.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eventide.common import Duration, Row, Time, Types, WatermarkStrategy
from eventide.datastream import KeyedProcessFunction, OutputTag, ProcessWindowFunction, StreamExecutionEnvironment
from eventide.datastream.connectors import FormatSink, Source
from eventide.datastream.window import TumblingEventTimeWindows, TumblingProcessingTimeWindows

SPLITS = ("ahead", "behind")
LAG_MS = 1_000_000
EVENT = Types.ROW_NAMED(["ts", "split", "n"], [Types.LONG(), Types.STRING(), Types.LONG()])
RESULT = Types.ROW_NAMED(["seen", "split", "n"], [Types.STRING(), Types.STRING(), Types.LONG()])
LATE = OutputTag("late", EVENT)


class Bytes(Source):
    """An element a second in each split; the elements of the one far behind are late if it is taken for idle."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def splits(self) -> list[str]:
        return list(SPLITS)

    def is_bounded(self) -> bool:
        return False

    def latest_position(self, split: str) -> int:
        return Path(self.folder, split).stat().st_size

    def read(self, split: str, start: int, end: int) -> Iterator[Row]:
        for n in range(start, end):
            yield Row(ts=1_000 * n + (LAG_MS if split == "ahead" else 0), split=split, n=n)

    def get_produced_type(self) -> Any:
        return EVENT


class Steps:
    """Sets the clock in the midst of micro-batches; ``hours`` are those when an element is read, and in the stage."""

    def __init__(self, folder: str, hours: dict[str, list[int | None]]) -> None:
        self.folder, self.hours = folder, hours

    def at(self, place: int, element: Any) -> None:
        """Set the clock if it is to be set at an element; the next micro-batch then has elements of both splits.

        So no split is silent for the time that the clock has skipped.
        """
        hours = self.hours.get(str(element["n"]), [None, None])[place]
        if element["split"] != "ahead" or hours is None:
            return
        with Path(os.environ["SET_CLOCK_FILE"]).open("r+b") as clock:
            clock.write((hours * 3_600).to_bytes(8, sys.byteorder, signed=True))
        for split in SPLITS:
            with Path(self.folder, split).open("a") as file:
                file.write(".")
        with Path(self.folder, "steps").open("a") as file:
            file.write(json.dumps([element["n"], place, hours]) + "\n")

    def when_read(self, element: Row) -> Row:
        """The element, as it was."""
        self.at(0, element)
        return element


class Each(ProcessWindowFunction):
    """One line for each element of a window."""

    def __init__(self, seen: str) -> None:
        self.seen = seen

    def process(self, key: Any, context: Any, elements: Any) -> Iterator[Row]:
        for element in elements:
            yield Row(seen=self.seen, split=element["split"], n=element["n"])


class Later(KeyedProcessFunction):
    """Gives each element again two seconds after it has come, by the clock."""

    def __init__(self, steps: Steps) -> None:
        self.steps = steps

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        ctx.timer_service().register_processing_time_timer(ctx.timer_service().current_processing_time() + 2_000)
        self.steps.at(1, value)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Row]:
        split, n = ctx.get_current_key()
        yield Row(seen="timer", split=split, n=n)


def main(checkpoint: str, output: str, folder: str, hours: str = "{}") -> None:
    """Run the job until it is killed."""
    steps = Steps(folder, json.loads(hours))
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    env.get_checkpoint_config().set_checkpoint_storage_dir(checkpoint)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("ts")
    events = env.from_source(Bytes(folder), strategy.with_idleness(Duration.of_seconds(60)), "bytes").map(
        steps.when_read, EVENT
    )
    keyed = events.key_by(lambda e: e["split"], Types.STRING())
    in_time = (
        keyed.window(TumblingEventTimeWindows.of(Time.seconds(5)))
        .side_output_late_data(LATE)
        .process(Each("event time"), RESULT)
    )
    late = in_time.get_side_output(LATE).map(lambda e: Row(seen="late", split=e["split"], n=e["n"]), RESULT)
    by_clock = keyed.window(TumblingProcessingTimeWindows.of(Time.seconds(1))).process(Each("clock"), RESULT)
    timers = events.key_by(lambda e: (e["split"], e["n"]), Types.PICKLED_BYTE_ARRAY()).process(Later(steps), RESULT)
    in_time.union(late, by_clock, timers).sink_to(FormatSink("json", {"path": output}))
    env.execute("a job whose clock is set")


if __name__ == "__main__":
    main(*sys.argv[1:])
