"""Rows as JSON and back, value by value: the meaning that Flink's schemas of JSON have."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, NoReturn

from eventide.common.typeinfo import (
    BasicTypeInfo,
    BytesTypeInfo,
    CompositeTypeInfo,
    DecimalTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    RowTypeInfo,
    TimeWindowTypeInfo,
    TypeInformation,
)
from eventide.common.types import Row
from eventide.datastream.formats._texts import is_bare, text_form
from eventide.errors import ProgramError

Read = Callable[[Any], Any]
Write = Callable[[Any], str]

_SPACE = re.compile(r"[ \t\r\n]*")


class Unreadable(ValueError):
    """A part of a message is not what was declared; ``path`` says which, from the inside out."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.path: list[str] = []

    def within(self, part: str) -> Unreadable:
        """The same, seen from outside of a part."""
        self.path.append(part)
        return self

    def __str__(self) -> str:
        where = "".join(reversed(self.path)).removeprefix(".")
        return f"{f'field {where}: ' if where else ''}{super().__str__()}"


class _Number(str):
    """A number as it is written."""

    __slots__ = ()


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


def _whole_number(text: str) -> _Number:
    return _Number("0" if text == "-0" else text)  # as in Flink, where only a number with a point keeps that sign


_DECODER = json.JSONDecoder(parse_float=_Number, parse_int=_whole_number, parse_constant=_no_number)


def parsed(message: bytes) -> Any:
    """The first JSON value of a message, whatever comes behind it; numbers are text, as they are written.

    Raises:
        ValueError: if there is none.
    """
    text = message.decode()
    return _DECODER.raw_decode(text, _SPACE.match(text).end())[0]  # type: ignore[union-attr]


def reader(type_info: TypeInformation, *, lenient: bool, complete: bool) -> Read:
    """What makes a value of a type out of parsed JSON.

    Args:
        type_info: the type.
        lenient: whether a part that cannot be read is None.
        complete: whether an object must have all fields; otherwise those that it has not are None.

    Raises:
        ProgramError: if the type has no form in JSON.
    """
    read = _reader(type_info, lenient=lenient, complete=complete)

    def read_or_none(node: Any) -> Any:
        if node is None:
            return None
        try:
            return read(node)
        except ValueError:
            if lenient:
                return None
            raise

    return read_or_none


def _reader(type_info: TypeInformation, *, lenient: bool, complete: bool) -> Read:
    if isinstance(type_info, CompositeTypeInfo):
        return _object_reader(type_info, lenient=lenient, complete=complete)
    if isinstance(type_info, ListTypeInfo):
        element = reader(type_info.element_type, lenient=lenient, complete=complete)
        return lambda node: [_part(element, part, f"[{i}]") for i, part in enumerate(_is(list, node, type_info))]
    if isinstance(type_info, MapTypeInfo):
        key, value = _single(type_info.key_type), reader(type_info.value_type, lenient=lenient, complete=complete)
        return lambda node: {
            _part(key, name, f"[{name!r}]"): _part(value, part, f"[{name!r}]")
            for name, part in _is(dict, node, type_info).items()
        }
    return _single(type_info)


def _object_reader(type_info: CompositeTypeInfo, *, lenient: bool, complete: bool) -> Read:
    names = type_info.field_names
    fields = [
        (name, f".{name}", reader(field, lenient=lenient, complete=complete))
        for name, field in zip(names, type_info.field_types, strict=True)
    ]
    is_row = isinstance(type_info, RowTypeInfo)

    def read(node: Any) -> Any:
        found = _is(dict, node, type_info)
        if complete:
            for name in names:
                if name not in found:
                    raise Unreadable("it is missing").within(f".{name}")
        values = tuple(_part(field, found.get(name), path) for name, path, field in fields)
        return Row.of_fields(names, values) if is_row else values

    return read


def _part(read: Read, node: Any, path: str) -> Any:
    try:
        return read(node)
    except Unreadable as error:
        raise error.within(path) from None


