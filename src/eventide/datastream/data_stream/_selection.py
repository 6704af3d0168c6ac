"""Selection of fields of the elements that a join brings together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eventide.common.typeinfo import CompositeTypeInfo, RowTypeInfo, TypeInformation, Types
from eventide.datastream.data_stream._columns import field_type
from eventide.errors import ProgramError
from eventide.joins import JoinedColumn
from eventide.plan.graph import Transformation
from eventide.runtime.joins.selection import Selection


def selection_of(columns: Sequence[Any], inputs: Sequence[Transformation], *, has_window: bool) -> Selection:
    """The fields of a result, found in the elements of two streams.

    Raises:
        ProgramError: if there are none, one is no field, the type of the elements is not declared, a field is not
            there, a window is asked for where there is none, or two fields have one name.
    """
    strange = [column for column in columns if not isinstance(column, JoinedColumn)]
    if strange or not columns:
        what = repr(strange[0]) if strange else "nothing"
        raise ProgramError(f"select takes fields such as left('id') and right('price') of eventide.joins, not {what}")
    if not has_window and any(column.side is None for column in columns):
        raise ProgramError("select: window() is for joins in windows; an interval join has none")
    names = [column.output_name for column in columns]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ProgramError(f"two fields of the result are named {min(twice)!r}: {names}; rename one with .alias()")
    types, places = zip(*(_found(column, inputs) for column in columns), strict=True)
    return Selection(tuple(columns), places, Types.ROW_NAMED(names, list(types)))


def _found(column: JoinedColumn, inputs: Sequence[Transformation]) -> tuple[TypeInformation, Any]:
    """The type of a field, and where it is in an element."""
    if column.side is None:
        return Types.TIME_WINDOW(), None
    source = inputs[column.side]
    kind = source.type_info
    if not isinstance(kind, CompositeTypeInfo):
        raise ProgramError(
            f"{column!r} needs elements with fields, and the type of those of {source.name!r} is {kind}; declare "
            "output_type=Types.ROW_NAMED([...], [...]), or Types.TUPLE([...]), whose fields are f0, f1, …"
        )
    found = field_type(kind, column.column, repr(column))
    return found, column.column if isinstance(kind, RowTypeInfo) else kind.field_names.index(column.column)
