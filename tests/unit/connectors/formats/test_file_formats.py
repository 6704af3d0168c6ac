"""Each format gives the rows of a file with exactly the declared columns, and says which file and column is bad."""

import datetime as dt
import gzip
import io
import lzma
import math
import pickle
import warnings
import zlib
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from eventide.common import Types
from eventide.connectors.file_system.format import BLOCK
from eventide.connectors.formats.csv_files import CsvLines
from eventide.datastream.connectors.file_system import FileSource, StreamFormat
from eventide.datastream.formats.csv import CsvBulkWriters, CsvReaderFormat, CsvSchema
from eventide.datastream.formats.json import JsonBulkWriters, JsonReaderFormat
from eventide.datastream.formats.orc import OrcBulkWriters
from eventide.datastream.formats.parquet import ParquetBulkWriters, ParquetColumnarRowInputFormat
from eventide.errors import DataError, ProgramError

BYTES = Types.PRIMITIVE_ARRAY(Types.BYTE())
PAIR = Types.ROW_NAMED(["user", "ms"], [Types.STRING(), Types.LONG()])
TABLE = {"user": ["a", "b", None], "ms": [1, 2, 3], "more": [0.5, None, 1.5]}


def csv_of(kind):
    return CsvSchema.builder().add_column("c", kind).build()


def array_of(kind):
    return CsvSchema.builder().add_array_column("c", ";", kind).build()


def batches(source):
    """The batches of all files of a source, after a journey to a worker; every batch has the declared types."""
    source = pickle.loads(pickle.dumps(source))
    wanted = source.get_produced_type().arrow_type()
    found = []
    for part in source.parts({}):
        for batch in source.read(part, 0, source.latest_position(part)):
            fields = list(wanted) if pa.types.is_struct(wanted) else [pa.field("value", wanted)]
            assert list(batch.schema) == fields
            found.append(batch)
    return found


def rows(source):
    return [tuple(row.values()) for batch in batches(source) for row in batch.to_pylist()]


def parquet(path, table, **options):
    pq.write_table(pa.table(table), path, **options)


def test_parquet_has_the_columns_of_its_first_file(tmp_path):
    parquet(tmp_path / "a.parquet", TABLE)
    parquet(tmp_path / "b.parquet", {"more": [2.5], "user": ["c"], "ms": [4]})
    source = FileSource.parquet(tmp_path).build()
    assert source.get_produced_type() == Types.ROW_NAMED(
        ["user", "ms", "more"], [Types.STRING(), Types.LONG(), Types.DOUBLE()]
    )
    assert rows(source) == [("a", 1, 0.5), ("b", 2, None), (None, 3, 1.5), ("c", 4, 2.5)]


def test_parquet_gives_the_declared_columns_by_name_or_by_position(tmp_path):
    parquet(tmp_path / "a.parquet", TABLE)
    named = Types.ROW_NAMED(["ms", "user"], [Types.DOUBLE(), Types.STRING()])
    assert rows(FileSource.parquet(tmp_path, type_info=named).build()) == [(1.0, "a"), (2.0, "b"), (3.0, None)]
    by_position = Types.TUPLE([Types.STRING(), Types.INT()])
    assert rows(FileSource.parquet(tmp_path, type_info=by_position).build()) == [("a", 1), ("b", 2), (None, 3)]


def test_parquet_brings_every_kind_of_column_to_its_type(tmp_path):
    at = dt.datetime(2026, 5, 1, 8, 30, tzinfo=dt.UTC)
    table = {
        "at": pa.array([at], pa.timestamp("ns")),
        "zoned": pa.array([at], pa.timestamp("ms", "Europe/Berlin")),
        "word": pa.array(["x"]).dictionary_encode(),
        "large": pa.array(["y"], pa.large_string()),
        "tags": pa.array([["p", "q"]]),
        "place": pa.array([{"x": 1, "y": 2.0}]),
        "price": pa.array([Decimal("1.50")], pa.decimal128(10, 2)),
        "day": pa.array([at.date()]),
        "counts": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
    }
    parquet(tmp_path / "a.parquet", table)
    source = FileSource.parquet(tmp_path).build()
    assert str(source.get_produced_type()) == (
        "ROW(at: SQL_TIMESTAMP, zoned: SQL_TIMESTAMP, word: STRING, large: STRING, tags: LIST(STRING), "
        "place: ROW(x: LONG, y: DOUBLE), price: BIG_DEC(10, 2), day: SQL_DATE, counts: MAP(STRING, LONG))"
    )
    (row,) = rows(source)
    assert row[0].isoformat() == row[1].isoformat() == "2026-05-01T08:30:00+00:00"
    assert row[2:] == ("x", "y", ["p", "q"], {"x": 1, "y": 2.0}, Decimal("1.5"), at.date(), [("k", 1)])


def test_parquet_has_the_times_of_every_year_that_spark_writes(tmp_path):
    at = [dt.datetime(1, 1, 1, tzinfo=dt.UTC), dt.datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=dt.UTC)]
    table = {"at": pa.array(at, pa.timestamp("us", "UTC"))}
    parquet(tmp_path / "a.parquet", table, use_deprecated_int96_timestamps=True)
    assert [row[0] for row in rows(FileSource.parquet(tmp_path).build())] == at


