"""Columns of single values as text, by Arrow: the same texts as :mod:`._texts` writes one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eventide.common.typeinfo import BasicTypeInfo, TypeInformation
from eventide.datastream.formats._texts import number_text

if TYPE_CHECKING:
    import pyarrow as pa

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
