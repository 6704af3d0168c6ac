"""Columns that a Parquet or ORC file does not have are None, as in Flink, with a warning."""

import pickle
import warnings

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from eventide.common import Row, Types, WatermarkStrategy
from eventide.datastream.connectors.file_system import FileSource
from eventide.errors import DataError
from eventide.testing import local_environment

INNER = Types.ROW_NAMED(["x"], [Types.LONG()])
DECLARED = Types.ROW_NAMED(
    ["user", "ms", "tags", "place", "at"],
    [Types.STRING(), Types.LONG(), Types.LIST(Types.STRING()), INNER, Types.SQL_TIMESTAMP()],
)
NO_MS = r"files at .* have no column 'ms', so it is None in their rows; if it has another name there, declare that one"

FORMATS = {"parquet": "Parquet", "orc": "ORC"}

both_formats = pytest.mark.parametrize("name", FORMATS)


def write(path, table):
    (pq.write_table if path.suffix == ".parquet" else orc.write_table)(pa.table(table), path)


def source_of(path, name, type_info):
    build = {"parquet": FileSource.parquet, "orc": FileSource.orc}[name]
    return build(path, type_info=type_info).build()


def rows(source):
    """The rows of all files, with the declared Arrow types."""
    source = pickle.loads(pickle.dumps(source))
    found = []
    for part in source.parts({}):
        for batch in source.read(part, 0, source.latest_position(part)):
            assert list(batch.schema) == list(source.get_produced_type().arrow_type())
            found += [tuple(row.values()) for row in batch.to_pylist()]
    return found


@both_formats
def test_a_column_that_a_file_does_not_have_is_none_of_its_declared_type(tmp_path, name):
    write(tmp_path / f"old.{name}", {"more": [0.5, 1.5], "ms": [1, 2]})
    with pytest.warns(UserWarning, match=r"have no column '\w+', so it is None in their rows") as caught:
        assert rows(source_of(tmp_path, name, DECLARED)) == [(None, 1, None, None, None), (None, 2, None, None, None)]
    assert [str(one.message).partition(", so")[0] for one in caught] == [
        f"some {FORMATS[name]} files at {tmp_path} have no column {column!r}"
        for column in ("user", "tags", "place", "at")
    ]


@both_formats
def test_files_of_before_and_after_a_new_column_are_read_together(tmp_path, name):
    write(tmp_path / f"a.{name}", {"user": ["a"]})
    write(tmp_path / f"b.{name}", {"ms": [2], "user": ["b"]})
    pair = Types.ROW_NAMED(["user", "ms"], [Types.STRING(), Types.LONG()])
    source = source_of(tmp_path, name, pair)
    stream = local_environment().from_source(source, WatermarkStrategy.no_watermarks(), "files")
    with pytest.warns(UserWarning, match=NO_MS):
        assert sorted(stream.execute_and_collect(), key=lambda row: row.user) == [
            Row(user="a", ms=None),
            Row(user="b", ms=2),
        ]


@both_formats
def test_a_program_that_needs_only_a_missing_column_still_has_every_row(tmp_path, name):
    """Columns that no function reads are not read, so that none may be left that the file has."""
    write(tmp_path / f"a.{name}", {"more": [1, 2, 3], "user": ["a", "b", "c"]})
    pair = Types.ROW_NAMED(["user", "ms"], [Types.STRING(), Types.LONG()])
    with pytest.warns(UserWarning, match=NO_MS):
        assert rows(source_of(tmp_path, name, pair).with_columns(["ms"])) == [(None,)] * 3


@both_formats
def test_a_file_with_none_of_the_declared_columns_is_refused(tmp_path, name):
    write(tmp_path / f"a.{name}", {"USER": ["a"], "more": [1]})
    pair = Types.ROW_NAMED(["user", "ms"], [Types.STRING(), Types.LONG()])
    with pytest.raises(DataError, match=rf"a\.{name} has no column 'user' or 'ms'; it has USER, more"):
        rows(source_of(tmp_path, name, pair))
    by_position = Types.TUPLE([Types.STRING(), Types.INT(), Types.INT()])
    with pytest.raises(DataError, match=rf"a\.{name} has no column 'f2'; it has USER, more"):
        rows(source_of(tmp_path, name, by_position))


def test_a_missing_column_is_told_once_for_each_path_of_a_source(tmp_path):
    pair = Types.ROW_NAMED(["user", "ms"], [Types.STRING(), Types.LONG()])
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        for file in ("a", "b"):
            write(tmp_path / folder / f"{file}.parquet", {"user": [file]})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        assert len(rows(FileSource.parquet(tmp_path / "one", tmp_path / "two", type_info=pair).build())) == 4
    assert [str(one.message).partition(" have")[0] for one in caught] == [
        f"some Parquet files at {tmp_path / folder}" for folder in ("one", "two")
    ]


@both_formats
def test_a_row_within_a_column_must_have_its_fields(tmp_path, name):
    write(tmp_path / f"a.{name}", {"place": [{"x": 1}]})
    place = Types.ROW_NAMED(["x", "y"], [Types.LONG(), Types.STRING()])
    with pytest.raises(DataError, match=r"column 'place' cannot be read as .* it has the fields \['x'\]"):
        rows(source_of(tmp_path, name, Types.ROW_NAMED(["place"], [place])))
