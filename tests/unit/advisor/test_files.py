"""Files of each format, in the order of their paths or of a column."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventide.advisor import advise
from eventide.errors import DataError, ProgramError

ROWS = [("a", 1_000, 1), ("b", 5_000, 2), ("a", 400, 3), ("b", 4_000, 4), ("a", None, 5), ("a", 6_000, 6)]


def write(folder: Path, format: str, rows: list[tuple[str, int | None, int]] = ROWS, name: str = "part") -> Path:
    path = folder / f"{name}.{format}"
    if format == "parquet":
        columns = list(zip(*rows, strict=True))
        pq.write_table(pa.table(dict(zip(("device", "ts", "offset"), columns, strict=True))), path, row_group_size=2)
    elif format == "csv":
        path.write_text("device,ts,offset\n" + "".join(f"{d},{'' if t is None else t},{o}\n" for d, t, o in rows))
    else:
        lines = "".join(json.dumps({"device": d, "ts": t, "offset": o}) + "\n" for d, t, o in rows)
        path.write_bytes(gzip.compress(lines.encode()) if format.endswith("gz") else lines.encode())
    return path


@pytest.mark.parametrize("format", ["parquet", "csv", "json", "jsonl", "ndjson.gz"])
def test_each_format_says_the_same(format: str, tmp_path: Path) -> None:
    found = advise(write(tmp_path, format), time="ts", split_by="device").disorder
    assert (found.rows, found.nulls, sorted(found.splits)) == (5, 1, ["a", "b"])
    assert (found.own.longest_ms, found.whole.longest_ms) == (1_000, 4_600)


def test_files_of_a_directory_follow_each_other_by_path(tmp_path: Path) -> None:
    for name, rows in (("2", ROWS[2:4]), ("1", ROWS[:2]), ("3", ROWS[4:])):
        write(tmp_path, "csv", rows, name)
    found = advise(tmp_path, time="ts", split_by="device").disorder
    assert (found.own.longest_ms, found.whole.longest_ms, found.nulls) == (1_000, 4_600, 1)


def test_the_order_of_arrival_may_be_a_column(tmp_path: Path) -> None:
    paths = [write(tmp_path, "parquet", rows, str(i)) for i, rows in enumerate((ROWS[::-2], ROWS[::2]))]
    found = advise(paths, time="ts", split_by="device", order_by="offset").disorder
    assert (found.own.longest_ms, found.whole.longest_ms, found.has_clock) == (1_000, 4_600, False)


def test_several_columns_tell_splits_apart_and_null_is_a_value(tmp_path: Path) -> None:
    pq.write_table(pa.table({"ts": [1, 2, 3], "a": ["x", "x", None], "b": [1, 2, 2]}), tmp_path / "a.parquet")
    assert set(advise(tmp_path, time="ts", split_by=["a", "b"]).disorder.splits) == {"x, 1", "x, 2", "null, 2"}


def test_a_name_that_says_no_format_needs_one(tmp_path: Path) -> None:
    path = write(tmp_path, "csv").rename(tmp_path / "readings.txt")
    with pytest.raises(ProgramError, match="does not end with the name of a format"):
        advise(path, time="ts")
    assert advise(path, time="ts", format="csv").disorder.rows == 5


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    path = write(tmp_path, "csv")
    with pytest.raises(ProgramError, match="has no column 'time'; it has device, ts, offset"):
        advise(path, time="time")
    with pytest.raises(ProgramError, match="there is nothing at"):
        advise(tmp_path / "nowhere", time="ts")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ProgramError, match="there are no files below"):
        advise(tmp_path / "empty", time="ts")
    with pytest.raises(ProgramError, match="format: expected one of"):
        advise(path, time="ts", format="xml")
    with pytest.raises(ProgramError, match="name the column of the event time"):
        advise(path)
    with pytest.raises(ProgramError, match="lose: expected a share"):
        advise(path, time="ts", lose=1)


def test_a_column_of_nulls_is_nothing_to_measure(tmp_path: Path) -> None:
    pq.write_table(pa.table({"ts": pa.array([None, None], pa.int64())}), tmp_path / "a.parquet")
    with pytest.raises(DataError, match="the column 'ts' is null in all 2 rows"):
        advise(tmp_path, time="ts")


def test_an_order_with_nulls_is_none(tmp_path: Path) -> None:
    pq.write_table(pa.table({"ts": [1, 2], "at": [1, None]}), tmp_path / "a.parquet")
    with pytest.raises(DataError, match="'at' is null in 1 rows"):
        advise(tmp_path, time="ts", order_by="at")


def test_what_goes_wrong_in_a_reading_thread_reaches_the_caller(tmp_path: Path) -> None:
    write(tmp_path, "csv", ROWS, "1")
    (tmp_path / "2.csv").write_text("device,ts,offset\na,soon,1\n")
    with pytest.raises(DataError, match=r"2\.csv: the column 'ts' cannot be read as int64"):
        advise(tmp_path, time="ts")
