"""Equal keys have equal hashes, in every process, one by one and in columns; other keys are refused."""

import dataclasses
import datetime as dt
import enum
import os
import subprocess
import sys
import uuid
from collections import namedtuple
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.common import Duration, Row, Types
from eventide.datastream.window import GlobalWindow, TimeWindow
from eventide.errors import DataError
from eventide.runtime.elements.elements import columns_of_fields
from eventide.runtime.elements.keys import (
    hashes_of,
    hashes_of_columns,
    hashes_of_parts,
    key_column,
    key_group,
    owners,
    stable_hash,
    subtask_of,
)

CEST = dt.timezone(dt.timedelta(hours=2))
Pair = namedtuple("Pair", "a b")


class Color(enum.Enum):
    RED = 1


class Number(enum.IntEnum):
    ONE = 1


class Word(str, enum.Enum):  # noqa: UP042 - as in programs older than StrEnum
    ONE = "one"


@dataclasses.dataclass(frozen=True)
class Station:
    name: str
    number: int
    note: str = dataclasses.field(default="", compare=False)


@dataclasses.dataclass(eq=False)
class Identity:
    number: int


@dataclasses.dataclass
class Mutable:
    number: int


@dataclasses.dataclass(frozen=True)
class ById:
    number: int
    name: str

    def __eq__(self, other):
        return self.number == other.number

    def __hash__(self):
        return hash(self.number)


@dataclasses.dataclass(frozen=True, eq=False)
class ByFieldsOfItsBase(Station):
    town: str = ""


@dataclasses.dataclass(frozen=True, slots=True, order=True, kw_only=True)
class Place(Station):
    town: str = ""

    def __hash__(self):
        return hash(self.town)


class Plain(Station):
    pass


class Access(enum.Flag):
    READ = 1
    WRITE = 2


EQUAL = [
    (1, 1.0, True, Decimal("1.00"), Fraction(1), 1 + 0j, Number.ONE, np.int64(1), np.float32(1), np.bool_(True)),
    (0, -0.0, False, Decimal("-0")),
    (2**64, float(2**64), Decimal(2**64)),
    ("one", Word.ONE, np.str_("one")),
    (("a", 1), ("a", 1.0), Pair("a", True)),
    (Row("a", 1), Row("a", 1.0)),
    (Row(a=1, b=2), Row(b=2, a=1)),
    (Station("JFK", 1, "big"), Station("JFK", 1)),
    (Place(name="JFK", number=1, town="NYC"), Place(name="JFK", number=1, town="NYC", note="big")),
    (Plain("JFK", 1, "big"), Plain("JFK", 1.0)),
    (Access(0), Access.READ & Access.WRITE),
    (Access.READ | Access.WRITE, Access(3)),
    (frozenset({"a", "b", 1}), frozenset({1.0, "b", "a"})),
    (dt.datetime(2020, 1, 1, 12, tzinfo=dt.UTC), dt.datetime(2020, 1, 1, 14, tzinfo=CEST)),
    (dt.time(12, tzinfo=dt.UTC), dt.time(14, tzinfo=CEST)),
    (dt.timedelta(days=1), dt.timedelta(hours=24)),
    (TimeWindow(0, 10), TimeWindow(0, 10)),
    (GlobalWindow(), GlobalWindow.get()),
    (None, None),
]


@pytest.mark.parametrize("keys", EQUAL, ids=lambda keys: type(keys[0]).__name__)
def test_equal_keys_have_equal_hashes(keys):
    assert all(key == keys[0] for key in keys)
    assert len({stable_hash(key) for key in keys}) == 1


def test_different_keys_mostly_have_different_hashes():
    keys = [
        *range(50),
        *map(str, range(50)),
        None,
        b"bytes",
        (1,),
        (1, 2),
        ((1,), 2),
        (),
        "",
        Color.RED,
        *map(Access, range(4)),
        uuid.UUID(int=1),
    ]
    keys += [dt.date(2020, 1, 1), dt.datetime(2020, 1, 1, tzinfo=dt.UTC), frozenset({1}), Duration.of_millis(1)]
    assert len({stable_hash(key) for key in keys}) == len(keys)


@given(
    st.one_of(
        st.integers(),
        st.floats(allow_nan=False),
        st.text(),
        st.binary(),
        st.tuples(st.integers(), st.text()),
        st.none(),
    )
)
def test_a_hash_has_64_bits_and_the_key_group_is_within_bounds(key):
    assert 0 <= stable_hash(key) < 2**64
    assert 0 <= key_group(key, 7) < 7


