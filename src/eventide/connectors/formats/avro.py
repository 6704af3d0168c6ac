"""Avro messages: records without their schema, or with its number in a registry.

Records without their schema are read and written by fastavro, from the extra ``avro``. Those in Confluent's wire
format, which name their schema in a registry, are read with the extra ``kafka``.
"""

from __future__ import annotations

import datetime as dt
import io
import json
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from eventide.common.typeinfo import CompositeTypeInfo, ListTypeInfo, MapTypeInfo, TypeInformation, Types
from eventide.connectors.formats._messages import ReadMany, ReadsRows, WritesRows, row_type_of, said
from eventide.connectors.kafka.library import library as kafka_library
from eventide.errors import DataError, ProgramError, needing

__all__ = [
    "AvroRowDeserializationSchema",
    "AvroRowSerializationSchema",
    "AvroSchema",
    "ConfluentRegistryAvroDeserializationSchema",
]

_PLAIN = {
    "string": Types.STRING,
    "enum": Types.STRING,
    "boolean": Types.BOOLEAN,
    "int": Types.INT,
    "long": Types.LONG,
    "float": Types.FLOAT,
    "double": Types.DOUBLE,
}
_LOGICAL = {
    "date": Types.SQL_DATE,
    "time-millis": Types.SQL_TIME,
    "time-micros": Types.SQL_TIME,
    "timestamp-millis": Types.SQL_TIMESTAMP,
    "timestamp-micros": Types.SQL_TIMESTAMP,
}
_UNKNOWN_SCHEMA = 404
_SOURCE = "basic.auth.credentials.source"  # of the Java client, which has several; here what is given is used


def library() -> Any:
    """The module fastavro, which reads and writes Avro.

    Raises:
        ProgramError: if it is not installed where this runs.
    """
    with needing("fastavro", "Avro", "avro"):
        return import_module("fastavro")


@dataclass(frozen=True)
class AvroSchema:
    """An Avro schema; made by :meth:`parse_string` or :meth:`parse_file`. PyFlink: ``AvroSchema``.

    It needs the package fastavro, which comes with the extra ``avro``.
    """

    text: str

    @staticmethod
    def parse_string(json_schema: str) -> AvroSchema:
        """The schema that a text describes.

        Raises:
            ProgramError: It is not an Avro schema, or fastavro is not installed.
        """
        schema = AvroSchema(json_schema)
        _ = schema.parsed
        return schema

    @staticmethod
    def parse_file(file_path: str) -> AvroSchema:
        """The schema that a local file describes.

        Raises:
            ProgramError: The file cannot be read, or does not contain an Avro schema.
        """
        try:
            text = Path(file_path).read_text(encoding="utf-8")
        except OSError as error:
            raise ProgramError(f"the Avro schema {file_path} cannot be read: {error}") from error
        return AvroSchema.parse_string(text)

    @cached_property
    def parsed(self) -> Any:
        """The schema for fastavro, without properties that a row type does not have."""
        avro = library()
        try:
            return avro.parse_schema(_without_strange_types(json.loads(self.text)))
        except Exception as error:
            raise ProgramError(f"{self.text!r:.200} is not an Avro schema: {error!r}") from error

    def type_info(self) -> TypeInformation:
        """The type that the schema describes: for a record, a row. Flink: ``AvroSchemaConverter``.

        Text and enumerations are text; a union of null and one other type is that type; a decimal keeps its digits.

        Raises:
            ProgramError: There is no type for a part of it: null alone, several types in one place, or a recursive
                type.
        """
        return _type(import_module("fastavro.schema").expand_schema(self.parsed), "it")

    def __str__(self) -> str:
        return self.text

    def __reduce__(self) -> tuple[Any, ...]:
        return AvroSchema, (self.text,)


def _without_strange_types(node: object) -> Any:
    """The type of a schema; an unknown logical type is ignored, as the specification says."""
    if isinstance(node, list):
        return [_without_strange_types(part) for part in node]
    if not isinstance(node, dict):
        return node
    known = {*_LOGICAL, "decimal"}
    kept = {name: part for name, part in node.items() if name != "logicalType" or part in known}
    return {name: part if name == "default" else _without_strange_types(part) for name, part in kept.items()}


