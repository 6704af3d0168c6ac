"""From the text of a type back to the type: what was written down of a program says its types as text."""

from __future__ import annotations

import re

from eventide.common.typeinfo._collections import ListTypeInfo, MapTypeInfo
from eventide.common.typeinfo._composite import RowTypeInfo, TupleTypeInfo
from eventide.common.typeinfo._special import BytesTypeInfo, PickledBytesTypeInfo, TimeWindowTypeInfo
from eventide.common.typeinfo._times import BASIC_TYPES_BY_NAME
from eventide.common.typeinfo.base import TypeInformation
from eventide.common.typeinfo.basic import _KINDS, BasicTypeInfo
from eventide.common.typeinfo.decimal import DecimalTypeInfo

_SIMPLE: dict[str, TypeInformation] = {
    **{name: BasicTypeInfo(name) for name in _KINDS},
    **BASIC_TYPES_BY_NAME,
    **{repr(kind): kind for kind in (PickledBytesTypeInfo(), TimeWindowTypeInfo())},
}
_LISTS = ("LIST", "PRIMITIVE_ARRAY", "BASIC_ARRAY", "OBJECT_ARRAY")
_BYTES = repr(BytesTypeInfo())
_NAME = re.compile(rf"({'|'.join([*_SIMPLE, *_LISTS, 'ROW', 'TUPLE', 'MAP'])})(?=[(),]|$)")
_DECIMAL = re.compile(r"BIG_DEC\((\d+), (\d+)\)")
_FIELD = re.compile(r"(.+?): ", re.DOTALL)


def type_of_text(text: str) -> TypeInformation:
    """The type whose text it is.

    Raises:
        ValueError: if it is the text of none, or of one with a field whose name has a colon.

    >>> type_of_text("ROW(id: LONG, tags: LIST(STRING))").field_names
    ['id', 'tags']
    """
    found, end = _type_at(text, 0)
    if end != len(text):
        raise ValueError(text)
    return found


def _type_at(text: str, at: int) -> tuple[TypeInformation, int]:
    """The type that begins somewhere, and where it ends."""
    if text.startswith(_BYTES, at):
        return BytesTypeInfo(), at + len(_BYTES)
    if decimal := _DECIMAL.match(text, at):
        return DecimalTypeInfo(int(decimal[1]), int(decimal[2])), decimal.end()
    name = _NAME.match(text, at)
    if name is None:
        raise ValueError(text)
    if name[1] in _SIMPLE:
        return _SIMPLE[name[1]], name.end()
    names, parts, end = _parts_at(text, name.end())
    if name[1] == "ROW":
        return RowTypeInfo(parts, names or None), end
    if name[1] == "TUPLE" and not names:
        return TupleTypeInfo(parts), end
    if name[1] == "MAP" and len(parts) == 2 and not names:
        return MapTypeInfo(*parts), end
    if name[1] in _LISTS and len(parts) == 1 and not names:
        return ListTypeInfo(parts[0], name[1]), end
    raise ValueError(text)


def _parts_at(text: str, at: int) -> tuple[list[str], list[TypeInformation], int]:
    """Read a text in brackets: return the names of the parts, if any, their types, and where it ends."""
    names: list[str] = []
    parts: list[TypeInformation] = []
    before = "("
    while text.startswith(before, at):
        at += len(before)
        if _NAME.match(text, at) is None:
            name = _FIELD.match(text, at)
            if name is None:
                raise ValueError(text)
            names.append(name[1])
            at = name.end()
        part, at = _type_at(text, at)
        parts.append(part)
        before = ", "
    if not text.startswith(")", at) or (names and len(names) != len(parts)):
        raise ValueError(text)
    return names, parts, at + 1
