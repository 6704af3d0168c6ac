"""Which fields of a source's elements later operators use: the others need not be read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from eventide.common.typeinfo import RowTypeInfo
from eventide.plan.graph import AlignmentTransformation, AssignTransformation, KeyTransformation, Transformation
from eventide.runtime.tasks.operator import PlannedOperator

Consumers = Callable[[Transformation], Sequence[Transformation]]


def used_fields(
    node: Transformation, consumers: Consumers, operators: Mapping[int, PlannedOperator]
) -> tuple[str, ...] | None:
    """The fields of the elements of a source that are used, in their order; None if whole elements are.

    Whole elements are what Python functions, sinks and side outputs get.
    """
    kind = node.type_info
    used = _used(node, consumers, operators)
    if used is None or not isinstance(kind, RowTypeInfo) or kind.names is None:
        return None
    return tuple(name for name in kind.names if name in used) or kind.names[:1]


def _used(node: Transformation, consumers: Consumers, operators: Mapping[int, PlannedOperator]) -> set[str] | None:
    used: set[str] = set()
    for consumer in consumers(node):
        operator = operators.get(consumer.number)
        if operator is not None:
            of_inputs: list[Iterable[str] | None] = [
                fields for source, fields in zip(consumer.inputs, operator.used_fields, strict=True) if source is node
            ]
        elif isinstance(consumer, AlignmentTransformation):
            of_inputs = []
        elif isinstance(consumer, AssignTransformation):
            of_inputs = [_used_by_strategy(consumer), _used(consumer, consumers, operators)]
        elif isinstance(consumer, KeyTransformation):
            of_inputs = [_used(consumer, consumers, operators)]
        else:
            return None
        for fields in of_inputs:
            if fields is None:
                return None
            used.update(fields)
    return used


def _used_by_strategy(node: AssignTransformation) -> set[str] | None:
    strategy = node.strategy
    if strategy.timestamp_assigner is not None or strategy.is_supplied:
        return None
    return {strategy.timestamp_column} if isinstance(strategy.timestamp_column, str) else set()
