"""Rows as JSON messages: the objects that Flink's schemas write and read, one by one or many at once."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self, TypedDict, TypeVar

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
from eventide.connectors.formats._json_schema import type_of_schema
from eventide.connectors.formats._messages import ReadMany, ReadsRows, WritesRows, row_type_of
from eventide.connectors.formats._texts import (
    PLAIN,
    SINGLE,
    as_wanted,
    is_bare,
    number_text,
    parsed_type,
    text_form,
    texts_of,
)
from eventide.errors import ProgramError

if TYPE_CHECKING:
    import pyarrow as pa

_T = TypeVar("_T")
Read = Callable[[object], Any]
Write = Callable[[Any], str]

_SPACE = re.compile(r"[ \t\r\n]*")


class _NotAsDeclared(ValueError):
    """A part of a message does not have its declared type; the arguments are the reason, and the path to the part."""

    def __str__(self) -> str:
        what, path = self.args
        return f"field {path.removeprefix('.')}: {what}" if path else str(what)


class _JsonNumber(str):
    """A number as it is written."""

    __slots__ = ()

    @property
    def is_whole(self) -> bool:
        """Whether the number has neither a point nor an exponent."""
        return self.lstrip("-").isdecimal()


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


def _whole_number(text: str) -> _JsonNumber:
    return _JsonNumber("0" if text == "-0" else text)  # as in Flink, where only a number with a point keeps that sign


_DECODER = json.JSONDecoder(parse_float=_JsonNumber, parse_int=_whole_number, parse_constant=_no_number)


def parsed(message: bytes) -> object:
    """The first JSON value of a message, without the rest; numbers are text, as they are written.

    Raises:
        ValueError: if there is no JSON value.
    """
    text = message.decode("utf-8-sig")
    return _DECODER.raw_decode(text, _SPACE.match(text).end())[0]  # type: ignore[union-attr]


def reader(type_info: TypeInformation, *, lenient: bool, complete: bool) -> Read:
    """Return a function that makes a value of a type from parsed JSON.

    Args:
        type_info: the type.
        lenient: whether a part that cannot be read is None.
        complete: whether an object must have all fields; otherwise missing fields are None.

    Raises:
        ProgramError: if the type has no form in JSON.
    """
    read = _reader(type_info, lenient=lenient, complete=complete)

    def read_or_none(node: object) -> Any:
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

    def read(node: object) -> Any:
        found = _is(dict, node, type_info)
        if complete:
            for name in names:
                if name not in found:
                    raise _NotAsDeclared("it is missing", f".{name}")
        values = tuple(_part(field, found.get(name), path) for name, path, field in fields)
        return Row.of_fields(names, values) if is_row else values

    return read


def _part(read: Read, node: object, path: str) -> Any:
    try:
        return read(node)
    except _NotAsDeclared as error:
        what, rest = error.args
        raise _NotAsDeclared(what, path + rest) from None


def _is(kind: type[_T], node: object, type_info: TypeInformation) -> _T:
    if not isinstance(node, kind):
        raise _NotAsDeclared(f"expected {type_info!r}, got {written(node)}", "")
    return node


def _single(type_info: TypeInformation) -> Read:
    form = text_form(type_info)
    if form is None:
        raise ProgramError(f"JSON cannot represent {type_info!r}; declare what is in the message, or Types.STRING()")
    takes_all, takes_text = type_info == BasicTypeInfo("STRING"), isinstance(type_info, BytesTypeInfo)
    bits = _TRUNCATED.get(type_info.name) if isinstance(type_info, BasicTypeInfo) else None

    def read(node: object) -> Any:
        try:
            if takes_all:
                return form.read(node if type(node) is str else written(node))
            if isinstance(node, dict | list) or (takes_text and type(node) is not str):
                raise ValueError(node)
            if bits is not None and isinstance(node, _JsonNumber) and not node.is_whole:
                return _truncated(node, bits)
            return form.read(node if isinstance(node, str) else written(node))
        except ValueError as error:
            raise _NotAsDeclared(f"expected {type_info!r}, got {written(node)}", "") from error

    return read


_TRUNCATED = {"INT": 32, "LONG": 64}
"""Types, with their bits, for which Flink also accepts a number with a point or an exponent, but not in quotes."""


def _truncated(number: str, bits: int) -> int:
    """A number without its fraction, compared and cut as Java does it with a double."""
    limit = 1 << (bits - 1)
    value = float(number)
    if not -limit <= value <= float(limit - 1):
        raise ValueError(number)
    return min(int(value), limit - 1)  # the double of the largest LONG is one too large


def written(node: object) -> str:
    """Parsed JSON as text, without spaces; numbers with a point or an exponent are written as Java doubles."""
    if isinstance(node, _JsonNumber):
        return str(node) if node.is_whole else number_text(float(node))
    if isinstance(node, dict):
        return f"{{{','.join(f'{_quoted(name)}:{written(part)}' for name, part in node.items())}}}"
    if isinstance(node, list):
        return f"[{','.join(map(written, node))}]"
    return _quoted(node)


def writer(type_info: TypeInformation) -> Write:
    """Return a function that writes a value of a type as JSON, without spaces.

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
            raise ProgramError(f"the keys of a JSON map are text, and {type_info.key_type!r} has no text form")
        key = form.write
        return lambda value: f"{{{','.join(f'{_quoted(key(k))}:{part_of(v)}' for k, v in value.items())}}}"
    if isinstance(type_info, TimeWindowTypeInfo):
        return lambda window: f'{{"start":{window.start},"end":{window.end}}}'
    form = text_form(type_info)
    if form is None or not isinstance(type_info, BasicTypeInfo | BytesTypeInfo | DecimalTypeInfo):
        raise ProgramError(f"JSON cannot represent {type_info!r}; convert it in a map first")
    text = form.write
    if is_bare(type_info):
        return lambda value: bare if (bare := text(value)) not in _IN_QUOTES else f'"{bare}"'
    return lambda value: _quoted(text(value))


