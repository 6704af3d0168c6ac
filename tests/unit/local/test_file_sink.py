"""FileSink without Spark: the same names, whole files, nothing over what another job wrote."""

from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from eventide.common import Encoder, Row, Types, WatermarkStrategy
from eventide.datastream import StreamExecutionEnvironment
from eventide.datastream.connectors import FormatSink
from eventide.datastream.connectors.file_system import BucketAssigner, FileSink, FileSource, StreamFormat
from eventide.datastream.formats.csv import CsvBulkWriters, CsvReaderFormat, CsvSchema
from eventide.datastream.formats.json import JsonBulkWriters
from eventide.datastream.formats.orc import OrcBulkWriters
from eventide.datastream.formats.parquet import ParquetBulkWriters
from eventide.errors import DataError, ProgramError
from eventide.local.host import LocalHost
from eventide.local.runner import LocalCheckpoint, LocalRunner, PlannedBatch
from eventide.testing import ScriptedSource, local_environment

VISITS = Types.ROW_NAMED(["user", "visits"], [Types.STRING(), Types.LONG()])
ROWS = [Row("wren", 1), Row('a "b", c', None), Row("", -3)]


def lines(path: Path) -> FileSink:
    return FileSink.for_row_format(str(path), Encoder.simple_string_encoder()).build()


def names(path: Path) -> list[str]:
    return sorted(str(file.relative_to(path)) for file in path.rglob("*") if file.is_file())


def test_each_micro_batch_with_elements_has_a_file_of_its_own(tmp_path):
    env = local_environment()
    batches = [[("s", 1), ("s", 2)], [], [("s", 3)]]
    source = ScriptedSource(["s"], batches, Types.LONG())
    env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").sink_to(lines(tmp_path / "out"))
    env.execute()
    assert names(tmp_path / "out") == ["part-00000000-00000.txt", "part-00000002-00000.txt"]
    assert (tmp_path / "out" / "part-00000000-00000.txt").read_text() == "1\n2\n"
    assert (tmp_path / "out" / "part-00000002-00000.txt").read_text() == "3\n"


@pytest.mark.parametrize(
    ("writer", "ending", "text"),
    [
        (JsonBulkWriters.for_row_type(VISITS), "json", '{"user":"wren","visits":1}\n'),
        (ParquetBulkWriters.for_row_type(VISITS), "snappy.parquet", None),
        (OrcBulkWriters.for_row_type(VISITS), "zstd.orc", None),
    ],
    ids=["json", "parquet", "orc"],
)
def test_rows_are_written_in_every_format(tmp_path, writer, ending, text):
    env = local_environment()
    env.from_collection(ROWS, VISITS).sink_to(FileSink.for_bulk_format(str(tmp_path / "out"), writer).build())
    env.execute()
    assert names(tmp_path / "out") == [f"part-00000000-00000.{ending}"]
    [file] = (tmp_path / "out").iterdir()
    if text is not None:
        assert file.read_text().startswith(text)
        return
    table = ds.dataset(file, format=ending.partition(".")[2]).to_table()
    assert table.to_pylist() == [{"user": row[0], "visits": row[1]} for row in ROWS]


def test_lines_of_csv_are_read_as_they_were_written(tmp_path):
    schema = (
        CsvSchema.builder()
        .add_string_column("user")
        .add_number_column("visits")
        .set_column_separator(";")
        .set_null_value("-")
        .set_use_header()
        .build()
    )
    env = local_environment()
    rows = env.from_collection(ROWS, schema.row_type)
    rows.sink_to(FileSink.for_bulk_format(str(tmp_path / "out"), CsvBulkWriters.for_schema(schema)).build())
    env.execute()
    [file] = (tmp_path / "out").iterdir()
    assert file.read_text().splitlines()[:3] == ["user;visits", "wren;1", '"a ""b"", c";-']
    source = FileSource.for_record_stream_format(CsvReaderFormat.for_schema(schema), str(tmp_path / "out")).build()
    again = local_environment().from_source(source, WatermarkStrategy.no_watermarks(), "files")
    assert [tuple(row) for row in again.execute_and_collect()] == [tuple(row) for row in ROWS]


