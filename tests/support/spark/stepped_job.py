"""A job that looks at the clock in each way that there is: idle splits, windows of processing time, and timers.

python stepped_job.py CHECKPOINT OUTPUT INPUT

Its source has a split for each of two files below INPUT, and one element for each byte of a file.
"""

from __future__ import annotations

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


class Each(ProcessWindowFunction):
    """One line for each element of a window."""

    def __init__(self, seen: str) -> None:
        self.seen = seen

    def process(self, key: Any, context: Any, elements: Any) -> Iterator[Row]:
        for element in elements:
            yield Row(seen=self.seen, split=element["split"], n=element["n"])


class Later(KeyedProcessFunction):
    """Gives each element again two seconds after it has come, by the clock."""

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        ctx.timer_service().register_processing_time_timer(ctx.timer_service().current_processing_time() + 2_000)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Row]:
        split, n = ctx.get_current_key()
        yield Row(seen="timer", split=split, n=n)


def main(checkpoint: str, output: str, folder: str) -> None:
    """Run the job until it is killed."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    env.get_checkpoint_config().set_checkpoint_storage_dir(checkpoint)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("ts")
    events = env.from_source(Bytes(folder), strategy.with_idleness(Duration.of_seconds(60)), "bytes")
    keyed = events.key_by(lambda e: e["split"], Types.STRING())
    in_time = (
        keyed.window(TumblingEventTimeWindows.of(Time.seconds(5)))
        .side_output_late_data(LATE)
        .process(Each("event time"), RESULT)
    )
    late = in_time.get_side_output(LATE).map(lambda e: Row(seen="late", split=e["split"], n=e["n"]), RESULT)
    by_clock = keyed.window(TumblingProcessingTimeWindows.of(Time.seconds(1))).process(Each("clock"), RESULT)
    timers = events.key_by(lambda e: (e["split"], e["n"]), Types.PICKLED_BYTE_ARRAY()).process(Later(), RESULT)
    in_time.union(late, by_clock, timers).sink_to(FormatSink("json", {"path": output}))
    env.execute("a job whose clock is set")


if __name__ == "__main__":
    main(*sys.argv[1:])
