"""Schemas of Avro, and the types that they describe."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from eventide.common.typeinfo import TypeInformation, Types
from eventide.errors import ProgramError

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


def library() -> Any:
    """The module fastavro, which reads and writes Avro.

    Raises:
        ProgramError: if it is not installed where this runs.
    """
    try:
        return import_module("fastavro")
    except ImportError as error:
        raise ProgramError(
            "Avro needs the library fastavro, which is not installed here: pip install 'eventide[avro]', also where "
            "Spark's workers run"
        ) from error


@dataclass(frozen=True)
class AvroSchema:
    """A schema of Avro; made by :meth:`parse_string` or :meth:`parse_file`. PyFlink: ``AvroSchema``.

    It needs the package fastavro, which comes with ``eventide[avro]``.
    """

    text: str

    @staticmethod
    def parse_string(json_schema: str) -> AvroSchema:
        """The schema that a text describes.

        Raises:
            ProgramError: It is no schema of Avro, or fastavro is not installed.
        """
        schema = AvroSchema(json_schema)
        _ = schema.parsed
        return schema

    @staticmethod
    def parse_file(file_path: str) -> AvroSchema:
        """The schema that a local file describes.

        Raises:
            ProgramError: The file cannot be read, or has no schema of Avro in it.
        """
        try:
            text = Path(file_path).read_text(encoding="utf-8")
        except OSError as error:
            raise ProgramError(f"the Avro schema {file_path} cannot be read: {error}") from error
        return AvroSchema.parse_string(text)

    @cached_property
    def parsed(self) -> Any:
        """The schema as fastavro takes it, without what is said of types beyond those that a row has."""
        avro = library()
        try:
            return avro.parse_schema(_without_strange_types(json.loads(self.text)))
        except Exception as error:
            raise ProgramError(f"{self.text!r:.200} is not an Avro schema: {error!r}") from error

    def type_info(self) -> TypeInformation:
        """The type of what the schema describes: of a record, a row. Flink: ``AvroSchemaConverter``.

        Text and enumerations are text; what may be null besides is what it is; a decimal keeps its digits.

        Raises:
            ProgramError: There is no type for a part of it: null alone, several types in one place, or one that has
                itself as a part.
        """
        return _type(import_module("fastavro.schema").expand_schema(self.parsed), "it")

    def __str__(self) -> str:
        return self.text

    def __reduce__(self) -> tuple[Any, ...]:
        return AvroSchema, (self.text,)


def _without_strange_types(node: Any) -> Any:
    """Replace logical types that are not known by the type below, as the specification says."""
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
    raise ProgramError(f"Avro schema: there is no type for {where}, which is {kind!r}")
