# ruff: noqa: DTZ001 - the values of SQL_TIMESTAMP are naive
"""Types take every value that fits to Arrow and back, and refuse every other, saying where it was."""

import datetime as dt
import enum
import pickle
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.common import Instant, Row, RowKind, Types
from eventide.common.typeinfo import ListTypeInfo, MapTypeInfo, type_info_from_arrow
from eventide.common.windows import TimeWindow
from eventide.errors import DataError, ProgramError, TypeMismatch
from support.typed_values import BASIC, any_type


@given(st.data())
def test_every_value_comes_back_as_it_was(data):
    kind, values = data.draw(any_type)
    elements = data.draw(st.lists(st.none() | values, max_size=6))
    array = kind.to_arrow(elements)
    assert array.type == kind.arrow_type()
    array.validate(full=True)
    assert kind.from_arrow(array) == elements
    assert list(map(type, kind.from_arrow(array))) == list(map(type, elements))


@given(st.data())
def test_values_as_declared_are_those_that_come_back(data):
    kind, values = data.draw(any_type)
    elements = data.draw(st.lists(st.none() | values, max_size=6))
    declared = kind.as_declared(elements)
    assert declared == kind.from_arrow(kind.to_arrow(elements))
    assert declared == elements or not kind.keeps(elements)
    assert list(map(type, declared)) == list(map(type, elements)) or not kind.keeps(elements)


@pytest.mark.parametrize(
    ("kind", "value", "kept"),
    [
        (Types.LONG(), 1, True),
        (Types.LONG(), True, False),
        (Types.DOUBLE(), 1.5, True),
        (Types.DOUBLE(), 1, False),
        (Types.FLOAT(), 1.5, False),
        (Types.BIG_DEC(), Decimal("1.5"), False),
        (Types.STRING(), np.str_("a"), False),
        (Types.SQL_TIMESTAMP(), dt.datetime(2020, 1, 1), True),
        (Types.SQL_TIMESTAMP(), dt.datetime(2020, 1, 1, tzinfo=dt.UTC), False),
        (Types.BIG_DEC(4, 2), Decimal("1.50"), True),
        (Types.BIG_DEC(4, 2), Decimal("1.5"), False),
        (Types.BIG_DEC(4, 2), Decimal("-0.00"), False),
        (Types.TUPLE([Types.INT(), Types.STRING()]), (1, None), True),
        (Types.TUPLE([Types.INT(), Types.STRING()]), [1, "a"], False),
        (Types.TUPLE([Types.FLOAT()]), (1.5,), False),
        (Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.INT()]), Row(a=1, b=2), True),
        (Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.INT()]), Row(b=1, a=2), False),
        (Types.ROW_NAMED(["a"], [Types.INT()]), Row(1), False),
        (Types.ROW_NAMED(["a"], [Types.INT()]), (1,), False),
        (Types.ROW_NAMED(["a"], [Types.INT()]), Row.of_kind(RowKind.DELETE, a=1), False),
        (Types.ROW([Types.INT()]), Row(f0=1), True),
        (Types.ROW([Types.INT()]), Row(1), False),
        (Types.LIST(Types.INT()), [1], True),
        (Types.LIST(Types.INT()), [1, None], True),
        (Types.BASIC_ARRAY(Types.INT()), (1,), False),
        (Types.LIST(Types.FLOAT()), [1.5], False),
        (Types.MAP(Types.STRING(), Types.INT()), {"a": 1}, True),
        (Types.MAP(Types.STRING(), Types.FLOAT()), {"a": 1.5}, False),
        (Types.PRIMITIVE_ARRAY(Types.BYTE()), b"a", True),
        (Types.PRIMITIVE_ARRAY(Types.BYTE()), bytearray(b"a"), False),
    ],
)
def test_a_value_is_kept_if_it_comes_back_as_the_same_python_value(kind, value, kept):
    assert kind.keeps([value]) is kept


@pytest.mark.parametrize(
    ("kind", "elements"), [(Types.INT(), [0, 2**31]), (Types.TUPLE([Types.INT()]), [(0,), (2**31,)])]
)
def test_a_value_that_does_not_fit_cannot_be_as_declared(kind, elements):
    with pytest.raises(TypeMismatch, match=r"element 1.*expected INT, got 2147483648"):
        kind.as_declared(elements)


