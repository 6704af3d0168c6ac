"""The generators that are there already, side by side on the same elements.

Packets arrive two in each micro-batch; the marker among them says that the first ten seconds are complete, which is not
quite true. Windows of ten seconds list the packets.

What to see: a longer wait loses less.

- "ascending" believes that time never goes back: 8 and 9 are too late, because 13 has been there.
- "bounded" waits four seconds for late packets, which is long enough here.
- "marked" believes the marker alone: 8 is in time, 9 is not.
- "none" gives no watermark before the end, so that nothing is late, and nothing comes early.
- "time lag" goes by the clock, and these packets are of 1970: all that come after the first micro-batch are too late.
  It is for streams that are live.
"""

from collections.abc import Iterable, Iterator

from eventide.common import Duration, PunctuatedWatermarks, Time, TimeLagWatermarks, Types, WatermarkStrategy
from eventide.datastream import AllWindowFunction, OutputTag, StreamExecutionEnvironment
from eventide.datastream.window import TimeWindow, TumblingEventTimeWindows

PACKET = Types.TUPLE([Types.STRING(), Types.LONG()])
PACKETS = [  # what it is, and its second
    *[("packet", second) for second in (1, 4, 12, 13, 8)],
    ("marker", 10),
    *[("packet", second) for second in (9, 23)],
]
TOO_LATE = OutputTag("too late", PACKET)

STRATEGIES = {
    "ascending": WatermarkStrategy.for_monotonous_timestamps(),
    "bounded": WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(4)),
    "none": WatermarkStrategy.no_watermarks(),
    "marked": WatermarkStrategy.for_generator(
        lambda: PunctuatedWatermarks(lambda packet, time: time - 1 if packet[0] == "marker" else None)
    ),
    "time lag": WatermarkStrategy.for_generator(lambda context: TimeLagWatermarks(Duration.of_seconds(5), context)),
}


class Listed(AllWindowFunction[tuple[str, int], str, TimeWindow]):
    """One line for a window."""

    def apply(self, window: TimeWindow, inputs: Iterable[tuple[str, int]]) -> Iterator[str]:
        yield f"from second {window.start // 1000}: {', '.join(str(second) for _, second in inputs)}"


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1).set_max_rows_per_batch(2)
    source = env.from_collection(PACKETS, PACKET)
    for name, strategy in STRATEGIES.items():
        windows = (
            source.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(lambda p, _: p[1] * 1000))
            .filter(lambda packet: packet[0] == "packet")
            .window_all(TumblingEventTimeWindows.of(Time.seconds(10)))
            .side_output_late_data(TOO_LATE)
            .apply(Listed(), Types.STRING())
        )
        windows.print(name)
        windows.get_side_output(TOO_LATE).map(lambda packet: f"too late: {packet[1]}", Types.STRING()).print(name)
    env.execute("packets")


if __name__ == "__main__":
    main()