def _type(node: Any, where: str) -> TypeInformation:
    if isinstance(node, list):
        kinds = [kind for kind in node if kind not in ("null", {"type": "null"})]
        if len(kinds) != 1:
            raise ProgramError(f"Avro schema: {where} may be of several types, {kinds}; a row has one for each field")
        return _type(kinds[0], where)
    described = node if isinstance(node, dict) else {"type": node}
    kind, logical = described["type"], described.get("logicalType")
    if isinstance(kind, dict | list):
        return _type(kind, where)
    if logical == "decimal":
        return Types.BIG_DEC(described["precision"], described.get("scale", 0))
    if logical in _LOGICAL:
        return _LOGICAL[logical]()
    match kind:
        case "record" | "error":
            fields = {field["name"]: _type(field["type"], f"{field['name']!r}") for field in described["fields"]}
            return Types.ROW_NAMED([*fields], [*fields.values()])
        case "array":
            return Types.OBJECT_ARRAY(_type(described["items"], f"the items of {where}"))
        case "map":
            return Types.MAP(Types.STRING(), _type(described["values"], f"the values of {where}"))
        case "bytes" | "fixed":
            return Types.PRIMITIVE_ARRAY(Types.BYTE())
        case str() if kind in _PLAIN:
            return _PLAIN[kind]()
    raise ProgramError(
        f"Avro schema: there is no type for {where}, which is {kind!r}; take a kind of Avro's specification"
    )


class ReadsAvroRecords(ReadsRows):
    """Reads rows from Avro records, from any source of their schema."""

    format: ClassVar[str] = "Avro"

    @abstractmethod
    def _record(self, message: bytes) -> Any:
        """Return the record in a message: a dict by the names of fields.

        Raises:
            DataError: if it is not a record of its schema, or lacks a required reference to its schema.
            ProgramError: if the schema cannot be fetched.
        """

    def _read(self, message: bytes) -> Any:
        [row] = self.row_type.as_declared([self._record(message)])
        return row

    @cached_property
    def _read_many(self) -> ReadMany | None:
        return lambda messages: self.row_type.to_arrow([self._record(message) for message in messages])


@dataclass(frozen=True)
class _AvroRows:
    """The Avro schema, and the type of rows that it describes: for both row schemas."""

    record_class: str | None = None
    avro_schema_string: str | None = None

    def __post_init__(self) -> None:
        if self.avro_schema_string is None:
            raise ProgramError(
                f"{type(self).__name__} needs the schema as avro_schema_string; a record_class of Java has no meaning "
                "here"
            )
        _ = self.row_type

    @cached_property
    def _schema(self) -> AvroSchema:
        return AvroSchema.parse_string(str(self.avro_schema_string))

    @cached_property
    def _expanded(self) -> Any:
        """The schema with references to named parts replaced by these parts."""
        return import_module("fastavro.schema").expand_schema(self._schema.parsed)

    @cached_property
    def row_type(self) -> CompositeTypeInfo:
        """The type of the rows."""
        return row_type_of(type(self).__name__, self._schema.type_info())

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (None, self.avro_schema_string)


class AvroRowDeserializationSchema(_AvroRows, ReadsAvroRecords):  # type: ignore[override] # row_type is computed
    """Reads rows from records of Avro, in its binary form. PyFlink: ``AvroRowDeserializationSchema``.

    Args:
        record_class: A Java class, without meaning here.
        avro_schema_string: The schema with which the messages were written, as JSON.

    Raises:
        ProgramError: There is no schema, it does not describe a record or has a part without a type, or fastavro is not
            installed.
    """

    def _record(self, message: bytes) -> Any:
        try:
            return library().schemaless_reader(io.BytesIO(message), self._schema.parsed)
        except Exception as error:
            raise DataError(
                f"the message {said(message)} cannot be read as Avro of {self.row_type}: {error!r}"
            ) from error


class AvroRowSerializationSchema(_AvroRows, WritesRows):  # type: ignore[override] # row_type is computed
    """Writes rows as records of Avro, in its binary form. PyFlink: ``AvroRowSerializationSchema``.

    Times are written as exactly as the schema says, in milliseconds or microseconds.

    Args:
        record_class: A Java class, without meaning here.
        avro_schema_string: The schema, as JSON.

    Raises:
        ProgramError: There is no schema, it does not describe a record or has a part without a type, or fastavro is not
            installed.
    """

    form: ClassVar[str] = "record of Avro"

    def serialize(self, element: object) -> bytes:
        """Return the record.

        Raises:
            DataError: The element is not of the type, or has None where the schema has no null.
        """
        declared = self._declared(element)
        data = io.BytesIO()
        try:
            library().schemaless_writer(data, self._schema.parsed, _as_avro(self._expanded, self.row_type, declared))
        except Exception as error:
            why = error if isinstance(error, DataError) else repr(error)
            raise DataError(f"{element!r} cannot be written as Avro of {self.row_type}: {why}") from error
        return data.getvalue()


