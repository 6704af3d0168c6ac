"""Joins as a program asks for them: they run on columns where the program allows it, else on elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from eventide.api.functions import ProcessJoinFunction
from eventide.api.windows import WindowAssigner
from eventide.common.typeinfo import TypeInformation
from eventide.runtime.columnar.computed_keys import ComputedKey
from eventide.runtime.columnar.layout import obstacle_of_watermarks
from eventide.runtime.columnar.panes import Panes
from eventide.runtime.joins.as_of import AsOf, AsOfColumns, AsOfColumnsOperator
from eventide.runtime.joins.columns import (
    IntervalColumns,
    IntervalColumnsOperator,
    WindowColumns,
    WindowColumnsOperator,
    sides_of,
)
from eventide.runtime.joins.interval import Bounds, IntervalJoinOperator, IntervalJoinSpec
from eventide.runtime.joins.pairs import PairFunction, obstacle_of_function, pair_function
from eventide.runtime.joins.windowed import Selection, SelectsOfPair, obstacle_of_fields, obstacle_of_keys
from eventide.runtime.process.operation import ProcessOperation, identity_of, partitioner_of
from eventide.runtime.state.backend import Backend
from eventide.runtime.state.keyed import KeyedState
from eventide.runtime.state.operators import WHOLE_ELEMENTS, in_words
from eventide.runtime.state.transaction import TransactionalState
from eventide.runtime.tasks.operator import OpenOperator, OperatorContext, OperatorInput, PlannedOperator
from eventide.runtime.tracing.reasons import place_of

_COLUMNAR = "columns, rows go through the shuffle"
_KEEPS = "elements that may still meet others"


@dataclass(frozen=True, slots=True)
class IntervalJoinOperation:
    """Description of an interval join: a function for each pair, or some fields of it."""

    bounds: Bounds
    gives: ProcessJoinFunction | Selection
    late_tags: tuple[str | None, str | None]
    result_type: TypeInformation
    kind: str = "interval join"
    endless: str | None = None
    needs_all: bool = False
    dead_letters: str | None = None

    def planned(self, name: str, inputs: Sequence[OperatorInput], max_parallelism: int) -> PlannedOperator:
        """On columns where keys are fields, and elements have some; else element by element."""
        span = "any time" if self.bounds.are_open else f"{self.bounds.lower_ms} ms to {self.bounds.upper_ms} ms"
        bounds = {"bounds": span}
        by_fields = [
            replace(source, key=source.key and source.key.by_field(source.value_type, several=True))
            for source in inputs
        ]
        obstacle = _obstacle(self.gives, by_fields)
        if obstacle is None:
            gives = (
                self.gives
                if isinstance(self.gives, Selection)
                else pair_function(self.gives, [source.value_type for source in inputs], self.result_type)
            )
            sides = sides_of(by_fields, gives, self.late_tags)
            spec = IntervalColumns(name, self.bounds, sides, gives, self.dead_letters)
            return _on_columns(spec, IntervalColumnsOperator, by_fields, max_parallelism, bounds)
        function = SelectsOfPair(self.gives) if isinstance(self.gives, Selection) else self.gives
        element_types = {"element types": " and ".join(str(source.value_type) for source in inputs)}
        return PlannedOperator(
            IntervalJoinSpec(name, self.bounds, function, self.late_tags, self.result_type, self.dead_letters),
            open_interval_join,
            tuple(partitioner_of(source, max_parallelism) for source in inputs),
            f"element by element, because {obstacle}",
            identity_of(inputs, max_parallelism, keeps=_KEEPS) | bounds | element_types,
            (None, None),
        )


@dataclass(frozen=True, slots=True)
class WindowJoinOperation:
    """Description of a window join on columns: a function for each pair, or some fields of it."""

    assigner: WindowAssigner[Any, Any]
    panes: Panes
    lateness_ms: int
    how: str
    gives: PairFunction | Selection
    kind: str = "window join"
    endless: str | None = None
    needs_all: bool = False
    dead_letters: str | None = None

    def planned(self, name: str, inputs: Sequence[OperatorInput], max_parallelism: int) -> PlannedOperator:
        """On columns; for watermarks both streams are one, as those that element by element go through a union."""
        sides = sides_of(inputs, self.gives)
        spec = WindowColumns(
            name, self.assigner, self.panes, self.lateness_ms, self.how, sides, self.gives, self.dead_letters
        )
        depends = {
            "window": repr(self.assigner),
            "allowed lateness": f"{self.lateness_ms} ms",
        }
        return _on_columns(spec, WindowColumnsOperator, inputs, max_parallelism, depends, is_union=True)


@dataclass(frozen=True, slots=True)
class AsOfOperation(ProcessOperation):
    """Description of an as-of join: some fields of both, on columns where they can, or a function."""

    how: AsOf = field(default_factory=AsOf)
    gives: Selection | None = None
    late_tag: str | None = None

    def planned(self, name: str, inputs: Sequence[OperatorInput], max_parallelism: int) -> PlannedOperator:
        """On columns if keys and results are fields; else element by element."""
        by_fields = [
            replace(source, key=source.key and source.key.by_field(source.value_type, several=True))
            for source in inputs
        ]
        depends = {"join": f"as of, {self.how}"}
        place = place_of(self.processing.user_function)
        obstacle: str | None = f"its function{place} is called with each element; select(...) runs on columns"
        if self.gives is not None:
            keys, types = [source.key for source in by_fields], [source.value_type for source in by_fields]
            obstacle = obstacle_of_keys(keys, types) or obstacle_of_fields(self.gives) or obstacle_of_watermarks(inputs)
            if obstacle is None:
                sides = sides_of(by_fields, self.gives, (self.late_tag, None))
                spec = AsOfColumns(name, self.how, sides, self.gives)
                return _on_columns(spec, AsOfColumnsOperator, by_fields, max_parallelism, depends)
        planned = ProcessOperation.planned(self, name, inputs, max_parallelism)
        element_types = {"element types": " and ".join(str(source.value_type) for source in inputs)}
        return replace(
            planned,
            speed=f"element by element, because {obstacle}",
            identity=identity_of(inputs, max_parallelism, keeps=_KEEPS) | depends | element_types,
        )


def open_interval_join(spec: IntervalJoinSpec, backend: Backend, context: OperatorContext) -> IntervalJoinOperator:
    """The operator of an interval join of elements, on its state."""
    state = KeyedState if spec.dead_letters is None else TransactionalState
    return IntervalJoinOperator(spec, state(backend, context.max_parallelism, in_batch=context.in_batch), context)


def _obstacle(gives: ProcessJoinFunction | Selection, inputs: Sequence[OperatorInput]) -> str | None:
    """Why an interval join cannot run on columns, or had better not, and what to change; None if it can."""
    keys, types = [source.key for source in inputs], [source.value_type for source in inputs]
    if isinstance(gives, Selection):
        obstacle = obstacle_of_keys(keys, types) or obstacle_of_fields(gives)
    else:
        obstacle = obstacle_of_function(gives, types, keys)
        if obstacle is None and any(source.in_batch for source in inputs):
            return (
                "batch mode calls a function in the order of time across both streams, and columns take one at a time"
            )
    return obstacle or obstacle_of_watermarks(inputs)


def _on_columns(
    spec: IntervalColumns | WindowColumns | AsOfColumns,
    open: OpenOperator,
    inputs: Sequence[OperatorInput],
    max_parallelism: int,
    depends: dict[str, str],
    *,
    is_union: bool = False,
) -> PlannedOperator:
    sides, gives = spec.sides, spec.gives
    inputs = [_with_kind(source, side.computed) for source, side in zip(inputs, sides, strict=True)]
    fields = {
        "stored form": type(spec).__name__,
        "key columns": " = ".join(", ".join(side.fields_of_key) or "computed" for side in sides),
        "kept fields": in_words(str(side.schema.remove_metadata()).replace("\n", ", ") for side in sides),
        WHOLE_ELEMENTS: in_words(str(source.value_type) for source in inputs),
    }
    return PlannedOperator(
        spec,
        open,
        tuple(side.partitioner(max_parallelism) for side in sides),
        _COLUMNAR if isinstance(gives, Selection) else f"{_COLUMNAR}; {gives.speed()}",
        identity_of(inputs, max_parallelism, keeps=_KEEPS) | depends | fields,
        tuple(side.used_fields for side in sides),
        is_union=is_union,
    )


def _with_kind(source: OperatorInput, computed: ComputedKey | None) -> OperatorInput:
    """An input with the type of its key that a function computes."""
    if source.key is None or computed is None:
        return source
    return replace(source, key=replace(source.key, type_info=computed.kind))