@pytest.mark.parametrize("group", [1, 4, 7, 100])
def test_any_two_rows_of_a_parquet_file_bound_a_range(tmp_path, group):
    parquet(tmp_path / "a.parquet", {"n": list(range(20))}, row_group_size=group)
    source = FileSource.for_bulk_file_format(ParquetColumnarRowInputFormat(batch_size=3), tmp_path).build()
    (part,) = source.parts({})
    for start in range(21):
        for end in range(start, 21):
            read = [n for batch in source.read(part, 2 * start, 2 * end) for n in batch["n"].to_pylist()]
            assert read == list(range(start, end))


def test_only_the_columns_and_row_groups_that_are_asked_for_are_read(tmp_path):
    path = tmp_path / "a.parquet"
    parquet(path, {"a": list(range(40)), "b": list(range(40))}, row_group_size=10, compression=None)
    metadata = pq.read_metadata(path)
    content = bytearray(path.read_bytes())
    for group in range(4):
        for column in range(2):
            if (group, column) != (2, 1):  # all but one column chunk is made unreadable
                chunk = metadata.row_group(group).column(column)
                start = chunk.dictionary_page_offset or chunk.data_page_offset
                content[start : start + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    path.write_bytes(content)
    source = FileSource.parquet(path).build().with_columns({"b", "z"})
    assert source.get_produced_type() == Types.ROW_NAMED(["b"], [Types.LONG()])
    assert [n for batch in source.read(str(path), 42, 58) for n in batch["b"].to_pylist()] == list(range(21, 29))


def test_an_empty_parquet_file_ends_where_it_begins(tmp_path):
    parquet(tmp_path / "a.parquet", {"n": pa.array([], pa.int64())})
    source = FileSource.parquet(tmp_path).build()
    (part,) = source.parts({})
    assert source.latest_position(part) > 0
    assert batches(source) == []


def test_orc_has_the_columns_of_its_first_file(tmp_path):
    orc.write_table(pa.table(TABLE), tmp_path / "a.orc")
    source = FileSource.orc(tmp_path).build()
    assert source.get_produced_type() == Types.ROW_NAMED(
        ["user", "ms", "more"], [Types.STRING(), Types.LONG(), Types.DOUBLE()]
    )
    assert rows(source) == [("a", 1, 0.5), ("b", 2, None), (None, 3, 1.5)]
    assert rows(FileSource.orc(tmp_path, type_info=PAIR).build()) == [("a", 1), ("b", 2), (None, 3)]
    by_position = Types.TUPLE([Types.STRING(), Types.INT()])
    assert rows(FileSource.orc(tmp_path, type_info=by_position).build()) == [("a", 1), ("b", 2), (None, 3)]
    missing = Types.ROW_NAMED(["nothing"], [Types.LONG()])
    with pytest.raises(DataError, match=r"a\.orc has no column 'nothing'; it has user, ms, more"):
        rows(FileSource.orc(tmp_path, type_info=missing).build())


def test_any_two_rows_of_an_orc_file_bound_a_range(tmp_path):
    numbers = list(range(3_000))
    orc.write_table(
        pa.table({"n": numbers, "text": [str(n) * 100 for n in numbers]}), tmp_path / "a.orc", stripe_size=1
    )
    assert orc.ORCFile(tmp_path / "a.orc").nstripes > 2
    source = FileSource.orc(tmp_path).build()
    (part,) = source.parts({})
    bounds = [0, 1, 1_023, 1_024, 1_025, 2_047, 2_048, 2_100, 3_000]
    for start in bounds:
        for end in (bound for bound in bounds if bound >= start):
            read = [n for batch in source.read(part, 2 * start, 2 * end) for n in batch["n"].to_pylist()]
            assert read == numbers[start:end]


def test_orc_without_a_file_or_columns_is_refused(tmp_path):
    with pytest.raises(ProgramError, match="there is no ORC file yet"):
        FileSource.orc(tmp_path).build()
    with pytest.raises(ProgramError, match="ORC gives rows"):
        FileSource.orc(tmp_path, type_info=Types.STRING())
    assert OrcBulkWriters.for_row_type(PAIR).get_row_type() == PAIR


def test_columns_that_are_not_used_are_left_out_in_every_format(tmp_path):
    three = Types.ROW_NAMED(["a", "b", "c"], [Types.LONG(), Types.STRING(), Types.LONG()])
    parquet(tmp_path / "f.parquet", {"a": [1], "b": ["x"], "c": [2]})
    (tmp_path / "f.csv").write_text("a,b,c\n1,x,2\n")
    (tmp_path / "g.csv").write_text("1,x,2\n")
    (tmp_path / "f.json").write_text('{"a": 1, "b": "x", "c": 2}\n')
    for builder in (
        FileSource.parquet(tmp_path / "f.parquet", type_info=three),
        FileSource.csv(tmp_path / "f.csv", type_info=three),
        FileSource.csv(tmp_path / "g.csv", type_info=three, header=False),
        FileSource.json_lines(tmp_path / "f.json", type_info=three),
    ):
        whole = builder.build()
        assert rows(whole.with_columns(["c", "a"])) == [(1, 2)]
        assert rows(whole.with_columns([])) == [(1,)], "a row has at least one column"
        assert rows(whole) == [(1, "x", 2)]
    lines = FileSource.text(tmp_path / "g.csv").build()
    assert rows(lines.with_columns(["a"])) == [("1,x,2",)]


def test_csv_with_a_header_is_read_by_name_without_one_by_position(tmp_path):
    (tmp_path / "f.csv").write_text("more,ms,user\n0.5,1,a\n,2,\n")
    assert rows(FileSource.csv(tmp_path, type_info=PAIR).build()) == [("a", 1), ("", 2)]
    by_position = Types.TUPLE([Types.DOUBLE(), Types.INT(), Types.STRING()])
    assert rows(FileSource.csv(tmp_path, type_info=by_position).build()) == [(0.5, 1, "a"), (None, 2, "")]
    inferred = FileSource.csv(tmp_path).build()
    assert str(inferred.get_produced_type()) == "ROW(more: DOUBLE, ms: LONG, user: STRING)"
    (tmp_path / "f.csv").write_text("a,1\nb,2\n")
    assert rows(FileSource.csv(tmp_path, type_info=PAIR, header=False).build()) == [("a", 1), ("b", 2)]
    assert str(FileSource.csv(tmp_path, header=False).build().get_produced_type()) == "ROW(f0: STRING, f1: LONG)"


def test_a_header_is_passed_over_unless_its_names_are_asked_for(tmp_path):
    """As in Flink, where columns are found by their position, whatever the header calls them."""
    (tmp_path / "f.csv").write_text("h1,h2\nskipped,x\nstring,123\n")
    builder = CsvSchema.builder().add_string_column("string").add_number_column("number").set_skip_first_data_row()

    def read(schema):
        return rows(FileSource.for_record_stream_format(CsvReaderFormat.for_schema(schema), tmp_path).build())

    assert read(builder.set_use_header().build()) == [("string", 123)]
    with pytest.raises(DataError, match=r"f\.csv has the columns \['h1', 'h2'\] in its header, not"):
        read(builder.set_strict_headers().build())
    with pytest.raises(DataError, match=r"f\.csv does not have all columns"):
        read(builder.set_strict_headers(False).set_reorder_columns().build())
    (tmp_path / "f.csv").write_text("number,more,string\n,,\n123,?,string\n")
    assert read(builder.build()) == [("string", 123)]


def test_csv_files_without_rows_give_none(tmp_path):
    (tmp_path / "empty.csv").touch()
    (tmp_path / "header.csv").write_text("user,ms\n")
    assert rows(FileSource.csv(tmp_path, type_info=PAIR).build()) == []
    assert rows(FileSource.csv(tmp_path, type_info=Types.TUPLE(PAIR.field_types)).build()) == []


@pytest.mark.parametrize("skips", [False, True])
@pytest.mark.parametrize("by_name", [False, True])
@pytest.mark.parametrize(
    ("content", "read", "after_one"),
    [
        (b"", [], []),
        (b"\n", [], []),
        (b"\xef\xbb\xbf\r\n", [], []),
        (b"a,b", [], []),
        (b"a,b\n", [], []),
        (b"a,b\nx,1", [("x", 1)], []),
        (b"a,b\nx,1\ny,2", [("x", 1), ("y", 2)], [("y", 2)]),
        (b"\r\n\na,b\nx,1\n", [("x", 1)], []),
        (b"\xef\xbb\xbfa,b\nx,1\ny,2\n", [("x", 1), ("y", 2)], [("y", 2)]),
    ],
)
def test_csv_files_may_have_few_lines_blank_ones_first_and_one_without_an_end(
    tmp_path, content, read, after_one, by_name, skips
):
    (tmp_path / "f.csv").write_bytes(content)
    builder = CsvSchema.builder().add_string_column("a").add_number_column("b").set_use_header()
    schema = builder.set_reorder_columns(by_name).set_skip_first_data_row(skips).build()
    source = FileSource.for_record_stream_format(CsvReaderFormat.for_schema(schema), tmp_path).build()
    assert rows(source) == (after_one if skips else read)


def test_a_header_may_have_a_line_within_quotes(tmp_path):
    (tmp_path / "f.csv").write_text('"a\nx",b\nx,1\n')
    schema = CsvSchema.builder().add_string_column("a").add_number_column("b").set_use_header().build()
    assert rows(FileSource.for_record_stream_format(CsvReaderFormat.for_schema(schema), tmp_path).build()) == [("x", 1)]


def test_the_names_of_a_strict_header_are_checked_before_its_rows(tmp_path):
    (tmp_path / "f.csv").write_text("b,a\nx,1\n")
    builder = CsvSchema.builder().add_number_column("a").add_string_column("b").set_use_header().set_strict_headers()
    source = FileSource.for_record_stream_format(CsvReaderFormat.for_schema(builder.build()), tmp_path).build()
    with pytest.raises(DataError, match=r"f\.csv has the columns \['b', 'a'\] in its header, not \['a', 'b'\]"):
        rows(source)


def test_csv_times_may_have_a_zone_or_not(tmp_path):
    text = "2026-05-01T08:30:00Z,2026-05-01,08:30:00\n2026-05-01 10:30:00+02:00,,\n2026-05-01 08:30:00.000,,\n,,\n"
    (tmp_path / "f.csv").write_text(text)
    times = Types.TUPLE([Types.SQL_TIMESTAMP(), Types.SQL_DATE(), Types.SQL_TIME()])
    read = rows(FileSource.csv(tmp_path, type_info=times, header=False).build())
    assert [row[0] and row[0].isoformat() for row in read] == ["2026-05-01T08:30:00+00:00"] * 3 + [None]
    assert read[0][1:] == (dt.date(2026, 5, 1), dt.time(8, 30))


def test_a_date_in_a_column_of_times_is_the_beginning_of_its_day(tmp_path):
    (tmp_path / "f.csv").write_text("2026-05-01\n2026-05-02T01+01\n")
    read = rows(FileSource.csv(tmp_path, type_info=Types.TUPLE([Types.SQL_TIMESTAMP()]), header=False).build())
    assert [row[0].isoformat() for row in read] == ["2026-05-01T00:00:00+00:00", "2026-05-02T00:00:00+00:00"]


def test_csv_is_written_down_as_its_schema_says(tmp_path):
    schema = (
        CsvSchema.builder()
        .add_number_column("n", Types.INT())
        .add_string_column("s")
        .add_boolean_column("b")
        .add_array_column("a", "#", Types.INT())
        .add_columns_from(CsvSchema.builder().add_column("at", Types.INSTANT()).build())
        .set_column_separator("|")
        .set_quote_char("'")
        .set_escape_char("\\")
        .set_null_value("-")
        .set_use_header()
        .set_strict_headers()
        .set_skip_first_data_row()
        .build()
    )
    lines = ["n|s|b|a|at", "int|text|bool|ints|time", "1|'x|\n\\'y'|true|1#2|1970-01-01T00:00:01Z", "-|-|-||-"]
    (tmp_path / "f.csv").write_text("\n".join(lines) + "\n")
    source = FileSource.for_record_stream_format(CsvReaderFormat.for_schema(schema), tmp_path).build()
    first, second = rows(source)
    assert first[:4] == (1, "x|\n'y", True, [1, 2])
    assert first[4].timestamp() == 1
    assert second == (None, None, None, [], None)
    (tmp_path / "f.csv").write_text("s|n|b|a|at\nskipped||||\n")
    with pytest.raises(DataError, match=r"f\.csv has the columns \['s', 'n', 'b', 'a', 'at'\] in its header, not"):
        rows(source)


@pytest.mark.parametrize("quotes", [True, False])
def test_cells_of_csv_mean_what_they_mean_in_flink(tmp_path, quotes):
    schema = CsvSchema.builder().add_string_column("s").add_boolean_column("b").add_array_column("a")
    schema.set_escape_char("!")
    if not quotes:
        schema.disable_quote_char()
    cells = ["a!nb,true,x;y", "!tc!!n,1,", "!,d!;,TRUE,z", "e,,", "f,yes,g"]
    (tmp_path / "f.csv").write_text("\n".join(cells))
    assert rows(FileSource.for_record_stream_format(CsvReaderFormat.for_schema(schema.build()), tmp_path).build()) == [
        ("a\nb", True, ["x", "y"]),
        ("\tc!n", False, []),
        (",d;", True, ["z"]),
        ("e", None, []),
        ("f", False, ["g"]),
    ]


def csv_rows(tmp_path, schema, content):
    """The rows of a file with this content, or None if it cannot be read."""
    (tmp_path / "f.csv").write_text(content, newline="")
    source = FileSource.for_record_stream_format(CsvReaderFormat.for_schema(schema.build()), tmp_path).build()
    try:
        return rows(source)
    except DataError:
        return None


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('"x" ,1\n', [("x", 1)]),
        ('y,2\r\n"x""\ny"\t ,"1" \r\n', [("y", 2), ('x"\ny', 1)]),
        ('"x"y,1\n', None),
        ('"x" y,1\n', None),
        ('"a,"b,1\n', None),
        ('x"y",1\n', [('x"y"', 1)]),
        ("x,1,\ny,2, \nz,3\n", [("x", 1), ("y", 2), ("z", 3)]),
        ("x,1,,\n", None),
        ("x,1,2\n", None),
        ("0x,0\nx,1\n", [("0x", 0), ("x", 1)]),
        ("x,0x1F\n", None),
        ("x,-0X1\n", None),
        ("x,+5\ny, +6 \nz,\n", [("x", 5), ("y", 6), ("z", None)]),
        ("x,+-5\n", None),
        ("\nx,1\n\ny,2\n", [("x", 1), ("y", 2)]),
        ('"x" ,1\r"y",2\rz,3\r', [("x", 1), ("y", 2), ("z", 3)]),
        ("x,1\ry,2\r\n\rz,3", [("x", 1), ("y", 2), ("z", 3)]),
    ],
)
@pytest.mark.parametrize("block", [1, 3, 1000])
def test_rows_of_csv_are_those_of_flink(tmp_path, monkeypatch, content, expected, block):
    monkeypatch.setattr("eventide.connectors.formats.csv_files.BLOCK", block)
    schema = CsvSchema.builder().add_string_column("s").add_number_column("n")
    assert csv_rows(tmp_path, schema, content) == expected


