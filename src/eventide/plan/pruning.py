"""Which fields of a source's elements anything behind it uses: the others need not be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from eventide.common.typeinfo import RowTypeInfo
from eventide.datastream._graph import (
    AssignTransformation,
    KeyTransformation,
    Transformation,
    WindowTransformation,
)
from eventide.plan.speeds import PlannedOperator
from eventide.runtime.columnar.spec import ColumnarWindow


def used_fields(
    node: Transformation,
    consumers: Mapping[int, Sequence[Transformation]],
    operators: Mapping[int, PlannedOperator],
) -> tuple[str, ...] | None:
    """The fields of the elements of a source that are used, in their order; None if whole elements are.

    Whole elements are what Python functions, sinks and side outputs get.
    """
    kind = node.type_info
    used = _used(node, consumers, operators)
    if used is None or not isinstance(kind, RowTypeInfo) or kind.names is None:
        return None
    return tuple(name for name in kind.names if name in used) or kind.names[:1]


def _used(
    node: Transformation,
    consumers: Mapping[int, Sequence[Transformation]],
    operators: Mapping[int, PlannedOperator],
) -> set[str] | None:
    used: set[str] = set()
    for consumer in consumers[node.number]:
        if isinstance(consumer, AssignTransformation):
            if consumer.strategy.timestamp_assigner is not None or consumer.strategy.is_supplied:
                return None
            column = consumer.strategy.timestamp_column
            used |= {column} if isinstance(column, str) else set()
        elif isinstance(consumer, WindowTransformation):
            window = operators[consumer.number].spec
            if not isinstance(window, ColumnarWindow) or window.ships_elements:
                return None
            used |= {*window.keys, *window.aggregation.input_columns}
            continue
        elif not isinstance(consumer, KeyTransformation):
            return None
        further = _used(consumer, consumers, operators)
        if further is None:
            return None
        used |= further
    return used
