"""Cells of text as Arrow reads them, where that is certain to be what they mean one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eventide.common.typeinfo._basic import FLOAT_LIMIT
from eventide.datastream.connectors.file_system._columns import points_in_time

if TYPE_CHECKING:
    import pyarrow as pa

PLAIN = frozenset({"STRING", "BOOLEAN", "BYTE", "SHORT", "INT", "LONG", "DOUBLE"})
"""Types that Arrow reads as they are meant."""

SINGLE = PLAIN | {"FLOAT", "SQL_DATE", "SQL_TIMESTAMP", "INSTANT"}
"""And those that it reads as something else first."""

# Dates of every calendar and zones of every country; others are looked at one by one.
_DATE = r"[1-8][0-9]{3}-[0-9]{2}-[0-9]{2}"
_TIMESTAMP = rf"{_DATE}[T ][0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}(\.[0-9]{{1,6}})?(Z|[+-](0[0-9]|1[0-7]):?[0-5][0-9])?"


def parsed_type(wanted: pa.DataType) -> pa.DataType:
    """Return the type that Arrow is asked for: its own reading of points in time, and its rounding, differ."""
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
