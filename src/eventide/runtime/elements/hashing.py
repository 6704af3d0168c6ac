"""The arithmetic of the one hash of keys: 64 bits, for a value at a time and, in the same way, for an array of them.

| what | its number before it is scrambled |
|---|---|
| a number of whatever type | Python's own ``hash``, which is the same in every process and equal for equal numbers |
| text or bytes | a polynomial over the bytes (UTF-8), modulo 2**64 |
| a date, a time, a moment, a stretch of time | days, or microseconds |
| several fields | the hashes of the fields, each added to what is before it times a prime |

:mod:`eventide.runtime.elements.keys` has the doors for one key, for a list of keys, and for columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import mul
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

Hashes: TypeAlias = np.ndarray[Any, np.dtype[np.uint64]]
"""One hash for each key."""

NUMBER, TEXT, DATE, TIME, MOMENT, STRETCH, FIELDS, NAME, SET, RECORD = (
    kind * 0x5851F42D4C957F2D & 0xFFFFFFFFFFFFFFFF for kind in range(1, 11)
)
"""Number that is added for each kind of value, so that values of different kinds differ."""

NULL = 0x5851F42D4C957F2D
"""The hash of None, and of a null in a column."""

_BITS = 0xFFFFFFFFFFFFFFFF
_PRIME = 0x9E3779B97F4A7C15
_FIRST, _SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_MODULUS = 2**61 - 1
_INFINITY, _NAN = 314159, 271828
_TEXTS_AT_ONCE = 1 << 16
_POWERS = [_PRIME]
_SUMS = [0, _PRIME]


def scrambled(number: int) -> int:
    """Spread the bits of a number: the last step of splitmix64.

    >>> scrambled(1) == int(all_scrambled(np.array([1], np.uint64))[0])
    True
    """
    number &= _BITS
    number = (number ^ number >> 30) * _FIRST & _BITS
    number = (number ^ number >> 27) * _SECOND & _BITS
    return number ^ number >> 31


def all_scrambled(numbers: Hashes) -> Hashes:
    """:func:`scrambled` for each of many."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(_FIRST)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(_SECOND)
    return numbers ^ (numbers >> np.uint64(31))


def of_text(data: bytes) -> int:
    """The hash of text or bytes."""
    size = len(data)
    while len(_POWERS) < size:
        _POWERS.append(_POWERS[-1] * _PRIME & _BITS)
        _SUMS.append(_SUMS[-1] + _POWERS[-1] & _BITS)
    return scrambled(TEXT + size + _SUMS[size] + sum(map(mul, data, _POWERS)))


def of_texts(array: pa.Array) -> Hashes:
    """:func:`of_text` for each of an array of text or bytes; the hash of a null has no meaning."""
    array = array.cast(pa.large_binary())
    parts = [array.slice(start, _TEXTS_AT_ONCE) for start in range(0, len(array), _TEXTS_AT_ONCE)]
    return np.concatenate([_of_few_texts(part) for part in parts]) if parts else np.zeros(0, np.uint64)


def _of_few_texts(array: pa.Array) -> Hashes:
    _, offsets_buffer, data = array.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int64)[array.offset : array.offset + len(array) + 1]
    lengths = np.diff(offsets)
    hashes = lengths.astype(np.uint64) + np.uint64(TEXT)
    if data is not None and lengths.any():
        content = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]].astype(np.uint64)
        starts = offsets[:-1] - offsets[0]
        powers = np.cumprod(np.full(int(lengths.max()), np.uint64(_PRIME)))
        position = np.arange(len(content)) - np.repeat(starts, lengths)
        terms = (content + np.uint64(1)) * powers[position]
        filled = lengths > 0
        hashes[filled] += np.add.reduceat(terms, starts[filled])
    return all_scrambled(hashes)


def of_plain(numbers: np.ndarray[Any, Any], kind: int) -> Hashes:
    """The hashes of 64-bit integers that stand for values of a kind."""
    return all_scrambled(numbers.astype(np.int64, copy=False).view(np.uint64) + np.uint64(kind))


def of_integers(numbers: np.ndarray[Any, Any]) -> Hashes:
    """The hashes of numbers in an array of signed or unsigned integers, as Python's ``hash`` has them."""
    if len(numbers) and (numbers.max() >= _MODULUS or numbers.min() <= -_MODULUS):
        numbers = np.fmod(numbers, np.asarray(_MODULUS, numbers.dtype))
    return of_plain(_without_minus_one(numbers.astype(np.int64, copy=False)), NUMBER)


def of_floats(numbers: np.ndarray[Any, Any]) -> Hashes:
    """The hashes of numbers in an array of float64, as Python's ``hash`` has them; all NaN have one."""
    bits = numbers.view(np.uint64)
    exponents = (bits >> np.uint64(52)) & np.uint64(0x7FF)
    whole = bits & np.uint64(2**52 - 1)
    is_normal = exponents > 0
    whole |= is_normal.astype(np.uint64) << np.uint64(52)
    turn = (np.maximum(exponents, np.uint64(1)) + np.uint64(23)) % np.uint64(61)  # 23 is -1075, modulo 61
    # Times a power of two, modulo 2**61 - 1: the 61 bits turn.
    found = (((whole << turn) & np.uint64(_MODULUS)) | (whole >> (np.uint64(61) - turn))).view(np.int64)
    if (exponents == np.uint64(0x7FF)).any():
        found = np.where(np.isinf(numbers), _INFINITY, np.where(np.isnan(numbers), _NAN, found))
    return of_plain(_without_minus_one(np.where(numbers < 0, -found, found)), NUMBER)


def of_fields(fields: Iterable[int], kind: int = FIELDS) -> int:
    """The hash of several fields, given those of each in their order."""
    mixed = kind
    for field in fields:
        mixed = scrambled(mixed * _PRIME + field)
    return mixed


def of_field_columns(fields: Sequence[Hashes]) -> Hashes:
    """:func:`of_fields` for each of many keys, given the hashes of their first fields, of their second ones, ..."""
    mixed = np.full(len(fields[0]), FIELDS, np.uint64)
    for field in fields:
        mixed = all_scrambled(mixed * np.uint64(_PRIME) + field)
    return mixed


def _without_minus_one(numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.where(numbers == -1, -2, numbers)  # no hash is -1 in Python