SAMPLE = (
    "[stable_hash(k) for k in ['ä', 1, -1, 2.5, None, b'x', ('a', (1, None)), frozenset('abc'), Decimal('1.5'), "
    "dt.date(2020, 1, 1), uuid.UUID(int=5), Row(a='x', b='y')]]"
)


def test_hashes_are_the_same_in_a_process_with_another_hash_seed():
    imports = "import datetime as dt, uuid\nfrom decimal import Decimal\nfrom eventide.common import Row\n"
    imports += "from eventide.runtime.elements.keys import stable_hash\n"
    env = {**os.environ, "PYTHONHASHSEED": "12345"}
    found = subprocess.run(
        [sys.executable, "-c", f"{imports}print({SAMPLE})"], env=env, capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == str(eval(SAMPLE, globals()))


@pytest.mark.parametrize(
    "key",
    [object(), lambda: 1, [1], {"a": 1}, {1}, bytearray(b"x"), Types.INT, Identity(1), Station, ("a", [1])],
    ids=lambda key: repr(key).partition(" at 0x")[0],
)
def test_a_key_without_a_stable_hash_is_refused_with_advice(key):
    with pytest.raises(DataError, match=r"no hash that is the same in every process; let the key selector return text"):
        stable_hash(key)


@pytest.mark.parametrize("key", [ById(1, "a"), ("a", ById(1, "a")), ByFieldsOfItsBase("JFK", 1)], ids=repr)
def test_a_dataclass_that_compares_in_its_own_way_is_refused_because_equal_keys_may_differ_in_their_fields(key):
    with pytest.raises(DataError, match=r"whose __eq__ does not compare its fields.*leave __eq__ to the dataclass"):
        stable_hash(key)


@pytest.mark.parametrize("key", [float("nan"), Decimal("nan"), ("a", float("nan")), np.float64("nan")], ids=repr)
def test_nan_is_refused_because_it_equals_nothing(key):
    with pytest.raises(DataError, match=r"not equal to itself.*let the key selector return"):
        stable_hash(key)


@given(st.integers(1, 300), st.data())
def test_each_subtask_owns_a_contiguous_range_of_key_groups(max_parallelism, data):
    parallelism = data.draw(st.integers(1, max_parallelism))
    owners = [subtask_of(group, max_parallelism, parallelism) for group in range(max_parallelism)]
    assert owners == sorted(owners)
    assert set(owners) == set(range(parallelism))
    sizes = [owners.count(subtask) for subtask in range(parallelism)]
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("units", [("D", "s", "us", "ns"), ("M", "D"), ("Y", "s")])
def test_equal_times_of_numpy_in_several_units_hash_equal(units):
    moments = [np.datetime64("2020-01-01", unit) for unit in units]
    assert len({stable_hash(moment) for moment in moments}) == len(set(moments)) == 1


def test_times_of_numpy_hash_as_those_of_python():
    moment, second = dt.datetime(2020, 1, 1, 7), dt.timedelta(seconds=1)  # noqa: DTZ001
    assert {stable_hash(np.datetime64(moment, unit)) for unit in ("s", "ns")} == {stable_hash(moment)}
    assert {stable_hash(np.timedelta64(second, unit)) for unit in ("s", "ns")} == {stable_hash(second)}
    assert stable_hash(np.timedelta64(1, "Y")) == stable_hash(np.timedelta64(12, "M"))


@pytest.mark.parametrize("nat", [pd.NaT, np.datetime64("NaT"), np.datetime64("NaT", "ns"), np.timedelta64("NaT", "s")])
def test_a_time_that_is_none_is_no_key(nat):
    with pytest.raises(DataError, match="is not equal to itself"):
        stable_hash(nat)


COLUMNS = {
    "text": pa.array(["a", "", "ä", "user-1", None, "a"]),
    "bytes": pa.array([b"a", b"", b"\xff", b"b", None, b"a"]),
    "long": pa.array([1, 0, -1, 2**63 - 1, None, 1]),
    "small": pa.array([1, 0, -1, 100, None, 1], pa.int8()),
    "unsigned": pa.array([1, 0, 2, 2**64 - 1, None, 1], pa.uint64()),
    "double": pa.array([0.0, float("nan"), 1.5, -1.5, None, -0.0]),
    "truth": pa.array([True, False, True, False, None, True]),
    "decimal": pa.array([Decimal("1.50"), Decimal("0"), Decimal("-1"), Decimal("9"), None, Decimal("1.5")]),
    "day": pa.array([dt.date(2020, 1, i) for i in range(1, 5)] + [None, dt.date(2020, 1, 1)]),
    "moment": pa.array([0, 1, 2, 3, None, 0], pa.timestamp("us", tz="UTC")),
    "time": pa.array([dt.time(i) for i in range(4)] + [None, dt.time(0)]),
}


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS.keys())
def test_equal_keys_have_one_hash_and_a_slice_has_those_of_the_whole(column):
    hashes = hashes_of_columns([pa.chunked_array([column])]).tolist()
    assert hashes[0] == hashes[5]
    assert len(set(hashes)) == len(set(hashes[:5])) >= 3
    assert hashes_of_columns([pa.chunked_array([column.slice(2)])]).tolist() == hashes[2:]
    parts = pa.chunked_array([column.slice(0, 3), column.slice(3)])
    assert hashes_of_columns([parts]).tolist() == hashes


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS.keys())
def test_a_column_has_the_hashes_of_its_values(column):
    values = column.to_pylist()
    there = [i for i, value in enumerate(values) if value == value]
    hashes = hashes_of_columns([column]).tolist()
    assert [hashes[i] for i in there] == [stable_hash(values[i]) for i in there]
    pairs = hashes_of_columns([column, column]).tolist()
    assert [pairs[i] for i in there] == [stable_hash((values[i], values[i])) for i in there]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_of_every_unit_have_the_hashes_of_their_values(unit):
    moments = [dt.datetime(2020, 1, 1, 12), dt.datetime(1969, 12, 31, 23, 59, 59)]  # noqa: DTZ001
    stretches = [dt.timedelta(days=-1), dt.timedelta(seconds=5)]
    for values, kind in [(moments, pa.timestamp(unit)), (stretches, pa.duration(unit))]:
        assert hashes_of_columns([pa.array(values, kind)]).tolist() == list(map(stable_hash, values))


