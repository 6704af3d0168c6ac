"""One hash of keys: equal keys are in one subtask, whether they travel one by one, in lists, or in columns."""

import dataclasses
import datetime as dt
import enum
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.common import Row
from eventide.errors import DataError
from eventide.runtime.elements.keys import hashes_of, hashes_of_columns, key_group, owners, stable_hash, subtask_of


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Stage(enum.IntEnum):
    LOW = 1


@dataclasses.dataclass(frozen=True)
class Station:
    name: str
    number: float


ZONES = st.integers(-23 * 60, 23 * 60).map(lambda minutes: dt.timezone(dt.timedelta(minutes=minutes)))
INTEGERS = st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1) | st.sampled_from([2**61 - 1, 1 - 2**61, 2**61])
FLOATS = st.floats(allow_nan=False) | st.integers(-3, 3).map(float) | st.just(-0.0)
DECIMALS = st.decimals(-100, 100, places=2) | st.integers(-3, 3).map(Decimal) | st.just(Decimal("-0.00"))
MOMENTS = st.integers(-(2**51), 2**52).map(lambda n: dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=n))  # noqa: DTZ001

COLUMNS = [
    (st.integers(-128, 127), pa.int8()),
    (st.integers(-(2**31), 2**31 - 1), pa.int32()),
    (INTEGERS, pa.int64()),
    (st.integers(0, 2**64 - 1) | st.just(2**61 - 1), pa.uint64()),
    (FLOATS, pa.float64()),
    (st.floats(allow_nan=False, width=32), pa.float32()),
    (st.booleans(), pa.bool_()),
    (DECIMALS, pa.decimal128(20, 4)),
    (st.text(max_size=5), pa.string()),
    (st.text(max_size=5), pa.large_string()),
    (st.binary(max_size=5), pa.binary()),
    (st.dates(), pa.date32()),
    (st.times(), pa.time64("us")),
    (st.times().map(lambda time: time.replace(microsecond=0)), pa.time32("s")),
    (MOMENTS, pa.timestamp("us")),
    (MOMENTS, pa.timestamp("ns")),
    (
        st.datetimes(timezones=ZONES, max_value=dt.datetime(9000, 1, 1)).filter(lambda t: t.year > 1),  # noqa: DTZ001
        pa.timestamp("us", tz="UTC"),
    ),
    (st.timedeltas(dt.timedelta(days=-9), dt.timedelta(days=9)), pa.duration("us")),
]
SCALARS = st.one_of(
    *(values for values, _ in COLUMNS),
    st.none(),
    st.integers(),
    st.fractions(),
    st.complex_numbers(allow_nan=False),
    st.sampled_from([*Color, *Stage]),
    st.uuids(),
    st.characters(categories=["Cs"]),
    st.builds(Station, st.text(max_size=2), FLOATS),
)
KEYS = st.recursive(
    SCALARS,
    lambda keys: st.one_of(
        st.lists(keys, max_size=3).map(tuple),
        st.lists(keys, max_size=3).map(lambda fields: Row(*fields)),
        st.frozensets(keys, max_size=3),
    ),
    max_leaves=4,
)


def equals_of(key):
    """Keys of other types that equal a key."""
    if isinstance(key, int | float | Decimal | Fraction):
        found = [Fraction(key)] if abs(key) != float("inf") else []
        for kind in (int, float, Decimal, bool, complex):
            with suppress(TypeError, ValueError, OverflowError):
                found.append(kind(key))
        return [other for other in found if other == key]
    if type(key) is tuple:
        return [tuple(equals_of(field)[-1] if equals_of(field) else field for field in key)]
    if isinstance(key, dt.datetime) and key.tzinfo is not None and 1 < key.year < 9999:
        return [key.astimezone(dt.timezone(dt.timedelta(hours=5)))]
    return []


@settings(max_examples=4 * settings().max_examples)
@given(KEYS)
def test_keys_that_are_equal_have_one_hash(key):
    for other in equals_of(key):
        assert other == key
        assert stable_hash(other) == stable_hash(key)
        assert hash(other) == hash(key)


@settings(max_examples=4 * settings().max_examples)
@given(st.lists(KEYS, max_size=20) | SCALARS.map(lambda key: [key] * 20))
def test_a_list_of_keys_has_the_hashes_of_each(keys):
    assert hashes_of(keys).tolist() == [stable_hash(key) for key in keys]


@pytest.mark.parametrize(("values", "kind"), COLUMNS, ids=[str(kind) for _, kind in COLUMNS])
@settings(max_examples=50)
@given(data=st.data())
def test_a_list_of_one_type_and_a_column_have_the_hashes_of_each(values, kind, data):
    keys = data.draw(st.lists(values, min_size=9, max_size=15))
    expected = [stable_hash(key) for key in keys]
    assert hashes_of(keys).tolist() == expected
    column = pa.array([*keys, None], kind)
    assert hashes_of_columns([column]).tolist() == [*expected, stable_hash(None)]
    assert hashes_of_columns([column.slice(3)]).tolist() == [*expected[3:], stable_hash(None)]


@settings(max_examples=2 * settings().max_examples)
@given(st.data(), st.integers(1, 3), st.integers(1, 7), st.sampled_from([7, 128, 32_768]))
def test_rows_of_columns_are_in_the_subtask_of_their_tuples(data, fields, parallelism, max_parallelism):
    columns = []
    for _ in range(fields):
        values, kind = data.draw(st.sampled_from(COLUMNS))
        columns.append(pa.array(data.draw(st.lists(values | st.none(), min_size=10, max_size=10)), kind))
    rows = list(zip(*(column.to_pylist() for column in columns), strict=True))
    keys = rows if fields > 1 else [key for (key,) in rows]
    assert hashes_of(keys).tolist() == hashes_of_columns(columns).tolist()
    expected = [subtask_of(key_group(key, max_parallelism), max_parallelism, parallelism) for key in keys]
    found = owners(columns, max_parallelism, parallelism)
    assert ([0] * 10 if found is None else found.tolist()) == expected


def test_nan_is_one_key_in_a_column_and_none_elsewhere():
    nan = float("nan")
    hashes = hashes_of_columns([pa.array([nan, -nan, float("inf") - float("inf"), 1.5])]).tolist()
    assert len(set(hashes[:3])) == 1
    assert hashes[3] != hashes[0]
    for keys in ([nan] * 20, [*range(20), nan], [Decimal("nan")] * 20, [("a", nan)] * 20):
        with pytest.raises(DataError, match="not equal to itself"):
            hashes_of(keys)
