"""Where a time lies in a file of columns, whose row groups say what their highest value is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eventide.common.ms import clamp_ms

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import FileMetaData

_PER_MS = {"ms": 1, "us": 1_000, "ns": 1_000_000}
_MS_PER_S = 1_000
_AT_HAND = 4


@dataclass(frozen=True, slots=True)
class RowGroup:
    """How many rows a row group has, and the highest value of a column in it, as a number; None if it does not say."""

    rows: int
    highest: int | None


class ColumnTimes:
    """The times of one column of a file, which is looked into no more than is needed.

    Args:
        kind: the Arrow type of the column.
        groups: what is known of the file's row groups.
        read: reads the column of one of them, by its number.
    """

    def __init__(self, kind: pa.DataType, groups: Sequence[RowGroup], read: Callable[[int], pa.Array]) -> None:
        self._kind = kind
        self._groups = groups
        self._read = read
        self._at_hand: dict[int, pa.Array] = {}

    def rows_until(self, timestamp_ms: int) -> int:
        """How many rows come before the first that is later; all, where there is none.

        Args:
            timestamp_ms: milliseconds since the epoch (UTC).
        """
        import pyarrow.compute as pc

        rows, later = 0, _first_later(self._kind, timestamp_ms)
        for number, group in enumerate(self._groups):
            if group.highest is None or group.highest >= later:
                found = pc.index(pc.greater_equal(self._values(number), later), True).as_py()
                if found >= 0:
                    return int(rows + found)
            rows += group.rows
        return rows

    def _values(self, number: int) -> pa.Array:
        """The values of a row group as numbers; those that were asked for last are at hand."""
        values = self._at_hand.pop(number, None)
        self._at_hand[number] = _as_numbers(self._read(number)) if values is None else values
        if len(self._at_hand) > _AT_HAND:
            del self._at_hand[next(iter(self._at_hand))]
        return self._at_hand[number]


def row_groups(metadata: FileMetaData, column: str, kind: pa.DataType) -> list[RowGroup]:
    """Return the row groups of one column, as the end of a Parquet file describes them."""
    leaf = [metadata.schema.column(i).path for i in range(metadata.num_columns)].index(column)
    groups = (metadata.row_group(number) for number in range(metadata.num_row_groups))
    return [RowGroup(group.num_rows, _highest(group.column(leaf).statistics, kind)) for group in groups]


def tells_time(kind: pa.DataType) -> bool:
    """Whether a column of a type has whole milliseconds, or points in time."""
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_timestamp(kind))


def _first_later(kind: pa.DataType, timestamp_ms: int) -> int:
    """The first value of a type, as a number, that is later than a time."""
    import pyarrow as pa

    if pa.types.is_timestamp(kind) and kind.unit == "s":
        return timestamp_ms // _MS_PER_S + 1
    return clamp_ms((timestamp_ms + 1) * (_PER_MS[kind.unit] if pa.types.is_timestamp(kind) else 1))


def _highest(statistics: Any, kind: pa.DataType) -> int | None:
    import pyarrow as pa

    if statistics is None or not statistics.has_min_max:
        return None
    return int(_as_numbers(pa.array([statistics.max], kind))[0].as_py())


def _as_numbers(values: pa.Array) -> pa.Array:
    import pyarrow as pa

    return values.cast(pa.int64())
