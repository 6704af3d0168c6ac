"""From columns of keys to their hashes and subtasks: a column at a time, as :mod:`.keys` does with Python's values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.runtime.elements import hashing
from eventide.runtime.elements.hashing import Hashes
from eventide.runtime.elements.keys import hashes_of, subtasks_of_hashes

_MICROSECONDS = {"s": 1_000_000, "ms": 1_000, "us": 1}


def key_column(array: Any) -> pa.Array:
    """A column as part of a key: of floating-point numbers that are equal, and of all NaN, there is one form.

    >>> key_column(pa.array([0.0, -0.0])).equals(pa.array([0.0, 0.0]))
    True
    """
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_floating(array.type):
        array = pc.if_else(
            pc.is_nan(array), pa.scalar(float("nan"), array.type), pc.add(array, pa.scalar(0, array.type))
        )
    return array


def hashes_of_columns(columns: Sequence[Any]) -> Hashes:
    """The hash of the key in each row, which consists of one column or of several.

    A key of one column has the hash of its value, one of several that of the tuple of their values; a null counts as
    None, and all NaN are equal.

    >>> from eventide.runtime.elements.keys import stable_hash
    >>> rows = [pa.array(["a", None]), pa.array([1, 2])]
    >>> hashes_of_columns(rows).tolist() == [stable_hash(("a", 1.0)), stable_hash((None, 2))]
    True
    """
    fields = [_of_column(key_column(column)) for column in columns]
    return fields[0] if len(fields) == 1 else hashing.of_field_columns(fields)


def owners(columns: Sequence[Any], max_parallelism: int, subtasks: int) -> np.ndarray[Any, Any] | None:
    """The subtask of each row; None where one subtask has them all."""
    if subtasks == 1 or not columns:
        return None
    return subtasks_of_hashes(hashes_of_columns(columns), max_parallelism, subtasks)


def _of_column(array: pa.Array) -> Hashes:
    kind = array.type
    if _is_text(kind) or pa.types.is_decimal(kind):
        distinct = pc.dictionary_encode(array)  # each is hashed once
        codes = distinct.indices.fill_null(0).to_numpy(zero_copy_only=False)
        values = distinct.dictionary
        hashes = hashing.of_texts(values) if _is_text(kind) else hashes_of(values.to_pylist())
        hashes = hashes[codes] if len(hashes) else np.zeros(len(array), np.uint64)
    else:
        hashes = _of_plain_column(array)
    if array.null_count:
        hashes = np.where(array.is_null().to_numpy(zero_copy_only=False), np.uint64(hashing.NULL), hashes)
    return hashes


def _is_text(kind: pa.DataType) -> bool:
    of_a_kind = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return any(is_one(kind) for is_one in of_a_kind)


def _of_plain_column(array: pa.Array) -> Hashes:
    """The hashes of numbers, dates and times; what a null gets has no meaning."""
    kind = array.type
    if pa.types.is_floating(kind):
        return hashing.of_floats(array.cast(pa.float64()).fill_null(0).to_numpy(zero_copy_only=False))
    if pa.types.is_integer(kind):
        return hashing.of_integers(array.fill_null(0).to_numpy(zero_copy_only=False))
    if pa.types.is_boolean(kind):
        return hashing.of_integers(array.cast(pa.int8()).fill_null(0).to_numpy(zero_copy_only=False))
    if pa.types.is_date(kind):
        days = array.cast(pa.date32()).view(pa.int32()).cast(pa.int64())
        return hashing.of_plain(days.fill_null(0).to_numpy(zero_copy_only=False), hashing.DATE)
    for is_one, number in (
        (pa.types.is_time, hashing.TIME),
        (pa.types.is_timestamp, hashing.MOMENT),
        (pa.types.is_duration, hashing.STRETCH),
    ):
        if is_one(kind):
            return hashing.of_plain(_microseconds(array), number)
    return hashes_of(array.to_pylist())


def _microseconds(array: pa.Array) -> np.ndarray[Any, Any]:
    """Times in the unit of Python's."""
    narrow = pa.types.is_time32(array.type)
    numbers = array.view(pa.int32()).cast(pa.int64()) if narrow else array.view(pa.int64())
    found: np.ndarray[Any, Any] = numbers.fill_null(0).to_numpy(zero_copy_only=False)
    return found // 1_000 if array.type.unit == "ns" else found * _MICROSECONDS[array.type.unit]