def _as_avro(node: Any, type_info: TypeInformation, value: Any) -> Any:
    """Return a value for fastavro: records as dicts, and points in time with their zone.

    Args:
        node: the part of the schema that describes it.
        type_info: its type.
        value: the value.

    Raises:
        DataError: It is None, and the schema has no null there: fastavro would write False for a boolean.
    """
    node, may_be_null = _described(node)
    if value is None:
        if not may_be_null:
            raise DataError(f"there is None where the schema has {node['type']} alone; add null to the schema's type")
        return None
    if isinstance(type_info, CompositeTypeInfo):
        parts = zip(node["fields"], type_info.field_types, value, strict=True)
        return {field["name"]: _as_avro(field["type"], kind, part) for field, kind, part in parts}
    if isinstance(type_info, ListTypeInfo):
        return [_as_avro(node["items"], type_info.element_type, part) for part in value] if "items" in node else value
    if isinstance(type_info, MapTypeInfo):
        return {name: _as_avro(node["values"], type_info.value_type, part) for name, part in value.items()}
    if type_info == Types.SQL_TIMESTAMP():
        return value.replace(tzinfo=dt.UTC)
    return value


def _described(node: Any) -> tuple[dict[str, Any], bool]:
    """The part of a schema that is not null, and whether it may be null."""
    if isinstance(node, list):
        [kind] = [one for one in node if one not in ("null", {"type": "null"})]
        return _described(kind)[0], len(node) > 1
    if isinstance(node, str):
        return {"type": node}, False
    return _described(node["type"]) if isinstance(node["type"], dict | list) else (node, False)


@dataclass(frozen=True)
class ConfluentRegistryAvroDeserializationSchema(ReadsAvroRecords):
    """Reads rows from Avro records, each after the number of the schema that it was written with.

    That schema is fetched once, and a record is converted from it to the reader's schema by Avro's rules. Made with
    :meth:`for_generic`. Flink: ``ConfluentRegistryAvroDeserializationSchema`` of the Java API; not in PyFlink.

    A registry that does not answer, or refuses access, is an error of the program, not a bad record.
    """

    schema: AvroSchema
    url: str = field(repr=False)
    registry_configs: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)

    @staticmethod
    def for_generic(
        schema: str | AvroSchema, url: str, registry_configs: Mapping[str, str] | None = None
    ) -> ConfluentRegistryAvroDeserializationSchema:
        """Return one for rows of a schema.

        Args:
            schema: The schema to read with, as JSON.
            url: The address of the registry.
            registry_configs: Properties of confluent-kafka's registry client, such as ``basic.auth.user.info``.

        Raises:
            ProgramError: It is not an Avro schema, does not describe a record, or has a part without a type.

        ::

            ConfluentRegistryAvroDeserializationSchema.for_generic(schema, "http://localhost:8081")
        """
        known = schema if isinstance(schema, AvroSchema) else AvroSchema.parse_string(schema)
        configs = {name: value for name, value in (registry_configs or {}).items() if name != _SOURCE}
        made = ConfluentRegistryAvroDeserializationSchema(known, url, configs)
        _ = made.row_type
        return made

    @cached_property
    def row_type(self) -> CompositeTypeInfo:  # type: ignore[override]
        """The type of the rows, from the reader's schema."""
        return row_type_of(type(self).__name__, self.schema.type_info())

    @cached_property
    def _deserialize(self) -> Any:
        configs = {"url": self.url, **self.registry_configs}
        try:
            registry = kafka_library("schema_registry").SchemaRegistryClient(configs)
            return kafka_library("schema_registry.avro").AvroDeserializer(registry, self.schema.text)
        except (TypeError, ValueError) as error:
            raise ProgramError(f"the settings of the schema registry at {self.url} are wrong: {error}") from error

    def _record(self, message: bytes) -> Any:
        try:
            return self._deserialize(message, None)
        except ProgramError:
            raise
        except kafka_library("schema_registry.error").SchemaRegistryError as error:
            if error.http_status_code != _UNKNOWN_SCHEMA:
                raise self._no_answer(error) from error
            raise DataError(f"the schema of the message {said(message)} is not known to {self.url}: {error}") from error
        except Exception as error:
            if _is_of_network(error):
                raise self._no_answer(error) from error
            raise DataError(
                f"the message {said(message)} cannot be read as Avro of {self.row_type}, with its schema in "
                f"{self.url}: {error!r}"
            ) from error

    def _no_answer(self, error: Exception) -> ProgramError:
        return ProgramError(
            f"the schema registry at {self.url} does not say with which schema messages were written: {error!r}. Look "
            "at its url, and at basic.auth.user.info"
        )


def _is_of_network(error: Exception) -> bool:
    """Whether an error is from the library's HTTP client, or from a connection."""
    return isinstance(error, OSError) or type(error).__module__.partition(".")[0].startswith(("httpx", "httpcore"))