@given(st.data())
def test_a_slice_and_chunks_come_back_as_the_elements_they_hold(data):
    kind, values = data.draw(any_type)
    elements = data.draw(st.lists(st.none() | values, max_size=6))
    cut = data.draw(st.integers(0, len(elements)))
    array = kind.to_arrow(elements)
    assert kind.from_arrow(array.slice(cut)) == elements[cut:]
    assert kind.from_arrow(pa.chunked_array([array.slice(0, cut), array.slice(cut)])) == elements
    assert kind.from_arrow(pa.chunked_array([], kind.arrow_type())) == []


@given(any_type)
def test_types_are_values(kind_and_values):
    kind, _ = kind_and_values
    copy = pickle.loads(pickle.dumps(kind))
    assert copy == kind
    assert hash(copy) == hash(kind)
    assert str(copy) == str(kind)


@given(any_type)
def test_a_type_read_from_arrow_has_the_same_columns(kind_and_values):
    kind, _ = kind_and_values
    assert type_info_from_arrow(kind.arrow_type()).arrow_type() == kind.arrow_type()


class Colour(enum.IntEnum):
    RED = 1


def test_a_decimal_of_a_fixed_size_has_no_negative_zero():
    kind = Types.BIG_DEC(4, 2)
    (declared,), (back,) = kind.as_declared([Decimal("-0.00")]), kind.from_arrow(kind.to_arrow([Decimal("-0.00")]))
    assert str(declared) == str(back) == "0.00"


