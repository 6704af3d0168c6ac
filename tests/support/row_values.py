"""Types of rows, values of them, and messages that are almost right, for the properties of schemas."""

import datetime as dt

from hypothesis import strategies as st

from eventide.common import Instant, Row, Types
from eventide.common.typeinfo import TupleTypeInfo

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - points in time are naive here, in UTC
MOMENTS = st.datetimes()


def integers(bits):
    return st.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def instant(moment):
    micros = (moment - EPOCH) // dt.timedelta(microseconds=1)
    return Instant(micros // 1_000_000, micros % 1_000_000 * 1_000)


SINGLE = {
    Types.STRING(): TEXT,
    Types.CHAR(): st.characters(exclude_categories=["Cs"]),
    Types.BOOLEAN(): st.booleans(),
    Types.BYTE(): integers(8),
    Types.SHORT(): integers(16),
    Types.INT(): integers(32),
    Types.LONG(): integers(64),
    Types.BIG_INT(): st.integers(-(10**37), 10**37),
    Types.FLOAT(): st.floats(width=32, allow_nan=False),
    Types.DOUBLE(): st.floats(allow_nan=False),
    Types.BIG_DEC(): st.decimals(-(10**9), 10**9, places=9),
    Types.BIG_DEC(10, 2): st.decimals(-(10**7), 10**7, places=2),
    Types.SQL_DATE(): st.dates(),
    Types.SQL_TIME(): st.times(),
    Types.SQL_TIMESTAMP(): MOMENTS,
    Types.INSTANT(): MOMENTS.map(instant),
    Types.PRIMITIVE_ARRAY(Types.BYTE()): st.binary(max_size=8),
}
FOR_ARROW = (
    Types.STRING(),
    Types.BOOLEAN(),
    Types.BYTE(),
    Types.INT(),
    Types.LONG(),
    Types.FLOAT(),
    Types.DOUBLE(),
    Types.SQL_DATE(),
    Types.SQL_TIMESTAMP(),
    Types.INSTANT(),
)
NAMES = st.lists(st.text("abcdef", min_size=1, max_size=3), min_size=1, max_size=4, unique=True)


@st.composite
def row_types(draw, parts):
    """A type of rows or tuples whose fields have one of some types."""
    names = draw(NAMES)
    types = [draw(parts) for _ in names]
    return draw(st.sampled_from([Types.ROW_NAMED(names, types), Types.ROW(types), Types.TUPLE(types)]))


def nested(single):
    """Types of all shapes, of which these are the innermost."""
    keys = st.sampled_from([Types.STRING(), Types.LONG(), Types.SQL_DATE()])
    return st.recursive(
        st.sampled_from(single),
        lambda inner: st.one_of(
            inner.map(Types.LIST),
            inner.map(Types.OBJECT_ARRAY),
            st.builds(Types.MAP, keys, inner),
            row_types(inner),
        ),
        max_leaves=4,
    )


def values_of(type_info):
    """Values of a type, None among its parts."""
    if type_info in SINGLE:
        return st.none() | SINGLE[type_info]
    if hasattr(type_info, "element_type"):
        return st.none() | st.lists(values_of(type_info.element_type), max_size=3)
    if hasattr(type_info, "key_type"):
        return st.none() | st.dictionaries(SINGLE[type_info.key_type], values_of(type_info.value_type), max_size=3)
    return st.none() | rows_of(type_info)


def rows_of(type_info, field_of=values_of):
    """Rows or tuples of a type, whose fields are what is said of their types."""
    fields = st.tuples(*map(field_of, type_info.field_types))
    if isinstance(type_info, TupleTypeInfo):
        return fields
    return fields.map(lambda values: Row.of_fields(type_info.field_names, values))


@st.composite
def spoilt(draw, messages):
    """Messages of which some have been changed, cut or put together; or are missing."""
    message = draw(messages)
    kind = draw(st.sampled_from(["as it is"] * 4 + ["cut", "changed", "doubled", "spaced", "none", "strange"]))
    at = draw(st.integers(0, len(message)))
    match kind:
        case "cut":
            return message[:at]
        case "changed":
            return message[:at] + draw(st.sampled_from(PIECES)) + message[at + draw(st.integers(0, 2)) :]
        case "doubled":
            return message + draw(st.sampled_from([b"", b"\n", b" ", b","])) + message
        case "spaced":
            return draw(st.sampled_from([b" ", b"\n", b"\t"])) + message + draw(st.sampled_from([b" ", b"\r\n", b""]))
        case "none":
            return None
        case "strange":
            return draw(st.sampled_from(STRANGE))
    return message


PIECES = [
    b"}",
    b"{",
    b"\n",
    b"}\n{",
    b'"',
    b",",
    b"1.0",
    b".5",
    b"1e3",
    b"-0",
    b"null",
    b"\xff",
    b"NaN",
    b"0x1F",
    b"1_0",
    b" ",
    b"true",
]
STRANGE = [
    b"",
    b"null",
    b"[]",
    b"{}",
    b"{}{}",
    b"{}\n{}",
    b'{"a":',
    b'{"a":1}}',
    b'{"a":1,"a":2}',
    b'{"a":1e999,"b":1E2,"f0":1e39}',
    b'{"a":"5","f0":"7"}',
    b'{"a":1.0,"f0":-1.9,"f1":2e3}',
    b'{"a":"1.0","f0":"1.0"}',
    b'{"f0":9.223372036854775807e18,"f1":2147483647.5}',
    b'{"a":NaN}',
    b'{"f0":-0}',
    b'{"f0":01}',
    b'{"f0":"\\ud800"}',
    b'{"f0":"2026-02-30","f1":"2026-02-30T00:00:00Z"}',
    b'{"f0":"2026-01-01T10:00:00.1234567+02:00"}',
    b'{"f0":"2026-01-01 10:00:00"}',
    b'{"f0":"0000-01-01"}',
    b'{"f0":123456789012345678901234567890}',
    b"0x1F",
    b"inf",
    b'"',
    b'"a',
    b"\xe9",
]
