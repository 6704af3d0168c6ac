"""Columns of single values as text, read and written by Arrow where it certainly does as :mod:`._texts` one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eventide.common.typeinfo import BasicTypeInfo, TypeInformation
from eventide.common.typeinfo._basic import FLOAT_LIMIT
from eventide.datastream.connectors.file_system._columns import points_in_time
from eventide.datastream.formats._texts import number_text

if TYPE_CHECKING:
    import pyarrow as pa

PLAIN = frozenset({"STRING", "BOOLEAN", "BYTE", "SHORT", "INT", "LONG", "DOUBLE"})
"""Types that Arrow reads as they are meant."""

SINGLE = PLAIN | {"FLOAT", "SQL_DATE", "SQL_TIMESTAMP", "INSTANT"}
"""And those that it reads as something else first."""

# Dates of every calendar and zones of every country; others are looked at one by one.
_DATE = r"[1-8][0-9]{3}-[0-9]{2}-[0-9]{2}"
_TIMESTAMP = rf"{_DATE}[T ][0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}(\.[0-9]{{1,6}})?(Z|[+-](0[0-9]|1[0-7]):?[0-5][0-9])?"

_AS_THEY_ARE = frozenset({"BOOLEAN", "BYTE", "SHORT", "INT", "LONG"})
_SMALLEST, _LARGEST = 1e-4, 1e10  # between these, both Arrow and Python write numbers without an exponent


def texts_of(column: pa.Array, type_info: TypeInformation) -> pa.Array | None:
    """The text of each value, null where it is null; None for types that Arrow writes otherwise."""
    import pyarrow as pa

    name = type_info.name if isinstance(type_info, BasicTypeInfo) else None
    if name in _AS_THEY_ARE or (name == "STRING" and pa.types.is_string(column.type)):
        return column.cast(pa.string())
    if name == "DOUBLE":
        return _numbers(column)
    if name in {"SQL_TIMESTAMP", "INSTANT"} and pa.types.is_timestamp(column.type):
        return _points_in_time(column)
    return None


def _numbers(column: pa.Array) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = column.cast(pa.string())
    texts = pc.if_else(pc.match_substring(texts, "."), texts, pc.binary_join_element_wise(texts, ".0", ""))
    size = pc.abs(column)
    plain = pc.or_(pc.equal(size, 0), pc.and_(pc.greater_equal(size, _SMALLEST), pc.less(size, _LARGEST)))
    others = pc.fill_null(pc.invert(plain), False)
    if not pc.any(others).as_py():
        return texts
    one_by_one = pa.array(map(number_text, column.filter(others).to_pylist()), pa.string())
    return pc.replace_with_mask(texts, others, one_by_one)


def _points_in_time(column: pa.Array) -> pa.Array:
    """In UTC, with a Z; microseconds where there are some."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = column.cast(pa.timestamp("us")).cast(pa.string())
    whole = pc.ends_with(texts, ".000000")
    texts = pc.if_else(whole, pc.utf8_slice_codeunits(texts, 0, -7), texts)
    return pc.binary_join_element_wise(pc.replace_substring(texts, " ", "T"), "Z", "")


def parsed_type(wanted: pa.DataType) -> pa.DataType:
    """What Arrow is asked for: its own reading of points in time, and its rounding, are others."""
    import pyarrow as pa

    if pa.types.is_date(wanted) or pa.types.is_timestamp(wanted):
        return pa.string()
    return pa.float64() if pa.types.is_float32(wanted) else wanted


def as_wanted(column: Any, wanted: pa.DataType) -> pa.Array | None:
    """A column of the type that is wanted; None where a value in it has to be looked at."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.type == wanted:
        return column
    if pa.types.is_float32(wanted):
        return column.cast(wanted) if _all(pc.less(pc.abs(column), FLOAT_LIMIT)) else None
    pattern = _DATE if pa.types.is_date(wanted) else _TIMESTAMP
    if not _all(pc.match_substring_regex(column, f"^{pattern}$")):
        return None
    return column.cast(wanted) if pa.types.is_date(wanted) else points_in_time(column, wanted)


def _all(truths: pa.Array) -> bool:
    """Whether all are true that are not null."""
    import pyarrow.compute as pc

    return pc.all(truths).as_py() is not False