_IN_QUOTES = frozenset({"NaN", "Infinity", "-Infinity"})


def _quoted(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


_PYTHON = {"BOOLEAN": bool, "BYTE": int, "SHORT": int, "INT": int, "LONG": int, "FLOAT": float, "DOUBLE": float}
"""The Python type of the values of a type; those of other types are text."""

_ESCAPED = r'["\\\x00-\x1f]'
"""Characters that JSON escapes with a backslash; msgspec does not accept them in names."""


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
    """Return a function that reads the rows of many messages.

    A missing field is null, like one that is ``null``. A value that is not plainly of its type, such as a number in
    quotes, may still be valid, and so may JSON with small errors. Both are read one by one.
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
            b"\n".join(messages).decode()  # which finds bytes that are not UTF-8, also in fields that are not declared
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
    """The type for msgspec of a value, which may be null."""
    if isinstance(type_info, ListTypeInfo):
        return list[_expected(type_info.element_type)] | None  # type: ignore[misc]
    if isinstance(type_info, CompositeTypeInfo):
        fields = zip(type_info.field_names, map(_expected, type_info.field_types), strict=True)
        return TypedDict("Object", dict(fields), total=False) | None  # type: ignore[operator]
    return _PYTHON.get(type_info.name if isinstance(type_info, BasicTypeInfo) else "", str) | None


def written_at_once(rows: pa.StructArray, type_info: CompositeTypeInfo) -> pa.Array:
    """The objects of some rows that are not null, as an array of binary."""
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
    """The JSON of each value; null for null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(type_info, TimeWindowTypeInfo) and not column.null_count:
        bounds = [pa.array(times_ms).cast(pa.string()) for times_ms in type_info.bounds_of(column)]
        return pc.binary_join_element_wise('{"start":', bounds[0], ',"end":', bounds[1], "}", "")
    texts = texts_of(column, type_info)
    if texts is not None and is_bare(type_info):
        if not pa.types.is_floating(column.type) or pc.all(pc.is_finite(column)).as_py() is not False:
            return texts
    elif texts is not None:
        is_text = type_info == BasicTypeInfo("STRING")  # points in time have no characters that need an escape
        if not is_text or pc.any(pc.match_substring_regex(texts, _ESCAPED)).as_py() is not True:
            return pc.binary_join_element_wise('"', texts, '"', "")
    write = writer(type_info)
    values = type_info.from_arrow(column)
    return pa.array([None if value is None else write(value) for value in values], pa.string())


@dataclass(frozen=True)
class JsonRowDeserializationSchema(ReadsRows):
    """Reads rows from JSON objects; made with :meth:`builder`. PyFlink: ``JsonRowDeserializationSchema``.

    Numbers and booleans may be texts too, and a text may be any value. The fraction of a number for INT or LONG is
    dropped, as in Flink, unless it is in quotes. Dates are in ISO 8601, bytes in base64. Points in time are in RFC
    3339, and in UTC without a zone. ``null`` has no row. Data after the object are ignored, as in Flink.

    >>> from eventide.common import Types
    >>> row_type = Types.ROW_NAMED(["user", "at"], [Types.STRING(), Types.SQL_TIMESTAMP()])
    >>> schema = JsonRowDeserializationSchema.builder().type_info(row_type).build()
    >>> schema.deserialize(b'{"at": "2026-05-01T08:00:00Z", "user": "wren", "more": 1}')
    Row(user='wren', at=datetime.datetime(2026, 5, 1, 8, 0))
    """

    format: ClassVar[str] = "JSON"
    row_type: CompositeTypeInfo
    fails_on_missing_field: bool = False
    ignores_parse_errors: bool = False

    @staticmethod
    def builder() -> JsonRowDeserializationSchema.Builder:
        """Start without a type."""
        return JsonRowDeserializationSchema.Builder()

    @cached_property
    def _row_of(self) -> Read:
        return reader(self.row_type, lenient=self.ignores_parse_errors, complete=self.fails_on_missing_field)

    def _read(self, message: bytes) -> Any:
        return self._row_of(parsed(message))

    @cached_property
    def _read_many(self) -> ReadMany | None:
        whole = self.fails_on_missing_field and any(map(has_objects, self.row_type.field_types))
        if whole or not are_for_columns(self.row_type):
            return None
        read = reader_of_columns(self.row_type)

        def read_complete(messages: Sequence[bytes]) -> pa.StructArray | None:
            rows = read(messages)
            may_miss = rows is not None and any(column.null_count for column in rows.flatten())
            return None if may_miss else rows

        return read_complete if self.fails_on_missing_field else read

    @dataclass
    class Builder:
        """Builds a :class:`JsonRowDeserializationSchema`; each step changes the builder and returns it."""

        _type_info: TypeInformation | None = None
        _fails_on_missing_field: bool = False
        _ignores_parse_errors: bool = False

        def type_info(self, type_info: TypeInformation) -> Self:
            """Set the type of the rows; its names find the fields."""
            self._type_info = type_info
            return self

        def json_schema(self, json_schema: str) -> Self:
            """Set the type of the rows to what a JSON schema describes.

            Raises:
                ProgramError: It describes a value that no type fits.
            """
            self._type_info = type_of_schema(json_schema)
            return self

        def fail_on_missing_field(self) -> Self:
            """Refuse an object that does not have all fields; by default, a field that is missing is None."""
            self._fails_on_missing_field = True
            return self

        def ignore_parse_errors(self) -> Self:
            """Read a field that cannot be read as None, and skip messages that are not objects."""
            self._ignores_parse_errors = True
            return self

        def build(self) -> JsonRowDeserializationSchema:
            """The schema.

            Raises:
                ProgramError: There is no type, or JSON has no form for it; or errors are both refused and ignored.
            """
            if self._fails_on_missing_field and self._ignores_parse_errors:
                raise ProgramError("fail_on_missing_field and ignore_parse_errors exclude each other; choose one")
            row_type = row_type_of("JsonRowDeserializationSchema", self._type_info)
            schema = JsonRowDeserializationSchema(row_type, self._fails_on_missing_field, self._ignores_parse_errors)
            _ = schema._row_of  # refuses what has no form
            return schema


@dataclass(frozen=True)
class JsonRowSerializationSchema(WritesRows):
    """Writes rows as JSON objects; made with :meth:`builder`. PyFlink: ``JsonRowSerializationSchema``.

    :class:`JsonRowDeserializationSchema` reads the objects that it writes. A field that is None is null.

    The window of a result is an object with ``start`` and ``end``, both numbers of milliseconds since the epoch.

    >>> from eventide.common import Row, Types
    >>> row_type = Types.ROW_NAMED(["user", "amount"], [Types.STRING(), Types.DOUBLE()])
    >>> JsonRowSerializationSchema.builder().with_type_info(row_type).build().serialize(Row("wren", 1.5))
    b'{"user":"wren","amount":1.5}'
    """

    form: ClassVar[str] = "JSON object"
    row_type: CompositeTypeInfo

    @staticmethod
    def builder() -> JsonRowSerializationSchema.Builder:
        """Start without a type."""
        return JsonRowSerializationSchema.Builder()

    @cached_property
    def _write(self) -> Write:
        return writer(self.row_type)

    def serialize(self, element: object) -> bytes:
        """Return the object.

        Raises:
            DataError: The element is not of the type.
        """
        return self._write(self._declared(element)).encode()

    def serialize_column(self, elements: pa.Array, type_info: TypeInformation) -> pa.Array:
        """Return the objects; see :meth:`SerializationSchema.serialize_column`.

        Rows of this type are written column by column: text, booleans and whole numbers by Arrow.
        """
        declared = getattr(type_info, "field_types", None) == self.row_type.field_types
        is_same = declared and elements.type == self.row_type.arrow_type()
        if is_same and not self.row_type.has_exponents and not elements.null_count:
            return written_at_once(elements, self.row_type)
        return super().serialize_column(elements, type_info)

    @dataclass
    class Builder:
        """Builds a :class:`JsonRowSerializationSchema`; each step changes the builder and returns it."""

        _type_info: TypeInformation | None = None

        def with_type_info(self, type_info: TypeInformation) -> Self:
            """Set the type of the rows, with the names of the fields."""
            self._type_info = type_info
            return self

        def build(self) -> JsonRowSerializationSchema:
            """The schema.

            Raises:
                ProgramError: There is no type, or JSON has no form for it.
            """
            schema = JsonRowSerializationSchema(row_type_of("JsonRowSerializationSchema", self._type_info))
            _ = schema._write  # refuses what has no form
            return schema
