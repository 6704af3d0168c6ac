"""Windows on columns, on Spark: the rows that come out are those that Spark's own windows give, column for column."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from eventide.aggregates import collect_list, count, max_, mean, sum_
from eventide.common import Duration, Time, WatermarkStrategy
from eventide.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from eventide.datastream.connectors import FileSource
from eventide.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    WindowAssigner,
)
from eventide.joins import left, right

pytestmark = pytest.mark.spark

START = datetime(2024, 1, 1, tzinfo=UTC)
STRATEGY = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5)).with_timestamp_assigner("at")


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Three files of orders, a little out of order, with nulls in key and amount."""
    folder = tmp_path_factory.mktemp("orders")
    chance = random.Random(7)
    for part in range(3):
        seconds = [part * 60 + i * 0.2 + chance.uniform(-2, 0) for i in range(300)]
        rows = {
            "user": [chance.choice(["ann", "bob", "eve", None]) for _ in seconds],
            "country": [chance.choice(["de", "us"]) for _ in seconds],
            "at": pa.array(
                [START + timedelta(milliseconds=round(s * 1000)) for s in seconds], pa.timestamp("us", tz="UTC")
            ),
            "amount": [chance.choice([None, 1, 2, 5]) for _ in seconds],
            "unused": ["x" * 20] * len(seconds),
        }
        pq.write_table(pa.table(rows), folder / f"{part}.parquet")
    return str(folder)


@pytest.fixture(autouse=True)
def two_shuffle_partitions(spark: SparkSession) -> Iterator[None]:
    """As many as subtasks: a query that the user starts takes them from the session."""
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    yield
    spark.conf.set("spark.sql.shuffle.partitions", before)


def written(data_frame: DataFrame, place: Path) -> DataFrame:
    """The final rows of a streaming DataFrame, as a user would write it."""
    spark = data_frame.sparkSession
    query = data_frame.writeStream.format("parquet").option("path", str(place / "out"))
    query.option("checkpointLocation", str(place / "checkpoint")).trigger(availableNow=True).start().awaitTermination()
    return spark.read.parquet(str(place / "out"))


@pytest.mark.parametrize(
    ("windows", "theirs"),
    [
        (TumblingEventTimeWindows.of(Time.seconds(10)), "window(at, '10 seconds')"),
        (SlidingEventTimeWindows.of(Time.seconds(10), Time.seconds(4)), "window(at, '10 seconds', '4 seconds')"),
        (EventTimeSessionWindows.with_gap(Time.seconds(1)), "session_window(at, '1 second')"),
    ],
    ids=["tumbling", "sliding", "sessions"],
)
def test_files_give_the_rows_of_sparks_own_windows(
    env: StreamExecutionEnvironment,
    spark: SparkSession,
    orders: str,
    tmp_path: Path,
    windows: WindowAssigner,
    theirs: str,
) -> None:
    keyed = env.from_source(FileSource.parquet(orders).build(), STRATEGY, "orders").key_by("user", "country")
    results = keyed.window(windows).aggregate(
        count().alias("n"), sum_("amount").alias("total"), max_("amount").alias("most"), mean("amount").alias("mean")
    )
    ours = written(results.to_data_frame(), tmp_path)
    assert ours.schema["window"].dataType.simpleString() == "struct<start:timestamp,end:timestamp>"
    grouped = spark.read.parquet(orders).groupBy("user", "country", F.expr(theirs).alias("window"))
    expected = grouped.agg(
        F.count("*").alias("n"),
        F.sum("amount").alias("total"),
        F.max("amount").alias("most"),
        F.avg("amount").alias("mean"),
    )
    assert ours.columns == expected.columns
    assert ours.exceptAll(expected).collect() == []
    assert ours.count() == expected.count()


@pytest.mark.long
def test_joins_give_the_rows_of_sparks_own_joins(
    env: StreamExecutionEnvironment, spark: SparkSession, orders: str, tmp_path: Path
) -> None:
    one, other = (env.from_source(FileSource.parquet(orders).build(), STRATEGY, name) for name in ("left", "right"))
    fields = left("user"), left("at"), right("at").alias("then"), right("country").alias("to")
    bounds = Time.seconds(-1), Time.seconds(2)
    near = one.key_by("user").interval_join(other.key_by("user")).between(*bounds).select(*fields)
    days = TumblingEventTimeWindows.of(Time.seconds(2))
    both = one.join(other).where("user", "amount").equal_to("user", "amount").window(days)
    whole = both.select(left("user"), right("user").alias("who"), left("at"), right("at").alias("then"), how="full")

    rows = spark.read.parquet(orders)
    a, b = rows.alias("a"), rows.alias("b")
    within = F.expr("b.at between a.at - interval 1 second and a.at + interval 2 seconds")
    joined = a.join(b, F.expr("a.user <=> b.user") & within)
    expected = joined.selectExpr("a.user", "a.at", "b.at as then", "b.country as to")
    found = written(near.to_data_frame(), tmp_path / "near")
    assert found.columns == expected.columns
    assert found.exceptAll(expected).collect() == []
    assert found.count() == expected.count() > 1_000

    same_keys = "a.user <=> b.user and a.amount <=> b.amount"
    in_window = F.expr(f"{same_keys} and unix_millis(a.at) div 2000 = unix_millis(b.at) div 2000")
    expected = a.join(b, in_window, "full").selectExpr("a.user", "b.user as who", "a.at", "b.at as then")
    found = written(whole.to_data_frame(), tmp_path / "whole")
    assert found.exceptAll(expected).collect() == []
    assert found.count() == expected.count()


