"""The columns of elements: their face for Arrow, with no Python object for any of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from eventide.common.typeinfo import TypeInformation

_FRAME_BYTES = 1 << 18


@dataclass(slots=True)
class Columns:
    """Values of a declared type, side by side with their event time and their number in the order of arrival.

    ``values`` is an array of the type's Arrow type; ``timestamps`` are int64 milliseconds, or None where no element has
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

    @property
    def first(self) -> int:
        """Where the first element stands in its split or task."""
        return int(self.sequence[0].as_py())

    def fields(self) -> pa.RecordBatch | pa.Array:
        """The elements as users see many of them: a batch with a column for each field, or an array without fields."""
        has_fields = pa.types.is_struct(self.values.type)
        return pa.RecordBatch.from_struct_array(self.values) if has_fields else self.values

    def timestamps_or_nulls(self) -> pa.Array:
        """The timestamps as an array in any case."""
        return pa.nulls(len(self), pa.int64()) if self.timestamps is None else self.timestamps

    def filtered(self, mask: pa.Array) -> Columns:
        """Return the elements for which a truth value is true."""
        timestamps = None if self.timestamps is None else self.timestamps.filter(mask)
        return Columns(self.type_info, self.values.filter(mask), timestamps, self.sequence.filter(mask))

    def at(self, indices: pa.Array) -> Columns:
        """Return the elements at some indices, in the order of the indices."""
        timestamps = None if self.timestamps is None else self.timestamps.take(indices)
        return Columns(self.type_info, self.values.take(indices), timestamps, self.sequence.take(indices))

    def shifted(self, by: int) -> Columns:
        """Return a copy whose sequence numbers are shifted by `by`."""
        return replace(self, sequence=pc.add(self.sequence, by))

    def slice(self, start: int, rows: int) -> Columns:
        """Return `rows` elements from an index on, or fewer where they end."""
        timestamps = None if self.timestamps is None else self.timestamps.slice(start, rows)
        return Columns(self.type_info, self.values.slice(start, rows), timestamps, self.sequence.slice(start, rows))


def frame_slices(rows: int, size: int) -> Iterator[tuple[int, int]]:
    """Cut `rows` rows of `size` bytes in total into frames: where each starts, and how many rows it has.

    A frame is a row of Spark's, which copies it whole, several times: half a MB is what Java's garbage collector still
    takes for an ordinary object, in a heap of the usual size.
    """
    at_once = max(1, _FRAME_BYTES * rows // max(1, size))
    for start in range(0, rows, at_once):
        yield start, min(at_once, rows - start)