@pytest.mark.parametrize("kind", [Types.FLOAT(), Types.DOUBLE()])
def test_numbers_of_csv_that_are_not_finite_are_written_as_in_java(tmp_path, kind):
    schema = CsvSchema.builder().add_string_column("s").add_number_column("n", kind)
    finite = csv_rows(tmp_path, schema, "nan,1\ninf,+2.5\nx,-Infinity\nx,+Infinity\nx,Infinity\nx,\n")
    assert [number for _, number in finite] == [1, 2.5, -math.inf, math.inf, math.inf, None]
    assert math.isnan(csv_rows(tmp_path, schema, "x,NaN\n")[0][1])
    for text in ("nan", "inf", "NAN", "-inf", "infinity"):
        assert csv_rows(tmp_path, schema, f"x,1\nx,{text}\n") is None


def test_a_byte_of_csv_may_have_a_plus(tmp_path):
    schema = CsvSchema.builder().add_number_column("n", Types.BYTE()).add_number_column("m", Types.BYTE())
    assert csv_rows(tmp_path, schema, "+5,-6\n") == [(5, -6)]
    assert csv_rows(tmp_path, schema, "+128,1\n") is None


def test_arrays_of_csv_have_the_elements_that_they_have_in_flink(tmp_path):
    texts = CsvSchema.builder().add_string_column("s").add_array_column("a")
    assert csv_rows(tmp_path, texts, "x,  \nx,a; b\nx,\n") == [("x", []), ("x", ["a", " b"]), ("x", [])]
    texts.set_null_value("n")
    assert csv_rows(tmp_path, texts, "x,a;n\nn,n\nx,\n") == [("x", ["a", None]), (None, [None]), ("x", [])]
    numbers = CsvSchema.builder().add_string_column("s").add_array_column("a", ";", Types.LONG())
    assert csv_rows(tmp_path, numbers, "x, 1 ; +2\nx, \n") == [("x", [1, 2]), ("x", [])]
    assert csv_rows(tmp_path, numbers, "x,1;0x1F\n") is None
    assert csv_rows(tmp_path, numbers.set_null_value("n"), "x,1;n\nx,n\n") == [("x", [1, None]), ("x", [None])]


