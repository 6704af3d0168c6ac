"""Columns that are brought to another type: nothing of a value is lost on the way."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventide.common import Types
from eventide.common.typeinfo.base import brought_to
from eventide.datastream.connectors import FileSource
from eventide.errors import DataError
from eventide.runtime.sources.splits import columns_of

NAMED = pa.struct([("x", pa.int32()), ("y", pa.string())])
PLACES = pa.struct([("f0", pa.int64()), ("f1", pa.string())])
ROWS = [{"x": 1, "y": "a"}, None, {"x": 2, "y": None}]
FIVE_O_CLOCK = dt.datetime(2026, 5, 1, 5, tzinfo=dt.UTC).replace(tzinfo=None)


@pytest.mark.parametrize(
    ("values", "before", "after", "expected"),
    [
        (ROWS, NAMED, PLACES, [{"f0": 1, "f1": "a"}, None, {"f0": 2, "f1": None}]),
        (ROWS, NAMED, pa.struct([("y", pa.string())]), [{"y": "a"}, None, {"y": None}]),
        (
            [ROWS, None, []],
            pa.list_(NAMED),
            pa.list_(PLACES),
            [[{"f0": 1, "f1": "a"}, None, {"f0": 2, "f1": None}], None, []],
        ),
        ([[1], None], pa.large_list(pa.int32()), pa.list_(pa.int64()), [[1], None]),
        (
            [[("k", ROWS[0])], None],
            pa.map_(pa.string(), NAMED),
            pa.map_(pa.string(), PLACES),
            [[("k", {"f0": 1, "f1": "a"})], None],
        ),
        ([FIVE_O_CLOCK.replace(hour=0), None], pa.timestamp("us"), pa.date32(), [dt.date(2026, 5, 1), None]),
        ([dt.datetime(1970, 1, 1, 5, tzinfo=dt.UTC)], pa.timestamp("us", "UTC"), pa.time64("us"), [dt.time(5)]),
        ([1, 0, None], pa.int64(), pa.bool_(), [True, False, None]),
        ([0.5, None, float("inf")], pa.float64(), pa.float32(), [0.5, None, float("inf")]),
    ],
)
def test_a_column_is_brought_to_a_type_that_holds_it(values, before, after, expected):
    column = pa.array([*values[:1], *values], before)
    for one in (column.slice(1), pa.array(values, before)):
        found = brought_to(one, after)
        found.validate(full=True)
        assert (found.type, found.to_pylist()) == (after, expected)


@pytest.mark.parametrize(
    ("value", "before", "after", "why"),
    [
        (ROWS[0], NAMED, pa.struct([("x", pa.int64()), ("z", pa.string())]), r"it has the fields \['x', 'y'\], not"),
        ([ROWS[0]], pa.list_(NAMED), pa.list_(pa.struct([("f0", pa.int64())])), "it has the fields"),
        (FIVE_O_CLOCK, pa.timestamp("us"), pa.date32(), r"datetime\(2026, 5, 1, 5, 0\) does not fit"),
        (FIVE_O_CLOCK, pa.timestamp("ns"), pa.time64("us"), "does not fit"),
        (0.5, pa.float64(), pa.bool_(), "0.5 does not fit"),
        (2, pa.int64(), pa.bool_(), "2 does not fit"),
        (1e300, pa.float64(), pa.float32(), r"1e\+300 does not fit"),
        ([0.5], pa.list_(pa.float64()), pa.list_(pa.bool_()), "0.5 does not fit"),
    ],
)
def test_what_would_lose_something_is_an_error(value, before, after, why):
    with pytest.raises(pa.ArrowInvalid, match=why):
        brought_to(pa.array([None, value], before), after)


def test_fields_within_a_column_of_a_parquet_file_and_of_a_record_batch(tmp_path):
    batch = pa.RecordBatch.from_pydict({"user": ["a"], "place": pa.array([ROWS[0]], NAMED)})
    pq.write_table(pa.Table.from_batches([batch]), tmp_path / "f.parquet")
    by_place = Types.ROW_NAMED(["user", "place"], [Types.STRING(), Types.TUPLE([Types.LONG(), Types.STRING()])])
    assert columns_of(batch, by_place, 0).values.to_pylist() == [{"user": "a", "place": {"f0": 1, "f1": "a"}}]
    source = FileSource.parquet(str(tmp_path), type_info=by_place).build()
    [part] = source.parts({})
    [read] = source.read(part, 0, source.latest_position(part))
    assert read.to_pylist() == [{"user": "a", "place": {"f0": 1, "f1": "a"}}]
    misspelt = Types.ROW_NAMED(
        ["user", "place"], [Types.STRING(), Types.ROW_NAMED(["x", "Y"], [Types.LONG(), Types.STRING()])]
    )
    with pytest.raises(DataError, match=r"it has the fields \['x', 'y'\], not \['x', 'Y'\]"):
        columns_of(batch, misspelt, 0)
    source = FileSource.parquet(str(tmp_path), type_info=misspelt).build()
    with pytest.raises(DataError, match=r"column 'place' cannot be read as .* it has the fields \['x', 'y'\]"):
        list(source.read(part, 0, source.latest_position(part)))
