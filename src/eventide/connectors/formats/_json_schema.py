"""The type that a JSON schema describes, as Flink understands it."""

from __future__ import annotations

import json
from typing import Any

from eventide.common.typeinfo import TypeInformation, Types
from eventide.errors import ProgramError

_FORMATS = {"date-time": Types.SQL_TIMESTAMP, "date": Types.SQL_DATE, "time": Types.SQL_TIME}


def type_of_schema(json_schema: str) -> TypeInformation:
    """The type of the objects that a JSON schema describes. Flink: ``JsonRowSchemaConverter``.

    A number is a ``BIG_DEC``, an integer a ``BIG_INT``; the type of a text follows from its ``format`` or
    ``contentEncoding``. An array has items of one kind. A type that may also be null is that type.

    Raises:
        ProgramError: if it is not JSON, does not describe an object, or describes a value that no type fits.

    >>> type_of_schema('{"type": "object", "properties": {"user": {"type": "string"}, "tags": {"type": "array", '
    ...                '"items": {"type": "integer"}}}}')
    ROW(user: STRING, tags: OBJECT_ARRAY(BIG_INT))
    """
    try:
        root = json.loads(json_schema)
    except ValueError as error:
        raise ProgramError(f"the JSON schema is not JSON: {error}") from error
    if not isinstance(root, dict) or "properties" not in root:
        raise ProgramError(f"the JSON schema must describe an object with properties, not {json_schema!r:.200}")
    return _type(root, root, "the JSON schema")


def _type(node: object, root: dict[str, Any], where: str) -> TypeInformation:
    if not isinstance(node, dict):
        raise ProgramError(f"{where}: expected an object that describes a type, got {node!r}")
    if "$ref" in node:
        return _type(_found(node["$ref"], root, where), root, where)
    if "oneOf" in node:
        return _type(_not_null(node["oneOf"], {"type": "null"}, where), root, where)
    kind = node.get("type")
    if isinstance(kind, list):
        kind = _not_null(kind, "null", where)
    match kind:
        case "object" if isinstance(node.get("properties"), dict) and node["properties"]:
            fields = {name: _type(field, root, f"{where}, {name!r}") for name, field in node["properties"].items()}
            return Types.ROW_NAMED([*fields], [*fields.values()])
        case "array" if isinstance(node.get("items"), dict):
            return Types.OBJECT_ARRAY(_type(node["items"], root, f"{where}, items"))
        case "array" if isinstance(node.get("items"), list) and node["items"]:
            raise ProgramError(
                f"{where}: an array whose items have different types has no eventide type; describe items of one type"
            )
        case "string":
            return _text(node, where)
        case "number":
            return Types.BIG_DEC()
        case "integer":
            return Types.BIG_INT()
        case "boolean":
            return Types.BOOLEAN()
    raise ProgramError(f"{where}: {json.dumps(node)[:200]} describes a value that has no eventide type")


def _text(node: dict[str, Any], where: str) -> TypeInformation:
    if "contentEncoding" in node:
        if node["contentEncoding"] != "base64":
            raise ProgramError(f"{where}: expected the contentEncoding base64, got {node['contentEncoding']!r}")
        return Types.PRIMITIVE_ARRAY(Types.BYTE())
    return _FORMATS.get(node.get("format", ""), Types.STRING)()


def _not_null(several: object, null: object, where: str) -> object:
    kinds = several if isinstance(several, list) else []
    left = [one for one in kinds if one != null]
    if len(left) != 1 or len(kinds) > 2:
        raise ProgramError(f"{where}: only one type besides null is allowed, not {several!r}")
    return left[0]


def _found(reference: object, root: dict[str, Any], where: str) -> object:
    """The part of the schema that a reference in it names."""
    node: object = root
    if not isinstance(reference, str) or not reference.startswith("#/"):
        raise ProgramError(
            f"{where}: the reference {reference!r} points outside the schema, where eventide does not follow it"
        )
    for part in reference[2:].split("/"):
        if not isinstance(node, dict) or part not in node:
            raise ProgramError(f"{where}: the reference {reference!r} points to nothing")
        node = node[part]
    return node