def test_hashes_of_columns_are_the_same_in_another_process():
    sample = "hashes_of_columns([pa.array(['a', 'user-7', None]), pa.array([1, 2, 3])]).tolist()"
    imports = "import pyarrow as pa; from eventide.runtime.elements.keys import hashes_of_columns;"
    code = f"{imports} print({sample})"
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert there.strip() == str(eval(sample, globals()))


@given(st.lists(st.text(), min_size=1), st.integers(1, 5))
def test_every_key_has_one_owner(keys, subtasks):
    owner = owners([pa.chunked_array([keys])], 16, subtasks)
    owner = np.zeros(len(keys)) if owner is None else owner
    of_key = {}
    assert all(of_key.setdefault(key, at) == at for key, at in zip(keys, owner.tolist(), strict=True))
    assert set(owner.tolist()) <= set(range(subtasks))


def test_keys_spread_over_all_subtasks():
    keys = pa.array([f"user-{i}" for i in range(10_000)])
    owner = owners([keys], 128, 100)
    counts = np.bincount(owner, minlength=100)
    assert counts.min() > 50
    assert counts.max() < 270  # a subtask has one key group or two


def test_texts_that_differ_in_one_place_or_in_length_only_have_other_hashes():
    texts = ["", "\0", "\0\0", "ab", "ba", "abc", "acb"]
    assert len(set(hashes_of_columns([pa.array(texts)]).tolist())) == len(texts)


def test_numbers_that_are_equal_have_one_form():
    assert key_column(pa.array([0.0, -0.0, None])).to_pylist() == [0.0, 0.0, None]
    assert str(key_column(pa.array([-0.0]))[0].as_py()) == "0.0"


fields = st.lists(
    st.sampled_from([Types.LONG(), Types.STRING(), Types.BOOLEAN(), Types.SQL_DATE()]), min_size=1, max_size=3
)
OF_FIELD = {
    "LONG": st.integers(-(2**63), 2**63 - 1),
    "STRING": st.text(max_size=3),
    "BOOLEAN": st.booleans(),
    "SQL_DATE": st.dates(),
}


@given(st.data(), fields, st.permutations(["c", "a", "b"]), st.sampled_from(["tuple", "row", "named", "plain"]))
def test_the_parts_of_a_key_have_the_hash_of_the_key(data, kinds, names, form):
    values = [tuple(data.draw(OF_FIELD[str(kind)]) for kind in kinds) for _ in range(3)]
    names = names[: len(kinds)]
    kind, keys = {
        "tuple": (Types.TUPLE(kinds), values),
        "row": (Types.ROW(kinds), [Row(**{f"f{i}": part for i, part in enumerate(value)}) for value in values]),
        "named": (Types.ROW_NAMED(names, kinds), [Row(**dict(zip(names, value, strict=True))) for value in values]),
        "plain": (kinds[0], [value[0] for value in values]),
    }[form]
    column = kind.to_arrow(keys)
    assert kind.from_arrow(column) == keys
    assert hashes_of_parts(columns_of_fields(column, kind), kind).tolist() == hashes_of(keys).tolist()
