"""The columns of the tables that travel to columnar windows, are stored by them, and become results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.runtime.columnar.aggregation import ROWS, TIMESTAMP
from eventide.runtime.elements.codec import decode_numbered, encode_numbered, size_of_numbered
from eventide.runtime.elements.keys import numbers_of_columns
from eventide.runtime.tasks.operator import OperatorInput, SortInputs

Array: TypeAlias = np.ndarray[Any, Any]

SEQUENCE = "__sequence"
"""int64: the index of a row in its split within the micro-batch."""

PANE = "__pane"
"""int64: where the pane of a row, or of a partial aggregate, starts; milliseconds."""

FIRE = "__fire"
"""int64: the watermark at which a key and window with a continuous trigger fires next, in milliseconds; may be null."""

START, END = "__start", "__end"
BOUNDS = [pa.field(START, pa.int64()), pa.field(END, pa.int64())]
"""The bounds of a session, in milliseconds; the end is exclusive."""

WINDOW = "__window"
"""int64: the number of a window of time."""

COUNT = "__count"
"""int64: how many elements of a session have come since it fired."""

GAP = "__gap"
"""int64: the gap that a row of sessions brings, in milliseconds."""

VALUE = "__value"
"""The whole element, where late ones go to a side output."""

_FIRST = b"first"


def key_names(count: int) -> list[str]:
    """The columns of the key, named so that no user column is."""
    return [f"__key{i}" for i in range(count)]


@dataclass(frozen=True, slots=True)
class TablePayload:
    """A table as one frame brings it: rows of elements, or partial aggregates of many.

    ``first`` is its number among the tables of its channel.
    """

    table: pa.Table
    first: int

    def __len__(self) -> int:
        """How many elements it stands for."""
        if self.is_aggregated:
            return int(pc.sum(self.table.column(ROWS)).as_py() or 0)
        return len(self.table)

    @property
    def is_aggregated(self) -> bool:
        """Whether its rows are partial aggregates."""
        return ROWS in self.table.column_names

    @property
    def is_unread(self) -> bool:
        """True: there are columns alone."""
        return True

    def numbers(self) -> Array | None:
        """The number of each row in its split; None for partial aggregates."""
        return self.table.column(SEQUENCE).to_numpy() if SEQUENCE in self.table.column_names else None

    def cut(self, begin: int, point: int) -> tuple[TablePayload | None, int | None]:
        """Return the rows from one on up to a point, and the row where the rest begins (None: there is none)."""
        if SEQUENCE not in self.table.column_names:
            return self, None
        end = int(np.searchsorted(self.table.column(SEQUENCE).to_numpy(), point, side="right"))
        rest = None if end == len(self.table) else end
        if end == begin:
            return None, rest
        return TablePayload(self.table.slice(begin, end - begin), self.first), rest


@dataclass(frozen=True, slots=True)
class TableCodec:
    """Tables as Arrow IPC streams, with their number among those of their channel."""

    def encode(self, table: pa.Table, first: int) -> bytes:
        """A table to bytes."""
        names = [name for name in (TIMESTAMP, SEQUENCE) if name in table.column_names]
        return encode_numbered(table.replace_schema_metadata({_FIRST: str(first)}), names)

    def decode(self, data: bytes) -> TablePayload:
        """The inverse of :meth:`encode`."""
        table = decode_numbered(data)
        return TablePayload(table.replace_schema_metadata(None), int(table.schema.metadata[_FIRST]))

    def size(self, data: bytes) -> int:
        """How many bytes a table has when it is read."""
        return size_of_numbered(data)


def joined_rows(parts: Sequence[TablePayload]) -> pa.Table:
    """Rows of several channels in the one defined order: by their index in their split, then by channel."""
    rows = pa.concat_tables([part.table for part in parts])
    if len(parts) > 1:
        rows = rows.take(np.argsort(rows.column(SEQUENCE).to_numpy(), kind="stable"))
    return rows


def rows_in_time_order(inputs: Mapping[int, list[TablePayload]]) -> Iterator[tuple[int, TablePayload]]:
    """Give the rows of each input in the order of their timestamps; those of one time stay in their order.

    The inputs come one after the other: operators on columns look at all rows of an input at once. Partial
    aggregates, which have no timestamps, stay as they are.
    """
    for number, parts in inputs.items():
        if TIMESTAMP not in parts[0].table.column_names:
            yield from ((number, part) for part in parts)
            continue
        rows = joined_rows(parts)
        rows = rows.take(np.argsort(rows.column(TIMESTAMP).to_numpy(), kind="stable"))
        numbers = pa.array(np.arange(len(rows)))
        yield number, TablePayload(rows.drop_columns([SEQUENCE]).append_column(SEQUENCE, numbers), 0)


class OnColumns(ABC):
    """The part of a description of an operator on columns: nothing of it is the user's code, or waits for the clock.

    In batch execution its input is put into the order of timestamps, input by input.
    """

    __slots__ = ()

    @abstractmethod
    def stored_schema(self, part: str) -> pa.Schema:
        """The columns of the tables that it keeps in a part of its state; empty is the name where there is one."""

    @property
    def needs_clock(self) -> bool:
        """False: it follows event time, or counts."""
        return False

    @property
    def runs_without_data(self) -> bool:
        """Whether the operator follows the clock."""
        return self.needs_clock

    @property
    def sort_inputs(self) -> SortInputs:
        """Sorts by timestamps."""
        return rows_in_time_order

    @property
    def state_of_functions(self) -> None:
        """None, because no function here is the user's."""

    def user_functions(self) -> list[Any]:
        """Empty, because no function here is the user's."""
        return []


