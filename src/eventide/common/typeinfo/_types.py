"""The factory of all types, with PyFlink's names; and from an Arrow schema, such as a DataFrame's, to types."""

# ruff: noqa: N802

from __future__ import annotations

import datetime
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from eventide.common.time import Instant
from eventide.common.type_variables import K, T, V
from eventide.common.typeinfo._composite import ListTypeInfo, MapTypeInfo, RowTypeInfo, TupleTypeInfo
from eventide.common.typeinfo.base import TypeInformation
from eventide.common.typeinfo.basic import (
    MOST_DIGITS,
    BasicTypeInfo,
    BytesTypeInfo,
    DateTypeInfo,
    DecimalTypeInfo,
    PickledBytesTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
    TimeWindowTypeInfo,
)
from eventide.common.windows import TimeWindow
from eventide.errors import ProgramError

if TYPE_CHECKING:
    import pyarrow as pa

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


class Types:
    """Makes the types of elements. Elements of a declared type travel as columns, all others pickled.

    >>> Types.TUPLE([Types.STRING(), Types.LONG()])
    TUPLE(STRING, LONG)
    >>> Types.ROW_NAMED(["user", "tags"], [Types.STRING(), Types.LIST(Types.INT())]).field_names
    ['user', 'tags']
    """

    @staticmethod
    def STRING() -> TypeInformation[str]:
        """Text: ``str``."""
        return BasicTypeInfo("STRING")

    @staticmethod
    def CHAR() -> TypeInformation[str]:
        """One character: a ``str`` of length 1."""
        return BasicTypeInfo("CHAR")

    @staticmethod
    def BOOLEAN() -> TypeInformation[bool]:
        """A boolean: ``bool``."""
        return BasicTypeInfo("BOOLEAN")

    @staticmethod
    def BYTE() -> TypeInformation[int]:
        """An integer of 8 bits: ``int``, -128 to 127."""
        return BasicTypeInfo("BYTE")

    @staticmethod
    def SHORT() -> TypeInformation[int]:
        """An integer of 16 bits: ``int``."""
        return BasicTypeInfo("SHORT")

    @staticmethod
    def INT() -> TypeInformation[int]:
        """An integer of 32 bits: ``int``."""
        return BasicTypeInfo("INT")

    @staticmethod
    def LONG() -> TypeInformation[int]:
        """An integer of 64 bits: ``int``."""
        return BasicTypeInfo("LONG")

    @staticmethod
    def BIG_INT() -> TypeInformation[int]:
        """An integer of up to 38 digits: ``int``. PyFlink's type has any number of digits."""
        return BasicTypeInfo("BIG_INT")

    @staticmethod
    def FLOAT() -> TypeInformation[float]:
        """A number of 32 bits: ``float`` or ``int``, rounded; comes back as ``float``."""
        return BasicTypeInfo("FLOAT")

    @staticmethod
    def DOUBLE() -> TypeInformation[float]:
        """A number of 64 bits: ``float`` or ``int``; comes back as ``float``."""
        return BasicTypeInfo("DOUBLE")

    @staticmethod
    def BIG_DEC(precision: int | None = None, scale: int = 0) -> TypeInformation[Decimal]:
        """A decimal number: ``decimal.Decimal``.

        Without arguments, it has up to 20 digits before the point and 18 after it, and each value keeps its number of
        digits; as a column it is a ``decimal(38, 18)``. PyFlink's type has any number of digits: leave the type of such
        numbers undeclared. Beyond PyFlink, with a `precision`, all values have `precision` digits, `scale` of them
        after the point, as Spark's ``DecimalType``. Values that would have to be rounded are refused.
        """
        return BasicTypeInfo("BIG_DEC") if precision is None else DecimalTypeInfo(precision, scale)

    @staticmethod
    def SQL_DATE() -> TypeInformation[datetime.date]:
        """A date: ``datetime.date``."""
        return DateTypeInfo()

    @staticmethod
    def SQL_TIME() -> TypeInformation[datetime.time]:
        """A time of day without a zone: ``datetime.time``, to the microsecond."""
        return TimeTypeInfo()

    @staticmethod
    def SQL_TIMESTAMP() -> TypeInformation[datetime.datetime]:
        """A point in time: ``datetime.datetime``, naive ones in UTC; comes back naive, in UTC."""
        return TimestampTypeInfo()

    @staticmethod
    def INSTANT() -> TypeInformation[Instant]:
        """A point in time: `Instant`, in whole microseconds."""
        return BasicTypeInfo("INSTANT")

    @staticmethod
    def TIME_WINDOW() -> TypeInformation[TimeWindow]:
        """A `TimeWindow`, as a struct of the timestamps start and end. Not in PyFlink."""
        return TimeWindowTypeInfo()

    @staticmethod
    def PICKLED_BYTE_ARRAY() -> TypeInformation[Any]:
        """Any object, pickled: the type of elements without a declared type."""
        return PickledBytesTypeInfo()

    @staticmethod
    def TUPLE(field_types: Sequence[TypeInformation]) -> TupleTypeInfo:
        """A ``tuple`` with fields of these types."""
        return TupleTypeInfo(field_types)

    @staticmethod
    def ROW(field_types: Sequence[TypeInformation]) -> RowTypeInfo:
        """A `Row` with fields of these types, named f0, f1 and so on."""
        return RowTypeInfo(field_types)

    @staticmethod
    def ROW_NAMED(field_names: Sequence[str], field_types: Sequence[TypeInformation]) -> RowTypeInfo:
        """A `Row` with fields of these names and types."""
        return RowTypeInfo(field_types, field_names)

    @staticmethod
    def LIST(element_type_info: TypeInformation[T]) -> TypeInformation[list[T]]:
        """A ``list`` of elements of one type."""
        return ListTypeInfo(element_type_info)

    @staticmethod
    def PRIMITIVE_ARRAY(element_type: TypeInformation) -> TypeInformation[Any]:
        """A ``list`` of numbers; of BYTE, a ``bytes`` object."""
        if element_type == Types.BYTE():
            return BytesTypeInfo()
        return ListTypeInfo(element_type, "PRIMITIVE_ARRAY")

    @staticmethod
    def BASIC_ARRAY(element_type: TypeInformation[T]) -> TypeInformation[list[T]]:
        """A ``list`` of numbers or text, None among them allowed."""
        return ListTypeInfo(element_type, "BASIC_ARRAY")

    @staticmethod
    def OBJECT_ARRAY(element_type: TypeInformation[T]) -> TypeInformation[list[T]]:
        """A ``list`` of elements of one type, None among them allowed."""
        return ListTypeInfo(element_type, "OBJECT_ARRAY")

    @staticmethod
    def MAP(key_type_info: TypeInformation[K], value_type_info: TypeInformation[V]) -> TypeInformation[dict[K, V]]:
        """A ``dict`` with keys of one type and values of one type."""
        return MapTypeInfo(key_type_info, value_type_info)


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
    raise ProgramError(f"there is no type for Arrow's {schema}: leave the column out, or cast it to another type")


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
            raise ProgramError(f"field {field.name!r}: {error}") from error
    return Types.ROW_NAMED(names, types)
