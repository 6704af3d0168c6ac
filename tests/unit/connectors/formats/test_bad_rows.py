"""Rows of files that cannot be read: each is found among all others, with its text and its place."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.common import Types
from eventide.datastream.connectors import FileSource, Unreadable
from eventide.datastream.connectors.file_system import FileSourceBuilder
from eventide.datastream.formats.csv import CsvReaderFormat, CsvSchema
from eventide.errors import DataError

ROW = Types.ROW_NAMED(["user", "ms", "at"], [Types.STRING(), Types.LONG(), Types.SQL_TIMESTAMP()])


def read(builder: FileSourceBuilder) -> tuple[list[tuple[Any, ...]], list[tuple[int | None, Any]]]:
    """The rows, and the place and text of each that is none."""
    source = builder.build().sorting_out()
    rows: list[tuple[Any, ...]] = []
    bad: list[tuple[int | None, Any]] = []
    for part in source.parts({}):
        for item in source.read(part, 0, source.latest_position(part)):
            if isinstance(item, pa.RecordBatch):
                rows += [tuple(row.values()) for row in item.to_pylist()]
            else:
                assert isinstance(item, Unreadable)
                assert (item.split, type(item.error)) == (part, DataError)
                bad.append((item.position, item.raw))
    return rows, sorted(bad, key=lambda one: one[0] or 0)


def test_lines_of_json(tmp_path: Path) -> None:
    lines = [
        b'{"user": "a", "ms": 1, "more": [{}]}',
        b"what?",
        b'{"user": "b", "ms": "x"}',
        b"",
        b'{"user": "c", "ms": 2, "at": "yesterday"}',
        b"\xff",
        b"[1]",
        b'{"user": "d", "ms": 3, "at": "2026-05-01T00:00:00Z"}',
        b'{"user": "e"',
    ]
    (tmp_path / "f.json").write_bytes(b"\n".join(lines))
    rows, bad = read(FileSource.json_lines(str(tmp_path), type_info=ROW))
    assert [row[:2] for row in rows] == [("a", 1), ("d", 3)]
    assert bad == [
        (1, "what?"),
        (2, '{"user": "b", "ms": "x"}'),
        (4, '{"user": "c", "ms": 2, "at": "yesterday"}'),
        (5, b"\xff"),
        (6, "[1]"),
        (8, '{"user": "e"'),
    ]


@pytest.mark.parametrize(
    ("content", "good", "bad"),
    [
        (b'null\n{"user": null, "ms": 1}\n', [1], [(0, "null")]),
        (b'\n{"ms": 1}\n \t null \r\n{"ms": 2}\nnull {}\n5', [1, 2], [(2, " \t null "), (4, "null {}"), (5, "5")]),
        (b'{"ms": 1, "user": "\\nnull"}\n{"ms":null}\n', [1, None], []),
    ],
)
def test_a_line_of_json_that_is_null_is_no_row(
    tmp_path: Path, content: bytes, good: list[int | None], bad: list[tuple[int, str]]
) -> None:
    (tmp_path / "f.json").write_bytes(content)
    rows, unreadable = read(FileSource.json_lines(str(tmp_path), type_info=ROW))
    assert [row[1] for row in rows] == good
    assert unreadable == bad


def test_a_null_among_objects_of_json_is_named_like_another_value_that_is_no_object(tmp_path: Path) -> None:
    for value, kind in (("5", "number"), ("null", "null")):
        (tmp_path / "f.json").write_text(f'{{"ms": 1}}\n\n{value}\n')
        source = FileSource.json_lines(str(tmp_path), type_info=ROW).build()
        [part] = source.parts({})
        with pytest.raises(DataError, match=rf"f\.json cannot be read: .* changed from object to {kind} in row 1;"):
            list(source.read(part, 0, source.latest_position(part)))
    (tmp_path / "f.json").write_text("null\n")
    with pytest.raises(DataError, match=r"f\.json cannot be read: .* changed from object to null in row 0"):
        FileSource.json_lines(str(tmp_path)).build()


CSV = b"""user,more,ms,at
a,,1,2026-05-01T00:00:00Z
b,,x,
c
"d
d",,2,
"e,e",f,3,yesterday
f,,,,6
\xff,,4,
g,,5,
"""
IS_BAD = [(1, "b,x,"), (2, "c"), (4, '"e,e",3,yesterday'), (5, "f,,,,6"), (6, "\\xff,4,")]


def test_rows_of_csv_by_the_names_in_its_header(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_bytes(CSV)
    rows, bad = read(FileSource.csv(str(tmp_path), type_info=ROW))
    assert [row[:2] for row in rows] == [("a", 1), ("d\nd", 2), ("g", 5)]
    assert bad == IS_BAD


@pytest.mark.parametrize(
    ("content", "rows", "bad"),
    [
        (b'a,1,x\nb,2,"y\nc,3,z\n', [("a", 1, "x")], [(1, 'b,2,"y\nc,3,z\n"')]),
        (b'a,1,"x', [], [(0, "a,1,x")]),
        (b'a,1,x\n"b,2,y\nc,3,z', [("a", 1, "x")], [(1, '"b,2,y\nc,3,z')]),
        (b'a,1,x\nb\nc,3,"z\n\n', [("a", 1, "x")], [(1, "b"), (2, 'c,3,"z\n\n"')]),
    ],
)
def test_a_row_of_csv_whose_quote_is_not_closed(
    tmp_path: Path, content: bytes, rows: list[tuple[Any, ...]], bad: list[tuple[int, str]]
) -> None:
    (tmp_path / "f.csv").write_bytes(content)
    schema = CsvSchema.builder().add_string_column("user").add_number_column("ms").add_string_column("text").build()
    builder = FileSource.for_record_stream_format(CsvReaderFormat.for_schema(schema), str(tmp_path))
    assert read(builder) == (rows, bad)
    source = builder.build()
    [part] = source.parts({})
    with pytest.raises(DataError, match=r"quote|columns"):
        list(source.read(part, 0, source.latest_position(part)))


def test_a_column_of_csv_whose_last_quote_is_closed(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_bytes(b'text\n"a\n\n"\n"\n"')
    schema = CsvSchema.builder().add_string_column("text").set_use_header().set_strict_headers().build()
    builder = FileSource.for_record_stream_format(CsvReaderFormat.for_schema(schema), str(tmp_path))
    assert read(builder) == ([("a\n\n",), ("\n",)], [])


def test_a_header_of_csv_that_does_not_end(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_bytes(b'"text\na\n')
    schema = CsvSchema.builder().add_string_column("text").set_use_header().set_strict_headers().build()
    source = FileSource.for_record_stream_format(CsvReaderFormat.for_schema(schema), str(tmp_path)).build()
    [part] = source.parts({})
    with pytest.raises(DataError, match=r"the first line of the file .*f\.csv cannot be read: cell 1 has a quote"):
        list(source.read(part, 0, source.latest_position(part)))


def test_rows_of_csv_as_a_schema_says(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_bytes(b"a|1;2|'x|y'\nb|3|NULL\n'c|4'\n'it''s'|5;six|\nNULL||z\n")
    schema = (
        CsvSchema.builder()
        .add_string_column("user")
        .add_array_column("numbers", ";", Types.LONG())
        .add_string_column("text")
        .set_column_separator("|")
        .set_quote_char("'")
        .set_null_value("NULL")
        .build()
    )
    rows, bad = read(FileSource.for_record_stream_format(CsvReaderFormat.for_schema(schema), str(tmp_path)))
    assert rows == [("a", [1, 2], "x|y"), ("b", [3], None), (None, [], "z")]
    assert bad == [(2, "'c|4'"), (3, "'it''s'|5;six|")]


def test_a_file_without_rows_has_no_bad_ones(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_bytes(b"user,ms,at\n")
    assert read(FileSource.csv(str(tmp_path), type_info=ROW)) == ([], [])


def test_a_column_that_is_missing_is_no_matter_of_single_rows(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("user,at\na,\n")
    with pytest.raises(DataError, match="does not have all columns"):
        read(FileSource.csv(str(tmp_path), type_info=ROW))


@pytest.mark.parametrize(
    ("name", "content"), [("f.csv", "user,ms,at\na,1,\nb,x,\n"), ("f.json", '{"ms": 1}\n{"ms": "x"}\n')]
)
def test_where_they_are_not_asked_for_the_error_says_how_the_job_would_go_on(
    tmp_path: Path, name: str, content: str
) -> None:
    (tmp_path / name).write_text(content)
    make = FileSource.csv if name.endswith("csv") else FileSource.json_lines
    source = make(str(tmp_path), type_info=ROW).build()
    [part] = source.parts({})
    with pytest.raises(DataError, match=r"the column 'ms' cannot be read as int64.*side_output_dead_letters"):
        list(source.read(part, 0, source.latest_position(part)))


LINES = st.lists(st.sampled_from(["good", "bad"]), max_size=200)


@given(LINES, st.sampled_from(["csv", "json"]))
def test_all_bad_rows_are_found_wherever_they_are(lines: list[str], kind: str) -> None:
    row = {"csv": lambda i, good: f"{i},{i if good else 'x'},", "json": _json}[kind]
    written = [row(i, one == "good") for i, one in enumerate(lines)]
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"f.{kind}"
        path.write_text("\n".join((["user,ms,at"] if kind == "csv" else []) + written) + "\n")
        make = FileSource.csv if kind == "csv" else FileSource.json_lines
        rows, bad = read(make(str(path), type_info=ROW))
    assert [ms for _, ms, _ in rows] == [i for i, one in enumerate(lines) if one == "good"]
    assert bad == [(i, written[i]) for i, one in enumerate(lines) if one == "bad"]


def _json(number: int, is_good: bool) -> str:
    return f'{{"user": "{number}", "ms": {number if is_good else "[]"}}}'
