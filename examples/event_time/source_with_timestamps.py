"""A source that knows the time: it emits elements with timestamps, and watermarks itself.

A tide gauge is read every half hour. It stores what it measures, and sends a whole tide at once when the water turns:
then it knows that there is nothing older, and says so with a watermark. No strategy is needed after it.

What to see: the highest water of each six hours, as soon as the gauge has said that the tide is over. When the job is
started again on its checkpoint, the gauge goes on after what the job has seen, because it has a state.
"""

import math
from collections.abc import Iterable, Iterator

from eventide.common import Time, Types, Watermark
from eventide.datastream import ProcessWindowFunction, SourceContext, SourceFunction, StreamExecutionEnvironment
from eventide.datastream.window import TimeWindow, TumblingEventTimeWindows

HALF_HOUR_MS = 1_800_000
TIDES = 4
LEVEL = Types.TUPLE([Types.STRING(), Types.DOUBLE()])


class TideGauge(SourceFunction):
    """Sends the levels of one tide after the other."""

    def __init__(self) -> None:
        self._sent = 0
        self._running = True

    def run(self, ctx: SourceContext) -> None:
        while self._running and self._sent < TIDES:
            first = self._sent * 12
            with ctx.get_checkpoint_lock():  # so that no snapshot falls between the elements and the state
                for reading in range(first, first + 12):
                    level = 2 + (1 + self._sent / 10) * math.sin(reading * math.pi / 12)
                    ctx.collect_with_timestamp(("harbour", round(level, 2)), reading * HALF_HOUR_MS)
                ctx.emit_watermark(Watermark((first + 12) * HALF_HOUR_MS - 1))
                self._sent += 1

    def cancel(self) -> None:
        self._running = False

    def snapshot_state(self) -> int:
        return self._sent

    def restore_state(self, state: int) -> None:
        self._sent = state


class Highest(ProcessWindowFunction[tuple[str, float], str, str, TimeWindow]):
    """One line for a window."""

    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[tuple[str, float]]
    ) -> Iterator[str]:
        hour = context.window().start // (2 * HALF_HOUR_MS)
        yield f"{key}, from hour {hour} to {hour + 6}: up to {max(level for _, level in elements)} m"


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    (
        env.add_source(TideGauge(), "tide gauge", LEVEL)
        .key_by(lambda level: level[0], Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.hours(6)))
        .process(Highest(), Types.STRING())
        .print()
    )
    env.execute("tides")


if __name__ == "__main__":
    main()
