"""From an Arrow schema, such as a DataFrame's, to types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eventide.common.typeinfo._types import Types
from eventide.common.typeinfo.decimal import MOST_DIGITS
from eventide.errors import ProgramError

if TYPE_CHECKING:
    import pyarrow as pa

    from eventide.common.typeinfo.base import TypeInformation

_BY_TEST = {
    "is_string": "STRING",
    "is_large_string": "STRING",
    "is_boolean": "BOOLEAN",
    "is_int8": "BYTE",
    "is_int16": "SHORT",
    "is_uint8": "SHORT",
    "is_int32": "INT",
    "is_uint16": "INT",
    "is_int64": "LONG",
    "is_uint32": "LONG",
    "is_uint64": "BIG_INT",
    "is_float16": "FLOAT",
    "is_float32": "FLOAT",
    "is_float64": "DOUBLE",
    "is_date": "SQL_DATE",
    "is_time": "SQL_TIME",
    "is_timestamp": "SQL_TIMESTAMP",
}


def type_info_from_arrow(schema: pa.Schema | pa.DataType) -> TypeInformation:
    """Return the type of values of an Arrow type; a schema, or a struct, becomes a row with names.

    Raises:
        ProgramError: There is no type for it, or for a part of it.

    >>> import pyarrow as pa
    >>> type_info_from_arrow(pa.schema([("user", pa.string()), ("amounts", pa.list_(pa.float64()))]))
    ROW(user: STRING, amounts: LIST(DOUBLE))
    """
    import pyarrow as pa

    if isinstance(schema, pa.Schema):
        return _row(list(schema))
    is_a = pa.types
    for test, name in _BY_TEST.items():
        if getattr(is_a, test)(schema):
            factory: TypeInformation = getattr(Types, name)()
            return factory
    if is_a.is_decimal(schema):
        return _decimal(schema)
    if is_a.is_binary(schema) or is_a.is_large_binary(schema) or is_a.is_fixed_size_binary(schema):
        return Types.PRIMITIVE_ARRAY(Types.BYTE())
    if is_a.is_list(schema) or is_a.is_large_list(schema) or is_a.is_fixed_size_list(schema):
        return Types.LIST(type_info_from_arrow(schema.value_type))
    if is_a.is_map(schema):
        return Types.MAP(type_info_from_arrow(schema.key_type), type_info_from_arrow(schema.item_type))
    if is_a.is_struct(schema):
        return _row(list(schema))
    if is_a.is_dictionary(schema):
        return type_info_from_arrow(schema.value_type)
    message = f"there is no type for Arrow's {schema}: leave the column out, or cast it to another type"
    raise ProgramError(message)


def _decimal(kind: pa.DataType) -> TypeInformation:
    if kind == Types.BIG_DEC().arrow_type() or kind.precision > MOST_DIGITS or kind.scale < 0:
        return Types.BIG_DEC()
    return Types.BIG_INT() if kind.scale == 0 else Types.BIG_DEC(kind.precision, kind.scale)


def _row(fields: list[pa.Field]) -> TypeInformation:
    names, types = [], []
    for field in fields:
        names.append(field.name)
        try:
            types.append(type_info_from_arrow(field.type))
        except ProgramError as error:
            message = f"field {field.name!r}: {error}"
            raise ProgramError(message) from error
    return Types.ROW_NAMED(names, types)
