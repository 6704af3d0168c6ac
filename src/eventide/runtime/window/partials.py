"""Partial results of elements that are reduced before the shuffle: one value for each key and pane, or few."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from eventide.common.typeinfo import TypeInformation
from eventide.errors import DataError
from eventide.pickling.pickles import dumps, loads
from eventide.runtime.elements.codec import column_of_keys, decode_table, encode_table

_COUNTS = b"counts"
_KEYS = b"keys"
# The end of a frame: after the columns, which have to stay aligned.
_PICKLED = b"P"
_COLUMNS = b"C"


@dataclass(frozen=True, slots=True)
class Partials:
    """Reduced elements: keys and values side by side, with where their pane starts, in milliseconds.

    Those of one key are in the order of arrival. ``counts`` says how many elements were reduced, as (pane, number), for
    all subtasks: one of them is told. The watermark is the same in each, so a pane is late for all of them or for none.
    """

    keys: list[Any]
    values: list[Any]
    panes: list[int]
    counts: list[tuple[int, int]]
    first: int

    def __len__(self) -> int:
        """How many elements are counted here."""
        return sum(number for _, number in self.counts)

    def cut(self, begin: int, point: int) -> tuple[Partials, None]:
        """All of it: what is reduced has no numbers any more."""
        return self, None


@dataclass(frozen=True, slots=True)
class PartialsCodec:
    """Arrow columns where nothing is lost on that way, else one pickle of all.

    What is in the midst of being reduced need not fit the declared type yet: a sum may be too large for it until a
    window function divides it.
    """

    value_type: TypeInformation
    key_type: TypeInformation

    def encode(self, partials: Partials) -> bytes:
        """Reduced elements to bytes.

        Raises:
            NoKey: if a key is not of its declared type.
            DataError: if a value cannot be pickled.
        """
        keys, values = partials.keys, partials.values
        value_column = self._column_of(values)
        key_column = None if self.key_type.is_pickled else column_of_keys(self.key_type, keys)
        if self._keys_are_pickled:
            key_column = None
        try:
            if value_column is None:
                keys = keys if key_column is None else self.key_type.from_arrow(key_column)
                return dumps((keys, values, partials.panes, partials.counts, partials.first)) + _PICKLED
            beside = {_COUNTS: json.dumps([partials.counts, partials.first]).encode()}
            if key_column is None:
                beside[_KEYS] = dumps(keys)
        except Exception as error:
            raise DataError(f"a key, or what the reduce function gave, cannot be pickled: {error!r}") from error
        columns = {"value": value_column, "pane": pa.array(partials.panes, pa.int64())}
        if key_column is not None:
            columns["key"] = key_column
        return encode_table(pa.table(columns, metadata=beside)) + _COLUMNS

    @property
    def _keys_are_pickled(self) -> bool:
        return self.key_type.is_pickled or self.key_type.has_exponents

    def _column_of(self, values: list[Any]) -> pa.Array | None:
        """The values as a column; None where they would not come back as they are."""
        if not self.value_type.keeps(values):
            return None
        try:
            return self.value_type.to_arrow(values)
        except (DataError, ValueError, OverflowError):
            return None  # too large a number, say: it need not fit before it is done

    def decode(self, data: bytes) -> Partials:
        """The inverse of :meth:`encode`."""
        content, form = data[:-1], data[-1:]
        if form == _PICKLED:
            return Partials(*loads(content))
        table = decode_table(content)
        counts, first = json.loads(table.schema.metadata[_COUNTS])
        if self._keys_are_pickled:
            keys = loads(table.schema.metadata[_KEYS])
        else:
            keys = self.key_type.from_arrow(table.column("key"))
        values = self.value_type.from_arrow(table.column("value"))
        return Partials(keys, values, table.column("pane").to_pylist(), list(map(tuple, counts)), first)
