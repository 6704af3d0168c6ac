"""A process function on columns: of the clicks of a user on an advertisement, one within an hour counts.

What to see: the second click of "ann" on "shoes" comes 20 minutes after the first one and is left out. When the
watermark has passed the hour, the first one is forgotten, so the third one counts. A click of "bob" on "shoes" has
nothing to do with these.
"""

import numpy as np
import pyarrow as pa

from eventide.common import Row, Types, WatermarkStrategy
from eventide.datastream import StreamExecutionEnvironment
from eventide.datastream.functions import RuntimeContext, VectorizedKeyedProcessFunction
from eventide.datastream.state import ValueStateDescriptor

MINUTE_MS = 60 * 1000
CLICK = Types.ROW_NAMED(["user", "advertisement", "at"], [Types.STRING(), Types.STRING(), Types.LONG()])
CLICKS = [
    Row(user=user, advertisement=advertisement, at=minute * MINUTE_MS)
    for user, advertisement, minute in [
        ("ann", "shoes", 0),
        ("bob", "shoes", 10),
        ("ann", "shoes", 20),
        ("ann", "hats", 30),
        ("bob", "hats", 61),
        ("ann", "shoes", 65),
    ]
]


class FirstWithinAnHour(VectorizedKeyedProcessFunction):
    """Remembers that there was a click, and forgets it an hour later."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = runtime_context.get_vectorized_state(ValueStateDescriptor("seen", Types.BOOLEAN()))

    def process_batch(self, batch: pa.RecordBatch, ctx: VectorizedKeyedProcessFunction.Context) -> None:
        _, first = np.unique(ctx.key_numbers, return_index=True)  # the first row of each of the distinct keys
        rows = pa.array(first).filter(self.seen.get(ctx.distinct_keys).is_null())
        keys = ctx.keys.take(rows)
        self.seen.put(keys, np.ones(len(rows), bool))
        ctx.timer_service().register_event_time_timers(keys, ctx.timestamps.take(rows).to_numpy() + 60 * MINUTE_MS)
        ctx.collect(batch.take(rows), rows)

    def on_timers(self, timestamps: pa.Array, ctx: VectorizedKeyedProcessFunction.OnTimersContext) -> None:
        self.seen.clear(ctx.keys)


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    env.set_max_rows_per_batch(1)  # a click in each micro-batch, so that time passes between them
    in_time = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("at")
    clicks = env.from_collection(CLICKS, CLICK).assign_timestamps_and_watermarks(in_time)
    counted = clicks.key_by("user", "advertisement").process(FirstWithinAnHour(), CLICK)
    counted.map(lambda click: f"{click.user} on {click.advertisement} after {click.at // MINUTE_MS} minutes").print()
    env.execute("clicks")


if __name__ == "__main__":
    main()