@pytest.mark.parametrize("block", [1, 2, 1000])
def test_a_blank_line_of_a_csv_file_with_one_column_of_text_is_an_empty_text(tmp_path, monkeypatch, block):
    monkeypatch.setattr("eventide.connectors.formats.csv_files.BLOCK", block)
    text = CsvSchema.builder().add_string_column("s")
    for content in ("\nx\n\ny\n\n", "\r\nx\r\n\r\ny\r\n\r\n", '\n"x"\n\ny \n\n'):
        found = [value.strip() for (value,) in csv_rows(tmp_path, text, content)]
        assert found == ["", "x", "", "y", ""]
    assert csv_rows(tmp_path, text.set_use_header(), "s\n\nx\n") == [("",), ("x",)]
    assert csv_rows(tmp_path, CsvSchema.builder().add_number_column("n"), "\n1\n\n2\n") == [(1,), (2,)]


def test_the_number_of_a_bad_row_of_csv_is_that_in_its_file(tmp_path, monkeypatch):
    monkeypatch.setattr("eventide.connectors.formats.csv_files.BLOCK", 4)
    for bad, said in (('"x"y,1', "Row #5: cell 1 has a quote"), ("x,y", "Row #5: invalid value 'y'")):
        (tmp_path / "f.csv").write_text(f'user,ms\na,1\n"b\n",2\nc,3\n{bad}\n')
        with pytest.raises(DataError, match=said):
            rows(FileSource.csv(tmp_path, type_info=PAIR).build())


