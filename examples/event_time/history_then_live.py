"""Yesterday's file first, and then what comes today: two sources as one stream, with one watermark.

The file has the votes up to the third minute. What comes live goes on from there; a topic of Kafka would stand in its
place. The window of the second minute begins in the file and ends live: it is complete when the live votes have passed
its end, and has those of both.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from eventide.common import Time, Types, WatermarkStrategy
from eventide.datastream import StreamExecutionEnvironment
from eventide.datastream.connectors import CollectionSource, FileSource, HybridSource
from eventide.datastream.window import TumblingEventTimeWindows

YESTERDAY = ["tea 5", "tea 50", "coffee 65", "tea 130"]
TODAY = ["coffee 140", "tea 175", "coffee 181"]
VOTE = Types.TUPLE([Types.STRING(), Types.LONG()])


def main() -> None:
    with TemporaryDirectory() as folder:
        Path(folder, "votes.txt").write_text("\n".join(YESTERDAY))
        env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
        history = FileSource.text(folder).build()
        votes = HybridSource.builder(history).add_source(CollectionSource(TODAY, Types.STRING())).build()
        by_second = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
            lambda line, _: int(line.split()[1]) * 1000
        )
        counts = (
            env.from_source(votes, by_second, "votes")
            .map(lambda line: (line.split()[0], 1), VOTE)
            .key_by(lambda vote: vote[0], Types.STRING())
            .window(TumblingEventTimeWindows.of(Time.minutes(1)))
            .reduce(lambda a, b: (a[0], a[1] + b[1]))
        )
        counts.print()
        env.execute("history, then live")


if __name__ == "__main__":
    main()
