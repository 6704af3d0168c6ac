"""A watermark generator by hand, which does what `for_bounded_out_of_orderness` does.

A generator sees each element of its split (`on_event`), and is asked for a watermark at the end of each micro-batch
(`on_periodic_emit`). What it remembers is in the checkpoint; there is one object for each split.

What to see: the lines "by hand>" and "built in>" say the same: letters are counted on the day on which they were
posted, if they take three days at most; the one that took five is too late. Which of the two comes first within a
micro-batch means nothing.
"""

from typing import Any

from eventide.common import Duration, Time, Types, Watermark, WatermarkGenerator, WatermarkOutput, WatermarkStrategy
from eventide.datastream import DataStream, OutputTag, StreamExecutionEnvironment
from eventide.datastream.window import TumblingEventTimeWindows

DAY_MS = 86_400_000
POSTED = [1, 1, 3, 2, 5, 4, 6, 1, 9]  # the day on which each letter was posted, in the order of their arrival
LETTER = Types.TUPLE([Types.LONG(), Types.LONG()])
TOO_LATE = OutputTag("too late", LETTER)


class AtMost(WatermarkGenerator):
    """Trails the highest timestamp of its split, and one millisecond more: a watermark rules its own time out."""

    is_periodic = True  # it speaks at the end of a micro-batch only, so letters are counted before the shuffle

    def __init__(self, days: int) -> None:
        self._bound_ms = days * DAY_MS
        self._highest: int | None = None

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        self._highest = event_timestamp if self._highest is None else max(self._highest, event_timestamp)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        if self._highest is not None:
            output.emit_watermark(Watermark(self._highest - self._bound_ms - 1))


def count(letters: DataStream, strategy: WatermarkStrategy, prefix: str) -> None:
    counts = (
        letters.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(lambda letter, _: letter[0] * DAY_MS))
        .key_by(lambda letter: letter[0], Types.LONG())
        .window(TumblingEventTimeWindows.of(Time.days(1)))
        .side_output_late_data(TOO_LATE)
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
    )
    counts.map(lambda c: f"day {c[0]}: {c[1]} letter(s)", Types.STRING()).print(prefix)
    counts.get_side_output(TOO_LATE).map(lambda c: f"day {c[0]}: too late", Types.STRING()).print(prefix)


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1).set_max_rows_per_batch(2)
    letters = env.from_collection([(day, 1) for day in POSTED], LETTER)
    count(letters, WatermarkStrategy.for_generator(lambda: AtMost(days=3)), "by hand")
    count(letters, WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_days(3)), "built in")
    env.execute("letters")


if __name__ == "__main__":
    main()