def test_a_quote_within_a_name_of_a_header_is_a_part_of_it(tmp_path):
    (tmp_path / "f.csv").write_text('a"b,c\nx,1\n')
    kind = Types.ROW_NAMED(['a"b', "c"], [Types.STRING(), Types.LONG()])
    assert rows(FileSource.csv(tmp_path, type_info=kind).build()) == [("x", 1)]


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_bytes_of_csv_that_come_in_small_parts_are_all_read(size):
    class Slow(io.BytesIO):
        def read(self, _):
            return super().read(size)

    lines = CsvLines(Slow(b"!a!n!!,!!!!!,b\n!"), "!")
    read = b""
    while block := lines.read():
        read += block
    assert read == b"!a!\n!!,!!!!!,b\n!"


def test_an_escape_character_may_stand_at_the_end_of_a_block(tmp_path):
    schema = CsvSchema.builder().add_string_column("s").set_escape_char("!").build()
    texts = ["x" * length for length in (BLOCK - 9, 5, 3)]
    (tmp_path / "f.csv").write_text("".join(f"{text}!n!!!ty\n" for text in texts))
    source = FileSource.for_record_stream_format(CsvReaderFormat.for_schema(schema), tmp_path).build()
    assert [row[0] for row in rows(source)] == [f"{text}\n!\ty" for text in texts]