@pytest.mark.parametrize(
    ("kind", "value", "result"),
    [
        (Types.DOUBLE(), 3, 3.0),
        (Types.DOUBLE(), 2**60, float(2**60)),
        (Types.FLOAT(), 3, 3.0),
        (Types.INT(), np.int64(7), 7),
        (Types.INT(), Colour.RED, 1),
        (Types.DOUBLE(), np.float32(0.5), 0.5),
        (Types.BOOLEAN(), np.bool_(True), True),
        (Types.BIG_DEC(), Decimal("1.5"), Decimal("1.5")),
        (Types.SQL_TIMESTAMP(), dt.datetime(1, 1, 1), dt.datetime(1, 1, 1)),
        (Types.SQL_TIMESTAMP(), dt.datetime(9999, 12, 31, 23, tzinfo=dt.UTC), dt.datetime(9999, 12, 31, 23)),
        (
            Types.SQL_TIMESTAMP(),
            dt.datetime(2024, 1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1))),
            dt.datetime(2024, 1, 1),
        ),
        (Types.TUPLE([Types.INT()]), [1], (1,)),
        (Types.ROW([Types.INT()]), (1,), Row(f0=1)),
        (Types.ROW([Types.INT(), Types.INT()]), Row(f1=2, f0=1), Row(f0=1, f1=2)),
        (Types.BIG_DEC(4, 2), Decimal("1.5"), Decimal("1.50")),
        (Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.INT()]), {"b": 2, "a": 1}, Row(a=1, b=2)),
        (Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.INT()]), Row(b=2, a=1), Row(a=1, b=2)),
        (Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.INT()]), Row(1, 2), Row(a=1, b=2)),
        (Types.BASIC_ARRAY(Types.INT()), (1, 2), [1, 2]),
        (Types.PRIMITIVE_ARRAY(Types.BYTE()), bytearray(b"x"), b"x"),
    ],
)
def test_values_that_fit_become_the_declared_type(kind, value, result):
    (back,) = kind.from_arrow(kind.to_arrow([value]))
    assert back == result
    assert type(back) is type(result)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Types.INT(), "1"),
        (Types.INT(), True),
        (Types.INT(), 1.5),
        (Types.INT(), 1.0),
        (Types.INT(), np.float64(1)),
        (Types.INT(), 2**31),
        (Types.INT(), -(2**31) - 1),
        (Types.INT(), 2**40),
        (Types.LONG(), 2**63),
        (Types.LONG(), 2**200),
        (Types.BYTE(), 128),
        (Types.SHORT(), 2**15),
        (Types.BIG_INT(), 10**38),
        (Types.BIG_INT(), Decimal(1)),
        (Types.STRING(), b"x"),
        (Types.STRING(), 1),
        (Types.STRING(), "\ud800"),
        (Types.CHAR(), "ab"),
        (Types.CHAR(), ""),
        (Types.BOOLEAN(), 1),
        (Types.DOUBLE(), True),
        (Types.DOUBLE(), "1"),
        (Types.DOUBLE(), 10**400),
        (Types.FLOAT(), 1e300),
        (Types.FLOAT(), 3.4028235677973366e38),
        (Types.BIG_DEC(), 1),
        (Types.BIG_DEC(), Decimal("1e-19")),
        (Types.BIG_DEC(), Decimal("NaN")),
        (Types.BIG_DEC(), Decimal(10) ** 20),
        (Types.BIG_DEC(4, 2), Decimal("1.005")),
        (Types.BIG_DEC(4, 2), Decimal("100")),
        (Types.BIG_DEC(4, 2), Decimal("NaN")),
        (Types.BIG_DEC(4, 2), 1.5),
        (Types.SQL_DATE(), dt.datetime(2024, 1, 1)),
        (Types.SQL_TIMESTAMP(), dt.date(2024, 1, 1)),
        (Types.SQL_TIMESTAMP(), 5),
        (Types.SQL_TIMESTAMP(), dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=5)))),
        (Types.SQL_TIMESTAMP(), dt.datetime(9999, 12, 31, 20, tzinfo=dt.timezone(dt.timedelta(hours=-5)))),
        (Types.SQL_TIME(), dt.time(1, tzinfo=dt.UTC)),
        (Types.INSTANT(), Instant(0, 1)),
        (Types.INSTANT(), Instant(2**50, 0)),
        (Types.INSTANT(), 5),
        (Types.TIME_WINDOW(), TimeWindow(0, 2**63 - 2)),
        (Types.TIME_WINDOW(), TimeWindow(-(2**63) + 1, 0)),
        (Types.TIME_WINDOW(), (0, 1)),
        (Types.TUPLE([Types.INT(), Types.INT()]), (1, 2, 3)),
        (Types.TUPLE([Types.INT(), Types.INT()]), (1,)),
        (Types.TUPLE([Types.INT(), Types.INT()]), 1),
        (Types.TUPLE([Types.INT()]), {"f0": 1}),
        (Types.ROW([Types.INT()]), Row.of_kind(RowKind.DELETE, 1)),
        (Types.ROW_NAMED(["a"], [Types.INT()]), Row(b=1)),
        (Types.ROW_NAMED(["a"], [Types.INT()]), {"a": 1, "b": 2}),
        (Types.LIST(Types.INT()), (1,)),
        (Types.LIST(Types.STRING()), "abc"),
        (Types.MAP(Types.INT(), Types.INT()), [(1, 2)]),
        (Types.PRIMITIVE_ARRAY(Types.BYTE()), "abc"),
        (Types.PICKLED_BYTE_ARRAY(), (nothing for nothing in ())),
    ],
    ids=lambda value: repr(value).partition(" at 0x")[0],
)
def test_values_that_do_not_fit_are_refused_with_their_position(kind, value):
    with pytest.raises(TypeMismatch) as caught:
        kind.to_arrow([None, value, None])
    assert (caught.value.index, caught.value.value, caught.value.path) == (1, value, "")