def obstacle_of_watermarks(inputs: Iterable[OperatorInput]) -> str | None:
    """Why an operator that looks through tables had better take single elements, and what to change; None if not."""
    if not any(source.is_punctuated for source in inputs):
        return None
    return (
        "a watermark may come between any two elements, each of which would look through a table; with built-in "
        "watermarks, or a generator class that is_periodic, it runs on columns"
    )


def constant(value: int, rows: int) -> pa.Array:
    """A column that has one value in every row."""
    return pa.repeat(pa.scalar(value, pa.int64()), rows)


def numbers_in(table: pa.Table, name: str) -> Array:
    """A column of whole numbers, none of which is null."""
    numbers: Array = table.column(name).to_numpy()
    return numbers


def slices_by(table: pa.Table, column: str) -> list[tuple[int, pa.Table]]:
    """The rows of each value of an int64 column, in the order of the values, without that column.

    The rows of one value keep their order.
    """
    values = table.column(column)
    table = table.drop_columns([column])
    distinct = np.sort(pc.unique(values).to_numpy())
    if len(distinct) <= 1:
        return [(value, table) for value in distinct.tolist()]
    codes = pc.index_in(values, value_set=pa.array(distinct)).to_numpy()
    narrow = codes.astype(np.uint16) if len(distinct) < 1 << 16 else codes  # numpy sorts 16 bits by radix
    table = table.take(pa.array(np.argsort(narrow, kind="stable")))
    bounds = np.concatenate(([0], np.cumsum(np.bincount(codes, minlength=len(distinct)))))
    return [
        (value, table.slice(start, end - start))
        for value, start, end in zip(distinct.tolist(), bounds[:-1], bounds[1:], strict=True)
    ]


def key_numbers(table: pa.Table, keys: Sequence[str]) -> Array:
    """Each key of a table as a number from 0; 0 throughout where there are no keys."""
    if not keys:
        return np.zeros(len(table), np.int64)
    return numbers_of_columns([table.column(name).combine_chunks() for name in keys])


def numbered_together(left: pa.Table, right: pa.Table, keys: Sequence[str]) -> tuple[Array, Array]:
    """The keys of two tables as numbers, equal keys by equal numbers."""
    if not keys:
        return np.zeros(len(left), np.int64), np.zeros(len(right), np.int64)
    numbers = key_numbers(pa.concat_tables([left.select(keys), right.select(keys)]), keys)
    return numbers[: len(left)], numbers[len(left) :]


def with_keys_of(table: pa.Table, wanted: pa.Table, keys: Sequence[str]) -> pa.Table:
    """The rows of a table whose keys are in another one, too."""
    numbers, wanted_numbers = numbered_together(table, wanted, keys)
    return table.filter(pa.array(np.isin(numbers, wanted_numbers)))