def test_json_lines_have_fields_by_name_and_none_where_one_is_missing(tmp_path):
    lines = ['{"ms": 1, "user": "a", "other": [1, {"x": 2}]}', "", '{"user": null}', '{"ms": 3, "user": "ü"}']
    (tmp_path / "f.json").write_text("\n".join(lines))
    assert rows(FileSource.json_lines(tmp_path, type_info=PAIR).build()) == [("a", 1), (None, None), ("ü", 3)]
    (tmp_path / "f.json").write_text('{"at": "2026-05-01T08:30:00Z", "n": null, "ok": true, "x": {"y": [1.5]}}\n')
    inferred = FileSource.json_lines(tmp_path).build()
    assert str(inferred.get_produced_type()) == (
        "ROW(at: SQL_TIMESTAMP, n: STRING, ok: BOOLEAN, x: ROW(y: LIST(DOUBLE)))"
    )


def test_json_values_are_brought_to_the_declared_types_however_deep(tmp_path):
    line = '{"at": "2026-05-01 08:30:00", "time": "08:30:00", "in": [{"day": "2026-05-01", "n": 1}], "d": 1.5}'
    (tmp_path / "f.json").write_text(line)
    inner = Types.ROW_NAMED(["day", "n"], [Types.SQL_DATE(), Types.BYTE()])
    kinds = [Types.SQL_TIMESTAMP(), Types.SQL_TIME(), Types.LIST(inner), Types.BIG_DEC()]
    source = FileSource.json_lines(tmp_path, type_info=Types.ROW_NAMED(["at", "time", "in", "d"], kinds)).build()
    ((at, *others),) = rows(source)
    assert at.isoformat() == "2026-05-01T08:30:00+00:00"
    assert others == [dt.time(8, 30), [{"day": dt.date(2026, 5, 1), "n": 1}], Decimal("1.5")]


def test_bytes_are_in_base64_in_files_of_text(tmp_path):
    kinds = Types.ROW_NAMED(["name", "data"], [Types.STRING(), Types.PRIMITIVE_ARRAY(Types.BYTE())])
    (tmp_path / "f.csv").write_text("name,data\na,AAH/\nb,\n")
    (tmp_path / "f.json").write_text('{"name": "a", "data": "AAH/"}\n{"name": "b", "data": ""}\n{"name": "c"}\n')
    assert rows(FileSource.csv(tmp_path / "f.csv", type_info=kinds).build()) == [("a", b"\x00\x01\xff"), ("b", None)]
    assert rows(FileSource.json_lines(tmp_path / "f.json", type_info=kinds).build()) == [
        ("a", b"\x00\x01\xff"),
        ("b", b""),
        ("c", None),
    ]
    (tmp_path / "f.csv").write_text("name,data\na,AAH\n")
    (tmp_path / "f.json").write_text('{"data": "\u00fc"}\n')
    for make, name in ((FileSource.csv, "f.csv"), (FileSource.json_lines, "f.json")):
        with pytest.raises(DataError, match=rf"{name}: the column 'data' cannot be read as binary"):
            rows(make(tmp_path / name, type_info=kinds).build())


def test_text_of_a_parquet_file_is_bytes_as_it_is(tmp_path):
    parquet(tmp_path / "a.parquet", {"data": ["AAH/"]})
    kind = Types.ROW_NAMED(["data"], [Types.PRIMITIVE_ARRAY(Types.BYTE())])
    assert rows(FileSource.parquet(tmp_path, type_info=kind).build()) == [(b"AAH/",)]


def test_numbers_of_json_that_are_not_finite_are_text(tmp_path):
    numbers = Types.ROW_NAMED(["n", "m", "s"], [Types.DOUBLE(), Types.FLOAT(), Types.STRING()])
    lines = [
        '{"n": 1, "m": 0.5, "s": "NaN"}',
        '{"n": "Infinity", "m": "-Infinity", "s": "x"}',
        "",
        '{"n": "-Infinity", "m": 1, "s": "y"}',
        '{"s": "Infinity"}',
        '{"n": 2.5, "m": "NaN", "s": null}',
    ]
    (tmp_path / "f.json").write_text("\n".join(lines))
    assert repr(rows(FileSource.json_lines(tmp_path, type_info=numbers).build())) == repr(
        [
            (1.0, 0.5, "NaN"),
            (math.inf, -math.inf, "x"),
            (-math.inf, 1.0, "y"),
            (None, None, "Infinity"),
            (2.5, math.nan, None),
        ]
    )


def test_beside_numbers_that_are_not_finite_what_does_not_fit_is_told(tmp_path):
    numbers = Types.ROW_NAMED(["n", "ms"], [Types.DOUBLE(), Types.LONG()])
    (tmp_path / "f.json").write_text('{"n": "NaN"}\n{"n": 1}\n{"n": 2, "ms": "x"}\n')
    with pytest.raises(DataError, match=r"the column 'ms' cannot be read as int64.* row 2"):
        rows(FileSource.json_lines(tmp_path, type_info=numbers).build())
    (tmp_path / "f.json").write_text('{"n": "NaN"}\n{"n": "nine"}\n')
    with pytest.raises(DataError, match=r"the column 'n' cannot be read as double.* row 1"):
        rows(FileSource.json_lines(tmp_path, type_info=numbers).build())


