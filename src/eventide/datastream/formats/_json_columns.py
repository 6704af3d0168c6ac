"""Many messages of JSON at once, from and to columns, where they certainly mean what they mean one by one."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypedDict

from eventide.common.typeinfo import (
    BasicTypeInfo,
    CompositeTypeInfo,
    ListTypeInfo,
    TimeWindowTypeInfo,
    TypeInformation,
)
from eventide.datastream.formats._json_values import writer
from eventide.datastream.formats._messages import ReadMany
from eventide.datastream.formats._text_columns import PLAIN, SINGLE, as_wanted, parsed_type, texts_of
from eventide.datastream.formats._texts import is_bare

if TYPE_CHECKING:
    import pyarrow as pa

_PYTHON = {"BOOLEAN": bool, "BYTE": int, "SHORT": int, "INT": int, "LONG": int, "FLOAT": float, "DOUBLE": float}
"""What a value of a type is; of the other types, text."""

_ESCAPED = r'["\\\x00-\x1f]'
"""Characters that stand in JSON with a backslash before them; msgspec does not take them in names."""


def are_for_columns(type_info: CompositeTypeInfo) -> bool:
    """Whether all fields of a type can be read many at once."""
    return _has_plain_names(type_info) and all(
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
        return _has_plain_names(type_info) and all(map(_is_plain, type_info.field_types))
    return isinstance(type_info, BasicTypeInfo) and type_info.name in PLAIN


def _has_plain_names(type_info: CompositeTypeInfo) -> bool:
    return not any(re.search(_ESCAPED, name) for name in type_info.field_names)


def reader_of_columns(type_info: CompositeTypeInfo) -> ReadMany:
    """What reads the rows of many messages.

    A field that is not there is null, as is one that is ``null``. A value that is not plainly of its type, such as a
    number in quotes, may still mean something; so does JSON that is not quite right. Both are for who looks closer.
    """
    import msgspec
    import pyarrow as pa

    wanted = type_info.arrow_type()
    names = [f"f{i}" for i in range(len(wanted))]  # those of the objects may be any text
    fields = [(name, _expected(field), None) for name, field in zip(names, type_info.field_types, strict=True)]
    renamed = dict(zip(names, type_info.field_names, strict=True))
    decode = msgspec.json.Decoder(msgspec.defstruct("Message", fields, rename=renamed, gc=False)).decode
    columns = [
        (attrgetter(name), parsed_type(field.type), field.type) for name, field in zip(names, wanted, strict=True)
    ]

    def read(messages: Sequence[bytes]) -> pa.StructArray | None:
        found = []
        try:
            b"\n".join(messages).decode()  # which finds what is not UTF-8, also where nobody looks
            rows = list(map(decode, messages))
            for value_of, parsed, asked in columns:
                column = as_wanted(pa.array(list(map(value_of, rows)), parsed), asked)
                if column is None:
                    return None
                found.append(column)
        except (msgspec.DecodeError, TypeError, ValueError, OverflowError, RecursionError):
            return None
        return pa.StructArray.from_arrays(found, fields=list(wanted))

    return read


def _expected(type_info: TypeInformation) -> Any:
    """How msgspec is told what a value is, which may be null."""
    if isinstance(type_info, ListTypeInfo):
        return list[_expected(type_info.element_type)] | None  # type: ignore[misc]
    if isinstance(type_info, CompositeTypeInfo):
        fields = zip(type_info.field_names, map(_expected, type_info.field_types), strict=True)
        return TypedDict("Object", dict(fields), total=False) | None  # type: ignore[operator]
    return _PYTHON.get(type_info.name if isinstance(type_info, BasicTypeInfo) else "", str) | None


def written_at_once(rows: pa.StructArray, type_info: CompositeTypeInfo) -> pa.Array:
    """The objects of some rows, none of which is null, as an array of binary."""
    import pyarrow as pa
    import pyarrow.compute as pc

    parts: list[pa.Array | str] = []
    opening = "{"
    for name, field_type, column in zip(type_info.field_names, type_info.field_types, rows.flatten(), strict=True):
        parts += [f"{opening}{json.dumps(name, ensure_ascii=False)}:", _texts(column, field_type)]
        opening = ","
    if not parts:
        return pa.array([b"{}"] * len(rows), pa.binary())
    texts = pc.binary_join_element_wise(*parts, "}", "", null_handling="replace", null_replacement="null")
    return texts.cast(pa.binary())


def _texts(column: pa.Array, type_info: TypeInformation) -> pa.Array:
    """What stands for each value; null where it is null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(type_info, TimeWindowTypeInfo) and not column.null_count:
        bounds = [_milliseconds(bound).cast(pa.string()) for bound in column.flatten()]
        return pc.binary_join_element_wise('{"start":', bounds[0], ',"end":', bounds[1], "}", "")
    texts = texts_of(column, type_info)
    if texts is not None and is_bare(type_info) and _are_finite(column):
        return texts
    if texts is not None and not is_bare(type_info) and not _needs_escapes(texts, type_info):
        return pc.binary_join_element_wise('"', texts, '"', "")
    write = writer(type_info)
    values = type_info.from_arrow(column)
    return pa.array([None if value is None else write(value) for value in values], pa.string())


def _needs_escapes(texts: pa.Array, type_info: TypeInformation) -> bool:
    import pyarrow.compute as pc

    is_text = type_info == BasicTypeInfo("STRING")  # points in time have no such characters
    return is_text and pc.any(pc.match_substring_regex(texts, _ESCAPED)).as_py() is True


def _are_finite(numbers: pa.Array) -> bool:
    import pyarrow as pa
    import pyarrow.compute as pc

    return not pa.types.is_floating(numbers.type) or pc.all(pc.is_finite(numbers)).as_py() is not False


def _milliseconds(timestamps: pa.Array) -> pa.Array:
    import pyarrow as pa

    return timestamps.cast(pa.timestamp("ms", timestamps.type.tz)).cast(pa.int64())
