"""A job for the kill test: bounded, with disorder, late rows, sessions, a second window, and a generator with state.

python killed_job.py CHECKPOINT OUTPUT one|several
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from eventide.common import Duration, Time, Types, Watermark, WatermarkGenerator, WatermarkStrategy
from eventide.datastream import OutputTag, ProcessWindowFunction, StreamExecutionEnvironment
from eventide.datastream.connectors import FormatSink, Source
from eventide.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows

EVENT = Types.ROW_NAMED(["key", "ts", "n"], [Types.STRING(), Types.LONG(), Types.LONG()])
SESSION = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG(), Types.LONG()])
LATE = OutputTag("late", EVENT)
ROWS = 2_400


class Disorder(Source):
    """Two splits of numbered events, out of order in a way that depends on nothing but the number."""

    def splits(self) -> list[str]:
        return ["even", "odd"]

    def latest_position(self, split: str) -> int:
        return ROWS

    def read(self, split: str, start: int, end: int) -> Iterator[object]:
        from eventide.common import Row

        for n in range(start, end):
            mixed = n * 2_654_435_761 % 2**32
            ts = n * 10 + mixed % 900 - (5_000 if mixed % 53 == 0 else 0)
            yield Row(key=f"k{mixed % 7}", ts=ts, n=n)

    def get_produced_type(self):
        return EVENT


class Wavering(WatermarkGenerator):
    """Trails the highest time of its split by a bound that depends on all elements so far: to forget one would show."""

    def __init__(self):
        self.highest, self.checksum = 0, 0

    def on_event(self, event, event_timestamp, output):
        self.highest = max(self.highest, event_timestamp)
        self.checksum = (31 * self.checksum + event["n"]) % 1_009
        if self.checksum % 10 == 0:
            self.on_periodic_emit(output)

    def on_periodic_emit(self, output):
        output.emit_watermark(Watermark(self.highest - 400 - self.checksum % 200))


class Session(ProcessWindowFunction):
    """One line a session, with its bounds and a checksum of what is in it."""

    def process(self, key, context, elements):
        window = context.window()
        yield key, window.start, window.end, sum(e["n"] * (i + 1) for i, e in enumerate(elements)) % 1_000_003


def main(checkpoint: str, output: str, sinks: str) -> None:
    """Build and run the job."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2).set_max_rows_per_batch(160)
    env.get_checkpoint_config().set_checkpoint_storage_dir(checkpoint)
    strategy = WatermarkStrategy.for_generator(Wavering).with_timestamp_assigner("ts")
    sessions = (
        env.from_source(Disorder(), strategy, "events")
        .key_by(lambda e: e["key"], Types.STRING())
        .window(EventTimeSessionWindows.with_gap(Time.milliseconds(60)))
        .allowed_lateness(Duration.of_millis(1_000))
        .side_output_late_data(LATE)
        .process(Session(), SESSION)
    )
    totals = (
        sessions.key_by(lambda s: s[0], Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.seconds(2)))
        .reduce(lambda a, b: (a[0], min(a[1], b[1]), max(a[2], b[2]), a[3] + b[3]))
    )
    totals.sink_to(FormatSink("json", {"path": f"{output}/totals"}))
    if sinks == "several":
        sessions.get_side_output(LATE).sink_to(FormatSink("json", {"path": f"{output}/late"}))
        sessions.sink_to(FormatSink("json", {"path": f"{output}/sessions"}))
    env.execute("killed job")


if __name__ == "__main__":
    main(*sys.argv[1:])
