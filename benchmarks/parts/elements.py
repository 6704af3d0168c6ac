"""The path of single elements: what a Python function costs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from pyspark.sql import functions as F  # noqa: N812 - the customary name
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.bench import Bench
from benchmarks.data import FILES_PER_BATCH, SCHEMA
from benchmarks.figures import Figure
from benchmarks.queries import DISORDER_S, PARALLELISM, TUMBLING, environment, submitted
from eventide.common import Duration, Time, Types, WatermarkStrategy
from eventide.datastream import DataStream, StreamExecutionEnvironment
from eventide.datastream.connectors import FileSource, NumberSequenceSource
from eventide.datastream.functions import associative
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.testing import local_environment

_EVENT = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()])
_PAIR = Types.TUPLE([Types.LONG(), Types.LONG()])


def python_reduce(bench: Bench) -> list[Figure]:
    """Tumbling windows of 5 s with a lambda on tuples as reduce function, from and to Parquet."""
    total = lambda a, b: (a[0], max(a[1], b[1]), a[2] + b[2])  # noqa: E731 - that is what is measured
    on_columns, called = _reduced(bench, total), _reduced(bench, total, in_python=True)
    said = _reduced(bench, associative(total), in_python=True)
    what = "lambdas for time, key and reduce"
    return [
        Figure(what, "rows/s", on_columns, called, "called with each element", least=8),
        Figure(f"{what}(associative(…)), called with each element", "rows/s", said, called, "nothing said", least=1),
    ]


def _reduced(bench: Bench, function: Any, *, in_python: bool = False) -> float:
    """Rows a second with a reduce function, after a check of its results."""
    data = bench.data(1_000, few=True)
    files = bench.files(data)

    def start(place: Path) -> StreamingQuery:
        env = environment(bench.spark, place)
        env.get_config().set_functions_in_python(in_python)
        source = FileSource.parquet(str(files), type_info=_EVENT).set_max_files_per_batch(FILES_PER_BATCH).build()
        bounded = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(DISORDER_S))
        sums = (
            env.from_source(source, bounded.with_timestamp_assigner(lambda event, _: event[1] // 1_000), "events")
            .key_by(lambda event: event[0], Types.STRING())
            .window(TUMBLING.ours)
            .reduce(function)
        )
        return submitted(env, sums, place)

    run = bench.run(f"{data.name}, reduce with a lambda{', in Python' if in_python else ''}", start)
    rate = bench.throughput(run, data)
    got = (
        bench.spark.read.parquet(str(run.output))
        .toDF("user", "last", "total")
        .withColumn("last", F.timestamp_micros("last"))
    )
    rows = bench.spark.read.schema(SCHEMA).parquet(str(files)).groupBy("user", F.window("ts", "5 seconds"))
    expected = rows.agg(F.max("ts").alias("last"), F.sum("value").alias("total")).select("user", "last", "total")
    if got.exceptAll(expected).head(1) or got.count() != expected.count():
        raise ValueError("a lambda as reduce function gave other sums than Spark")
    bench.clear(run)
    return rate


def element_path(bench: Bench) -> list[Figure]:
    """Numbers that are born in Python, through lambdas: on Spark, and without it."""
    rows = bench.sizes.element_rows
    started = time.perf_counter()
    _number_sums(_numbers(local_environment(), rows)).execute_and_collect()
    twin = rows / (time.perf_counter() - started)
    batches = bench.sizes.batches

    def start(place: Path) -> StreamingQuery:
        env = environment(bench.spark, place).set_max_rows_per_batch(rows)
        return submitted(env, _number_sums(_numbers(env, rows * batches)), place)

    run = bench.run("element path", start)
    bench.clear(run)
    spark = rows / run.steady(bench.sizes.warm_up, batches)
    return [Figure("map, assigner, key and reduce as lambdas", "rows/s", spark, twin, beside="without Spark")]


def _numbers(env: StreamExecutionEnvironment, count: int) -> DataStream:
    source = NumberSequenceSource(1, count, splits=PARALLELISM)
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")


def _number_sums(numbers: DataStream) -> DataStream:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda e, _: e[1])
    return (
        numbers.map(lambda n: (n % 1_000, n), _PAIR)
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda e: e[0], Types.LONG())
        .window(TumblingEventTimeWindows.of(Time.seconds(50)))
        .reduce(associative(lambda a, b: (a[0], a[1] + b[1])))
    )
