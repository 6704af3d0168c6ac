"""The types of elements, and the way between Python values and Arrow columns (PyFlink: ``pyflink.common.typeinfo``)."""

from eventide._absent import hand_out_names
from eventide.common.typeinfo._composite import (
    CompositeTypeInfo,
    DictTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
)
from eventide.common.typeinfo._types import Types, type_info_from_arrow
from eventide.common.typeinfo.base import TypeInformation
from eventide.common.typeinfo.basic import (
    BasicTypeInfo,
    BytesTypeInfo,
    DateTypeInfo,
    DecimalTypeInfo,
    PickledBytesTypeInfo,
    SqlTimeTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
    TimeWindowTypeInfo,
)

__all__ = [
    "Types",
    "TypeInformation",
    "BasicTypeInfo",
    "CompositeTypeInfo",
    "TupleTypeInfo",
    "RowTypeInfo",
    "DictTypeInfo",
    "DecimalTypeInfo",
    "DateTypeInfo",
    "TimeTypeInfo",
    "TimestampTypeInfo",
    "SqlTimeTypeInfo",
    "ListTypeInfo",
    "MapTypeInfo",
    "BytesTypeInfo",
    "PickledBytesTypeInfo",
    "TimeWindowTypeInfo",
    "type_info_from_arrow",
]

hand_out_names(__name__)
