"""Nexmark: the events are what they should be, and every query gives what plain SQL gives on the same events."""

from __future__ import annotations

import contextlib
import runpy
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventide.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from eventide.errors import TimersLeftWarning
from eventide.testing import local_environment
from examples.nexmark import files
from examples.nexmark.generator import AUCTIONS, BIDS, KINDS, START_MS, Kind, Recipe
from examples.nexmark.queries import QUERIES, Query
from examples.nexmark.queries.q13 import side_input
from examples.nexmark.source import Events, Streams, generated
from examples.nexmark.sql import BATCH, NOT_ON_SPARK, STREAMING

RECIPE = Recipe(events=20_000, rate=400)
"""50 seconds of event time, so that windows of ten seconds follow each other and sessions end."""

SPARSE = Recipe(events=10_000, rate=200)
"""As much event time as in `RECIPE`, with half of the events."""

BY_THE_CLOCK, IN_FILES = 12, 10
OF_EVENT_TIME = [number for number in QUERIES if number != BY_THE_CLOCK]
ON_SPARK = (4, 5, 8, 11, 18, 20)

Rows = Counter[tuple[Any, ...]]


@dataclass(frozen=True)
class Result:
    """Final results of a query, as rows that can be compared."""

    columns: list[str]
    rows: Rows


def columns(recipe: Recipe, kind: Kind) -> dict[str, Any]:
    batch = kind.make(recipe, kind.numbers(np.arange(kind.count(recipe.events))))
    return dict(zip(batch.schema.names, batch.columns, strict=True))


def result(table: pa.Table) -> Result:
    return Result(table.column_names, Counter(plain(row) for row in table.to_pylist()))


def plain(value: Any) -> Any:
    """Return a value with points in time in UTC and without a zone, and structs as tuples."""
    if isinstance(value, dict):
        return tuple(plain(field) for field in value.values())
    return value.replace(tzinfo=None) if hasattr(value, "tzinfo") else value


def run(query: Query, streams: Streams) -> Result:
    stream = query.program(streams)
    results = query.at_the_end(stream.execute_and_collect())
    return result(pa.Table.from_struct_array(stream.get_type().to_arrow(results)))


def twin(max_rows: int | None, parallelism: int = 2) -> StreamExecutionEnvironment:
    return local_environment().set_parallelism(parallelism).set_max_rows_per_batch(max_rows)


@pytest.mark.parametrize("number", QUERIES)
def test_python_is_called_for_elements_where_a_process_function_finds_winners(
    number: int, capsys: pytest.CaptureFixture[str]
) -> None:
    QUERIES[number].program(generated(twin(None), RECIPE, splits=2)).explain()
    said = capsys.readouterr().out
    assert any(words in said for words in ("in Python, because", "is Python,")) == (number in {4, 6, 9})


# --- the events ---


def test_of_fifty_events_one_is_a_person_three_are_auctions_and_the_others_bids() -> None:
    for events in (0, 1, 2, 3, 4, 49, 50, 51, 54, 1_000):
        numbers = [kind.numbers(np.arange(kind.count(events))) for kind in KINDS]
        assert sorted(np.concatenate(numbers)) == list(range(events))
    assert [kind.count(100) for kind in KINDS] == [2, 6, 92]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_an_event_is_the_same_in_whatever_split_and_part_it_is_read(kind: Kind) -> None:
    whole = kind.make(RECIPE, kind.numbers(np.arange(kind.count(RECIPE.events))))
    source = Events(RECIPE, kind, splits=3)
    for split in source.splits():
        end = source.latest_position(split)
        parts = [batch for start in range(0, end, 101) for batch in source.read(split, start, min(start + 101, end))]
        assert pa.Table.from_batches(parts) == pa.Table.from_batches([whole])[int(split) :: 3].combine_chunks()


def test_time_rises_with_the_numbers_and_one_event_of_ten_is_earlier_within_the_bound() -> None:
    numbers = np.arange(20_000)
    early = START_MS + numbers * 1_000 // RECIPE.rate - RECIPE.time_ms(numbers)
    assert early.min() == 0
    assert 0.9 * RECIPE.disorder_ms < early.max() <= RECIPE.disorder_ms
    assert 0.08 < (early > 0).mean() < 0.12


