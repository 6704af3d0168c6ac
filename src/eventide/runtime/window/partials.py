"""What travels where elements are reduced before the shuffle: one value for each key and window."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from eventide.common._pickles import dumps
from eventide.common.time_window import TimeWindow
from eventide.common.typeinfo import TypeInformation
from eventide.errors import DataError
from eventide.runtime.codec import decode_table, encode_table

_WINDOWS = b"windows"
_PICKLED = b"P"
_COLUMNS = b"C"


class Share(NamedTuple):
    """What a frame has of one window (``start``, ``end``): values of ``keys`` keys, one behind the other.

    ``elements`` is how many elements this window is the last one of. They are told to one subtask of all that have a
    share in the window: the watermark is the same in each, so the window is late for all of them or for none.
    """

    start: int
    end: int
    keys: int
    elements: int


@dataclass(frozen=True, slots=True)
class Partials:
    """Reduced elements: ``keys`` and ``values`` side by side, window by window as ``shares`` says."""

    shares: list[Share]
    keys: list[Any]
    values: list[Any]
    place: int

    def __len__(self) -> int:
        """How many elements they stand for."""
        return sum(share.elements for share in self.shares)

    def by_window(self) -> Iterator[tuple[TimeWindow, int, list[Any], list[Any]]]:
        """Each window with the number of elements that are counted here, and its keys and values."""
        at = 0
        for start, end, keys, elements in self.shares:
            yield TimeWindow(start, end), elements, self.keys[at : at + keys], self.values[at : at + keys]
            at += keys


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
            DataError: if a key is not of its declared type, or a value cannot be pickled.
        """
        keys, values = partials.keys, partials.values
        key_column = None if self.key_type.is_pickled else self.key_type.to_arrow(keys)
        if key_column is not None and self.key_type.keeps(keys) and self.value_type.keeps(values):
            try:
                value_column = self.value_type.to_arrow(values)
            except (DataError, ValueError, OverflowError):
                pass  # too large a number, say: it need not fit before it is done
            else:
                content = {_WINDOWS: json.dumps(partials.shares), b"place": str(partials.place)}
                table = pa.table({"key": key_column, "value": value_column})
                return _COLUMNS + encode_table(table.replace_schema_metadata(content))
        if key_column is not None:
            keys = self.key_type.from_arrow(key_column)
        try:
            return _PICKLED + dumps(([tuple(share) for share in partials.shares], keys, values, partials.place))
        except Exception as error:
            raise DataError(f"what the reduce function gave cannot be pickled: {error!r}") from error

    def decode(self, data: bytes) -> Partials:
        """The inverse of :meth:`encode`."""
        if data[:1] == _PICKLED:
            shares, keys, values, place = pickle.loads(memoryview(data)[1:])
            return Partials([Share(*share) for share in shares], keys, values, place)
        table = decode_table(data[1:])
        content = table.schema.metadata
        return Partials(
            [Share(*share) for share in json.loads(content[_WINDOWS])],
            self.key_type.from_arrow(table.column("key")),
            self.value_type.from_arrow(table.column("value")),
            int(content[b"place"]),
        )
