"""The files that one task writes for a sink hold its rows once, in their order, in the folders of their fields."""

from datetime import date, datetime
from decimal import Decimal
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow.fs import LocalFileSystem

from eventide.connectors.file_system import part_writer
from eventide.connectors.file_system.part_writer import ParquetFiles, TaskParts, by_folder
from eventide.connectors.file_system.sink import PartFiles, bucket_of
from eventide.errors import StorageError
from support.disks import Disk, NthChange, refuse

ROWS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "", None, "é/="]),
        st.sampled_from([1, -1, None, 2**62]),
        st.sampled_from([date(1, 1, 1), date(2026, 5, 1), None]),
        st.integers(0, 1000),
    ),
    max_size=60,
)
NAMES = ["shop", "number", "day", "price"]
KINDS = [pa.string(), pa.int64(), pa.date32(), pa.int64()]


def batch(rows):
    columns = zip(*rows, strict=True) if rows else [[]] * len(NAMES)
    return pa.record_batch([pa.array(column, kind) for column, kind in zip(columns, KINDS, strict=True)], names=NAMES)


def expected(rows, buckets):
    """The folders and what they hold, row by row."""
    found = {}
    for row in rows:
        named = dict(zip(NAMES, row, strict=True))
        folder = bucket_of({name: named[name] for name in buckets}) + "/" if buckets else ""
        found.setdefault(folder, []).append({name: named[name] for name in NAMES if name not in buckets})
    return found


BUCKETS = st.sampled_from([[], ["shop"], ["day", "shop"], ["number", "day", "shop"]])


def test_characters_that_no_name_of_a_directory_has_are_escaped():
    assert bucket_of({"a/b": "\0\x01=ü"}) == "a%2Fb=%00%01%3Dü"


@given(ROWS, BUCKETS)
def test_rows_are_in_their_folders_in_their_order(rows, buckets):
    found = {}
    for folder, some in by_folder(pa.Table.from_batches([batch(rows)]), buckets):
        found.setdefault(folder, []).extend(some.to_pylist())
    assert {folder: some for folder, some in found.items() if some} == expected(rows, buckets)


@given(st.lists(ROWS, max_size=4), BUCKETS, st.sampled_from([1, 300, 1 << 20]), st.sampled_from([0, 1, 100]))
def test_the_files_of_a_task_hold_its_rows_once(tmp_path_factory, batches, buckets, group_bytes, most_open):
    place = tmp_path_factory.mktemp("out")
    with patch.multiple(part_writer, _GROUP_BYTES=group_bytes, _MOST_OPEN=most_open):
        parts = TaskParts(PartFiles.at(str(place)), "stage", ParquetFiles(), buckets)
        for rows in batches:
            parts.add(batch(rows))
        names = parts.finish()
    found = {}
    for name in names:
        rows = pq.read_table(place / "stage" / name, partitioning=None).to_pylist()
        assert rows
        found.setdefault(name[: name.rfind("/") + 1], []).extend(rows)
    assert found == expected([row for rows in batches for row in rows], buckets)
    assert len(names) == len({*names})
    if most_open == 100:
        assert len(names) == len(found)


def test_a_task_without_rows_makes_nothing(tmp_path):
    parts = TaskParts(PartFiles.at(str(tmp_path)), "stage", ParquetFiles(), [])
    parts.add(batch([]))
    assert parts.finish() == []
    assert [*tmp_path.iterdir()] == []


def test_many_folders_need_few_open_files(tmp_path):
    disk = Disk(lambda what, path: None)
    parts = TaskParts(PartFiles(disk, str(tmp_path)), "stage", ParquetFiles(), ["number"])
    open_at_once = []
    disk.before = lambda what, path: what == "open" and open_at_once.append(len(parts._open) + 1)
    parts.add(batch([(None, number, None, number) for number in range(3 * part_writer._MOST_OPEN)]))
    names = parts.finish()
    assert len(open_at_once) == len(names) == 3 * part_writer._MOST_OPEN
    assert max(open_at_once) == part_writer._MOST_OPEN


def test_the_files_of_a_folder_are_in_the_order_of_their_rows(tmp_path):
    parts = TaskParts(PartFiles.at(str(tmp_path)), "stage", ParquetFiles(), ["shop"])
    with patch.multiple(part_writer, _GROUP_BYTES=1, _MOST_OPEN=1):
        for number in range(20):
            parts.add(batch([("b", 0, None, number), ("a", 0, None, number)]))
        names = parts.finish()
    numbers = [pq.read_table(tmp_path / "stage" / name, partitioning=None)["price"][0].as_py() for name in names]
    assert [name[:7] for name in names] == ["shop=a/"] * 20 + ["shop=b/"] * 20
    assert numbers == [*range(20), *range(20)]


