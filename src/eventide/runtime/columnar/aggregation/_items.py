"""Values as what sketches can hash and keep, which are 64-bit integers and text, and back."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

Item = int | str
"""A value in a sketch: text of text, bytes and decimals, an integer of everything else."""


def to_items(values: pa.Array) -> list[Item]:
    """Return values, which have no null, one NaN and no -0.0, as items.

    The bits of a double, those of a negative one turned over, are an integer that has the order of the doubles.

    >>> to_items(pa.array([1.5, -2.0]))
    [4609434218613702656, -4611686018427387905]
    """
    kind = values.type
    if pa.types.is_floating(kind):
        values = pa.array(_turned(values.cast(pa.float64()).to_numpy().view(np.int64)))
    elif pa.types.is_binary(kind):
        return [value.decode("latin-1") for value in values.to_pylist()]
    elif pa.types.is_decimal(kind):
        values = values.cast(pa.string())
    elif pa.types.is_date32(kind):
        values = values.cast(pa.int32())
    elif not pa.types.is_string(kind):
        values = values.cast(pa.int64())
    items: list[Item] = values.to_pylist()
    return items


def from_items(items: Sequence[Item | None], kind: pa.DataType) -> pa.Array:
    """Return items as values of a type; None is null.

    >>> from_items([4609434218613702656, None], pa.float64()).to_pylist()
    [1.5, None]
    """
    if pa.types.is_string(kind):
        return pa.array(items, kind)
    if pa.types.is_binary(kind):
        return pa.array([item.encode("latin-1") if isinstance(item, str) else None for item in items], kind)
    if pa.types.is_decimal(kind):
        return pa.array(items, pa.string()).cast(kind)
    numbers = pa.array(items, pa.int64())
    if pa.types.is_floating(kind):
        doubles = _turned(numbers.fill_null(0).to_numpy()).view(np.float64)
        return pa.array(doubles, mask=numbers.is_null().to_numpy(zero_copy_only=False)).cast(kind)
    return numbers.cast(pa.int32()).cast(kind) if pa.types.is_date32(kind) else numbers.cast(kind)


def order_of(item: Item, kind: pa.DataType) -> Item | Decimal:
    """Return what an item is compared by; items of one type compare as their values do.

    >>> sorted(["10", "9"], key=lambda item: order_of(item, pa.decimal128(38, 0)))
    ['9', '10']
    """
    return Decimal(item) if pa.types.is_decimal(kind) else item


def _turned(bits: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Turn all bits but the sign of negative numbers over; twice is as before."""
    return np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)
