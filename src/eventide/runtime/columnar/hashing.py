"""From columns of keys to key groups and subtasks: the same in every process, for a column at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_STRINGS_AT_ONCE = 1 << 16
_PRIME = np.uint64(0x9E3779B97F4A7C15)
_NULL = np.uint64(0x5851F42D4C957F2D)

Hashes: TypeAlias = np.ndarray[Any, Any]


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


def key_groups(columns: Sequence[pa.ChunkedArray], max_parallelism: int) -> Hashes:
    """The key group of each row; group 0 where there are no keys at all."""
    mixed = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        mixed = _scrambled(mixed * _PRIME + _hashes(column))
    return (mixed % np.uint64(max_parallelism)).astype(np.int64)


def owners(columns: Sequence[pa.ChunkedArray], max_parallelism: int, subtasks: int) -> Hashes | None:
    """The subtask of each row; None where one subtask has them all."""
    if subtasks == 1 or not columns:
        return None
    return key_groups(columns, max_parallelism) * subtasks // max_parallelism


def _hashes(column: pa.ChunkedArray) -> Hashes:
    array = key_column(column)
    if len(array) and (pa.types.is_string(array.type) or pa.types.is_binary(array.type)):
        distinct = pc.dictionary_encode(array)  # each text is hashed once
        codes = distinct.indices.fill_null(0).to_numpy(zero_copy_only=False)
        hashes = _of_text(distinct.dictionary)
        hashes = hashes[codes] if len(hashes) else np.zeros(len(array), np.uint64)
    else:
        hashes = _scrambled(_as_numbers(array))
    if array.null_count:
        hashes = np.where(array.is_null().to_numpy(zero_copy_only=False), _NULL, hashes)
    return hashes


def _as_numbers(array: pa.Array) -> Hashes:
    """Any column of fixed width as 64 bits each; equal values give equal bits."""
    kind = array.type
    if pa.types.is_decimal(kind):
        return _of_text(array.cast(pa.string()).fill_null(""))
    if pa.types.is_floating(kind):
        array = array.cast(pa.float64()).view(pa.int64())
    elif pa.types.is_date32(kind) or pa.types.is_time32(kind):
        array = array.view(pa.int32()).cast(pa.int64())
    elif pa.types.is_temporal(kind) or (pa.types.is_unsigned_integer(kind) and kind.bit_width == 64):
        array = array.view(pa.int64())
    else:
        array = array.cast(pa.int64())
    numbers: Hashes = array.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64, copy=False).view(np.uint64)
    return numbers


def _of_text(array: pa.Array) -> Hashes:
    """A polynomial over the bytes of each text, modulo 2**64."""
    array = array.cast(pa.large_binary())
    parts = [array.slice(start, _STRINGS_AT_ONCE) for start in range(0, len(array), _STRINGS_AT_ONCE)]
    return np.concatenate([_of_few_texts(part) for part in parts]) if parts else np.zeros(0, np.uint64)


def _of_few_texts(array: pa.Array) -> Hashes:
    _, offsets_buffer, data = array.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int64)[array.offset : array.offset + len(array) + 1]
    lengths = np.diff(offsets)
    hashes = lengths.astype(np.uint64)
    if data is None or not lengths.any():
        return _scrambled(hashes)
    content = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]].astype(np.uint64)
    starts = offsets[:-1] - offsets[0]
    powers = np.cumprod(np.full(int(lengths.max()), _PRIME))
    place = np.arange(len(content)) - np.repeat(starts, lengths)
    terms = (content + np.uint64(1)) * powers[place]
    filled = lengths > 0
    hashes[filled] += np.add.reduceat(terms, starts[filled])
    return _scrambled(hashes)


def _scrambled(values: Hashes) -> Hashes:
    """Spread the bits: the last step of splitmix64."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    scrambled: Hashes = values ^ (values >> np.uint64(31))
    return scrambled
