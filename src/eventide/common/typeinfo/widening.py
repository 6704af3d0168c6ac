"""Types of an earlier program: reading them from their text, and widening their values to types of a later program."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

from eventide.common.typeinfo._composite import (
    CompositeTypeInfo,
    DictTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
)
from eventide.common.typeinfo.base import TypeInformation
from eventide.common.typeinfo.basic import (
    BASIC_TYPES_BY_NAME,
    KINDS,
    BasicTypeInfo,
    BytesTypeInfo,
    DecimalTypeInfo,
    PickledBytesTypeInfo,
    TimeWindowTypeInfo,
)
from eventide.common.types import Row

Conversion: TypeAlias = Callable[[Any], Any]
"""Converts a value of the earlier type to the later type."""

_WIDER = {
    "BYTE": ("SHORT", "INT", "LONG", "BIG_INT"),
    "SHORT": ("INT", "LONG", "BIG_INT"),
    "INT": ("LONG", "BIG_INT"),
    "LONG": ("BIG_INT",),
    "FLOAT": ("DOUBLE",),
    "CHAR": ("STRING",),
}
"""The types that hold all values of another type, as equal Python values with the same hash as keys."""

_SIMPLE: dict[str, TypeInformation] = {
    **{name: BasicTypeInfo(name) for name in KINDS},
    **BASIC_TYPES_BY_NAME,
    **{repr(kind): kind for kind in (PickledBytesTypeInfo(), TimeWindowTypeInfo())},
}
_LISTS = ("LIST", "PRIMITIVE_ARRAY", "BASIC_ARRAY", "OBJECT_ARRAY")
_BYTES = repr(BytesTypeInfo())
_NAME = re.compile(rf"({'|'.join([*_SIMPLE, *_LISTS, 'ROW', 'TUPLE', 'DICT', 'MAP'])})(?=[(),]|$)")
_DECIMAL = re.compile(r"BIG_DEC\((\d+), (\d+)\)")
_FIELD = re.compile(r"(.+?): ", re.DOTALL)


def obstacle(before: TypeInformation, now: TypeInformation, *, is_key: bool = False) -> str | None:
    """Why values of a type do not fit another one, in words; None if they do.

    Numbers fit wider ones. Rows whose fields have names may gain fields, which are null in existing values, lose
    fields, and change their order: Flink's rules for POJOs. A key keeps its fields, because it is found by a hash of
    them.

    >>> from eventide.common import Types
    >>> obstacle(Types.INT(), Types.LONG()), obstacle(Types.LONG(), Types.INT())
    (None, 'INT does not hold all values of LONG')
    """
    if before == now:
        return None
    if isinstance(before, BasicTypeInfo) and isinstance(now, BasicTypeInfo):
        holds_all = now.name in _WIDER.get(before.name, ())
        return None if holds_all else f"{now} does not hold all values of {before}"
    if isinstance(before, DecimalTypeInfo) and isinstance(now, DecimalTypeInfo):
        holds_all = before.scale == now.scale and before.precision <= now.precision
        return None if holds_all else f"{now} does not hold all values of {before}, with as many digits"
    if type(before) is not type(now):
        return f"{before} and {now} are of different kinds"
    if isinstance(before, CompositeTypeInfo) and isinstance(now, CompositeTypeInfo):
        return _obstacle_of_fields(before, now, is_key=is_key)
    if isinstance(before, ListTypeInfo) and isinstance(now, ListTypeInfo) and before.name == now.name:
        return obstacle(before.element_type, now.element_type, is_key=is_key)
    if isinstance(before, MapTypeInfo) and isinstance(now, MapTypeInfo):
        return obstacle(before.key_type, now.key_type, is_key=True) or obstacle(
            before.value_type, now.value_type, is_key=is_key
        )
    return f"{before} and {now} are of different kinds"


def conversion(before: TypeInformation, now: TypeInformation) -> Conversion | None:
    """Return the conversion of values of one type to another that they fit; None if all stay unchanged.

    >>> from eventide.common import Row, Types
    >>> before = Types.ROW_NAMED(["id", "old"], [Types.INT(), Types.INT()])
    >>> now = Types.ROW_NAMED(["note", "id"], [Types.STRING(), Types.LONG()])
    >>> conversion(before, now)(Row(id=1, old=2))
    Row(note=None, id=1)
    >>> conversion(Types.INT(), Types.LONG()) is None
    True
    """
    if isinstance(before, RowTypeInfo) and isinstance(now, RowTypeInfo) and None not in (before.names, now.names):
        return _of_rows(before, now)
    if isinstance(before, CompositeTypeInfo) and isinstance(now, CompositeTypeInfo):
        parts = [conversion(was, becomes) for was, becomes in zip(before.types, now.types, strict=True)]
        return None if not any(parts) else lambda value: _with_fields(value, parts)
    if isinstance(before, ListTypeInfo) and isinstance(now, ListTypeInfo):
        each = conversion(before.element_type, now.element_type)
        return None if each is None else lambda value: None if value is None else [each(part) for part in value]
    if isinstance(before, MapTypeInfo) and isinstance(now, MapTypeInfo):
        of_value = conversion(before.value_type, now.value_type)
        if of_value is not None:
            return lambda value: None if value is None else {key: of_value(part) for key, part in value.items()}
    return None


def united(one: TypeInformation, other: TypeInformation) -> TypeInformation:
    """Return a type with the fields of two types, which values of both fit, or if there is none, only some.

    >>> from eventide.common import Types
    >>> united(Types.ROW_NAMED(["id"], [Types.LONG()]), Types.ROW_NAMED(["note", "id"], [Types.STRING(), Types.INT()]))
    ROW(note: STRING, id: LONG)
    """
    if isinstance(one, CompositeTypeInfo) and isinstance(other, CompositeTypeInfo) and type(one) is type(other):
        was, becomes = _fields(one), _fields(other)
        if _are_named(one, other) or [*was] == [*becomes]:
            both = {name: united(was[name], becomes[name]) for name in was.keys() & becomes.keys()}
            more = was if len(was) > len(becomes) else becomes
            found = {**more, **was, **becomes, **both}
            types = [*found.values()]
            return TupleTypeInfo(types) if isinstance(one, TupleTypeInfo) else type(one)(types, one.names and [*found])
    if isinstance(one, ListTypeInfo) and isinstance(other, ListTypeInfo) and one.name == other.name:
        return ListTypeInfo(united(one.element_type, other.element_type), one.name)
    if isinstance(one, MapTypeInfo) and isinstance(other, MapTypeInfo):
        return MapTypeInfo(united(one.key_type, other.key_type), united(one.value_type, other.value_type))
    return one if obstacle(other, one) is None else other


def type_of_text(text: str) -> TypeInformation:
    """Return the type that a text describes.

    Raises:
        ValueError: if it does not describe a type, or describes one with a field whose name has a colon.

    >>> type_of_text("ROW(id: LONG, tags: LIST(STRING))").field_names
    ['id', 'tags']
    """
    found, end = _type_at(text, 0)
    if end != len(text):
        raise ValueError(text)
    return found


@lru_cache
def has_text(kind: TypeInformation) -> bool:
    """Whether a type can be read from its text, which fails if the name of a field contains a colon.

    >>> from eventide.common.typeinfo import Types
    >>> has_text(Types.LONG()), has_text(Types.ROW_NAMED(["a: b"], [Types.LONG()]))
    (True, False)
    """
    try:
        return type_of_text(str(kind)) == kind
    except ValueError:
        return False


def _obstacle_of_fields(before: CompositeTypeInfo, now: CompositeTypeInfo, *, is_key: bool) -> str | None:
    was, becomes = _fields(before), _fields(now)
    if [*was] != [*becomes]:
        if not _are_named(before, now):
            return f"{before} and {now} have different fields, which are matched by position"
        if is_key:
            return f"{before} and {now} have different fields, and a key is found by their hash"
    for name in was.keys() & becomes.keys():
        found = obstacle(was[name], becomes[name], is_key=is_key)
        if found is not None:
            return f"the field {name!r}: {found}"
    return None


def _fields(kind: CompositeTypeInfo) -> dict[str, TypeInformation]:
    """The types of fields by their names, in their order."""
    return dict(zip(kind.field_names, kind.types, strict=True))


def _are_named(*kinds: CompositeTypeInfo) -> bool:
    """Whether all are rows whose fields have names, so that fields may be added and removed."""
    return all(isinstance(kind, RowTypeInfo) and kind.names is not None for kind in kinds)


def _of_rows(before: RowTypeInfo, now: RowTypeInfo) -> Conversion | None:
    was, names = _fields(before), now.field_names
    parts = {
        name: part
        for name, becomes in zip(names, now.types, strict=True)
        if name in was and (part := conversion(was[name], becomes)) is not None
    }
    if not parts and before.field_names == names:
        return None
    names_before = before.field_names

    def convert(value: Any) -> Any:
        if isinstance(value, dict):
            return dict(zip(names, _cells(value, names, parts), strict=True))
        if isinstance(value, Row):
            found = value.get_field_names()
            cells = _cells(dict(zip(found or names_before, value, strict=False)), names, parts)
            row = Row.of_fields(found and tuple(names), cells)
            row.set_row_kind(value.get_row_kind())
            return row
        if type(value) in (tuple, list):
            return type(value)(_cells(dict(zip(names_before, value, strict=False)), names, parts))
        return value

    return convert


def _cells(fields: Mapping[str, Any], names: list[str], parts: Mapping[str, Conversion]) -> list[Any]:
    return [parts[name](fields.get(name)) if name in parts else fields.get(name) for name in names]


def _with_fields(value: Any, parts: list[Conversion | None]) -> Any:
    """A value whose fields are found by their places."""
    if type(value) not in (tuple, list, Row):
        return value
    cells = [cell if part is None else part(cell) for part, cell in zip(parts, value, strict=True)]
    return Row.of_fields(value.get_field_names(), cells) if isinstance(value, Row) else type(value)(cells)


def _type_at(text: str, at: int) -> tuple[TypeInformation, int]:
    """Return the type that begins at a place in a text, and where it ends."""
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
    if name[1] == "DICT" and names:
        return DictTypeInfo(parts, names), end
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
