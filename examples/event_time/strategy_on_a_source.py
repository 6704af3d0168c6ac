"""A strategy on the source, and one after a filter: which entries move the watermark?

Two machines write a journal, and each journal is a split. Most entries are heartbeats; only alarms are counted, in
windows of ten seconds, once with the strategy on the source and once with the strategy after the filter.

What to see: "source>" has the first window as soon as the heartbeats of both machines have passed second 10. "filter>"
has it later: after the filter only alarms are seen, and the machine that has none holds the watermark until its
journal ends. The results are the same. Put the strategy on the source, if what is filtered out tells the time as well.
"""

from collections.abc import Iterator

from eventide.common import Duration, Time, Types, WatermarkStrategy
from eventide.datastream import DataStream, StreamExecutionEnvironment
from eventide.datastream.connectors import Source
from eventide.datastream.window import TumblingEventTimeWindows

JOURNALS = {  # (second, entry), one micro-batch for each column
    "press": [(1, "alarm"), (4, "alarm"), (11, "beat"), (14, "alarm"), (23, "beat")],
    "drill": [(2, "alarm"), (6, "beat"), (12, "beat"), (17, "beat"), (21, "beat")],
}
COUNT = Types.TUPLE([Types.STRING(), Types.LONG()])


class Journals(Source):
    """The journals of the machines; a position is a number of entries."""

    def splits(self) -> list[str]:
        return list(JOURNALS)

    def latest_position(self, split: str) -> int:
        return len(JOURNALS[split])

    def read(self, split: str, start: int, end: int) -> Iterator[tuple[str, int, str]]:
        yield from ((split, second, entry) for second, entry in JOURNALS[split][start:end])


def alarms(entries: DataStream) -> DataStream:
    return entries.filter(lambda entry: entry[2] == "alarm")


def counted(entries: DataStream) -> DataStream:
    """How many alarms each machine gave in ten seconds."""
    return (
        entries.map(lambda entry: (entry[0], 1), COUNT)
        .key_by(lambda count: count[0], Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.seconds(10)))
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
    )


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1).set_max_rows_per_batch(2)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1)).with_timestamp_assigner(
        lambda entry, _: entry[1] * 1000
    )
    entries = env.from_source(Journals(), strategy, "with watermarks")
    counted(alarms(entries)).print("source")

    plain = env.from_source(Journals(), WatermarkStrategy.no_watermarks(), "without")
    counted(alarms(plain).assign_timestamps_and_watermarks(strategy)).print("filter")
    env.execute("alarms")


if __name__ == "__main__":
    main()