@pytest.mark.parametrize("block", [1, 2, 3, 7, 1000])
def test_lines_are_whole_whatever_is_read_at_a_time(tmp_path, monkeypatch, block):
    monkeypatch.setattr("eventide.connectors.file_system.format.BLOCK", block)
    monkeypatch.setattr("eventide.connectors.formats.json.BLOCK", block)
    text = "ab\r\n\n\rü\n\n\nlast"
    (tmp_path / "f.txt").write_bytes(text.encode())
    source = FileSource.text(tmp_path).build()
    assert rows(source) == [("ab",), ("",), ("",), ("ü",), ("",), ("",), ("last",)]
    (tmp_path / "f.txt").write_bytes(b"\n")
    assert rows(FileSource.text(tmp_path).build()) == [("",)]
    (tmp_path / "f.txt").write_text('{"user": "a", "ms": 1}\n{"user": "b", "ms": 2}')
    assert rows(FileSource.json_lines(tmp_path, type_info=PAIR).build()) == [("a", 1), ("b", 2)]


def test_text_is_decoded_and_decompressed(tmp_path):
    (tmp_path / "f.txt").write_bytes("é\n".encode("utf-16"))
    assert rows(FileSource.text(tmp_path, charset_name="UTF-16").build()) == [("é",)]
    for content, lines in (("é\nü".encode("utf-16-be"), [("é",), ("ü",)]), (b"\0a", [("a",)]), (b"\xff\xfe", [])):
        (tmp_path / "f.txt").write_bytes(content)  # big-endian without a byte order mark, as in Java
        assert rows(FileSource.text(tmp_path, charset_name="utf16").build()) == lines
    (tmp_path / "f.txt").unlink()
    (tmp_path / "f.gz").write_bytes(gzip.compress(b"a\nb\n"))
    source = FileSource.text(tmp_path).build()
    assert rows(source) == [("a",), ("b",)]
    assert source.next_positions(dict.fromkeys(source.parts({}), 0), 1) == {str(tmp_path / "f.gz"): 24}


def test_text_is_decompressed_as_flink_does_and_refused_where_that_is_not_possible(tmp_path):
    (tmp_path / "a.gzip").write_bytes(gzip.compress(b"a\n"))
    (tmp_path / "b.deflate").write_bytes(zlib.compress(b"b\n"))
    assert rows(FileSource.text(tmp_path).build()) == [("a",), ("b",)]
    (tmp_path / "c.csv.XZ").write_bytes(lzma.compress(b"c\n"))
    with pytest.raises(DataError, match=r"c\.csv\.XZ is compressed as \.xz, which cannot be read; use \.gz"):
        rows(FileSource.text(tmp_path).build())


BAD = [
    ("csv", "user,ms\na,1\nb,x\n", r"f\.csv: the column 'ms' cannot be read as int64: Row #3.*invalid value 'x'"),
    ("csv", "more,user,ms\n0,a,x\n", r"f\.csv: the column 'ms' cannot be read as int64"),
    ("csv", "user\na\n", r"f\.csv does not have all columns.*'ms'"),
    ("csv", "user,ms\na\n", r"f\.csv cannot be read: CSV parse error: Row #2: Expected 2 columns, got 1"),
    ("json", '{"ms": 1}\n{"ms": "x"}\n', r"f\.json: the column 'ms' cannot be read as int64.*row 1"),
    ("json", '{"user": "a", "ms": 1.5}\n', r"f\.json: the column 'ms' cannot be read as int64.*1\.5"),
    ("json", '{"user": "a"\n', r"f\.json cannot be read: JSON parse error"),
]


@pytest.mark.parametrize(("ending", "text", "said"), BAD)
def test_what_does_not_fit_is_told_with_file_and_column(tmp_path, ending, text, said):
    (tmp_path / f"f.{ending}").write_text(text)
    builder = {"csv": FileSource.csv, "json": FileSource.json_lines}[ending](tmp_path, type_info=PAIR)
    with pytest.raises(DataError, match=said):
        rows(builder.build())


def test_bad_cells_are_named_by_position_where_there_are_no_names(tmp_path):
    (tmp_path / "f.csv").write_text("a,x\n")
    with pytest.raises(DataError, match=r"the column 'ms' cannot be read as int64"):
        rows(FileSource.csv(tmp_path, type_info=PAIR, header=False).build())
    (tmp_path / "f.csv").write_text("at\nyesterday\n")
    when = Types.ROW_NAMED(["at"], [Types.SQL_TIMESTAMP()])
    with pytest.raises(DataError, match=r"f\.csv: the column 'at' cannot be read as timestamp.*yesterday"):
        rows(FileSource.csv(tmp_path, type_info=when).build())


