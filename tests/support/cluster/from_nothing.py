"""A program that needs a module of its own, a package and an archive where its functions run, and prints what it found.

python from_nothing.py FOLDER [WITHOUT]

It is run with an interpreter that has no packages at all on the executors. WITHOUT names what it does not bring along:
the job then fails, and the error is printed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from session import environment_on_cluster

from eventide.aggregates import count, sum_
from eventide.common import Time, Types, WatermarkStrategy
from eventide.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from eventide.datastream.connectors import NumberSequenceSource
from eventide.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows
from eventide.errors import ProgramError

NUMBER = Types.ROW_NAMED(["key", "ts"], [Types.LONG(), Types.LONG()])


class Priced(KeyedProcessFunction):
    """Price of a number, by a table in an archive, an installed package, and how many of its key came before."""

    def open(self, runtime_context):
        self.prices = json.loads(Path("tables", "prices.json").read_text())
        self.seen = 0

    def process_element(self, value, ctx):
        import parcel

        yield parcel.wrapped(value["key"], self.prices[str(value["key"])])


def main(env: StreamExecutionEnvironment) -> list[object]:
    import shop

    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda row, _: row["ts"])
    numbers = env.from_source(NumberSequenceSource(0, 39, splits=2), WatermarkStrategy.no_watermarks(), "numbers")
    rows = numbers.map(shop.as_row, NUMBER).assign_timestamps_and_watermarks(strategy)
    by_key = rows.key_by(lambda row: row["key"], Types.LONG())
    sums = (
        rows.key_by("key")
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .aggregate(count(), sum_("ts").alias("sum"))
    )
    sessions = by_key.window(EventTimeSessionWindows.with_gap(Time.milliseconds(5))).reduce(shop.later)
    streams = [
        sums.map(lambda row: ["sum", row["key"], row["count"], row["sum"]]),
        sessions.map(lambda row: ["session", row["key"], row["ts"]]),
        by_key.process(Priced()),
    ]
    return sorted(streams[0].union(*streams[1:]).execute_and_collect(), key=repr)


if __name__ == "__main__":
    folder, without = Path(sys.argv[1]), sys.argv[2:]
    sys.path.append(str(folder / "program"))
    environment = environment_on_cluster().set_parallelism(2).set_max_rows_per_batch(16)
    environment.get_checkpoint_config().set_checkpoint_storage_dir(str(folder / "checkpoint"))
    if "packages" not in without:
        environment.set_python_requirements(str(folder / "requirements.txt"))
    if "module" not in without:
        environment.add_python_file(str(folder / "program" / "shop.py"))
    environment.add_python_archive(str(folder / "tables.zip"), "tables")
    try:
        print(json.dumps(main(environment)))
    except ProgramError as error:
        print(json.dumps(str(error)))