@pytest.mark.parametrize("number", range(4))  # a folder is made, a file is opened, written, and completed
def test_a_file_that_cannot_be_written_is_an_error_of_storage(tmp_path, number):
    parts = TaskParts(PartFiles(Disk(NthChange(number, refuse)), str(tmp_path)), "stage", ParquetFiles(), [])
    parts.add(batch([("a", 1, None, 1)]))
    with pytest.raises(StorageError, match=r"/stage cannot be written: .*No space left on device"):
        parts.finish()
    parts.close()


class Streams(LocalFileSystem):
    """A local disk that knows the streams that it has opened."""

    def __init__(self):
        super().__init__()
        self.opened = []

    def open_output_stream(self, path, **options):
        self.opened.append(super().open_output_stream(path, **options))
        return self.opened[-1]


def test_a_task_that_fails_lets_go_of_its_files(tmp_path):
    disk = Streams()
    with patch.object(part_writer, "_GROUP_BYTES", 1):
        parts = TaskParts(PartFiles(disk, str(tmp_path)), "stage", ParquetFiles(), ["shop"])
        parts.add(batch([("a", 1, None, 1), ("b", 1, None, 1)]))
        parts.close()
    assert [stream.closed for stream in disk.opened] == [True, True]


@pytest.mark.parametrize(
    ("options", "compression"),
    [({}, "zstd"), ({"compression": "GZIP"}, "gzip"), ({"parquet.compression": "none"}, "none")],
)
def test_compression_is_that_of_the_options_or_of_the_session(options, compression):
    assert ParquetFiles.of(options, compression="zstd") == ParquetFiles(compression)


@pytest.mark.parametrize(
    "options", [{"parquet.bloom.filter.enabled#shop": "true"}, {"compression": "lzo"}, {"maxRecordsPerFile": "3"}]
)
def test_options_that_spark_alone_has_are_left_to_it(options):
    assert ParquetFiles.of(options) is None


@pytest.mark.parametrize("timestamps", ["INT96", "TIMESTAMP_MICROS"])
@pytest.mark.parametrize(
    "kind",
    [
        pa.timestamp("us"),
        pa.list_(pa.timestamp("us")),
        pa.struct([("at", pa.timestamp("us"))]),
        pa.map_(pa.string(), pa.timestamp("us")),
    ],
)
def test_points_in_time_are_in_utc_on_every_level(tmp_path, timestamps, kind):
    at = datetime(1969, 12, 31, 23, 59, 59, 999_000)  # noqa: DTZ001 - as columns have them
    one = {"struct": {"at": at}, "list": [at], "map": [("k", at)]}.get(str(kind).partition("<")[0], at)
    parts = TaskParts(PartFiles.at(str(tmp_path)), "stage", ParquetFiles(timestamps=timestamps), [])
    parts.add(pa.record_batch([pa.array([one, None], kind)], names=["value"]))
    (name,) = parts.finish()
    with pq.ParquetFile(tmp_path / "stage" / name, coerce_int96_timestamp_unit="us") as file:
        column = file.schema.column(len(file.schema) - 1)
        found = file.read().cast(pa.schema([("value", kind)])).column(0).to_pylist()
    assert found == [one, None]
    assert (column.physical_type == "INT96") == (timestamps == "INT96")
    assert ("isAdjustedToUTC=true" in str(column.logical_type)) == (timestamps != "INT96")


def test_decimals_are_numbers_where_spark_has_them_as_numbers(tmp_path):
    kinds = [pa.decimal128(digits, 2) for digits in (9, 18, 19, 38)]
    parts = TaskParts(PartFiles.at(str(tmp_path)), "stage", ParquetFiles(), [])
    parts.add(pa.record_batch([pa.array([Decimal("-1.10")], kind) for kind in kinds], names=["a", "b", "c", "d"]))
    (name,) = parts.finish()
    with pq.ParquetFile(tmp_path / "stage" / name) as file:
        physical = [file.schema.column(i).physical_type for i in range(4)]
        assert file.read().to_pylist() == [dict.fromkeys("abcd", Decimal("-1.10"))]
    assert physical == ["INT32", "INT64", "FIXED_LEN_BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"]
