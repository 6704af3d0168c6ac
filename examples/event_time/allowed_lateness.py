"""Allowed lateness: a result comes out in time, and again when a late element changes it.

Votes are counted every ten seconds. The watermark does not wait for anybody, so that the first result is there at once;
but for twenty seconds more, a window takes late votes.

What to see: the window from 0 comes out with 2 votes, then with 3, as a late vote arrives. The vote that is later than
that is not lost: it is on the side output. Each micro-batch takes one vote.
"""

from collections.abc import Iterable, Iterator

from eventide.common import Time, Types, WatermarkStrategy
from eventide.datastream import OutputTag, ProcessWindowFunction, StreamExecutionEnvironment
from eventide.datastream.window import TimeWindow, TumblingEventTimeWindows

Vote = tuple[str, int]
VOTE = Types.TUPLE([Types.STRING(), Types.LONG()])
VOTES: list[Vote] = [  # for which drink, at which second
    ("tea", 2),
    ("tea", 7),
    ("tea", 12),  # the watermark is at 11.999: the window from 0 is complete
    ("tea", 5),  # late, and within the twenty seconds: the window comes out again
    ("tea", 31),  # the watermark is at 30.999, more than 20 s beyond the end of the window
    ("tea", 6),  # too late
]


class Count(ProcessWindowFunction[Vote, str, str, TimeWindow]):
    """One line whenever a window fires."""

    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[Vote]
    ) -> Iterator[str]:
        second = context.window().start // 1000
        yield f"{key}, from second {second} to {second + 9}: {len(list(elements))} vote(s)"


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1).set_max_rows_per_batch(1)
    too_late = OutputTag("too late", VOTE)
    counts = (
        env.from_collection(VOTES, VOTE)
        .assign_timestamps_and_watermarks(
            WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda vote, _: vote[1] * 1000)
        )
        .key_by(lambda vote: vote[0], Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.seconds(10)))
        .allowed_lateness(Time.seconds(20))
        .side_output_late_data(too_late)
        .process(Count(), Types.STRING())
    )
    counts.print()
    counts.get_side_output(too_late).print("too late")
    env.execute("votes")


if __name__ == "__main__":
    main()
