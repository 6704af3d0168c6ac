"""Fields of tuples, rows and dicts, as types and as columns; a value of any other type is its own only field."""

from collections.abc import Sequence

import pyarrow as pa

from eventide.common.typeinfo import CompositeTypeInfo, TypeInformation

__all__ = ["columns_of_fields", "from_fields", "types_of_fields"]


def types_of_fields(kind: TypeInformation) -> Sequence[TypeInformation]:
    """The types of the fields of a value.

    >>> from eventide.common import Types
    >>> types_of_fields(Types.TUPLE([Types.STRING(), Types.LONG()]))
    (STRING, LONG)
    >>> types_of_fields(Types.LONG())
    [LONG]
    """
    return kind.types if isinstance(kind, CompositeTypeInfo) else [kind]


def columns_of_fields(values: pa.Array, kind: TypeInformation) -> list[pa.Array]:
    """The columns of the fields of values of a type; where a value is None, its fields are."""
    return list(values.flatten()) if isinstance(kind, CompositeTypeInfo) else [values]


def from_fields(columns: Sequence[pa.Array], kind: TypeInformation) -> pa.Array:
    """The column of the values of a type that have these fields; none of the values is None."""
    if not isinstance(kind, CompositeTypeInfo):
        return columns[0]
    return pa.StructArray.from_arrays(columns, fields=list(kind.arrow_type()))
