"""Timestamps from a function, and watermarks that wait ten seconds for stragglers.

Runners pass two posts of a race, and every micro-batch takes one report. The strategy says two things: where in a
report its time is, and that a report is out of order by ten seconds at most.

What to see: a minute is complete when a report has come that is ten seconds beyond its end; the watermark is one
millisecond more than ten seconds behind the latest report. So Bob counts in his own minute, though his report comes
after Cleo's. The last minutes come out when the input ends, with the largest watermark there is.
"""

from collections.abc import Iterable, Iterator

from eventide.common import MAX_WATERMARK, Duration, Time, Types, WatermarkStrategy
from eventide.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from eventide.datastream.window import TimeWindow, TumblingEventTimeWindows

Report = tuple[str, int, str]
REPORTS: list[Report] = [  # the post, the second, the runner
    ("bridge", 20, "Ada"),
    ("bridge", 64, "Cleo"),
    ("bridge", 58, "Bob"),  # after Cleo's report, but for a moment before it
    ("tower", 59, "Ada"),
    ("tower", 71, "Bob"),  # the watermark reaches second 60.999
    ("bridge", 95, "Dan"),
]


class Passed(ProcessWindowFunction[Report, str, str, TimeWindow]):
    """One line for a post and minute: the people who passed, and where the watermark stood when that was known."""

    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[Report]
    ) -> Iterator[str]:
        runners = ", ".join(runner for _, _, runner in elements)
        watermark = context.current_watermark()
        known = "the end of the input" if watermark == MAX_WATERMARK.timestamp else f"watermark {watermark}"
        yield f"{key}, minute {context.window().start // 60_000}: {runners} (known at {known})"


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1).set_max_rows_per_batch(1)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(10)).with_timestamp_assigner(
        lambda report, _: report[1] * 1000
    )
    (
        env.from_collection(REPORTS, Types.TUPLE([Types.STRING(), Types.LONG(), Types.STRING()]))
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda report: report[0], Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.minutes(1)))
        .process(Passed(), Types.STRING())
        .print()
    )
    env.execute("a race")


if __name__ == "__main__":
    main()
