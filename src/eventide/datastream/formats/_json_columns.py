"""Messages of JSON as columns at once, by Arrow: where that is certain to be what they mean one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eventide.common.typeinfo import BasicTypeInfo, CompositeTypeInfo, ListTypeInfo, TypeInformation
from eventide.common.typeinfo._base import one_array
from eventide.datastream.formats._arrow_cells import PLAIN, SINGLE, as_wanted, parsed_type

if TYPE_CHECKING:
    import pyarrow as pa


def are_for_arrow(type_info: CompositeTypeInfo) -> bool:
    """Whether Arrow can read all fields of a type from JSON."""
    return all(
        (isinstance(field, BasicTypeInfo) and field.name in SINGLE) or _is_plain(field)
        for field in type_info.field_types
    )


def has_objects(type_info: TypeInformation) -> bool:
    """Whether there are objects within the objects."""
    return isinstance(type_info, CompositeTypeInfo) or (
        isinstance(type_info, ListTypeInfo) and has_objects(type_info.element_type)
    )


def _is_plain(type_info: TypeInformation) -> bool:
    if isinstance(type_info, ListTypeInfo):
        return _is_plain(type_info.element_type)
    if isinstance(type_info, CompositeTypeInfo):
        return all(map(_is_plain, type_info.field_types))
    return isinstance(type_info, BasicTypeInfo) and type_info.name in PLAIN


def read_at_once(messages: pa.Array, type_info: CompositeTypeInfo) -> pa.StructArray | None:
    """The rows of some messages, none of which is null; None where they have to be looked at one by one.

    Each message is an object that begins and ends with its braces. Then one line break between two of them cannot be
    within a value: a text has none, and a brace that opens does not follow one that closes. So each message gives a
    row at least, and as many rows as messages are one for each.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import json as pj

    wanted = type_info.arrow_type()
    schema = pa.schema([field.with_type(parsed_type(field.type)) for field in wanted])
    try:
        texts = messages.cast(pa.string())  # which finds what is not UTF-8
        if not pc.all(pc.and_(pc.starts_with(texts, "{"), pc.ends_with(texts, "}"))).as_py():
            return None
        joined = pc.binary_join(pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts), "\n")
        lines = joined[0].as_buffer()
        if _has_no_numbers(lines.to_pybytes()):
            return None  # Arrow would take them for numbers, which JSON does not know
        table = pj.read_json(
            pa.BufferReader(lines),
            pj.ReadOptions(use_threads=False, block_size=len(lines) + 1),
            pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
        )
        if len(table) != len(messages):
            return None
        columns = [as_wanted(one_array(table.column(field.name)), field.type) for field in wanted]
    except (pa.ArrowInvalid, pa.ArrowCapacityError):
        return None
    known = [column for column in columns if column is not None]
    return pa.StructArray.from_arrays(known, fields=list(wanted)) if len(known) == len(columns) else None


def _has_no_numbers(lines: bytes) -> bool:
    """Whether NaN or Infinity may be in it; one letter is found ten times as fast as a word."""
    return (b"N" in lines and b"NaN" in lines) or (b"I" in lines and b"Inf" in lines)
