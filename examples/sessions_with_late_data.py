"""Visits to a web shop as sessions, with clicks that arrive late, and some that arrive too late.

A visit ends when a visitor has been quiet for 30 seconds. Each micro-batch takes two clicks, and after each the
watermark rises to just below the highest time seen.

What to see: Ada's visit comes out with 2 clicks. Her click at second 20 is late, but within the allowed lateness of
60 seconds: the visit comes out again, with 3. Bob's click at second 1 comes when even that time is over: it is not
lost, but printed with the prefix "too late", and counted.
"""

from collections.abc import Iterable, Iterator

from eventide.common import Time, Types, WatermarkStrategy
from eventide.datastream import OutputTag, ProcessWindowFunction, StreamExecutionEnvironment
from eventide.datastream.window import EventTimeSessionWindows, TimeWindow

Click = tuple[str, int]
CLICK = Types.TUPLE([Types.STRING(), Types.LONG()])
CLICKS: list[Click] = [
    ("Ada", 0),
    ("Ada", 15),
    ("Bob", 70),
    ("Bob", 75),
    ("Ada", 20),  # late: Ada's visit is over at second 45
    ("Cleo", 80),
    ("Cleo", 160),
    ("Cleo", 170),
    ("Bob", 1),  # too late: a visit of second 1 was kept until second 91
    ("Cleo", 175),
]


class Visit(ProcessWindowFunction[Click, str, str, TimeWindow]):
    """One line for a visit."""

    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[Click]
    ) -> Iterator[str]:
        window = context.window()
        clicks = len(list(elements))
        yield f"{key}: {clicks} click(s) from second {window.start // 1000} to {window.end // 1000}"


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2).set_max_rows_per_batch(2)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda click, _: click[1] * 1000)
    too_late = OutputTag("too late", CLICK)
    visits = (
        env.from_collection(CLICKS, CLICK)
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda click: click[0], Types.STRING())
        .window(EventTimeSessionWindows.with_gap(Time.seconds(30)))
        .allowed_lateness(Time.seconds(60))
        .side_output_late_data(too_late)
        .process(Visit(), Types.STRING())
        .name("visits")
    )
    visits.print()
    visits.get_side_output(too_late).print("too late")
    result = env.execute("visits")
    print("counted:", result.metrics["visits"])


if __name__ == "__main__":
    main()
