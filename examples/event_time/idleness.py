"""A sensor falls silent, and with `with_idleness` it holds no other back.

Two thermometers report. The one in the cellar stops after three readings, but it is not said that it has ended: it
might speak again at any time. The watermark is the lower one of the two, so it stands where the cellar stands.

What to see: the cellar is in the first ten seconds only, and the windows of the next ones come out all the same, a
second after it has fallen silent, while the roof goes on reporting. Leave `with_idleness` out, and this program waits
for ever.
"""

import itertools
import time

from eventide.common import Duration, Time, Types, WatermarkStrategy
from eventide.datastream import SourceContext, SourceFunction, StreamExecutionEnvironment
from eventide.datastream.window import TumblingEventTimeWindows

READING = Types.TUPLE([Types.STRING(), Types.LONG()])
COUNT = Types.TUPLE([Types.LONG(), Types.LONG(), Types.LONG()])


class Thermometer(SourceFunction):
    """Gives a reading for each second, ten times as fast, and then is silent. It never ends by itself."""

    def __init__(self, place: str, readings: int | None = None) -> None:
        self._place, self._readings, self._running = place, readings, True

    def run(self, ctx: SourceContext) -> None:
        for second in itertools.count():
            if not self._running:
                return
            if self._readings is None or second < self._readings:
                ctx.collect((self._place, second))
            time.sleep(0.1)

    def cancel(self) -> None:
        self._running = False


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    roof = env.add_source(Thermometer("roof"), "roof", READING)
    cellar = env.add_source(Thermometer("cellar", readings=3), "cellar", READING)
    strategy = (
        WatermarkStrategy.for_monotonous_timestamps()
        .with_timestamp_assigner(lambda reading, _: reading[1] * 1000)
        .with_idleness(Duration.of_seconds(1))
    )
    counts = (
        roof.union(cellar)
        .assign_timestamps_and_watermarks(strategy)
        .map(lambda reading: (reading[1] // 10 * 10, int(reading[0] == "roof"), int(reading[0] == "cellar")), COUNT)
        .window_all(TumblingEventTimeWindows.of(Time.seconds(10)))
        .reduce(lambda a, b: (a[0], a[1] + b[1], a[2] + b[2]))
    )
    for second, of_roof, of_cellar in counts.execute_and_collect(limit=3):
        print(f"from second {second}: {of_roof} readings of the roof, {of_cellar} of the cellar")


if __name__ == "__main__":
    main()