def test_without_quotes_a_line_of_csv_has_the_escape_character_of_its_schema_or_none(tmp_path):
    builder = CsvSchema.builder().add_string_column("user").add_number_column("visits").disable_quote_char()

    def written(schema, user):
        env = local_environment()
        path = tmp_path / str(len([*tmp_path.iterdir()]))
        rows = env.from_collection([Row(user, 1)], VISITS)
        rows.sink_to(FileSink.for_bulk_format(str(path), CsvBulkWriters.for_schema(schema)).build())
        env.execute()
        [file] = path.iterdir()
        return file.read_text()

    assert written(builder.build(), 'C:\\ "x"') == 'C:\\ "x",1\n'
    with pytest.raises(DataError, match="needs quotes, or an escape character"):
        written(builder.build(), "a,b")
    assert written(builder.set_escape_char("*").build(), "a,b*") == "a*,b**,1\n"


def test_csv_has_the_encoding_and_the_header_that_its_options_ask_for(tmp_path):
    options = {"path": str(tmp_path / "out"), "encoding": "iso-8859-1", "header": "True"}
    env = local_environment()
    env.from_collection([Row("Zoë€", 1)], VISITS).sink_to(FormatSink("csv", options))
    env.execute()
    [file] = (tmp_path / "out").iterdir()
    assert file.read_bytes() == "user,visits\nZoë?,1\n".encode("latin-1")


def test_csv_in_an_encoding_that_java_writes_in_another_way_needs_spark(tmp_path):
    env = local_environment()
    env.from_collection(ROWS, VISITS).sink_to(FormatSink("csv", {"path": str(tmp_path / "out"), "encoding": "UTF-16"}))
    with pytest.raises(ProgramError, match="needs Spark"):
        env.execute()


def test_what_was_written_can_be_read_by_a_file_source(tmp_path):
    env = local_environment()
    env.from_collection(["a", "b"], Types.STRING()).sink_to(lines(tmp_path / "out"))
    env.execute()
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(tmp_path / "out")).build()
    again = local_environment().from_source(source, WatermarkStrategy.no_watermarks(), "files")
    assert list(again.execute_and_collect()) == ["a", "b"]


def test_a_directory_with_files_of_another_job_is_refused(tmp_path):
    def job() -> StreamExecutionEnvironment:
        env = local_environment()
        env.from_collection([1]).sink_to(lines(tmp_path / "out"))
        return env

    job().execute()
    with pytest.raises(ProgramError, match=r"out holds the output of another job"):
        job().execute()
    assert (tmp_path / "out" / "part-00000000-00000.txt").read_text() == "1\n"


def test_two_sinks_need_two_directories(tmp_path):
    env = local_environment()
    numbers = env.from_collection([1])
    numbers.sink_to(lines(tmp_path / "out"))
    numbers.sink_to(lines(tmp_path / "out"))
    with pytest.raises(ProgramError, match="two sinks write to the directory"):
        env.execute()


def begun_again(finished):
    """A checkpoint whose only micro-batch was begun and not finished, given one where it was finished."""
    return LocalCheckpoint(planned=PlannedBatch(finished.offsets, clock_ms=0, run=None))


def test_a_micro_batch_that_is_repeated_replaces_its_files_and_deletes_what_the_run_before_left(tmp_path):
    env = StreamExecutionEnvironment(LocalHost()).set_parallelism(1)
    source = ScriptedSource(["s"], [[("s", 1)]], Types.LONG())
    env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").sink_to(lines(tmp_path / "out"))
    plan, checkpoint = env.get_plan(), LocalCheckpoint()
    list(LocalRunner(plan, checkpoint=checkpoint).batches())
    hidden = tmp_path / "out" / "_eventide-12345678"
    hidden.mkdir()
    (tmp_path / "out" / "part-00000000-00001.txt").write_text("half\n")
    list(LocalRunner(plan, checkpoint=begun_again(checkpoint)).batches())
    assert names(tmp_path / "out") == ["part-00000000-00000.txt"]
    assert not hidden.exists()


def test_elements_without_columns_are_refused_before_the_job_starts(tmp_path):
    env = local_environment()
    env.from_collection([1]).map(lambda v: v).sink_to(FormatSink("parquet", {"path": str(tmp_path / "out")}))
    with pytest.raises(ProgramError, match="have no declared type, so they have no columns"):
        env.execute()


@pytest.mark.parametrize(("file_format", "options"), [("avro", {}), ("parquet", {"parquet.page.size": "1000"})])
def test_what_only_spark_can_write_is_refused(tmp_path, file_format, options):
    env = local_environment()
    numbers = env.from_collection([1], Types.LONG())
    numbers.sink_to(FormatSink(file_format, {"path": str(tmp_path / "out"), **options}))
    with pytest.raises(ProgramError, match="needs Spark; in the local environment use print"):
        env.execute()


