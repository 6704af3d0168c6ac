"""A batch of elements, side by side with their time and key: as Python objects and as columns for Arrow."""

from __future__ import annotations

import gc
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.common.ms import MIN_MS
from eventide.common.typeinfo import CompositeTypeInfo, TypeInformation
from eventide.pickling.pickles import dumps
from eventide.runtime.elements.ordering import are_first, equal_runs
from eventide.runtime.elements.ownership import own_each

__all__ = [
    "columns_of_fields",
    "from_fields",
    "types_of_fields",
]


def types_of_fields(kind: TypeInformation) -> Sequence[TypeInformation]:
    """The types of the fields of a value.

    >>> from eventide.common import Types
    >>> types_of_fields(Types.TUPLE([Types.STRING(), Types.LONG()]))
    (STRING, LONG)
    >>> types_of_fields(Types.LONG())
    [LONG]
    """
    return kind.types if isinstance(kind, CompositeTypeInfo) else [kind]


def columns_of_fields(values: pa.Array, kind: TypeInformation) -> list[pa.Array]:
    """The columns of the fields of values of a type; where a value is None, its fields are."""
    return list(values.flatten()) if isinstance(kind, CompositeTypeInfo) else [values]


def from_fields(columns: Sequence[pa.Array], kind: TypeInformation) -> pa.Array:
    """The column of the values of a type that have these fields; none of the values is None."""
    if not isinstance(kind, CompositeTypeInfo):
        return columns[0]
    return pa.StructArray.from_arrays(columns, fields=list(kind.arrow_type()))


FRAME_BYTES = 1 << 18
"""The size of a frame of many elements, in bytes, before what Arrow or a pickle adds."""

_HANDY = 8_192
_SAMPLE = 8
"""How many objects are looked at to find the size of all."""

Numbers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
"""Integers, one for each of some elements."""


