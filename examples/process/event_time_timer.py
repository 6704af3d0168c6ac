"""Timers of event time: a parcel that was not scanned for two days is looked for.

What to see: the parcel "P-2" is scanned on day 1 and then on day 4, so two days after day 1 it is missed; "P-1" is
delivered in time. At the end of the input all timers fire, so what was scanned last without being delivered is missed
too.
"""

from collections.abc import Iterable

from eventide.common import Types, WatermarkStrategy
from eventide.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from eventide.datastream.connectors import NumberSequenceSource
from eventide.datastream.state import ValueStateDescriptor

DAY_MS = 24 * 60 * 60 * 1000
Scan = tuple[str, int, str]
SCAN = Types.TUPLE([Types.STRING(), Types.LONG(), Types.STRING()])
SCANS: list[Scan] = [
    ("P-1", 1, "depot"),
    ("P-2", 1, "depot"),
    ("P-1", 2, "delivered"),
    ("P-3", 4, "depot"),
    ("P-2", 4, "van"),
]


class LooksForParcels(KeyedProcessFunction):
    """Knows of each parcel where it was last, and when that will be too long ago."""

    def open(self, runtime_context) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, value: Scan, ctx: KeyedProcessFunction.Context) -> Iterable[str]:
        if value[2] == "delivered":
            self.last.clear()
            yield f"{value[0]} was delivered on day {value[1]}"
            return
        self.last.update((ctx.timestamp(), value[2]))
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 2 * DAY_MS)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterable[str]:
        last = self.last.value()
        if last is not None and timestamp == last[0] + 2 * DAY_MS:
            yield f"{ctx.get_current_key()} is missed since day {last[0] // DAY_MS}: it was last at the {last[1]}"


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    env.set_max_rows_per_batch(1)  # a scan in each micro-batch, so that days pass between them
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda scan, _: scan[1] * DAY_MS)
    numbers = env.from_source(NumberSequenceSource(0, len(SCANS) - 1), WatermarkStrategy.no_watermarks(), "numbers")
    scans = numbers.map(lambda number: SCANS[number], SCAN).assign_timestamps_and_watermarks(strategy)
    scans.key_by(lambda scan: scan[0], Types.STRING()).process(LooksForParcels(), Types.STRING()).print()
    env.execute("parcels")


if __name__ == "__main__":
    main()