SALES = Types.ROW_NAMED(["day", "price", "shop"], [Types.SQL_DATE(), Types.LONG(), Types.STRING()])


def by_fields(path: Path, *fields: str) -> FileSink:
    builder = FileSink.for_bulk_format(str(path), ParquetBulkWriters.for_row_type(SALES))
    return builder.with_bucket_assigner(BucketAssigner.field_bucket_assigner(*fields)).build()


def test_fields_name_the_folders_in_which_the_others_are_written(tmp_path):
    env = local_environment()
    day = date(2026, 5, 1)
    sales = [Row(day, 1, "a=b/ü"), Row(day, 2, None), Row(None, 3, ""), Row(day, 4, "a=b/ü")]
    env.from_collection(sales, SALES).sink_to(by_fields(tmp_path / "out", "day", "shop"))
    env.execute()
    assert names(tmp_path / "out") == [
        "day=2026-05-01/shop=__HIVE_DEFAULT_PARTITION__/part-00000000-00000.snappy.parquet",
        "day=2026-05-01/shop=a%3Db%2Fü/part-00000000-00001.snappy.parquet",
        "day=__HIVE_DEFAULT_PARTITION__/shop=__HIVE_DEFAULT_PARTITION__/part-00000000-00002.snappy.parquet",
    ]
    columns = pa.schema([("price", pa.int64()), ("day", pa.date32()), ("shop", pa.string())])
    partitioning = ds.partitioning(pa.schema([columns.field("day"), columns.field("shop")]), flavor="hive")
    read = ds.dataset(tmp_path / "out", schema=columns, partitioning=partitioning).to_table().to_pylist()
    rows = {row["price"]: (row["day"], row["shop"]) for row in read}
    assert rows == {1: (day, "a=b/ü"), 2: (day, None), 3: (None, None), 4: (day, "a=b/ü")}


def test_a_repeated_micro_batch_replaces_its_files_in_all_folders(tmp_path):
    env = StreamExecutionEnvironment(LocalHost()).set_parallelism(1)
    source = ScriptedSource(["s"], [[("s", Row(None, 1, "a"))]], SALES)
    sales = env.from_source(source, WatermarkStrategy.no_watermarks(), "sales")
    sales.sink_to(by_fields(tmp_path / "out", "shop"))
    plan, checkpoint = env.get_plan(), LocalCheckpoint()
    list(LocalRunner(plan, checkpoint=checkpoint).batches())
    [name] = names(tmp_path / "out")
    (tmp_path / "out" / name).write_text("half")
    (tmp_path / "out" / "shop=b").mkdir()
    (tmp_path / "out" / "shop=b" / name.rpartition("/")[2]).write_text("half")
    list(LocalRunner(plan, checkpoint=begun_again(checkpoint)).batches())
    assert names(tmp_path / "out") == [name]
    assert pq.ParquetFile(tmp_path / "out" / name).read().to_pylist() == [{"day": None, "price": 1}]


def test_a_directory_with_folders_of_another_job_is_refused(tmp_path):
    def job() -> StreamExecutionEnvironment:
        env = local_environment()
        env.from_collection([Row(None, 1, "a")], SALES).sink_to(by_fields(tmp_path / "out", "shop"))
        return env

    job().execute()
    with pytest.raises(ProgramError, match=r"out holds the output of another job"):
        job().execute()


@pytest.mark.parametrize("fields", [("city",), ("amount",), ("shop", "price", "day")])
def test_fields_that_cannot_name_folders_are_refused(tmp_path, fields):
    row = Types.ROW_NAMED(["shop", "price", "day"], [Types.STRING(), Types.LONG(), Types.SQL_DATE()])
    if "amount" in fields:
        row = Types.ROW_NAMED(["amount", "shop"], [Types.DOUBLE(), Types.STRING()])
    env = local_environment()
    env.from_collection([], row).sink_to(FormatSink("parquet", {"path": str(tmp_path / "out")}, fields))
    with pytest.raises(ProgramError, match="name them by fields that are text, whole numbers or dates"):
        env.execute()


def test_lines_and_no_fields_cannot_name_folders():
    lines = FileSink.for_row_format("out", Encoder.simple_string_encoder())
    with pytest.raises(ProgramError, match="lines of text have no fields"):
        lines.with_bucket_assigner(BucketAssigner.field_bucket_assigner("shop"))
    with pytest.raises(ProgramError, match="needs the name of a field"):
        BucketAssigner.field_bucket_assigner()