def test_some_persons_and_auctions_are_hot_and_the_others_are_of_late() -> None:
    bids = columns(RECIPE, BIDS)
    for column, share in (("auction", 0.5), ("bidder", 0.75)):
        assert share - 0.03 < (bids[column].to_numpy() % 100 == (column == "bidder")).mean() < share + 0.03
    sellers = columns(RECIPE, AUCTIONS)["seller"].to_numpy()
    assert 0.72 < (sellers % 100 == 0).mean() < 0.79
    prices = bids["price"].to_numpy()
    assert 100 <= prices.min() < 1_000 < 10_000_000 < prices.max() <= 100_000_000


def test_a_bid_is_not_more_than_so_much_before_or_after_its_auction() -> None:
    auctions, bids = columns(RECIPE, AUCTIONS), columns(RECIPE, BIDS)
    times = dict(zip(auctions["id"].to_pylist(), auctions["dateTime"].cast(pa.int64()).to_pylist(), strict=True))
    pairs = zip(bids["auction"].to_pylist(), bids["dateTime"].cast(pa.int64()).to_pylist(), strict=True)
    behind = [(time - times[auction]) // 1_000 for auction, time in pairs if auction in times]
    assert -RECIPE.before_ms <= min(behind) < -0.8 * RECIPE.before_ms
    assert 0.8 * RECIPE.after_ms < max(behind) <= RECIPE.after_ms


# --- the queries, without Spark ---


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of files with the events."""
    place = tmp_path_factory.mktemp("events")
    files.write(SPARSE, place, chunks=3, splits=2)
    return place


@pytest.mark.parametrize("number", OF_EVENT_TIME)
def test_splits_subtasks_and_micro_batches_make_no_difference(number: int, written: Path) -> None:
    query = QUERIES[number]
    one = run(query, generated(twin(None, parallelism=1), SPARSE, splits=1))
    assert one.rows
    assert one == run(query, generated(twin(max_rows=1_000), SPARSE, splits=3))
    assert one == run(query, files.read(twin(None), SPARSE, written, files_at_once=2))


def test_windows_of_the_clock_count_every_bid_that_came_before_their_end() -> None:
    bids = Counter(columns(RECIPE, BIDS)["bidder"].to_pylist())
    env = twin(None).set_runtime_mode(RuntimeExecutionMode.BATCH)
    counted: Counter[int] = Counter()
    for row in QUERIES[BY_THE_CLOCK].program(generated(env, RECIPE, splits=3)).execute_and_collect():
        counted[row.bidder] += row.bid_count
    assert counted == bids
    with pytest.warns(TimersLeftWarning):  # as a stream, the end of the input does not close them
        list(QUERIES[BY_THE_CLOCK].program(generated(twin(None), RECIPE, splits=3)).execute_and_collect())


def test_the_program_prints_the_first_results_and_counts_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--query", "11", "--events", "20000", "--rate", "400", "--without-spark"]
    monkeypatch.setattr(sys, "argv", ["nexmark", *arguments])
    runpy.run_module("examples.nexmark", run_name="__main__")
    first, *results, last = capsys.readouterr().out.splitlines()
    assert first == "Query 11: bids of a session"
    assert len(results) == 10
    assert last.split(" in ")[0] == "438 results of 20,000 events"


def test_the_bids_of_each_minute_are_in_a_folder_of_their_own(tmp_path: Path) -> None:
    query = QUERIES[IN_FILES]
    assert query.sink is not None
    env = twin(max_rows=5_000)
    query.program(generated(env, RECIPE, splits=3)).sink_to(query.sink(str(tmp_path)))
    env.execute()
    folders = sorted(tmp_path.glob("dt=*/hm=*"))
    assert len(folders) == 2
    for folder in folders:
        times = pa.concat_tables(pq.ParquetFile(file).read() for file in folder.iterdir())["dateTime"].to_pylist()
        found = {(f"dt={time:%Y-%m-%d}", f"hm={time:%H%%3A%M}") for time in times}
        assert found == {(folder.parent.name, folder.name)}


# --- the queries beside Spark ---


@contextlib.contextmanager
def views(spark: Any, read: Callable[[Kind], Any]) -> Iterator[None]:
    """The events as views, in a session that has times in UTC."""
    settings = {"spark.sql.session.timeZone": "UTC", "spark.sql.shuffle.partitions": "2"}
    before = {name: spark.conf.get(name) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    for kind in KINDS:
        read(kind).createOrReplaceTempView(kind.name)
    spark.createDataFrame([*side_input().items()], "key LONG, value STRING").createOrReplaceTempView("side_input")
    yield
    for name in (*(kind.name for kind in KINDS), "side_input"):
        spark.catalog.dropTempView(name)
    for name, value in before.items():
        spark.conf.set(name, value)


@pytest.mark.spark
@pytest.mark.long
def test_every_query_gives_what_batch_sql_gives(spark: Any, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    files.write(RECIPE, tmp_path / "events", chunks=2, splits=2)
    on_spark = OF_EVENT_TIME if pytestconfig.getoption("all_scenarios") else ON_SPARK
    with views(spark, lambda kind: spark.read.parquet(str(tmp_path / "events" / kind.name))):
        for number, query in QUERIES.items():
            expected = result(spark.sql(BATCH[number]).toArrow())
            assert expected.rows
            if number == BY_THE_CLOCK:
                assert expected.rows == Counter(Counter(columns(RECIPE, BIDS)["bidder"].to_pylist()).items())
            else:
                assert run(query, generated(twin(max_rows=5_000), RECIPE, splits=3)) == expected, number
            if number in on_spark:
                env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
                env.get_checkpoint_config().set_checkpoint_storage_dir(str(tmp_path / f"checkpoint-{number}"))
                env.set_max_rows_per_batch(10_000)
                assert run(query, generated(env, RECIPE, splits=3)) == expected, number
        check_files(spark, tmp_path)


def check_files(spark: Any, place: Path) -> None:
    """The rows that query 10 has written, in several micro-batches, are those of its SQL."""
    query = QUERIES[IN_FILES]
    assert query.sink is not None
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2).set_max_rows_per_batch(5_000)
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(place / "checkpoint-files"))
    query.program(generated(env, RECIPE, splits=3)).sink_to(query.sink(str(place / "files")))
    env.execute()
    written = spark.read.schema(spark.sql(BATCH[IN_FILES]).schema).parquet(str(place / "files"))
    assert result(written.toArrow()) == result(spark.sql(BATCH[IN_FILES]).toArrow())
    assert len({*(place / "files").glob("dt=*/hm=*/part-00000001-*")}) > 1


@pytest.mark.spark
@pytest.mark.long
def test_the_streaming_sql_that_is_measured_beside_them_says_the_same(spark: Any, tmp_path: Path) -> None:
    """Append mode gives a part, because windows stay open at the end; update mode gives earlier results, too."""
    assert STREAMING.keys() | NOT_ON_SPARK.keys() == QUERIES.keys()
    files.write(RECIPE, tmp_path / "events", chunks=2, splits=2)
    schemas = {kind: spark.read.parquet(str(tmp_path / "events" / kind.name)).schema for kind in KINDS}

    def stream(kind: Kind) -> Any:
        rows = spark.readStream.schema(schemas[kind]).parquet(str(tmp_path / "events" / kind.name))
        return rows.withWatermark("dateTime", f"{RECIPE.disorder_ms} milliseconds")

    for number in (5, 7, 8, 11, 17, 18, 19, 20):
        said = STREAMING[number]
        query = QUERIES[number]
        expected = run(query, generated(twin(None), RECIPE, splits=1))
        with views(spark, stream):
            writer = spark.sql(said.text(RECIPE)).writeStream.format("memory").queryName(f"q{number}")
            writer.outputMode(said.mode).trigger(availableNow=True).start().awaitTermination()
        got = result(spark.table(f"q{number}").toArrow())
        spark.catalog.dropTempView(f"q{number}")
        assert got.columns == expected.columns, number
        if said.mode == "append":
            assert got.rows, number
            assert not got.rows - expected.rows, number
        else:
            assert not expected.rows - got.rows, number