@pytest.mark.parametrize(
    ("kind", "element", "path", "culprit"),
    [
        (Types.TUPLE([Types.INT(), Types.STRING()]), (1, 2), "f1", 2),
        (Types.LIST(Types.INT()), [1, "x"], "[1]", "x"),
        (Types.LIST(Types.LIST(Types.INT())), [[], [1, "x"]], "[1].[1]", "x"),
        (Types.ROW_NAMED(["tags"], [Types.LIST(Types.STRING())]), Row(tags=["a", 5]), "tags[1]", 5),
        (Types.ROW_NAMED(["in"], [Types.TUPLE([Types.INT()])]), {"in": ("x",)}, "in.f0", "x"),
        (Types.MAP(Types.STRING(), Types.INT()), {"a": 1, "b": "x"}, "value 1", "x"),
        (Types.MAP(Types.STRING(), Types.INT()), {"a": 1, 5: 1}, "key 1", 5),
        (Types.MAP(Types.STRING(), Types.INT()), {"a": 1, None: 1}, "key 1", None),
    ],
)
def test_a_mismatch_inside_an_element_says_where(kind, element, path, culprit):
    fine = kind.from_arrow(kind.to_arrow([None]))
    with pytest.raises(TypeMismatch) as caught:
        kind.to_arrow([*fine, element])
    assert (caught.value.index, caught.value.path, caught.value.value) == (1, path, culprit)


def test_arrow_types_are_those_that_spark_reads():
    timestamp = pa.timestamp("us", tz="UTC")
    assert Types.INT().arrow_type() == pa.int32()
    assert Types.LONG().arrow_type() == pa.int64()
    assert Types.SQL_TIMESTAMP().arrow_type() == Types.INSTANT().arrow_type() == timestamp
    assert Types.BIG_DEC().arrow_type() == pa.decimal128(38, 18)
    assert Types.TIME_WINDOW().arrow_type() == pa.struct([("start", timestamp), ("end", timestamp)])
    assert Types.TUPLE([Types.INT(), Types.STRING()]).arrow_type() == pa.struct(
        [("f0", pa.int32()), ("f1", pa.string())]
    )


@given(st.data())
def test_converted_values_are_of_the_declared_type_and_decimals_keep_their_digits(data):
    kind, values = data.draw(any_type)
    elements = data.draw(st.lists(st.none() | values, max_size=6))
    assert kind.converted(elements) == elements
    assert list(map(repr, kind.converted(elements))) == list(map(repr, kind.as_declared(elements)))


@pytest.mark.parametrize(
    ("kind", "value", "shown"),
    [
        (Types.BIG_DEC(), Decimal("1.10"), "Decimal('1.10')"),
        (Types.BIG_DEC(), Decimal("1E+3"), "Decimal('1E+3')"),
        (Types.TUPLE([Types.BIG_DEC()]), [Decimal("1.10")], "(Decimal('1.10'),)"),
        (Types.LIST(Types.BIG_DEC()), [Decimal("1.10"), None], "[Decimal('1.10'), None]"),
        (Types.BASIC_ARRAY(Types.BIG_DEC()), (Decimal("1.10"),), "[Decimal('1.10')]"),
        (Types.MAP(Types.BIG_DEC(), Types.TUPLE([Types.BIG_DEC()])), {Decimal("1.0"): [Decimal("2.0")]},
         "{Decimal('1.0'): (Decimal('2.0'),)}"),
        (Types.ROW_NAMED(["a"], [Types.BIG_DEC()]), {"a": Decimal("1.10")}, "Row(a=Decimal('1.10'))"),
        (Types.BIG_DEC(10, 2), Decimal("1.1"), "Decimal('1.10')"),
    ],
)  # fmt: skip
def test_a_decimal_keeps_its_digits_unless_its_type_names_them(kind, value, shown):
    assert repr(kind.converted([value])) == f"[{shown}]"


@pytest.mark.parametrize(("precision", "scale"), [(0, 0), (39, 0), (5, 6), (5, -1), (True, 0), (5.0, 1)])
def test_decimals_that_there_cannot_be_are_refused(precision, scale):
    with pytest.raises(ProgramError, match="BIG_DEC"):
        Types.BIG_DEC(precision, scale)


def test_only_undeclared_elements_are_pickled():
    assert Types.PICKLED_BYTE_ARRAY().is_pickled
    assert not any(kind.is_pickled for kind in BASIC if kind != Types.PICKLED_BYTE_ARRAY())


def test_types_read_well():
    kind = Types.ROW_NAMED(["user", "m"], [Types.STRING(), Types.MAP(Types.STRING(), Types.LIST(Types.INT()))])
    assert str(kind) == "ROW(user: STRING, m: MAP(STRING, LIST(INT)))"
    assert str(Types.TUPLE([Types.BIG_DEC(), Types.PRIMITIVE_ARRAY(Types.BYTE())])) == (
        "TUPLE(BIG_DEC, PRIMITIVE_ARRAY(BYTE))"
    )


