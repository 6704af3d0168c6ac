"""Streams by column: keys and aggregates that are named, and the rows that come of them."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from eventide.aggregates import ColumnAggregate
from eventide.common.typeinfo import CompositeTypeInfo, ListTypeInfo, MapTypeInfo, RowTypeInfo, TypeInformation, Types
from eventide.errors import ProgramError
from eventide.plan.graph import KeyTransformation, Transformation
from eventide.runtime.columnar.aggregation import Aggregation
from eventide.runtime.columnar.contents import AggregatedColumns, ColumnResult
from eventide.runtime.tasks.operator import Key

_WINDOW = "window"


def keyed_by_columns(source: Transformation, names: Sequence[Any]) -> KeyTransformation:
    """A key that consists of fields of the elements.

    Raises:
        ProgramError: if a field is not there, or cannot be part of a key.
    """
    if not all(isinstance(name, str) for name in names):
        raise ProgramError(f"key_by takes one function, or the names of fields, not {names!r}")
    kind = source.type_info
    if not isinstance(kind, CompositeTypeInfo):  # elements that are dicts or rows of no declared type
        return KeyTransformation(source, Key(itemgetter(*names), Types.PICKLED_BYTE_ARRAY()))
    types = [field_type(kind, name, "key_by") for name in names]
    for name, field in zip(names, types, strict=True):
        if isinstance(field, CompositeTypeInfo):
            raise ProgramError(f"the field {name!r} is a {field}; name its own fields in a map first, and key by those")
    key_type = types[0] if len(types) == 1 else Types.TUPLE(types)
    check_key_type(key_type)
    places: Sequence[Any] = names if isinstance(kind, RowTypeInfo) else [kind.field_names.index(n) for n in names]
    return KeyTransformation(source, Key(itemgetter(*places), key_type, tuple(names)))


def check_key_type(key_type: TypeInformation | None) -> None:
    """Refuse types in which keys would not come back as they went: rounded, or as something that cannot be a key."""
    parts = [] if key_type is None else [key_type]
    for part in parts:
        if isinstance(part, CompositeTypeInfo):
            parts += part.field_types
        if part == Types.FLOAT() or isinstance(part, ListTypeInfo | MapTypeInfo):
            raise ProgramError(
                f"{part} cannot be the type of a key or of a part of one: its values are rounded or cannot be hashed; "
                "declare another key_type, such as Types.DOUBLE() or Types.TUPLE([...]), or leave it out"
            )


def field_type(kind: CompositeTypeInfo, name: str, where: str) -> TypeInformation:
    """The type of a field.

    Raises:
        ProgramError: if there is none of that name.
    """
    if name not in kind.field_names:
        raise ProgramError(f"{where}: the elements have no field {name!r}; their fields are {kind.field_names}")
    return kind.field_types[kind.field_names.index(name)]


def aggregated_by_column(
    source: Transformation, aggregates: Sequence[Any], *, has_window: bool
) -> tuple[AggregatedColumns, ColumnResult, TypeInformation]:
    """Return the contents and results of windows for aggregates by column, and the type of the results.

    Raises:
        ProgramError: if the type of the elements is not declared, a field is not there or does not suit its aggregate,
            or two results have one name.
    """
    strange = [aggregate for aggregate in aggregates if not isinstance(aggregate, ColumnAggregate)]
    if strange:
        raise ProgramError(f"aggregate takes one AggregateFunction, or aggregates of columns, not also {strange[0]!r}")
    kind = source.type_info
    if not isinstance(kind, CompositeTypeInfo):
        raise ProgramError(
            f"{aggregates[0]!r} needs elements with fields, and the type of those of {source.name!r} is {kind}; "
            "declare output_type=Types.ROW_NAMED([...], [...]), or Types.TUPLE([...]), whose fields are f0, f1, …"
        )
    inputs = {a.column: field_type(kind, a.column, repr(a)) for a in aggregates if a.column is not None}
    results = [a.result_type(None if a.column is None else inputs[a.column]) for a in aggregates]
    keys = _key_fields(source, kind)
    window = [(_WINDOW, Types.TIME_WINDOW())] if has_window else []
    fields = [*keys, *window, *((a.output_name, t) for a, t in zip(aggregates, results, strict=True))]
    names = [name for name, _ in fields]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ProgramError(f"two fields of the result are named {min(twice)!r}: {names}; rename one with .alias()")
    aggregation = Aggregation.of(aggregates, {name: t.arrow_type() for name, t in inputs.items()})
    contents = AggregatedColumns(tuple(aggregates), aggregation, kind, tuple(results))
    result = ColumnResult(tuple(names), len(keys), has_window)
    return contents, result, Types.ROW_NAMED(names, [field for _, field in fields])


def _key_fields(source: Transformation, kind: CompositeTypeInfo) -> list[tuple[str, TypeInformation]]:
    if not isinstance(source, KeyTransformation):
        return []
    if source.key.columns:
        return [(name, field_type(kind, name, "key_by")) for name in source.key.columns]
    return [("key", source.key.type_info)]
