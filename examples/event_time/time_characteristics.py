"""Hourly windows under each of the three kinds of time.

Cars pass a counter and carry the time at which they did. The reports reach the program all over the place: some at
once, some later. `time_window` does not say which kind of time it means; the environment does. To make it short, an
"hour" takes one second here, and the stream six.

What to see: under event time, the hours are those in which the cars passed, in 1970 for simplicity, with four cars in
each, in every run. Under ingestion time and processing time, they are the hours in which the reports came in or were
handled: today, and with other numbers in every run; the first ones have come together while Spark was starting. An hour
of processing time that is not over when the input ends never comes out, as in Flink: the clock has not got there.
"""

import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from eventide.common import Time, Types, Watermark
from eventide.datastream import (
    ProcessWindowFunction,
    SourceContext,
    SourceFunction,
    StreamExecutionEnvironment,
    TimeCharacteristic,
)
from eventide.datastream.window import TimeWindow

HOURS = 6
CAR = Types.TUPLE([Types.STRING(), Types.LONG()])


class Counter(SourceFunction):
    """Four cars in each hour, with the times at which they passed; ends five hours later, so that all windows close."""

    def __init__(self, hour_ms: int) -> None:
        self._hour_ms = hour_ms
        self._running = True

    def run(self, ctx: SourceContext) -> None:
        for hour in range(HOURS):
            for part in (1, 3, 0, 2):  # not in their order
                ctx.collect_with_timestamp(("car", 1), hour * self._hour_ms + part * self._hour_ms // 4)
            ctx.emit_watermark(Watermark((hour + 1) * self._hour_ms - 1))
            self._wait(hours=1)
        self._wait(hours=5)

    def cancel(self) -> None:
        self._running = False

    def _wait(self, hours: int) -> None:
        if self._running:
            time.sleep(hours * self._hour_ms / 1000)


class Cars(ProcessWindowFunction[tuple[str, int], str, str, TimeWindow]):
    """When the hour began, and how many cars there were."""

    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[tuple[str, int]]
    ) -> Iterator[str]:
        began = datetime.fromtimestamp(context.window().start / 1000, UTC)
        yield f"{began:%Y, %H:%M:%S}: {len(list(elements))} cars"


def main(hour: Time = Time.seconds(1)) -> None:  # noqa: B008 - a value, which is never changed
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    for characteristic in TimeCharacteristic:
        env.set_stream_time_characteristic(characteristic)
        (
            env.add_source(Counter(hour.to_milliseconds()), f"counter by {characteristic.name}", CAR)
            .key_by(lambda car: car[0], Types.STRING())
            .time_window(hour)
            .process(Cars(), Types.STRING())
            .print(characteristic.name)
        )
    env.set_stream_time_characteristic(TimeCharacteristic.EventTime)  # of the job, which has windows of all kinds
    env.execute("cars")


if __name__ == "__main__":
    main()
