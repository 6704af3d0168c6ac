"""The figures that the documentation quotes, measured in one run by `./run bench`.

Prints a table, and writes the same figures to build/benchmark.json. Times on a shared machine go up and down; compare
what was measured in one run, side by side.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from rich.console import Console
from rich.table import Table

from eventide.common import Time, Types, WatermarkStrategy
from eventide.datastream import DataStream, StreamExecutionEnvironment
from eventide.datastream.connectors import FormatSink, NumberSequenceSource
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.spark.submit import settings_for_start
from eventide.testing import ScriptedSource, local_environment

ROWS_PER_BATCH = 200_000
BATCHES = 8
WARM_UP = 3
KEYS = 1_000
PAIR = Types.TUPLE([Types.LONG(), Types.LONG()])
CALLS = 200
SIZES = (100, 10_000, 1_000_000)


def sums(stream: DataStream) -> DataStream:
    """The job of every throughput row: tumbling windows, a Python lambda as reduce function on tuples."""
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda e, _: e[1])
    return (
        stream.map(lambda n: (n % KEYS, n), PAIR)
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda e: e[0], Types.LONG())
        .window(TumblingEventTimeWindows.of(Time.milliseconds(50_000)))
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
    )


def numbers(env: StreamExecutionEnvironment, count: int) -> DataStream:
    return env.from_source(NumberSequenceSource(1, count, splits=2), WatermarkStrategy.no_watermarks(), "numbers")


def twin_throughput() -> float:
    """Rows a second through the twin: what Python takes, without Spark."""
    started = time.perf_counter()
    sums(numbers(local_environment(), ROWS_PER_BATCH)).execute_and_collect()
    return ROWS_PER_BATCH / (time.perf_counter() - started)


def spark_throughput(env: StreamExecutionEnvironment, place: Path) -> float:
    """Rows a second through Spark, in the micro-batches after the first few."""
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(place / "checkpoint"))
    env.set_max_rows_per_batch(ROWS_PER_BATCH)
    sums(numbers(env, ROWS_PER_BATCH * BATCHES)).sink_to(FormatSink("parquet", {"path": str(place / "out")}))
    client = env.execute_async("throughput")
    moments = watch(lambda: len(client.get_progress()), lambda: not client.get_job_execution_result().done())
    env.set_max_rows_per_batch(None)
    return ROWS_PER_BATCH / statistics.median(moments[WARM_UP:])


def watch(batches: Callable[[], int], running: Callable[[], bool]) -> list[float]:
    """Seconds from each finished micro-batch to the next."""
    seen, at, took = 0, time.perf_counter(), []
    while running():
        if (now := batches()) > seen:
            moment = time.perf_counter()
            took += [(moment - at) / (now - seen)] * (now - seen)
            seen, at = now, moment
        time.sleep(0.005)
    return took


def empty_batch_of_eventide(env: StreamExecutionEnvironment, place: Path) -> float:
    """Seconds of a micro-batch with one row, through one keyed stage."""
    script = [[("a", n)] for n in range(1, 31)]
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(place / "checkpoint"))
    source = ScriptedSource(["a"], script, Types.LONG())
    stream = sums(env.from_source(source, WatermarkStrategy.no_watermarks(), "script"))
    stream.sink_to(FormatSink("parquet", {"path": str(place / "out")}))
    client = env.execute_async("empty")
    moments = watch(lambda: len(client.get_progress()), lambda: not client.get_job_execution_result().done())
    return statistics.median(moments[WARM_UP:-1])


def empty_batch_of_spark(spark: SparkSession, place: Path) -> float:
    """The same with Spark's own window aggregation on files of one row."""
    for n in range(30):
        rows = spark.createDataFrame([(n % KEYS, n)], "key LONG, n LONG")
        rows.coalesce(1).write.mode("append").parquet(str(place / "in"))
    events = spark.readStream.schema("key LONG, n LONG").option("maxFilesPerTrigger", 1).parquet(str(place / "in"))
    at = F.timestamp_millis(F.col("n"))
    windows = events.withColumn("at", at).withWatermark("at", "0 seconds").groupBy("key", F.window("at", "50 seconds"))
    query = started(spark, windows.agg(F.sum("n").alias("n")), place)
    query.awaitTermination()
    took = [progress.durationMs["triggerExecution"] / 1000 for progress in query.recentProgress]
    return statistics.median(took[WARM_UP:-1])


def started(spark: SparkSession, rows: DataFrame, place: Path) -> StreamingQuery:
    """A query that writes Parquet, with the settings that a job of eventide gets."""
    writer = rows.writeStream.format("parquet").option("path", str(place / "out")).trigger(availableNow=True)
    with settings_for_start(spark, 2):
        return writer.option("checkpointLocation", str(place / "checkpoint")).start()


class StateCalls(StatefulProcessor):
    """Times calls to the state store from Python."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getMapState("values", "name STRING", "content BINARY")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        for size in SIZES:
            calls = CALLS if size < 1_000_000 else 20
            content = bytes(size)
            put = per_call(lambda i, c=content: self._state.updateValue((str(i),), (c,)), calls)
            get = per_call(lambda i: self._state.getValue((str(i),)), calls)
            yield pd.DataFrame({"size": [size], "put_ms": [put], "get_ms": [get]})

    def close(self) -> None:
        pass


def per_call(call: Callable[[int], Any], calls: int) -> float:
    """Milliseconds of one call."""
    started = time.perf_counter()
    for i in range(calls):
        call(i)
    return (time.perf_counter() - started) / calls * 1000


def state_calls(spark: SparkSession) -> dict[int, tuple[float, float]]:
    """Milliseconds of a put and a get, by size in bytes."""
    with settings_for_start(spark, 1):
        rows = (
            spark.createDataFrame([(0,)], "key INT")
            .groupBy("key")
            .transformWithStateInPandas(StateCalls(), "size LONG, put_ms DOUBLE, get_ms DOUBLE", "Append", "None")
            .collect()
        )
    return {row.size: (row.put_ms, row.get_ms) for row in rows}


def main() -> int:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    spark = SparkSession.active()
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        place = Path(folder)
        figures["element path, twin: rows a second"] = twin_throughput()
        figures["element path, Spark: rows a second"] = spark_throughput(env, place / "throughput")
        figures["almost empty micro-batch, eventide: ms"] = empty_batch_of_eventide(env, place / "ours") * 1000
        figures["almost empty micro-batch, Spark: ms"] = empty_batch_of_spark(spark, place / "theirs") * 1000
    for size, (put, get) in state_calls(spark).items():
        figures[f"state store, put of {size:,} bytes: ms"] = put
        figures[f"state store, get of {size:,} bytes: ms"] = get
    table = Table("what", "figure", box=None)
    for what, figure in figures.items():
        table.add_row(what, f"{figure:,.0f}" if figure >= 100 else f"{figure:.2f}")
    Console().print(table)
    Path("build").mkdir(exist_ok=True)
    Path("build/benchmark.json").write_text(json.dumps(figures, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
