"""Files in and out on Spark: read in the workers, written exactly once, and a directory that is watched."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from eventide.common import Duration, Row, Time, Types, WatermarkStrategy
from eventide.datastream import DataStream, ProcessWindowFunction, StreamExecutionEnvironment
from eventide.datastream.connectors import FileSink, FileSource
from eventide.datastream.connectors.file_system import FileSourceBuilder
from eventide.datastream.formats.csv import CsvBulkWriters, CsvSchema
from eventide.datastream.formats.json import JsonBulkWriters
from eventide.datastream.formats.orc import OrcBulkWriters
from eventide.datastream.formats.parquet import ParquetBulkWriters
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.errors import DataError
from eventide.spark.checkpoint.inspection import inspect
from eventide.testing import local_environment
from support.steps import in_steps

pytestmark = pytest.mark.spark

EVENT = Types.ROW_NAMED(["user", "ms"], [Types.STRING(), Types.LONG()])
COUNT = Types.ROW_NAMED(["user", "start", "visits"], [Types.STRING(), Types.LONG(), Types.LONG()])
BY_MS = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("ms")


class Count(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        yield Row(user=key, start=context.window().start, visits=len(list(elements)))


def counts(env: StreamExecutionEnvironment, files: FileSourceBuilder) -> DataStream:
    return (
        env.from_source(files.build(), BY_MS, "files")
        .key_by(lambda row: row.user, Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .process(Count(), COUNT)
    )


def events(path: Path, *times: int) -> None:
    """Complete when it appears, as files must be."""
    hidden = path.with_name(f".{path.name}")
    users = ["ab"[ms % 2] for ms in times]
    pq.write_table(pa.table({"more": [0.5] * len(times), "ms": list(times), "user": users}), hidden)
    os.rename(hidden, path)


def three_files(folder: Path) -> Path:
    folder.mkdir()
    for number in range(3):
        events(folder / f"{number}.parquet", *range(100 * number, 100 * number + 25))
    return folder


@in_steps
def test_a_directory_of_parquet_through_windows_into_parquet(
    spark: SparkSession, env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    env.set_max_rows_per_batch(40)
    results = counts(env, FileSource.parquet(three_files(tmp_path / "in"), type_info=EVENT))
    out = tmp_path / "out"
    results.sink_to(FileSink.for_bulk_format(str(out), ParquetBulkWriters.for_row_type(COUNT)).build())
    env.execute()
    read = spark.read.parquet(str(out))
    assert read.schema.simpleString() == "struct<user:string,start:bigint,visits:bigint>"
    found = sorted(tuple(row) for row in read.collect())
    assert found == sorted(
        (user, 100 * number + start, visits)
        for number in range(3)
        for start, by_user in ((0, {"a": 5, "b": 5}), (10, {"a": 5, "b": 5}), (20, {"a": 3, "b": 2}))
        for user, visits in by_user.items()
    )


def test_what_is_there_goes_into_csv_and_json_and_a_second_run_adds_what_is_new(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    row_type = Types.ROW_NAMED(["user", "ms"], [Types.STRING(), Types.LONG()])
    header = CsvSchema.builder().add_columns_from(CsvSchema(row_type)).set_column_separator(";").set_use_header()

    def run() -> tuple[list[Any], list[Any]]:
        env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2).set_available_now()
        env.get_checkpoint_config().set_checkpoint_storage_dir(str(tmp_path / "checkpoint"))
        files = FileSource.parquet(folder, type_info=row_type).monitor_continuously(Duration.of_seconds(1)).build()
        stream = env.from_source(files, WatermarkStrategy.no_watermarks(), "files")
        undeclared = stream.map(lambda row: row)
        stream.sink_to(
            FileSink.for_bulk_format(str(tmp_path / "csv"), CsvBulkWriters.for_schema(header.build())).build()
        )
        undeclared.sink_to(
            FileSink.for_bulk_format(str(tmp_path / "json"), JsonBulkWriters.for_row_type(row_type)).build()
        )
        env.execute()
        from_csv = spark.read.options(header=True, sep=";", inferSchema=True).csv(str(tmp_path / "csv"))
        columns = [spark.read.json(str(tmp_path / "json")), from_csv]
        return tuple(sorted((row.user, row.ms) for row in df.collect()) for df in columns)  # type: ignore[return-value]

    for number in range(120):  # so many that have been read lie packed in the checkpoint
        events(folder / f"{number:03}", 2 * number)
    first = [("a", 2 * number) for number in range(120)]
    assert run() == (first,) * 2
    [source] = inspect(str(tmp_path / "checkpoint")).sources
    assert [(part.committed, part.ended) for part in source.parts] == [(3, True)] * 120
    events(folder / "next", 1_000)
    assert run() == ([*first, ("a", 1_000)],) * 2


def test_what_is_written_as_orc_is_read_again(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    row_type = Types.ROW_NAMED(["user", "tags"], [Types.STRING(), Types.LIST(Types.LONG())])
    rows = [Row(user="a", tags=[1, None]), Row(user=None, tags=[]), Row(user="ü", tags=None)]
    stream = env.from_collection(rows, row_type)
    stream.sink_to(FileSink.for_bulk_format(str(tmp_path / "out"), OrcBulkWriters.for_row_type(row_type)).build())
    env.execute()
    files = FileSource.orc(tmp_path / "out", type_info=row_type).build()
    again = local_environment().from_source(files, WatermarkStrategy.no_watermarks(), "files")
    assert sorted(again.execute_and_collect(), key=repr) == sorted(rows, key=repr)


def test_a_monitored_directory_gets_files_while_the_job_runs(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    env.get_config().set_auto_watermark_interval(50)
    files = FileSource.parquet(folder, type_info=EVENT).monitor_continuously(Duration.of_millis(50))
    with counts(env, files).execute_and_collect() as results:
        events(folder / "1", 1, 3, 15)
        assert next(results) == Row(user="b", start=0, visits=2)
        events(folder / "2", 16, 27)
        assert sorted([next(results), next(results)], key=lambda row: row.user) == [
            Row(user="a", start=10, visits=1),
            Row(user="b", start=10, visits=1),
        ]


def test_a_bad_file_comes_back_as_a_data_error(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    events(folder / "1", 1)
    (folder / "2").write_text("not yet complete")
    counts(env, FileSource.parquet(folder, type_info=EVENT)).print()
    with pytest.raises(DataError, match=r"the file .*/in/2 cannot be read"):
        env.execute()


@in_steps
def test_files_are_deleted_when_a_micro_batch_is_committed_that_has_read_them(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    for n in range(6):
        events(tmp_path / "in" / f"{n}", 10 * n, 10 * n + 1)
    env.set_available_now()
    source = FileSource.parquet(str(tmp_path / "in")).monitor_continuously(Duration(0)).set_max_files_per_batch(2)
    results = counts(env, source.delete_when_read())
    out = tmp_path / "out"
    results.sink_to(FileSink.for_bulk_format(str(out), ParquetBulkWriters.for_row_type(COUNT)).build())
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(tmp_path / "checkpoint"))
    env.execute("files that go")
    left = sorted(path.name for path in (tmp_path / "in").iterdir())
    assert len(left) <= 2, "the last micro-batch is told of as committed when the next one is planned"
    found = pq.read_table(out).sort_by("start").to_pylist()
    assert [row["start"] for row in found] == [start for start in range(0, 50, 10) for _ in "ab"]
