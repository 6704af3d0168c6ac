"""A generator on columns: it looks at whole Arrow batches, and may emit watermarks in the middle of one.

Ships report their positions, and each says with `in_port` that its voyage is over: a punctuated watermark. The rows
have a declared type, so they travel as columns, and between the source and the results no Python object is made for any
of them: not for timestamps, not for watermarks, not for windows.

What to see: `explain()` says that the windows run on columns, and that their rows go through the shuffle as they are,
because a watermark may come between any two of them. Then the longest stretch of each ship and hour. Bela's 9.9 miles
are not among them: they came after Anna's arrival, in the same micro-batch, and are counted as late.
"""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eventide.aggregates import count, max_
from eventide.common import (
    BatchWatermarkOutput,
    Row,
    Time,
    Types,
    VectorizedWatermarkGenerator,
    Watermark,
    WatermarkOutput,
    WatermarkStrategy,
)
from eventide.datastream import StreamExecutionEnvironment
from eventide.datastream.window import TumblingEventTimeWindows

MINUTE_MS = 60_000
POSITION = Types.ROW_NAMED(
    ["ship", "at", "miles", "in_port"], [Types.STRING(), Types.LONG(), Types.DOUBLE(), Types.BOOLEAN()]
)
POSITIONS = [
    Row(ship=ship, at=minute * MINUTE_MS, miles=miles, in_port=in_port)
    for ship, minute, miles, in_port in [
        ("Anna", 10, 2.5, False),
        ("Bela", 30, 3.0, False),
        ("Anna", 50, 4.5, False),
        ("Anna", 65, 1.0, True),  # the hour from 0 is complete here, in the middle of the batch
        ("Bela", 55, 9.9, False),  # too late
        ("Bela", 90, 6.0, False),
        ("Bela", 125, 0.5, True),
    ]
]


class InPort(VectorizedWatermarkGenerator):
    """A ship in port promises that nothing before its arrival follows."""

    def on_batch(self, events: pa.RecordBatch, timestamps: pa.Array, output: BatchWatermarkOutput) -> None:
        rows = pc.indices_nonzero(events.column("in_port"))
        output.emit_watermarks(rows, pc.subtract(timestamps.take(rows), 1))

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        if event.in_port:  # for elements that are no columns, one by one
            output.emit_watermark(Watermark(event_timestamp - 1))

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Nothing: the ships decide."""


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    stretches = (
        env.from_collection(POSITIONS, POSITION)
        .assign_timestamps_and_watermarks(WatermarkStrategy.for_generator(InPort).with_timestamp_assigner("at"))
        .key_by("ship")
        .window(TumblingEventTimeWindows.of(Time.hours(1)))
        .aggregate(count().alias("reports"), max_("miles").alias("longest"))
        .name("stretches")
    )
    stretches.explain()
    stretches.map(lambda s: f"{s.ship}, hour {s.window.start // 3_600_000}: {s.longest} of {s.reports}").print()
    result = env.execute("ships")
    print("counted:", result.metrics["stretches"])


if __name__ == "__main__":
    main()
