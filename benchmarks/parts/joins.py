"""Joins of two streams: on columns, and with Python functions, beside Spark's join of streams."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the customary name
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.bench import Bench
from benchmarks.data import FILES_PER_BATCH, SCHEMA, DataSet
from benchmarks.figures import Figure
from benchmarks.queries import DISORDER_S, TUMBLING, environment, started, submitted
from eventide.common import Duration, Time, Types, WatermarkStrategy
from eventide.datastream import DataStream, StreamExecutionEnvironment
from eventide.datastream.connectors import FileSource
from eventide.datastream.functions import JoinFunction, ProcessJoinFunction
from eventide.joins import left, right

_KEYS = 100_000
_EVENT = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()])
_COLUMNS = left("user"), left("value"), right("value").alias("other")
_PAIR = Types.ROW_NAMED(["user", "value", "other"], [Types.STRING(), Types.LONG(), Types.LONG()])
_UPPER = Time.seconds(2)
_IN_TIME = "a.user = b.user and b.ts between a.ts and a.ts + interval 2 seconds"


class Together(ProcessJoinFunction):
    """The values of both."""

    def process_element(self, left: Any, right: Any, ctx: ProcessJoinFunction.Context) -> Iterable[Any]:
        yield left[0], left[2], right[2]


class InWindow(JoinFunction):
    """The values of both."""

    def join(self, first: Any, second: Any) -> Any:
        return first[0], first[2], second[2]


@dataclass(frozen=True)
class Join:
    """One join in three forms."""

    name: str
    columns: Callable[[DataStream, DataStream], DataStream]
    function: Callable[[DataStream, DataStream], DataStream]
    theirs: Callable[[DataFrame, DataFrame], DataFrame]


def _user(event: Any) -> Any:
    return event[0]


def _keyed(stream: DataStream) -> Any:
    return stream.key_by(_user, Types.STRING())


_JOINS = (
    Join(
        "interval join",
        lambda one, other: (
            one.key_by("user").interval_join(other.key_by("user")).between(Time.seconds(0), _UPPER).select(*_COLUMNS)
        ),
        lambda one, other: (
            _keyed(one).interval_join(_keyed(other)).between(Time.seconds(0), _UPPER).process(Together(), _PAIR)
        ),
        lambda one, other: one.join(other, F.expr(_IN_TIME)),
    ),
    Join(
        "window join",
        lambda one, other: one.join(other).where("user").equal_to("user").window(TUMBLING.ours).select(*_COLUMNS),
        lambda one, other: (
            one.join(other)
            .where(_user, Types.STRING())
            .equal_to(_user, Types.STRING())
            .window(TUMBLING.ours)
            .apply(InWindow(), _PAIR)
        ),
        lambda one, other: one.join(other, F.expr("a.user = b.user and a.window = b.window")),
    ),
)


def joins(bench: Bench) -> list[Figure]:
    """Joins of two streams, 100,000 keys."""
    recipes = [DataSet(_KEYS, bench.sizes.few_batches, bench.sizes.join_rows, other=other) for other in (False, True)]
    files = [bench.files(data) for data in recipes]
    figures = []
    for join in _JOINS:

        def columns(place: Path, join: Join = join) -> StreamingQuery:
            env = environment(bench.spark, place)
            streams = (_source(env, folder, None, "ts") for folder in files)
            return submitted(env, join.columns(*streams), place)

        def function(place: Path, join: Join = join) -> StreamingQuery:
            env = environment(bench.spark, place)
            streams = (_source(env, folder, _EVENT, lambda event, _: event[1] // 1_000) for folder in files)
            return submitted(env, join.function(*streams), place)

        def theirs(place: Path, join: Join = join) -> StreamingQuery:
            rows = (
                bench.spark.readStream.schema(SCHEMA)
                .option("maxFilesPerTrigger", FILES_PER_BATCH)
                .parquet(str(folder))
                .withWatermark("ts", f"{DISORDER_S} seconds")
                .withColumn("window", TUMBLING.theirs())
                .alias(name)
                for folder, name in zip(files, "ab", strict=True)
            )
            pairs = join.theirs(*rows).selectExpr("a.user", "a.value", "b.value as other")
            return started(bench.spark, pairs, place)

        runs = [
            bench.run(f"{recipes[0].name}, {join.name}, {side}", start)
            for side, start in (("columns", columns), ("function", function), ("Spark", theirs))
        ]
        _check(bench, join, files, [bench.spark.read.parquet(str(run.output)) for run in runs])
        on_columns, with_function, spark = (2 * bench.throughput(run, recipes[0]) for run in runs)
        figures += [
            Figure(f"{join.name} on columns", "rows/s", on_columns, spark, least=3),
            Figure(f"{join.name} with a Python function", "rows/s", with_function, spark, least=1),
        ]
        bench.clear(*runs)
    return figures


def _source(env: StreamExecutionEnvironment, files: Path, kind: Any, assigner: Any) -> DataStream:
    builder = FileSource.parquet(str(files)) if kind is None else FileSource.parquet(str(files), type_info=kind)
    bounded = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(DISORDER_S))
    source = builder.set_max_files_per_batch(FILES_PER_BATCH).build()
    return env.from_source(source, bounded.with_timestamp_assigner(assigner), files.name)


def _check(bench: Bench, join: Join, files: list[Path], found: list[DataFrame]) -> None:
    """Check that all sides gave all pairs, by their number and a sum of hashes."""
    rows = (
        bench.spark.read.schema(SCHEMA).parquet(str(folder)).withColumn("window", TUMBLING.theirs()).alias(name)
        for folder, name in zip(files, "ab", strict=True)
    )
    pairs = join.theirs(*rows).selectExpr("a.user", "a.value", "b.value as other")
    sums = [
        side.agg(F.count("*"), F.sum(F.xxhash64(*side.columns).cast("decimal(38, 0)"))).first()
        for side in (pairs, *(side.toDF("user", "value", "other") for side in found))
    ]
    if len({*sums}) > 1:
        raise ValueError(f"{join.name}: all pairs are {sums[0]}, and these came out: {sums[1:]}")
