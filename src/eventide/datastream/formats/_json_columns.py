"""Messages of JSON as columns at once: where that is certain to be what they mean one by one."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

from eventide.common.typeinfo import BasicTypeInfo, CompositeTypeInfo, ListTypeInfo, TypeInformation
from eventide.datastream.formats._arrow_cells import PLAIN, SINGLE, as_wanted, parsed_type

if TYPE_CHECKING:
    import pyarrow as pa

ReadColumn: TypeAlias = "Callable[[Sequence[bytes]], pa.StructArray | None]"
"""Rows of many messages; or None where one of them must be looked at."""

_PYTHON = {"BOOLEAN": bool, "BYTE": int, "SHORT": int, "INT": int, "LONG": int, "FLOAT": float, "DOUBLE": float}
"""The Python type of a type's values; of the other types, text."""

_ESCAPED = re.compile(r'[\x00-\x1f"\\]')
"""Characters with a backslash before them in JSON; msgspec does not take them in names."""


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
    return not any(map(_ESCAPED.search, type_info.field_names))


def reader_of_columns(type_info: CompositeTypeInfo) -> ReadColumn:
    """Return the function that reads the rows of many messages.

    A field that is not there is null, as is one that is ``null``. A value that is not plainly of its type, such as a
    number in quotes, may still mean something; so does JSON that is not quite right. Both are left to the reader of
    single messages.
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
            b"\n".join(messages).decode()  # which finds what is not UTF-8, also in fields that are not read
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