def test_joins_in_batch_mode_give_the_rows_of_a_batch_query(
    env: StreamExecutionEnvironment, spark: SparkSession, orders: str
) -> None:
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    one, other = (env.from_source(FileSource.parquet(orders).build(), STRATEGY, name) for name in ("left", "right"))
    fields = left("user"), left("amount"), right("country").alias("to")
    bounds = Time.seconds(-1), Time.seconds(2)
    near = one.key_by("user").interval_join(other.key_by("user")).between(*bounds).select(*fields)
    days = TumblingEventTimeWindows.of(Time.seconds(2))
    whole = one.join(other).where("user").equal_to("user").window(days).select(*fields, how="left")
    with (
        near.map(lambda row: ("near", *row))
        .union(whole.map(lambda row: ("whole", *row)))
        .execute_and_collect() as all_rows
    ):
        found = Counter(all_rows)

    rows = spark.read.parquet(orders)
    a, b = rows.alias("a"), rows.alias("b")
    within = F.expr("b.at between a.at - interval 1 second and a.at + interval 2 seconds")
    in_window = F.expr("unix_millis(a.at) div 2000 = unix_millis(b.at) div 2000")
    expected = [
        a.join(b, F.expr("a.user <=> b.user") & condition, how).select(F.lit(name), "a.user", "a.amount", "b.country")
        for name, condition, how in (("near", within, "inner"), ("whole", in_window, "left"))
    ]
    assert found == Counter(tuple(row) for row in expected[0].union(expected[1]).collect())


def test_a_data_frame_and_its_late_rows_go_through_columns(
    env: StreamExecutionEnvironment, spark: SparkSession, orders: str, tmp_path: Path
) -> None:
    rows = spark.readStream.schema(spark.read.parquet(orders).schema).option("maxFilesPerTrigger", 1).parquet(orders)
    stream = env.from_data_frame(rows, STRATEGY, split_by=["country"], splits=["de", "us"])
    windowed = stream.key_by("user").window(TumblingEventTimeWindows.of(Time.seconds(10)))
    results = windowed.aggregate(count().alias("n"), collect_list("amount").alias("amounts"))
    found = written(results.to_data_frame(), tmp_path).collect()
    expected = spark.read.parquet(orders).groupBy("user", F.window("at", "10 seconds").alias("window"))
    by_window = {
        (row.user, row.window.start): (row.n, sorted(row.amounts))
        for row in expected.agg(F.count("*").alias("n"), F.collect_list("amount").alias("amounts")).collect()
    }
    assert len(found) > 40  # all but the windows that no watermark has closed: the input goes on
    assert {(r.user, r.window.start): (r.n, sorted(r.amounts)) for r in found}.items() <= by_window.items()


@pytest.mark.parametrize("reads", ["files", "data frame"])
def test_functions_of_which_it_is_known_what_they_read_get_that_from_files_and_data_frames(
    spark: SparkSession, env: StreamExecutionEnvironment, orders: str, reads: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if reads == "files":
        stream = env.from_source(FileSource.parquet(orders).build(), STRATEGY, "orders")
    else:
        rows = spark.readStream.schema(spark.read.parquet(orders).schema).parquet(orders)
        stream = env.from_data_frame(rows, STRATEGY, split_by=["country"], splits=["de", "us"])
        env.set_available_now()
    # Whole numbers beyond 64 bits send each batch to the function itself.
    known = stream.filter(lambda order: order.amount is not None)
    parts = known.filter(lambda order: order.country in {"de"}), known.filter(lambda order: order.country not in {"de"})
    spent = parts[0].union(parts[1]).map(lambda order: (order["user"], order.amount * 2**62 % 1_000_003))
    spent.explain()
    named = "user, country, at, amount" if reads == "files" else "user, country, amount"  # Spark finds the times
    assert f"reads      {named}\n" in capsys.readouterr().out
    rows_of_all = spark.read.parquet(orders).where("amount IS NOT NULL").collect()
    expected = Counter((row.user, row.amount * 2**62 % 1_000_003) for row in rows_of_all)
    assert Counter(spent.execute_and_collect()) == expected
