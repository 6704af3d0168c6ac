"""Messages of Avro, each a record without its schema; read and written by fastavro, which ``eventide[avro]`` brings."""

from __future__ import annotations

import datetime as dt
import io
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from eventide._absent import finder_of_names
from eventide.common.serialization import SerializationSchema, bytes_of
from eventide.common.typeinfo import CompositeTypeInfo, ListTypeInfo, MapTypeInfo, TypeInformation, Types
from eventide.datastream.formats._avro_records import ReadsAvroRecords
from eventide.datastream.formats._avro_schema import AvroSchema, library
from eventide.datastream.formats._messages import row_type_of, said
from eventide.errors import DataError, ProgramError

__all__ = ["AvroRowDeserializationSchema", "AvroRowSerializationSchema", "AvroSchema"]


@dataclass(frozen=True)
class _AvroRows:
    """Base of both schemas: the schema of Avro, and the type of rows that it describes."""

    record_class: str | None = None
    avro_schema_string: str | None = None

    def __post_init__(self) -> None:
        if self.avro_schema_string is None:
            raise ProgramError(
                f"{type(self).__name__} needs the schema as avro_schema_string; a record_class of Java has no meaning "
                "here"
            )
        _ = self._row_type

    @cached_property
    def _schema(self) -> AvroSchema:
        return AvroSchema.parse_string(str(self.avro_schema_string))

    @cached_property
    def _row_type(self) -> CompositeTypeInfo:
        return row_type_of(type(self).__name__, self._schema.type_info())

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (None, self.avro_schema_string)


class AvroRowDeserializationSchema(_AvroRows, ReadsAvroRecords):
    """Reads rows from records of Avro, in its binary form. PyFlink: ``AvroRowDeserializationSchema``.

    Args:
        record_class: A class of Java, which has no meaning here.
        avro_schema_string: The schema with which the messages were written, as JSON.

    Raises:
        ProgramError: There is no schema, it describes no record or has a part without a type, or fastavro is not
            installed.
    """

    def _record(self, message: bytes | str) -> Any:
        content = bytes_of(message)
        try:
            return library().schemaless_reader(io.BytesIO(content), self._schema.parsed)
        except Exception as error:
            raise DataError(
                f"the message {said(content)} cannot be read as Avro of {self._row_type}: {error!r}"
            ) from error


class AvroRowSerializationSchema(_AvroRows, SerializationSchema):
    """Writes rows as records of Avro, in its binary form. PyFlink: ``AvroRowSerializationSchema``.

    Times are written as exactly as the schema says, in milliseconds or microseconds.

    Args:
        record_class: A class of Java, which has no meaning here.
        avro_schema_string: The schema, as JSON.

    Raises:
        ProgramError: There is no schema, it describes no record or has a part without a type, or fastavro is not
            installed.
    """

    def serialize(self, element: Any) -> bytes:
        """Return the record.

        Raises:
            DataError: The element is not of the type, or has None where the schema has no null.
        """
        if element is None:
            raise DataError(f"there is no record of Avro for None; it should be of {self._row_type}")
        [declared] = self._row_type.as_declared([element])
        data = io.BytesIO()
        try:
            library().schemaless_writer(data, self._schema.parsed, _as_avro(self._row_type, declared))
        except Exception as error:
            raise DataError(f"{element!r} cannot be written as Avro of {self._row_type}: {error!r}") from error
        return data.getvalue()


def _as_avro(type_info: TypeInformation, value: Any) -> Any:
    """A value as fastavro takes it: records as dicts, and points in time with their zone."""
    if value is None:
        return None
    if isinstance(type_info, CompositeTypeInfo):
        parts = zip(type_info.field_names, type_info.field_types, value, strict=True)
        return {name: _as_avro(field, part) for name, field, part in parts}
    if isinstance(type_info, ListTypeInfo):
        return [_as_avro(type_info.element_type, part) for part in value]
    if isinstance(type_info, MapTypeInfo):
        return {name: _as_avro(type_info.value_type, part) for name, part in value.items()}
    if type_info == Types.SQL_TIMESTAMP():
        return value.replace(tzinfo=dt.UTC)
    return value


if not TYPE_CHECKING:
    __getattr__ = finder_of_names(__name__)