def _is(kind: type, node: Any, type_info: TypeInformation) -> Any:
    if not isinstance(node, kind):
        raise Unreadable(f"expected {type_info!r}, got {written(node)}")
    return node


def _single(type_info: TypeInformation) -> Read:
    form = text_form(type_info)
    if form is None:
        raise ProgramError(f"JSON has no form of {type_info!r}; declare what is in the message, or Types.STRING()")
    takes_all = type_info == BasicTypeInfo("STRING")
    bits = _TRUNCATED.get(type_info.name) if isinstance(type_info, BasicTypeInfo) else None

    def read(node: Any) -> Any:
        try:
            if isinstance(node, dict | list) and not takes_all:
                raise ValueError(node)
            if bits is not None and isinstance(node, _Number) and not node.lstrip("-").isdecimal():
                return _truncated(node, bits)
            return form.read(node if isinstance(node, str) else written(node))
        except ValueError as error:
            raise Unreadable(f"expected {type_info!r}, got {written(node)}") from error

    return read


_TRUNCATED = {"INT": 32, "LONG": 64}
"""Types of which Flink takes a number with a point or an exponent too, and their bits; in quotes, it takes none."""


def _truncated(number: str, bits: int) -> int:
    """A number without what is behind its point, compared and cut as Java does it with a double."""
    limit = 1 << (bits - 1)
    value = float(number)
    if not -limit <= value <= float(limit - 1):
        raise ValueError(number)
    return min(int(value), limit - 1)  # the double of the largest LONG is one too large


def written(node: Any) -> str:
    """Parsed JSON as text, without spaces, and numbers as they were."""
    if isinstance(node, _Number):
        return str(node)
    if isinstance(node, dict):
        return f"{{{','.join(f'{_quoted(name)}:{written(part)}' for name, part in node.items())}}}"
    if isinstance(node, list):
        return f"[{','.join(map(written, node))}]"
    return _quoted(node)


def writer(type_info: TypeInformation) -> Write:
    """What writes a value of a type as JSON, without spaces.

    Raises:
        ProgramError: if the type has no form in JSON.
    """
    write = _writer(type_info)
    return lambda value: "null" if value is None else write(value)


def _writer(type_info: TypeInformation) -> Write:
    if isinstance(type_info, CompositeTypeInfo):
        names = [f"{_quoted(name)}:" for name in type_info.field_names]
        fields = [*zip(names, map(writer, type_info.field_types), strict=True)]
        return lambda value: (
            f"{{{','.join(name + write(part) for (name, write), part in zip(fields, value, strict=True))}}}"
        )
    if isinstance(type_info, ListTypeInfo):
        element = writer(type_info.element_type)
        return lambda value: f"[{','.join(map(element, value))}]"
    if isinstance(type_info, MapTypeInfo):
        form, part_of = text_form(type_info.key_type), writer(type_info.value_type)
        if form is None:
            raise ProgramError(f"the keys of a map of JSON are text, which {type_info.key_type!r} has no form of")
        key = form.write
        return lambda value: f"{{{','.join(f'{_quoted(key(k))}:{part_of(v)}' for k, v in value.items())}}}"
    if isinstance(type_info, TimeWindowTypeInfo):
        return lambda window: f'{{"start":{window.start},"end":{window.end}}}'
    form = text_form(type_info)
    if form is None or not isinstance(type_info, BasicTypeInfo | BytesTypeInfo | DecimalTypeInfo):
        raise ProgramError(f"JSON has no form of {type_info!r}; turn it into something else before, in a map")
    text = form.write
    if is_bare(type_info):
        return lambda value: bare if (bare := text(value)) not in _IN_QUOTES else f'"{bare}"'
    return lambda value: _quoted(text(value))


_IN_QUOTES = frozenset({"NaN", "Infinity", "-Infinity"})


def _quoted(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
