"""Rows as messages of JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from eventide.common.serialization import DeserializationSchema, SerializationSchema, bytes_of
from eventide.common.typeinfo import CompositeTypeInfo, TypeInformation
from eventide.common.types import Row
from eventide.datastream.formats._json_columns import ReadColumn, are_for_columns, has_objects, reader_of_columns
from eventide.datastream.formats._json_schema import type_of_schema
from eventide.datastream.formats._json_texts import written_at_once
from eventide.datastream.formats._json_values import Read, Write, parsed, reader, writer
from eventide.datastream.formats._messages import bytes_of_column, halved, row_type_of, said
from eventide.errors import DataError, ProgramError

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class JsonRowDeserializationSchema(DeserializationSchema[Row]):
    """Reads rows from JSON objects; made with :meth:`builder`. PyFlink: ``JsonRowDeserializationSchema``.

    Numbers and truth values may be texts too, and text may be anything. Of a number for INT or LONG, what is behind its
    point is left out, as in Flink, unless it is in quotes. Dates are ISO 8601, bytes are in base64. Points in time are
    as RFC 3339 has them, in UTC where they have no zone. What stands behind the object is not looked at, as in Flink.

    >>> from eventide.common import Types
    >>> row_type = Types.ROW_NAMED(["user", "at"], [Types.STRING(), Types.SQL_TIMESTAMP()])
    >>> schema = JsonRowDeserializationSchema.builder().type_info(row_type).build()
    >>> schema.deserialize(b'{"at": "2026-05-01T08:00:00Z", "user": "wren", "more": 1}')
    Row(user='wren', at=datetime.datetime(2026, 5, 1, 8, 0))
    """

    row_type: CompositeTypeInfo
    fails_on_missing_field: bool = False
    ignores_parse_errors: bool = False

    @staticmethod
    def builder() -> JsonRowDeserializationSchema.Builder:
        """Start without a type."""
        return JsonRowDeserializationSchema.Builder()

    @cached_property
    def _read(self) -> Read:
        return reader(self.row_type, lenient=self.ignores_parse_errors, complete=self.fails_on_missing_field)

    @cached_property
    def _read_column(self) -> ReadColumn | None:
        whole = self.fails_on_missing_field and any(map(has_objects, self.row_type.field_types))
        return reader_of_columns(self.row_type) if are_for_columns(self.row_type) and not whole else None

    def deserialize(self, message: bytes | str | None) -> Any:
        """Return the row; None for ``null`` or no message, and, if parse errors are ignored, for what is no object.

        A ``map`` leaves None in; see :meth:`DeserializationSchema.deserialize`.

        Raises:
            DataError: It is not JSON, or a field is not of its type or missing where it must not be.
        """
        if message is None:
            return None
        content = bytes_of(message)
        try:
            return self._read(parsed(content))
        except (ValueError, RecursionError) as error:
            if self.ignores_parse_errors:
                return None
            raise DataError(
                f"the message {said(content)} cannot be read as JSON of {self.row_type}: {error}"
            ) from error

    def get_produced_type(self) -> TypeInformation:
        """Return the type of the rows."""
        return self.row_type

    def deserialize_column(self, messages: pa.Array) -> pa.Array:
        """Return the rows as a struct; see :meth:`DeserializationSchema.deserialize_column`.

        Text, truth values, numbers, dates and points in time are read many at once, and rows and lists of them, if the
        dates and points in time stand at the top. With others, messages are read one by one.
        """
        return self.deserialize_all(bytes_of_column(messages))

    def deserialize_all(self, messages: Sequence[bytes | None]) -> pa.Array:
        """Return the same of messages that are objects; see :meth:`DeserializationSchema.deserialize_all`."""
        read = self._read_column
        if read is None:
            return self._one_by_one(messages)

        def at_once(some: Sequence[bytes]) -> pa.Array | None:
            return self._complete(read(some))

        return halved(messages, at_once, self._one_by_one)

    def _complete(self, rows: pa.StructArray | None) -> pa.StructArray | None:
        if rows is not None and self.fails_on_missing_field and any(column.null_count for column in rows.flatten()):
            return None  # what is null may be missing
        return rows

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.row_type, self.fails_on_missing_field, self.ignores_parse_errors)

    @dataclass
    class Builder:
        """Builds a :class:`JsonRowDeserializationSchema`; each step changes the builder and returns it."""

        _type_info: TypeInformation | None = None
        _fails_on_missing_field: bool = False
        _ignores_parse_errors: bool = False

        def type_info(self, type_info: TypeInformation) -> Self:
            """Set the type of the rows, by whose names fields are found."""
            self._type_info = type_info
            return self

        def json_schema(self, json_schema: str) -> Self:
            """Set the type of the rows to what a JSON schema describes.

            Raises:
                ProgramError: It describes something that there is no type for.
            """
            self._type_info = type_of_schema(json_schema)
            return self

        def fail_on_missing_field(self) -> Self:
            """Refuse an object that does not have all fields; by default, a field that is missing is None."""
            self._fails_on_missing_field = True
            return self

        def ignore_parse_errors(self) -> Self:
            """Take a field that cannot be read as None, and leave out what is no object at all."""
            self._ignores_parse_errors = True
            return self

        def build(self) -> JsonRowDeserializationSchema:
            """The schema.

            Raises:
                ProgramError: There is no type, or one that JSON has no form of; or errors are to be refused and to be
                    ignored.
            """
            if self._fails_on_missing_field and self._ignores_parse_errors:
                raise ProgramError("fail_on_missing_field and ignore_parse_errors exclude each other; choose one")
            row_type = row_type_of("JsonRowDeserializationSchema", self._type_info)
            schema = JsonRowDeserializationSchema(row_type, self._fails_on_missing_field, self._ignores_parse_errors)
            _ = schema._read  # refuses what has no form
            return schema


@dataclass(frozen=True)
class JsonRowSerializationSchema(SerializationSchema):
    """Writes rows as JSON objects; made with :meth:`builder`. PyFlink: ``JsonRowSerializationSchema``.

    What it writes, :class:`JsonRowDeserializationSchema` reads. A field that is None is null.

    The window of a result is an object with ``start`` and ``end``, both numbers of milliseconds since the epoch.

    >>> from eventide.common import Row, Types
    >>> row_type = Types.ROW_NAMED(["user", "amount"], [Types.STRING(), Types.DOUBLE()])
    >>> JsonRowSerializationSchema.builder().with_type_info(row_type).build().serialize(Row("wren", 1.5))
    b'{"user":"wren","amount":1.5}'
    """

    row_type: CompositeTypeInfo

    @staticmethod
    def builder() -> JsonRowSerializationSchema.Builder:
        """Start without a type."""
        return JsonRowSerializationSchema.Builder()

    @cached_property
    def _write(self) -> Write:
        return writer(self.row_type)

    def serialize(self, element: Any) -> bytes:
        """Return the object.

        Raises:
            DataError: The element is not of the type.
        """
        if element is None:
            raise DataError(f"there is no JSON object for None; it should be of {self.row_type}")
        [declared] = self.row_type.as_declared([element])
        return self._write(declared).encode()

    def serialize_column(self, elements: pa.Array, type_info: TypeInformation) -> pa.Array:
        """Return the objects; see :meth:`SerializationSchema.serialize_column`.

        Rows of this type are written column by column: text, truth values and whole numbers by Arrow.
        """
        declared = getattr(type_info, "field_types", None) == self.row_type.field_types
        is_same = declared and elements.type == self.row_type.arrow_type()
        if is_same and not self.row_type.has_exponents and not elements.null_count:
            return written_at_once(elements, self.row_type)
        return super().serialize_column(elements, type_info)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.row_type,)

    @dataclass
    class Builder:
        """Builds a :class:`JsonRowSerializationSchema`; each step changes the builder and returns it."""

        _type_info: TypeInformation | None = None

        def with_type_info(self, type_info: TypeInformation) -> Self:
            """Set the type of the rows, whose names become those of the fields."""
            self._type_info = type_info
            return self

        def build(self) -> JsonRowSerializationSchema:
            """The schema.

            Raises:
                ProgramError: There is no type, or one that JSON has no form of.
            """
            schema = JsonRowSerializationSchema(row_type_of("JsonRowSerializationSchema", self._type_info))
            _ = schema._write  # refuses what has no form
            return schema