def test_what_does_not_fit_in_parquet_is_told_with_file_and_column(tmp_path):
    parquet(tmp_path / "f.parquet", {"user": ["a"], "ms": ["x"]})
    with pytest.raises(DataError, match=r"f\.parquet: the column 'ms' cannot be read as int64: .*x"):
        rows(FileSource.parquet(tmp_path, type_info=PAIR).build())
    parquet(tmp_path / "f.parquet", {"more": ["a"]})
    with pytest.raises(DataError, match=r"f\.parquet has no column 'user' or 'ms'; it has more"):
        rows(FileSource.parquet(tmp_path, type_info=PAIR).build())
    with pytest.raises(DataError, match=r"f\.parquet has no column 'f1'"):
        rows(FileSource.parquet(tmp_path, type_info=Types.TUPLE(PAIR.field_types)).build())
    (tmp_path / "f.parquet").write_text("no parquet")
    with pytest.raises(DataError, match=r"f\.parquet cannot be read: .*Parquet"):
        FileSource.parquet(tmp_path).build()


def test_text_in_another_encoding_is_told_with_its_file(tmp_path):
    (tmp_path / "f.txt").write_bytes("é".encode("latin-1"))
    with pytest.raises(DataError, match=r"f\.txt is not UTF-8"):
        rows(FileSource.text(tmp_path).build())
    (tmp_path / "f.txt").write_bytes(b"no gzip")
    (tmp_path / "f.txt").rename(tmp_path / "f.gz")
    with pytest.raises(DataError, match=r"f\.gz cannot be read"):
        rows(FileSource.text(tmp_path).build())


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda: StreamFormat.text_line_format("utf-9"), "unknown encoding"),
        (lambda: ParquetColumnarRowInputFormat(Types.LONG()), "Parquet gives rows"),
        (lambda: ParquetColumnarRowInputFormat(PAIR, is_case_sensitive=False), "exact name"),
        (lambda: FileSource.csv("x", type_info=Types.LONG()), "CSV gives rows"),
        (lambda: FileSource.csv("x", type_info=Types.TUPLE([Types.LIST(Types.LONG())])), "cannot hold LIST"),
        (lambda: CsvSchema.builder().set_column_separator("||"), "single character"),
        (lambda: JsonReaderFormat(Types.TUPLE([Types.LONG()])), "have names"),
        (lambda: JsonReaderFormat(Types.ROW_NAMED(["m"], [Types.MAP(Types.STRING(), Types.LONG())])), "not maps"),
        (lambda: JsonReaderFormat(Types.ROW_NAMED(["t"], [Types.LIST(Types.SQL_TIME())])), "a time of day inside"),
        (lambda: JsonReaderFormat(Types.ROW_NAMED(["t"], [Types.LIST(BYTES)])), "bytes inside"),
        (lambda: ParquetBulkWriters.for_row_type(Types.STRING()), "Parquet gives rows"),
        (lambda: JsonBulkWriters.for_row_type(Types.STRING()), "JSON gives rows"),
        (lambda: CsvBulkWriters.for_schema(CsvSchema(None)), "columns that are declared"),
        (lambda: CsvBulkWriters.for_schema(csv_of(Types.MAP(Types.STRING(), Types.LONG()))), "cannot hold MAP"),
        (lambda: CsvBulkWriters.for_schema(csv_of(Types.TIME_WINDOW())), "cannot hold TIME_WINDOW"),
        (lambda: CsvReaderFormat.for_schema(array_of(Types.MAP(Types.STRING(), Types.LONG()))), "cannot hold LIST"),
        (lambda: OrcBulkWriters.for_row_type(Types.ROW([Types.LIST(Types.SQL_TIME())])), "no type for times of day"),
        (lambda: FileSource.for_bulk_file_format(StreamFormat.text_line_format(), "x"), "needs a BulkFormat"),
    ],
)
def test_what_a_format_cannot_do_is_refused_when_it_is_described(build, said):
    with pytest.raises(ProgramError, match=said):
        build()


@pytest.mark.parametrize("make", [FileSource.parquet, FileSource.csv, FileSource.json_lines])
def test_columns_must_be_declared_as_long_as_there_is_no_file(tmp_path, make):
    (tmp_path / "_hidden").write_text("x")
    with pytest.raises(ProgramError, match=r"there is no \w+ file yet"):
        make(tmp_path).build()


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: OrcBulkWriters.for_row_type(PAIR, {"orc.compress": "ZSTD"}), "writer_properties of OrcBulkWriters"),
        (lambda: OrcBulkWriters.for_row_type(PAIR, hadoop_config=object()), "hadoop_config of OrcBulkWriters"),
        (lambda: ParquetBulkWriters.for_row_type(PAIR, object()), "hadoop_config of ParquetBulkWriters"),
    ],
)
def test_what_a_bulk_writer_is_told_in_vain_is_said_where_it_stands(make, what):
    with pytest.warns(UserWarning, match=f"{what} has no effect") as caught:
        make()
    assert [warning.filename for warning in caught] == [__file__]


def test_a_bulk_writer_of_a_type_alone_says_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert OrcBulkWriters.for_row_type(PAIR).row_type == ParquetBulkWriters.for_row_type(PAIR).row_type == PAIR
