"""A job that reads what is there of files and ends; it may begin with a savepoint.

python saved_driver.py CHECKPOINT OUTPUT INPUT PARALLELISM [SAVEPOINT]
"""

from __future__ import annotations

import sys
from pathlib import Path

from eventide.aggregates import count, sum_
from eventide.common import Duration, Time, Types, WatermarkStrategy
from eventide.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from eventide.datastream.connectors import FileSource, FormatSink
from eventide.datastream.state import ValueStateDescriptor
from eventide.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows

EVENT = Types.ROW_NAMED(["key", "ts", "n"], [Types.STRING(), Types.LONG(), Types.LONG()])


class Totals(KeyedProcessFunction):
    """A line a timer, with the sum of all elements of its key so far."""

    def open(self, runtime_context):
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))

    def process_element(self, value, ctx):
        self.total.update((self.total.value() or 0) + value["n"])
        ctx.timer_service().register_event_time_timer(ctx.timestamp() // 500 * 500 + 500)

    def on_timer(self, timestamp, ctx):
        yield f"total {ctx.get_current_key()} {timestamp} {self.total.value()}"


def main(checkpoint: str, output: str, folder: str, parallelism: str, savepoint: str = "") -> None:
    """Build and run the job."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(int(parallelism)).set_available_now()
    env.get_checkpoint_config().set_checkpoint_storage_dir(checkpoint)
    if savepoint:
        env.from_savepoint(savepoint)
    files = FileSource.parquet(folder, type_info=EVENT).monitor_continuously(Duration.of_seconds(1))
    files = files.set_split_by(lambda path: path.split("/")[-2]).set_max_files_per_batch(2).build()
    bounded = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(900)).with_timestamp_assigner("ts")
    events = env.from_source(files, bounded, "files")
    windows = {
        "window": TumblingEventTimeWindows.of(Time.milliseconds(3_000)),
        "session": EventTimeSessionWindows.with_gap(Time.milliseconds(60)),
    }
    first, *others = (
        events.key_by("key").window(kind).aggregate(count(), sum_("n")).map(_texts(name), Types.STRING())
        for name, kind in windows.items()
    )
    totals = events.key_by(lambda event: event["key"], Types.STRING()).process(Totals(), Types.STRING())
    first.union(*others, totals).sink_to(FormatSink("text", {"path": output}))
    env.execute("saved")


def _texts(name):
    return lambda row: f"{name} {row}"


if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parents[1] / "cluster"))
    from session import environment_on_cluster

    environment_on_cluster()
    main(*sys.argv[1:])