def test_rows_with_other_names_are_other_types():
    assert Types.ROW_NAMED(["a"], [Types.INT()]) != Types.ROW_NAMED(["b"], [Types.INT()])
    assert Types.ROW([Types.INT()]).field_names == ["f0"]
    assert Types.ROW_NAMED(["a"], [Types.INT()]).field_types == [Types.INT()]


def test_a_frame_schema_becomes_a_row_with_names():
    schema = pa.schema([("user", pa.large_string()), ("at", pa.timestamp("ms")), ("tags", pa.list_(pa.string()))])
    expected = Types.ROW_NAMED(
        ["user", "at", "tags"], [Types.STRING(), Types.SQL_TIMESTAMP(), Types.LIST(Types.STRING())]
    )
    assert type_info_from_arrow(schema) == expected


def test_columns_of_related_arrow_types_are_read():
    frame = pa.array([{"user": "a", "at": dt.datetime(2024, 1, 1)}]).cast(
        pa.struct([("user", pa.large_string()), ("at", pa.timestamp("ms", tz="Europe/Berlin"))])
    )
    assert type_info_from_arrow(frame.type).from_arrow(frame) == [Row(user="a", at=dt.datetime(2024, 1, 1))]


@pytest.mark.parametrize(
    "kind", [Types.INT(), Types.TUPLE([Types.INT()]), Types.LIST(Types.INT()), Types.TIME_WINDOW()]
)
def test_a_column_of_another_kind_is_bad_data(kind):
    with pytest.raises(DataError, match="cannot be read"):
        kind.from_arrow(pa.array(["x"]))


def test_a_map_is_read_from_a_map_alone():
    with pytest.raises(DataError, match="cannot be read"):
        Types.MAP(Types.INT(), Types.INT()).from_arrow(pa.array([[1]]))


def test_an_arrow_type_without_a_python_type_is_named():
    with pytest.raises(ProgramError, match=r"field 'x'.*duration"):
        type_info_from_arrow(pa.schema([("x", pa.duration("s"))]))


@pytest.mark.parametrize(
    "build",
    [
        lambda: Types.TUPLE([]),
        lambda: Types.ROW([int]),
        lambda: Types.ROW(Types.INT()),
        lambda: ListTypeInfo("INT"),
        lambda: MapTypeInfo(int, Types.INT()),
        lambda: Types.LIST(int),
        lambda: Types.MAP(Types.INT(), "INT"),
        lambda: Types.ROW_NAMED(["a"], [Types.INT(), Types.INT()]),
        lambda: Types.ROW_NAMED(["a", "a"], [Types.INT(), Types.INT()]),
    ],
)
def test_types_that_make_no_sense_are_refused(build):
    with pytest.raises(ProgramError):
        build()


def test_an_instant_of_less_than_a_microsecond_is_told_why_it_does_not_fit():
    with pytest.raises(DataError, match="it holds whole microseconds, not 500 nanoseconds; round the instant"):
        Types.INSTANT().to_arrow([Instant(1, 500)])


@pytest.mark.parametrize(
    ("kind", "numbers", "first", "last"),
    [
        (Types.SQL_TIMESTAMP(), pa.int64(), -62_135_596_800_000_000, 253_402_300_799_999_999),
        (Types.SQL_DATE(), pa.int32(), -719_162, 2_932_896),
    ],
)
def test_dates_and_times_are_read_up_to_the_ends_of_the_calendar_and_refused_beyond(kind, numbers, first, last):
    def read(*values):
        return kind.from_arrow(pa.array(values, numbers).view(kind.arrow_type()))

    python_type = dt.datetime if kind == Types.SQL_TIMESTAMP() else dt.date
    values = read(first, None, last)
    assert values == [python_type.min, None, python_type.max]
    assert {type(value) for value in values} == {python_type, type(None)}
    for beyond in (first - 1, last + 1):
        with pytest.raises(OverflowError):
            read(0, beyond)
