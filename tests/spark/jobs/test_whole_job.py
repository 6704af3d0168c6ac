"""One program with operators of each kind, from files to files, over a restart and a savepoint: each result comes once.

`./run matrix` runs it on each PySpark and Python.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from eventide.aggregates import count, sum_
from eventide.common import Duration, Row, Time, Types, WatermarkStrategy
from eventide.datastream import DataStream, KeyedProcessFunction, ProcessWindowFunction, StreamExecutionEnvironment
from eventide.datastream.connectors import FileSource, FormatSink
from eventide.datastream.functions import RuntimeContext
from eventide.datastream.state import ValueStateDescriptor
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.spark.checkpoint.savepoint import take_savepoint

pytestmark = [pytest.mark.spark, pytest.mark.matrix]

EVENT = Types.ROW_NAMED(["user", "at", "n"], [Types.STRING(), Types.LONG(), Types.LONG()])
IN_ORDER = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("at")
WINDOWS = TumblingEventTimeWindows.of(Time.milliseconds(100))
EVENTS = [("abc"[n % 3], n * 10, n) for n in range(40)]
DUE_MS = 5_000
LAST = ("a", 10_000, 0)


class Listed(ProcessWindowFunction):
    """List the numbers of a window."""

    def process(self, key: str, context: ProcessWindowFunction.Context, elements: Iterable[Row]) -> Iterator[str]:
        yield f"list {key} {context.window().start} {sorted(row.n for row in elements)}"


class Totals(KeyedProcessFunction):
    """Add up the numbers of each user, and tell the total when it is due."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))

    def process_element(self, value: Row, ctx: KeyedProcessFunction.Context) -> None:
        self._total.update((self._total.value() or 0) + value.n)
        ctx.timer_service().register_event_time_timer(DUE_MS)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[str]:
        yield f"total {ctx.get_current_key()} {self._total.value()}"


def program(env: StreamExecutionEnvironment, folder: Path) -> DataStream:
    """The lines of all operators, from the files that are there."""
    files = FileSource.parquet(folder / "in", type_info=EVENT).monitor_continuously(Duration.of_seconds(1)).build()
    events = env.from_source(files, IN_ORDER, "events")
    sums = events.key_by("user").window(WINDOWS).aggregate(count(), sum_("n").alias("sum")).uid("sums")
    by_user = events.key_by(lambda row: row.user, Types.STRING())
    lists = by_user.window(WINDOWS).process(Listed(), Types.STRING()).uid("lists")
    totals = by_user.process(Totals(), Types.STRING()).uid("totals")
    lines = sums.map(lambda row: f"sum {row['user']} {row['count']} {row['sum']}", Types.STRING())
    return lines.union(lists, totals)


def run(folder: Path, checkpoint: str, parallelism: int, savepoint: str | None = None) -> Counter[str]:
    """Run it on a checkpoint, and return all lines that were written so far."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism).set_available_now()
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(folder / checkpoint))
    if savepoint is not None:
        env.from_savepoint(savepoint)
    program(env, folder).sink_to(FormatSink("text", {"path": str(folder / f"out of {checkpoint}")}))
    env.execute("whole")
    parts = [part for place in folder.glob("out of *") for part in place.glob("part-*")]
    return Counter(line for part in parts for line in part.read_text().splitlines())


def add(folder: Path, name: str, *events: tuple[str, int, int]) -> None:
    columns = dict(zip(("user", "at", "n"), map(list, zip(*events, strict=True)), strict=True))
    pq.write_table(pa.table(columns), folder / "in" / f"{name}.parquet")


def windows_before(end_ms: int) -> Counter[str]:
    """The lines of the windows that end until then."""
    numbers: dict[tuple[str, int], list[int]] = {}
    for user, at, n in EVENTS:
        numbers.setdefault((user, at // 100 * 100), []).append(n)
    over = [(user, start, found) for (user, start), found in numbers.items() if start + 100 <= end_ms]
    return Counter(
        [f"list {user} {start} {found}" for user, start, found in over]
        + [f"sum {user} {len(found)} {sum(found)}" for user, _, found in over]
    )


@pytest.mark.long
def test_each_result_of_a_whole_job_comes_once(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    add(tmp_path, "1", *EVENTS[:10])
    add(tmp_path, "2", *EVENTS[10:20])
    assert run(tmp_path, "one", 2) == windows_before(100)

    add(tmp_path, "3", *EVENTS[20:])
    assert run(tmp_path, "one", 2) == windows_before(300)

    saved = str(tmp_path / "saved")
    take_savepoint(spark, str(tmp_path / "one"), saved)
    add(tmp_path, "4", LAST)
    totals = [f"total {user} {sum(n for other, _, n in EVENTS if other == user)}" for user in "abc"]
    assert run(tmp_path, "two", 3, saved) == windows_before(400) + Counter(totals)
