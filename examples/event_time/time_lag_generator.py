"""Watermarks that trail the clock: a window closes although nothing comes any more.

A bell rings five times, and then the source says nothing at all, for ever. Watermarks that follow from elements would
stand still with it. These follow the clock, half a second behind it, and the job runs micro-batches without data for
their sake.

What to see: the job is asked for one result, gives it, and is cancelled. With `for_bounded_out_of_orderness` in place
of the generator, this program would never end.

The clock is that of the micro-batch, which the context knows: when a micro-batch is run again after a failure, it has
the time that it had. `time.time()` would have another.
"""

import threading
import time
from typing import Any

from eventide.common import (
    Duration,
    Time,
    Types,
    Watermark,
    WatermarkGenerator,
    WatermarkGeneratorContext,
    WatermarkOutput,
    WatermarkStrategy,
)
from eventide.datastream import SourceContext, SourceFunction, StreamExecutionEnvironment
from eventide.datastream.window import EventTimeSessionWindows


class Bell(SourceFunction):
    """Rings five times, and then waits until somebody cancels it."""

    def __init__(self) -> None:
        self._running = True

    def run(self, ctx: SourceContext) -> None:
        for _ in range(5):
            ctx.collect_with_timestamp(("bell", 1), int(time.time() * 1000))
            time.sleep(0.1)
        silence = threading.Event()
        while self._running:
            silence.wait(0.1)

    def cancel(self) -> None:
        self._running = False


class TimeLag(WatermarkGenerator):
    """Gives the time of the micro-batch less a lag. Ready made: `eventide.common.TimeLagWatermarks`."""

    is_periodic = True

    def __init__(self, lag: Duration, context: WatermarkGeneratorContext) -> None:
        self._lag_ms = lag.to_millis()
        self._context = context

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        """Nothing: elements do not count."""

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        output.emit_watermark(Watermark(self._context.get_current_processing_time() - self._lag_ms))


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    rung = (
        env.add_source(Bell(), "bell", Types.TUPLE([Types.STRING(), Types.LONG()]))
        .assign_timestamps_and_watermarks(
            WatermarkStrategy.for_generator(lambda context: TimeLag(Duration.of_millis(500), context))
        )
        .key_by(lambda ring: ring[0], Types.STRING())
        .window(EventTimeSessionWindows.with_gap(Time.seconds(1)))
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
    )
    for bell, times in rung.execute_and_collect(limit=1):
        print(f"the {bell} rang {times} times, and then was silent for a second")


if __name__ == "__main__":
    main()