class Elements:
    """A batch of elements, side by side with their event time, their key and their number in the order of arrival.

    It has two faces, and each is made when it is asked for. The one for Python functions is the lists ``values``,
    ``timestamps`` (milliseconds since the epoch, None for an element without one) and ``sequence``. The one for Arrow
    is ``columns``: elements have it that came so and were not changed, and lists are made from it once.

    ``sequence`` is the index of each element in its split or task within the micro-batch: elements of several channels
    interleave by it, which makes the order of a batch the same on every replay. ``keys`` is empty on edges without a
    key.

    >>> Elements(["a", "b"], [5, 7], [0, 1]).at([1])
    Elements(['b'], [7], [1], [])
    """

    __slots__ = ("_columns", "_sequence", "_timestamps", "_values", "keys")

    def __init__(
        self,
        values: list[Any] | None = None,
        timestamps: list[int | None] | None = None,
        sequence: list[int] | None = None,
        keys: list[Any] | None = None,
        *,
        columns: Columns | None = None,
    ) -> None:
        """Make a batch of lists, of columns, or of both where they say the same; of nothing, an empty one."""
        if columns is None:
            values = [] if values is None else values
            timestamps = [] if timestamps is None else timestamps
            sequence = [] if sequence is None else sequence
        self._values = values
        self._timestamps = timestamps
        self._sequence = sequence
        self._columns = columns
        self.keys: list[Any] = [] if keys is None else keys

    def __len__(self) -> int:
        return len(self._of_columns()) if self._values is None else len(self._values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Elements) and self._lists() == other._lists()

    def __repr__(self) -> str:
        return f"Elements({', '.join(map(repr, self._lists()))})"

    @property
    def columns(self) -> Columns | None:
        """The elements without their keys as columns, which have the declared type for certain; None if they have none.

        Values that are made from columns have no other owner.
        """
        return self._columns

    @property
    def is_unread(self) -> bool:
        """Whether there is no Python object yet for any of the values."""
        return self._values is None

    @property
    def values(self) -> list[Any]:
        """The elements themselves."""
        if self._values is None:
            columns = self._of_columns()
            with without_collection():
                self._values = columns.type_info.from_arrow(columns.values)
        return self._values

    @values.setter
    def values(self, values: list[Any]) -> None:
        self._sequence, self._timestamps = self.sequence, self.timestamps
        self._values, self._columns = values, None

    @property
    def timestamps(self) -> list[int | None]:
        """The event time of each element, in milliseconds since the epoch."""
        if self._timestamps is None:
            times = self._of_columns().timestamps
            if times is None:
                self._timestamps = [None] * len(self)
            else:
                self._timestamps = times.to_pylist() if times.null_count else times.to_numpy().tolist()
        return self._timestamps

    @property
    def sequence(self) -> list[int]:
        """The number of each element in its split or task."""
        if self._sequence is None:
            self._sequence = self._of_columns().sequence.to_numpy().tolist()
        return self._sequence

    def numbers(self) -> Numbers:
        """The number of each element, as an array."""
        if self._sequence is None:
            numbers: Numbers = self._of_columns().sequence.to_numpy()
            return numbers
        return np.array(self._sequence, np.int64)

    @property
    def first(self) -> int:
        """The number of the first element."""
        return int(self._of_columns().sequence[0].as_py()) if self._sequence is None else self._sequence[0]

    @property
    def nbytes(self) -> int:
        """About how many bytes the elements take on their way, without keys and timestamps.

        Of Python objects, a few are looked at; those that cannot be pickled count for nothing.
        """
        if self._columns is not None:
            return int(self._columns.values.nbytes)
        values = self.values[:: max(1, len(self) // _SAMPLE)]
        try:
            return len(dumps(values)) * len(self) // len(values) if values else 0
        except Exception:  # whatever a user's class raises; it is told where they are sent
            return 0

    def as_columns(self, type_info: TypeInformation) -> Columns:
        """The elements without their keys as columns, also where they have none yet.

        Raises:
            TypeMismatch: if an element does not have the type that was declared for it.
        """
        if self._columns is not None:
            return self._columns
        values, timestamps = type_info.to_arrow(self.values), pa.array(self.timestamps, pa.int64())
        return Columns(type_info, values, timestamps, pa.array(self.sequence, pa.int64()))

    def pieces(self) -> Iterator[Elements]:
        """Give the elements some at a time: Python objects of all of them leave the processor's cache."""
        if self._values is None:
            for start in range(0, len(self), _HANDY):
                yield self.slice(start, _HANDY)
        elif self._values:
            yield self

    def at(self, indices: Sequence[int] | Numbers) -> Elements:
        """Return the elements at some indices, in the order of the indices."""
        if self._columns is not None:
            of_columns = self._columns.at(pa.array(indices, pa.int64()))
            return Elements(keys=[self.keys[i] for i in indices] if self.keys else None, columns=of_columns)
        indices = indices.tolist() if isinstance(indices, np.ndarray) else indices
        return Elements(
            list(map(self.values.__getitem__, indices)),
            list(map(self.timestamps.__getitem__, indices)),
            list(map(self.sequence.__getitem__, indices)),
            list(map(self.keys.__getitem__, indices)) if self.keys else None,
        )

    def slice(self, start: int, rows: int) -> Elements:
        """Return `rows` elements from an index on, or fewer where they end."""
        if self._columns is None:
            return self.between(start, start + rows)
        return Elements(keys=self.keys[start : start + rows], columns=self._columns.slice(start, rows))

    def cut(self, begin: int, point: int) -> tuple[Elements | None, int | None]:
        """Return the elements from an index on up to a point, and the index of the rest (None: there is none)."""
        if self._sequence is None:
            end = int(np.searchsorted(self._of_columns().sequence.to_numpy(), point, "right"))
        else:
            end = bisect_right(self._sequence, point, begin)
        rest = None if end == len(self) else end
        if begin == 0 and rest is None:
            return self, None
        return self.between(begin, end) or None, rest

    def between(self, begin: int, end: int) -> Elements:
        """The elements from one index up to another, which is exclusive."""
        if self._values is None:
            return self.slice(begin, end - begin)
        span = slice(begin, end)
        return Elements(self.values[span], self.timestamps[span], self.sequence[span], self.keys[span])

    def copy(self) -> Elements:
        """The elements for another owner: a change by one owner is not seen by the other."""
        values = None if self._values is None else own_each(self._values)
        return Elements(values, self._timestamps, self._sequence, self.keys, columns=self._columns)

    def typed(self, declared: TypeInformation | None) -> Elements:
        """The elements for a reader that has declared their type: without columns where these are of another one."""
        columns = self._columns
        if columns is None or declared is None or declared.is_pickled or declared == columns.type_info:
            return self
        return Elements(self.values, self.timestamps, self.sequence, self.keys)

    def light(self) -> Elements:
        """The elements without Python objects where they have columns, and as they are where they have none."""
        return self if self._columns is None else Elements(keys=self.keys, columns=self._columns)

    def with_timestamps(self, timestamps: pa.Array) -> Elements:
        """The elements of columns with other timestamps."""
        columns = replace(self._of_columns(), timestamps=timestamps)
        return Elements(self._values, None, self._sequence, self.keys, columns=columns)

    def shifted(self, by: int) -> Elements:
        """Return a copy whose sequence numbers are shifted by `by`."""
        if self._columns is not None:
            return Elements(self._values, self._timestamps, None, self.keys, columns=self._columns.shifted(by))
        return Elements(self.values, self.timestamps, [number + by for number in self.sequence], self.keys)

    def extend(self, others: Elements) -> None:
        """Put other elements at the end of lists."""
        self.values.extend(others.values)
        self.timestamps.extend(others.timestamps)
        self.sequence.extend(others.sequence)
        self.keys.extend(others.keys)

    def append(self, value: object, timestamp: int | None, sequence: int) -> None:
        """Add one element without a key to lists."""
        self.values.append(value)
        self.timestamps.append(timestamp)
        self.sequence.append(sequence)

    def shorten(self, count: int) -> None:
        """Forget all but the first of elements without keys, also what was not yet added in full."""
        del self.values[count:], self.timestamps[count:], self.sequence[count:]

    def rows(self) -> Iterator[tuple[Any, Any, int | None]]:
        """Each element as ``(key, value, timestamp)``; the key is None if there are no keys."""
        keys = self.keys or [None] * len(self)
        return zip(keys, self.values, self.timestamps, strict=True)

    def _of_columns(self) -> Columns:
        if self._columns is None:
            raise ValueError("these elements have lists, and no columns")
        return self._columns

    def _lists(self) -> tuple[list[Any], list[int | None], list[int], list[Any]]:
        return self.values, self.timestamps, self.sequence, self.keys


def interleave(parts: Sequence[Elements]) -> Elements:
    """Put elements of several channels into the one defined order: by number in their channel, then by channel."""
    if len(parts) == 1:
        return parts[0]
    together = _joined(parts)
    columns = together.columns
    indices = np.array(together.sequence, np.int64) if columns is None else columns.sequence.to_numpy()
    if bool((indices[1:] >= indices[:-1]).all()):
        return together
    return together.at(np.argsort(indices, kind="stable"))


def _joined(parts: Sequence[Elements]) -> Elements:
    """All elements of several parts, one part after the other: on columns as long as all are columns of one type."""
    if len(parts) == 1:
        return parts[0]
    columns = [part.columns for part in parts if part.columns is not None and part.is_unread]
    is_one_type = len(columns) == len(parts) and all(part.type_info == columns[0].type_info for part in columns)
    if parts and is_one_type and is_small(sum(part.values.nbytes for part in columns)):
        return Elements(keys=list(chain.from_iterable(part.keys for part in parts)), columns=Columns.joined(columns))
    together = Elements()
    for part in parts:
        together.extend(part)
    return together


def interleaved_columns(parts: Sequence[Elements], type_info: TypeInformation) -> Columns:
    """Put elements of several channels into the one defined order, as :func:`interleave` does, in columns."""
    together = Columns.joined([part.as_columns(type_info) for part in parts])
    numbers = together.sequence.to_numpy()
    if bool((numbers[1:] >= numbers[:-1]).all()):
        return together
    return together.at(pa.array(np.argsort(numbers, kind="stable")))


def columns_in_time_order(
    type_info: TypeInformation, inputs: Mapping[int, list[Elements]]
) -> Iterator[tuple[int, Elements]]:
    """Give the elements of each input, one input after the other, in the order of their timestamps, in columns.

    Elements without a timestamp come first; those of one time stay in their order.
    """
    for number, parts in inputs.items():
        columns = interleaved_columns(parts, type_info)
        if columns.timestamps is not None:
            times = columns.timestamps.fill_null(MIN_MS).to_numpy()
            columns = columns.at(pa.array(np.argsort(times, kind="stable")))
        columns.sequence = pa.array(np.arange(len(columns)))
        yield number, Elements(columns=columns)


def in_time_order(inputs: Mapping[int, list[Elements]]) -> Iterator[tuple[int, Elements]]:
    """Give the elements of all inputs so that those of each key come in the order of their timestamps.

    Batch execution hands them to operators with keys so. Elements without a timestamp come first; those of one time
    stay in their order, by input. Each input is given in few parts: first those of each key that come before its first
    change from one input to another, then those up to its second change, and so on.

    Args:
        inputs: for each input, by number, its elements, of one or several channels.

    Yields:
        the number of an input, and some of its elements, in the order of their timestamps.

    >>> one = Elements(["a9", "a3", "b7"], [9, 3, 7], [0, 1, 2], ["a", "a", "b"])
    >>> other = Elements(["a5"], [5], [0], ["a"])
    >>> [(number, elements.values) for number, elements in in_time_order({0: [one], 1: [other]})]
    [(0, ['a3', 'b7']), (1, ['a5']), (0, ['a9'])]
    """
    joined = {number: interleave(parts) for number, parts in inputs.items()}
    together = _joined([*joined.values()])
    times = np.array([MIN_MS if timestamp is None else timestamp for timestamp in together.timestamps], np.int64)
    order = np.argsort(times, kind="stable")
    if len(joined) == 1:
        yield from ((number, together.at(order)) for number in joined)
    elif together:
        input_of = np.repeat([*joined], [*map(len, joined.values())])
        turn_of = _turns(together.keys, input_of, order)
        order = order[np.lexsort((input_of[order], turn_of[order]))]
        in_order, input_of, turn_of = together.at(order), input_of[order], turn_of[order]
        for begin, end in equal_runs(input_of, turn_of):
            yield int(input_of[begin]), in_order.between(begin, end)


def _turns(keys: Sequence[Any], input_of: Numbers, order: Numbers) -> Numbers:
    """For each element, how often its key has changed from one input to another before it, in an order."""
    numbers: dict[Any, int] = {}
    key_of = np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)
    by_key = order[np.argsort(key_of[order], kind="stable")]
    is_first = are_first(key_of[by_key])
    changes = np.cumsum(are_first(input_of[by_key]) & ~is_first)
    turns = np.empty(len(keys), np.int64)
    turns[by_key] = changes - changes[is_first][np.cumsum(is_first) - 1]
    return turns


_SMALL_BYTES = 1 << 30


def is_small(size: int) -> bool:
    """Whether a number of bytes fits into one array of Arrow, which has 2 GB of text at most, with room for more."""
    return size < _SMALL_BYTES


@dataclass(slots=True)
class Columns:
    """Values of a declared type, side by side with their event time and their number in the order of arrival.

    ``values`` is an array of the type's Arrow type; ``timestamps`` are int64 milliseconds, or None if no element has
    one; ``sequence`` (int64) is the index of each element in its split or task within the micro-batch.
    """

    type_info: TypeInformation
    values: pa.Array
    timestamps: pa.Array | None
    sequence: pa.Array

    def __len__(self) -> int:
        return len(self.values)

    @staticmethod
    def joined(parts: Sequence[Columns]) -> Columns:
        """Join several batches of columns."""
        if len(parts) == 1:
            return parts[0]
        timestamps = None
        if any(part.timestamps is not None for part in parts):
            timestamps = pa.concat_arrays([part.timestamps_or_nulls() for part in parts])
        values = pa.concat_arrays([part.values for part in parts])
        return Columns(parts[0].type_info, values, timestamps, pa.concat_arrays([part.sequence for part in parts]))

    def field(self, name: str) -> pa.Array:
        """One field of the elements."""
        return pc.struct_field(self.values, name)

    def fields(self) -> pa.RecordBatch | pa.Array:
        """The elements as users see many of them: a batch with a column for each field, or an array without fields."""
        has_fields = pa.types.is_struct(self.values.type)
        return pa.RecordBatch.from_struct_array(self.values) if has_fields else self.values

    def timestamps_or_nulls(self) -> pa.Array:
        """The timestamps as an array in any case."""
        return pa.nulls(len(self), pa.int64()) if self.timestamps is None else self.timestamps

    def filtered(self, mask: pa.Array) -> Columns:
        """Return the elements for which a truth value is true."""
        return self._each(lambda column: column.filter(mask))

    def at(self, indices: pa.Array) -> Columns:
        """Return the elements at some indices, in the order of the indices."""
        return self._each(lambda column: column.take(indices))

    def shifted(self, by: int) -> Columns:
        """Return a copy whose sequence numbers are shifted by `by`."""
        return replace(self, sequence=pc.add(self.sequence, by))

    def slice(self, start: int, rows: int) -> Columns:
        """Return `rows` elements from an index on, or fewer where they end."""
        return self._each(lambda column: column.slice(start, rows))

    def _each(self, change: Callable[[pa.Array], pa.Array]) -> Columns:
        timestamps = None if self.timestamps is None else change(self.timestamps)
        return Columns(self.type_info, change(self.values), timestamps, change(self.sequence))


def frame_slices(content: Any, at_most: int = FRAME_BYTES) -> Iterator[tuple[int, int]]:
    """Cut an array, record batch or table into parts of about `at_most` bytes: where each starts, and its rows.

    A frame is a row for Spark, which copies it whole, several times: half a MB is what Java's garbage collector still
    takes for an ordinary object, in a heap of the usual size. A part has more than twice as many bytes only where it
    is a single row, however unequal the rows are.
    """
    rows = len(content)
    at_once = max(1, at_most * rows // max(1, content.nbytes))
    for start in range(0, rows, at_once):
        part = content.slice(start, at_once)
        if at_once < rows and len(part) > 1 and part.nbytes > 2 * at_most:
            yield from ((start + within, count) for within, count in frame_slices(part, at_most))
        else:
            yield start, len(part)


@contextmanager
def without_collection() -> Iterator[None]:
    """Let the collector rest in a block, or in a decorated function, which makes many objects: of columns, or of state.

    It looks through all objects again and again as they are made, though none of them can be garbage yet: that is half
    of the time it takes to make many. Within another such block, or where the program has switched it off, nothing
    changes.

    >>> with without_collection():
    ...     gc.isenabled()
    False
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
