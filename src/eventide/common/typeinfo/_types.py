"""The factory of all types, with PyFlink's names."""

# ruff: noqa: N802

from __future__ import annotations

import datetime
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from eventide.common.time import Instant
from eventide.common.time_window import TimeWindow
from eventide.common.type_variables import K, T, V
from eventide.common.typeinfo._collections import ListTypeInfo, MapTypeInfo
from eventide.common.typeinfo._composite import RowTypeInfo, TupleTypeInfo
from eventide.common.typeinfo._special import BytesTypeInfo, PickledBytesTypeInfo, TimeWindowTypeInfo
from eventide.common.typeinfo._times import DateTypeInfo, TimestampTypeInfo, TimeTypeInfo
from eventide.common.typeinfo.base import TypeInformation
from eventide.common.typeinfo.basic import BasicTypeInfo
from eventide.common.typeinfo.decimal import DecimalTypeInfo


class Types:
    """Makes the types of elements. A declared type travels as columns; everything else travels pickled.

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
        """A truth value: ``bool``."""
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
        """An integer of up to 38 digits: ``int``. PyFlink's has any number of them."""
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

        Without arguments, it has up to 20 digits before the point and 18 after it, and each value keeps those that it
        has; as a column it is a ``decimal(38, 18)``. PyFlink's has any number of digits: leave the type of such numbers
        undeclared. Beyond PyFlink, with a `precision`, all values have `precision` digits, `scale` of them after the
        point, as Spark's ``DecimalType``. What would have to be rounded is refused.
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
        """Any object, pickled: the type of what is not declared."""
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
