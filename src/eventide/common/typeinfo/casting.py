"""Casts of Arrow columns to another type, without loss."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def brought_to(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Cast an array to an Arrow type, unless that loses part of a value.

    The fields of a struct are found by their names, or by their places if it has none of the names.

    Raises:
        pa.ArrowInvalid: A value does not fit, or a struct does not have the fields.
        pa.ArrowNotImplementedError: There is no cast between the two types.
    """
    import pyarrow as pa

    if array.type == kind:
        return array
    if pa.types.is_struct(kind) and pa.types.is_struct(array.type):
        fields = [brought_to(part, field.type) for part, field in zip(_parts_of(array, kind), kind, strict=True)]
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=array.is_null())
    if pa.types.is_list(kind) and (pa.types.is_list(array.type) or pa.types.is_large_list(array.type)):
        values = brought_to(array.flatten(), kind.value_type)
        return pa.ListArray.from_arrays(_offsets_of(array), values, type=kind, mask=array.is_null())
    if pa.types.is_map(kind) and pa.types.is_map(array.type):
        entries = array.cast(pa.list_(pa.struct([("key", array.type.key_type), ("value", array.type.item_type)])))
        keys, items = entries.flatten().flatten()
        parts = brought_to(keys, kind.key_type), brought_to(items, kind.item_type)
        return pa.MapArray.from_arrays(_offsets_of(entries), *parts, type=kind, mask=array.is_null())
    cast = array.cast(kind)
    if (lost := _lost(array, cast)) is not None:
        raise pa.ArrowInvalid(f"{lost!r} does not fit")
    return cast


def _parts_of(array: pa.StructArray, kind: pa.StructType) -> list[pa.Array]:
    """The fields of an array of structs, in the order of a type."""
    import pyarrow as pa

    names, found = [field.name for field in kind], [field.name for field in array.type]
    parts: list[pa.Array] = array.flatten()
    columns = dict(zip(found, parts, strict=True))
    if len(columns) == len(found) and columns.keys() >= {*names}:
        return [columns[name] for name in names]
    if len(names) == len(found) and columns.keys().isdisjoint(names):
        return parts
    raise pa.ArrowInvalid(f"it has the fields {found}, not {names}")


def _offsets_of(lists: pa.Array) -> pa.Array:
    """The start of each list among the values of all lists; a list that is None counts as empty."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    return pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())


def _lost(before: pa.Array, after: pa.Array) -> object:
    """A value that a cast silently changed; None if there is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    number = pa.types.is_integer(before.type) or pa.types.is_floating(before.type)
    if pa.types.is_float32(after.type) and pa.types.is_floating(before.type):
        kept = pc.equal(pc.is_inf(after), pc.is_inf(before))
    elif (pa.types.is_boolean(after.type) and number) or (
        pa.types.is_date(after.type) and pa.types.is_timestamp(before.type)
    ):
        kept = pc.equal(after.cast(before.type), before)
    elif pa.types.is_time(after.type) and pa.types.is_timestamp(before.type):
        kept = pc.equal(pc.floor_temporal(before, unit="day"), pa.scalar(0, pa.int64()).cast(before.type))
    else:
        return None
    place = pc.index(kept, False).as_py()
    return None if place < 0 else before[place].as_py()
