"""The files of the file sink are read back once and whole, or the job is refused."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.dataset
import pyarrow.parquet
import pytest
from pyarrow.fs import FileInfo, FileSelector, LocalFileSystem
from pyspark.sql import DataFrame, SparkSession

from eventide.common import Duration, Encoder, TypeInformation, Types, WatermarkStrategy
from eventide.connectors.file_system.sink import PartFiles
from eventide.datastream import DataStream, RuntimeExecutionMode, StreamExecutionEnvironment
from eventide.datastream.connectors import FileSink, FileSource, FormatSink
from eventide.datastream.connectors.file_system import BucketAssigner
from eventide.datastream.formats.parquet import ParquetBulkWriters
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.errors import ProgramError, StateError, UserFunctionError
from eventide.plan.job import SinkSpec
from eventide.spark.query.frame_rows import spark_type_of
from eventide.spark.sinks import files as file_sinks
from eventide.spark.sinks.files import DirectoryOfSpark, DirectoryOfTasks, FilesOfSink
from eventide.testing import ScriptedSource, local_environment

pytestmark = pytest.mark.spark

STREAMING, BATCH = RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.BATCH


def lines(path: Path) -> FileSink:
    return FileSink.for_row_format(str(path), Encoder.simple_string_encoder()).build()


def texts(spark: SparkSession, path: Path) -> list[str]:
    return sorted(row.value for row in spark.read.text(str(path)).collect())


def names(path: Path) -> list[str]:
    """All files of a directory but the one that names its job, and the sums that Hadoop makes on a disk."""
    files = (str(file.relative_to(path)) for file in path.rglob("*") if file.is_file() and file.suffix != ".crc")
    return sorted({*files} - {"_eventide/job"})


def numbers(env: StreamExecutionEnvironment, *batches: list[int]) -> DataStream:
    script = [[("split", number) for number in batch] for batch in batches]
    source = ScriptedSource(["split"], script, Types.LONG(), bounded=False)
    env.set_available_now()
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "script")


def again(checkpoint: Path) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(checkpoint))
    return env


@pytest.mark.long
def test_a_restarted_job_adds_what_is_new_with_more_sinks_or_fewer(spark: SparkSession, tmp_path: Path) -> None:
    checkpoint, out, more = tmp_path / "checkpoint", tmp_path / "out", tmp_path / "more"
    env = again(checkpoint)
    numbers(env, [1, 2]).sink_to(lines(out))
    env.execute()
    assert texts(spark, out) == ["1", "2"]

    env = again(checkpoint)
    numbers(env, [1, 2], [3]).sink_to(lines(out))
    env.execute()
    assert texts(spark, out) == ["1", "2", "3"]

    env = again(checkpoint)
    stream = numbers(env, [1, 2], [3], [4])
    stream.sink_to(lines(out))
    stream.sink_to(lines(more))
    env.execute()
    assert (texts(spark, out), texts(spark, more)) == (["1", "2", "3", "4"], ["4"])

    env = again(checkpoint)
    numbers(env, [1, 2], [3], [4], [5]).sink_to(lines(out))
    env.execute()
    assert texts(spark, out) == ["1", "2", "3", "4", "5"]
    assert len(names(out)) == len({name[:13] for name in names(out)})


def test_two_file_sinks_write_all_lines_and_not_over_those_of_another_job(spark: SparkSession, tmp_path: Path) -> None:
    all_of_them, even = tmp_path / "all", tmp_path / "even"

    def job(checkpoint: str) -> StreamExecutionEnvironment:
        env = again(tmp_path / checkpoint)
        stream = numbers(env, [1, 2], [3, 4])
        stream.sink_to(lines(all_of_them))
        stream.filter(lambda number: number % 2 == 0).sink_to(lines(even))
        return env

    job("first").execute()
    assert (texts(spark, all_of_them), texts(spark, even)) == (["1", "2", "3", "4"], ["2", "4"])
    with pytest.raises(ProgramError, match="holds the output of another job"):
        job("second").execute()


def test_a_directory_in_which_a_job_failed_can_be_used(spark: SparkSession, tmp_path: Path) -> None:
    for checkpoint, dividend in (("first", 0), ("second", 1)):
        env = again(tmp_path / checkpoint)
        numbers(env, [1]).map(lambda number, by=dividend: number // by, Types.LONG()).sink_to(lines(tmp_path / "out"))
        if dividend == 0:
            with pytest.raises(UserFunctionError):
                env.execute()
        else:
            env.execute()
    assert texts(spark, tmp_path / "out") == ["1"]


def test_two_sinks_with_one_directory_are_refused(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    stream = numbers(env, [1])
    stream.sink_to(lines(tmp_path / "out"))
    stream.sink_to(FormatSink("parquet", {"path": str(tmp_path / "out")}))
    with pytest.raises(ProgramError, match="two sinks write to the directory"):
        env.execute()


PAIR = Types.ROW_NAMED(["word", "n"], [Types.STRING(), Types.LONG()])


@pytest.mark.parametrize(("mode", "sinks"), [(STREAMING, 1), (STREAMING, 2), (BATCH, 1)])
def test_every_reader_sees_the_rows_and_nothing_else(
    spark: SparkSession, tmp_path: Path, mode: RuntimeExecutionMode, sinks: int
) -> None:
    env = again(tmp_path / "checkpoint").set_runtime_mode(mode)
    stream = env.from_collection([("a", 1), ("b", 2), ("a", 3)], PAIR)
    outs = [tmp_path / f"out {number}" for number in range(sinks)]
    for out in outs:
        stream.sink_to(FormatSink("parquet", {"path": str(out), "compression": "gzip"}))
    env.execute()
    for out in outs:
        assert names(out) == ["part-00000000-00000.gz.parquet"]
        rows = [("a", 1), ("a", 3), ("b", 2)]
        assert sorted(map(tuple, spark.read.parquet(str(out)).collect())) == rows
        table = pyarrow.dataset.dataset(str(out)).to_table()
        assert (table.column_names, sorted(zip(*table.to_pydict().values(), strict=True))) == (["word", "n"], rows)
        source = FileSource.parquet(str(out)).build()
        files = local_environment().from_source(source, WatermarkStrategy.no_watermarks(), "files")
        assert sorted(map(tuple, files.execute_and_collect())) == rows


KINDS = Types.ROW_NAMED(
    ["text", "truth", "byte", "short", "int", "long", "float", "double", "date", "time", "bytes", "money"],
    [
        *(Types.STRING(), Types.BOOLEAN(), Types.BYTE(), Types.SHORT(), Types.INT(), Types.LONG(), Types.FLOAT()),
        *(Types.DOUBLE(), Types.SQL_DATE(), Types.SQL_TIMESTAMP(), Types.PRIMITIVE_ARRAY(Types.BYTE())),
        Types.BIG_DEC(9, 2),
    ],
)
MOMENT = datetime(2026, 3, 1, 12, 0, 0, 1, tzinfo=UTC)
OF_KINDS = [
    ("é", True, -1, -2, 3, 1 << 62, 0.5, -0.0, date(1969, 12, 31), MOMENT, b"\0\xff", Decimal("-1.10")),
    (None,) * 12,
]


SMALL: list[tuple[TypeInformation, list[Any]]] = [
    (KINDS, OF_KINDS),
    (Types.LONG(), [1, None, 3]),
    (Types.LIST(Types.INT()), [[1], []]),
]


@pytest.mark.parametrize("mode", [STREAMING, BATCH])
def test_the_rows_of_a_source_reach_its_only_sink_as_they_reach_one_of_several(
    spark: SparkSession, tmp_path: Path, mode: RuntimeExecutionMode
) -> None:
    """An only sink takes the columns of the source itself, one of several is given frames."""
    together = again(tmp_path / "checkpoint").set_runtime_mode(mode)
    for number, (kind, values) in enumerate(SMALL):
        alone = again(tmp_path / f"checkpoint {number}").set_runtime_mode(mode)
        for env, name in ((alone, "alone"), (together, "together")):
            sink = FormatSink("parquet", {"path": str(tmp_path / f"{name} {number}")})
            env.from_collection(values, kind).sink_to(sink)
        alone.execute()
    together.execute()
    for number, (_, values) in enumerate(SMALL):
        one, other = (spark.read.parquet(str(tmp_path / f"{name} {number}")) for name in ("alone", "together"))
        assert one.schema == other.schema
        found = sorted(one.collect(), key=repr)
        assert found == sorted(other.collect(), key=repr)
        assert len(found) == len(values)


EVERY_KIND = Types.ROW_NAMED(
    [*KINDS.field_names, "cents", "large", "list", "map", "row"],
    [
        *KINDS.field_types,
        *(Types.BIG_DEC(18, 0), Types.BIG_DEC(38, 18), Types.LIST(Types.SQL_TIMESTAMP())),
        Types.MAP(Types.STRING(), Types.LIST(Types.DOUBLE())),
        Types.ROW_NAMED(["day", "n"], [Types.SQL_DATE(), Types.SHORT()]),
    ],
)
OLD = datetime(1500, 2, 28, 23, 59, 59, 999_999, tzinfo=UTC)
OF_EVERY_KIND = [
    (*OF_KINDS[0], Decimal(-(10**17)), Decimal("0.000000000000000001"), [MOMENT, None], {"k": [0.5]}, (None, 7)),
    (*(None,) * len(KINDS.field_names), None, None, [], {}, (date(1, 1, 1), None)),
    (
        *("", False, 127, -32768, 2**31 - 1, -(2**63), float("inf"), float("nan"), date(9999, 12, 31), OLD, b""),
        *(Decimal(0), Decimal(1), -(Decimal(10) ** 19), [OLD], {"": []}, (date(1582, 10, 10), 0)),
    ),
]


def layout(directory: Path) -> list[tuple[Any, ...]]:
    """The endings of the files in a directory, with all that tells readers what the columns of each are."""
    found = []
    for file in sorted(directory.rglob("*.parquet")):
        with pyarrow.parquet.ParquetFile(file) as parquet:
            columns = [parquet.schema.column(i) for i in range(len(parquet.schema))]
            compression = [parquet.metadata.row_group(0).column(i).compression for i in range(len(columns))]
        of_columns = [
            (c.path, str(c.logical_type), c.physical_type, c.length, c.max_definition_level, c.max_repetition_level)
            for c in columns
        ]
        endings = [suffix for suffix in file.suffixes if suffix != ".c000"]
        found.append((endings, *zip(of_columns, compression, strict=True)))
    return found


def test_spark_writes_what_its_session_encrypts(spark: SparkSession, tmp_path: Path) -> None:
    spec = SinkSpec(0, "out", PAIR, FormatSink("parquet", {"path": str(tmp_path)}))
    assert FilesOfSink.of(spark, spec) is not None
    spark.conf.set("parquet.crypto.factory.class", "org.apache.parquet.crypto.keytools.PropertiesDrivenCryptoFactory")
    try:
        assert FilesOfSink.of(spark, spec) is None
    finally:
        spark.conf.unset("parquet.crypto.factory.class")


SETTINGS: list[tuple[dict[str, str], dict[str, str]]] = [
    ({}, {}),
    ({"outputTimestampType": "INT96"}, {"compression": "gzip"}),
    ({"outputTimestampType": "TIMESTAMP_MICROS"}, {"compression": "none"}),
    ({"outputTimestampType": "TIMESTAMP_MILLIS", "compression.codec": "zstd"}, {}),
    ({"compression.codec": "lz4_raw"}, {}),
    ({"writeLegacyFormat": "true"}, {}),
    ({}, {"parquet.enable.dictionary": "false"}),
]


@pytest.mark.parametrize(
    ("conf", "options", "sinks"),
    [*((conf, options, 1) for conf, options in SETTINGS), *((conf, options, 2) for conf, options in SETTINGS[1::4])],
)
def test_files_are_those_that_spark_writes(
    spark: SparkSession, tmp_path: Path, conf: dict[str, str], options: dict[str, str], sinks: int
) -> None:
    """Tasks write them, or Spark where it alone can, and readers see no difference."""
    for name, value in conf.items():
        spark.conf.set(f"spark.sql.parquet.{name}", value)
    try:
        env = again(tmp_path / "checkpoint")
        stream = env.from_collection(OF_EVERY_KIND, EVERY_KIND)
        for number in range(sinks):
            path = str(tmp_path / f"ours {number}")
            stream.sink_to(FormatSink("parquet", {"path": path, **options}, ("byte", "date")))
        env.execute()
        rows = spark.createDataFrame(OF_EVERY_KIND, spark_type_of(EVERY_KIND.arrow_type()))
        rows.coalesce(1).write.options(**options).partitionBy("byte", "date").parquet(str(tmp_path / "sparks"))
    finally:
        for name in conf:
            spark.conf.unset(f"spark.sql.parquet.{name}")
    ours, sparks = tmp_path / "ours 0", tmp_path / "sparks"
    endings = [suffixes for suffixes, *_ in layout(sparks)]
    assert [suffixes for suffixes, *_ in layout(ours)] == endings
    assert [of_columns for _, *of_columns in layout(ours)] == [of_columns for _, *of_columns in layout(sparks)]
    assert {name.rpartition("/")[0] for name in names(ours)} == {
        name.rpartition("/")[0] for name in names(sparks) if name != "_SUCCESS"
    }
    read = [spark.read.parquet(str(path)) for path in (ours, sparks)]
    assert read[0].schema == read[1].schema
    assert sorted(read[0].selectExpr("to_json(struct(*))").collect()) == sorted(
        read[1].selectExpr("to_json(struct(*))").collect()
    )


def test_a_data_frame_that_goes_to_one_sink_comes_back_as_it_was(spark: SparkSession, tmp_path: Path) -> None:
    """Also where its columns have the names of those that frames have."""
    rows = spark.createDataFrame(
        [(1, 2, b"a", "b"), (3, 4, None, None)], "target LONG, subtask INT, frame BINARY, row_0 STRING"
    )
    rows.write.parquet(str(tmp_path / "in"))
    env = again(tmp_path / "checkpoint").set_available_now()
    read = spark.readStream.schema(rows.schema).parquet(str(tmp_path / "in"))
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("target")
    stream = env.from_data_frame(read, strategy)
    stream.filter(lambda row: row.target > 0).sink_to(FormatSink("parquet", {"path": str(tmp_path / "out")}))
    env.execute()
    written = spark.read.parquet(str(tmp_path / "out"))
    assert sorted(written.collect()) == sorted(rows.collect())


SALES = Types.ROW_NAMED(["shop", "price", "day"], [Types.STRING(), Types.LONG(), Types.SQL_DATE()])
STRANGE = ["", *map(chr, range(1, 256)), "a b", "€"]


@pytest.mark.parametrize(("sinks", "mode"), [(1, BATCH), (2, STREAMING)])
def test_fields_name_the_same_folders_as_without_spark(
    spark: SparkSession, tmp_path: Path, sinks: int, mode: RuntimeExecutionMode
) -> None:
    """None, the empty text, and characters that a file system or Hive does not like among them."""
    shops = STRANGE if mode is BATCH else STRANGE[::29]
    sales = [(shop, 3, date(2026, 5, 1)) for shop in shops] + [(None, 3, None), (None, 4, None)]
    writer = FileSink.for_bulk_format(str(tmp_path / "spark"), ParquetBulkWriters.for_row_type(SALES))
    by_fields = writer.with_bucket_assigner(BucketAssigner.field_bucket_assigner("day", "shop")).build()
    env = again(tmp_path / "checkpoint").set_runtime_mode(mode)
    stream = env.from_collection(sales, SALES)
    for sink in [by_fields, lines(tmp_path / "other")][:sinks]:
        stream.sink_to(sink)
    env.execute()
    local = local_environment()
    local.from_collection(sales, SALES).sink_to(replace(by_fields, base_path=str(tmp_path / "local")))
    local.execute()
    written = {name.rpartition("/")[0] for name in names(tmp_path / "spark")}
    assert written == {name.rpartition("/")[0] for name in names(tmp_path / "local")}
    rows = spark.createDataFrame(sales, "shop STRING, price LONG, day DATE").coalesce(1)
    rows.write.partitionBy("day", "shop").parquet(str(tmp_path / "sparks"))
    assert written == {name.rpartition("/")[0] for name in names(tmp_path / "sparks") if name != "_SUCCESS"}
    read = spark.read.schema("price LONG, day DATE, shop STRING").parquet(str(tmp_path / "spark"))
    found = sorted(map(tuple, read.select("shop", "price", "day").collect()), key=repr)
    assert found == sorted(((shop or None, *rest) for shop, *rest in sales), key=repr)


def test_a_micro_batch_that_is_repeated_replaces_its_files_in_all_folders(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.createDataFrame([(1, "a"), (2, "b")], "n INT, shop STRING").coalesce(1)
    for shops in (["a", "b"], ["b"]):
        directory = DirectoryOfSpark(str(tmp_path / "out"), "json", {}, ("shop",))
        directory.begin(spark, None, 0, 7)
        directory.write(rows.where(rows.shop.isin(shops)), 7)
        assert names(tmp_path / "out") == [f"shop={shop}/part-00000007-{n:05d}.json" for n, shop in enumerate(shops)]
    assert spark.read.json(str(tmp_path / "out")).collect() == [(2, "b")]


def test_options_of_the_format_are_taken(spark: SparkSession, tmp_path: Path) -> None:
    env = again(tmp_path / "checkpoint").set_available_now()
    options = {"path": str(tmp_path / "out"), "header": "true", "sep": ";"}
    env.from_collection([("a", 1), ("b", 2)], PAIR).sink_to(FormatSink("csv", options))
    env.execute()
    [file] = [tmp_path / "out" / name for name in names(tmp_path / "out")]
    assert file.read_text() == "word;n\na;1\nb;2\n"


def test_micro_batches_without_results_write_no_files(tmp_path: Path) -> None:
    env = again(tmp_path / "checkpoint")
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("n")
    strategy = strategy.with_idleness(Duration.of_millis(300))  # by the clock: micro-batches without data
    script = [[("s", ("a", 1)), ("s", ("a", 2))], [("s", ("a", 3))]]
    stream = env.from_source(ScriptedSource(["s", "silent"], script, PAIR, bounded=False), strategy, "script")
    windows = stream.key_by("word").window(TumblingEventTimeWindows.of(2))
    windows.reduce(lambda a, b: (a.word, a.n + b.n)).sink_to(FormatSink("json", {"path": str(tmp_path / "out")}))
    job = env.execute_async()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (len(job.get_progress()) > 6 and names(tmp_path / "out")):
        time.sleep(0.1)
    batches = len(job.get_progress())
    job.cancel()
    written = [name for name in names(tmp_path / "out") if not name.startswith("_")]
    assert batches > 6
    assert 1 <= len(written) <= 2
    assert all((tmp_path / "out" / name).stat().st_size > 0 for name in written)


def test_spark_says_once_where_a_directory_is_also_while_there_are_no_results(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = SinkSpec(0, "out", PAIR, FormatSink("parquet", {"path": str(tmp_path / "out")}))
    files = FilesOfSink.of(spark, spec)
    assert files is not None
    asked: list[str] = []
    resolved = file_sinks.resolved
    monkeypatch.setattr(file_sinks, "resolved", lambda session, path: asked.append(path) or resolved(session, path))
    directory = DirectoryOfTasks(files)
    without_results = spark.createDataFrame([], files.schema())
    for number in range(3):
        directory.write(without_results, number)
    assert asked == [str(tmp_path / "out")]


def test_a_micro_batch_that_is_repeated_replaces_what_it_had_written(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "out"
    rows = spark.range(100).selectExpr("cast(id AS STRING) AS value").coalesce(1)
    before = DirectoryOfSpark(str(out), "text", {"maxRecordsPerFile": "30"})
    before.write(rows, 0)
    before.write(rows, 1)
    assert len(names(out)) == 8
    (out / "_eventide-before").mkdir()
    (out / "_eventide-before" / "part-00000-half-written-c000.txt").write_text("1")  # killed in the midst of it
    repeated = DirectoryOfSpark(str(out), "text", {})
    repeated.begin(spark, None, 0, 1)
    repeated.write(rows, 1)
    assert names(out) == [*(f"part-00000000-{n:05d}.txt" for n in range(4)), "part-00000001-00000.txt"]
    assert texts(spark, out) == sorted(str(n) for n in [*range(100), *range(100)])


def test_a_run_whose_files_another_run_has_taken_away_stops(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    rows = spark.range(3).selectExpr("cast(id AS STRING) AS value").coalesce(1)
    first, second = DirectoryOfSpark(str(out), "text", {}), DirectoryOfSpark(str(out), "text", {})
    write = first._write_out_of_sight

    def slowly(rows: DataFrame) -> set[int]:
        filled = write(rows)
        second.begin(spark, None, 0, 7)
        second.write(rows, 7)
        return filled

    monkeypatch.setattr(first, "_write_out_of_sight", slowly)
    with pytest.raises(StateError, match="let only one run at a time use a checkpoint"):
        first.write(rows, 7)
    assert texts(spark, out) == ["0", "1", "2"]


class Lagging(LocalFileSystem):
    """A disk on which the second listing of a folder, the third one and so on are at first those before them."""

    def __init__(self) -> None:
        super().__init__()
        self._before: dict[str, list[FileInfo]] = {}
        self.lagged = 0

    def get_file_info(self, paths_or_selector: Any) -> Any:
        found = super().get_file_info(paths_or_selector)
        if not isinstance(paths_or_selector, FileSelector):
            return found
        before = self._before.get(paths_or_selector.base_dir, found)
        self._before[paths_or_selector.base_dir] = found
        self.lagged += [info.path for info in before] != [info.path for info in found]
        return before


def test_a_listing_that_lags_is_not_taken_for_another_run(spark: SparkSession, tmp_path: Path) -> None:
    out, disk = tmp_path / "out", Lagging()
    directory = DirectoryOfSpark(str(out), "text", {})
    directory._parts = PartFiles(disk, str(out))
    for batch in range(4):
        rows = spark.range(3 * batch, 3 * batch + 3).selectExpr("cast(id AS STRING) AS value")
        directory.write(rows.coalesce(1 if batch % 2 else 2), batch)
    assert disk.lagged > 2
    assert texts(spark, out) == sorted(map(str, range(12)))


def test_a_job_that_died_after_its_first_files_goes_on_and_only_there(spark: SparkSession, tmp_path: Path) -> None:
    out, others = tmp_path / "out", tmp_path / "others"

    def job(least: int, directory: Path, *, fails: bool) -> StreamExecutionEnvironment:
        env = again(tmp_path / "checkpoint")
        stream = numbers(env, [1, 2])
        stream.filter(lambda number: number >= least).sink_to(lines(directory))
        stream.map(lambda n: (n,), Types.ROW_NAMED(["n"], [Types.LONG()])).sink_to(
            dies if fails else lambda df, n: None
        )
        return env

    def dies(rows: DataFrame, batch: int) -> None:
        raise OSError("the network is down")

    with pytest.raises(Exception, match="the network is down"):
        job(0, out, fails=True).execute()
    assert texts(spark, out) == ["1", "2"]
    job(3, out, fails=False).execute()  # nothing was committed, so the program may be another one
    assert names(out) == []

    others.mkdir()
    (others / "part-00000000-00000.txt").write_text("of another job")
    with pytest.raises(ProgramError, match="holds the output of another job"):
        job(3, others, fails=False).execute()


@pytest.mark.parametrize(
    ("file_format", "options"), [("csv", {"header": "true"}), ("parquet", {"maxRecordsPerFile": "99"})]
)
def test_a_task_without_rows_leaves_no_file(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    file_format: str,
    options: dict[str, str],
) -> None:
    directory = DirectoryOfSpark(str(tmp_path / "out"), file_format, options)
    rows = spark.range(0, 30, 1, 3).selectExpr("id")
    directory.write(rows.where("id >= 10"), 0)
    assert len(names(tmp_path / "out")) == 2
    directory.write(rows.where("id > 99"), 1)
    monkeypatch.setattr(directory, "_write_out_of_sight", None)  # after one without rows it looks before it writes
    directory.write(rows.where("id > 99"), 2)
    assert len(names(tmp_path / "out")) == 2
    monkeypatch.undo()
    directory.write(rows.where("id < 10"), 3)
    assert len(names(tmp_path / "out")) == 3
    assert spark.read.format(file_format).options(**options).load(str(tmp_path / "out")).count() == 30


@pytest.mark.parametrize("other", ["_spark_metadata/0", "batch=0/part-0.txt"])
def test_a_directory_that_was_written_in_another_layout_is_refused(
    env: StreamExecutionEnvironment, tmp_path: Path, other: str
) -> None:
    file = tmp_path / "out" / other
    file.parent.mkdir(parents=True)
    file.write_text("v1\n")
    numbers(env, [1]).sink_to(lines(tmp_path / "out"))
    with pytest.raises(ProgramError, match=r"the output of another job|Spark's own file sink"):
        env.execute()
