"""Joins as a program asks for them: they run on columns where the program allows it, else on elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from eventide.api.functions import ProcessJoinFunction
from eventide.api.windows import WindowAssigner
from eventide.common.typeinfo import TypeInformation
from eventide.runtime.columnar.panes import Panes
from eventide.runtime.joins.columns import (
    IntervalColumns,
    IntervalColumnsOperator,
    Side,
    WindowColumns,
    WindowColumnsOperator,
    sides_of,
)
from eventide.runtime.joins.interval import Bounds, IntervalJoinOperator, IntervalJoinSpec
from eventide.runtime.joins.windowed import Selection, SelectsOfPair, obstacle_of_fields
from eventide.runtime.process.operation import identity_of, partitioner_of
from eventide.runtime.state.backend import Backend
from eventide.runtime.state.keyed import KeyedState
from eventide.runtime.state.transaction import TransactionalState
from eventide.runtime.tasks.operator import OpenOperator, OperatorContext, OperatorInput, OperatorSpec, PlannedOperator

_COLUMNAR = "columns, rows go through the shuffle"


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
        """On columns where fields are selected by keys that are fields; else a function sees each pair."""
        bounds = {"bounds": f"{self.bounds.lower_ms} ms to {self.bounds.upper_ms} ms"}
        if isinstance(self.gives, Selection):
            obstacle = _obstacle(self.gives, inputs)
            if obstacle is None:
                sides = sides_of(inputs, self.gives, self.late_tags)
                spec = IntervalColumns(name, self.bounds, sides, self.gives)
                return _on_columns(spec, IntervalColumnsOperator, sides, inputs, max_parallelism, bounds)
            function: ProcessJoinFunction = SelectsOfPair(self.gives)
            reason = obstacle
        else:
            function = self.gives
            reason = f"{type(function).__name__} is Python"
        element_types = {"element types": " and ".join(str(source.value_type) for source in inputs)}
        return PlannedOperator(
            IntervalJoinSpec(name, self.bounds, function, self.late_tags, self.result_type, self.dead_letters),
            open_interval_join,
            tuple(partitioner_of(source, max_parallelism, has_keys=True) for source in inputs),
            f"element by element, because {reason}",
            identity_of(inputs, max_parallelism) | bounds | element_types,
            (None, None),
        )


@dataclass(frozen=True, slots=True)
class WindowJoinOperation:
    """Description of a window join on columns that gives some fields of each pair."""

    assigner: WindowAssigner[Any, Any]
    panes: Panes
    lateness_ms: int
    how: str
    selection: Selection
    kind: str = "window join"
    endless: str | None = None
    needs_all: bool = False

    def planned(self, name: str, inputs: Sequence[OperatorInput], max_parallelism: int) -> PlannedOperator:
        """On columns; for watermarks both streams are one, as those that element by element go through a union."""
        sides = sides_of(inputs, self.selection)
        spec = WindowColumns(name, self.assigner, self.panes, self.lateness_ms, self.how, sides, self.selection)
        depends = {
            "window": repr(self.assigner),
            "allowed lateness": f"{self.lateness_ms} ms",
        }
        return _on_columns(spec, WindowColumnsOperator, sides, inputs, max_parallelism, depends, is_union=True)


def open_interval_join(spec: IntervalJoinSpec, backend: Backend, context: OperatorContext) -> IntervalJoinOperator:
    """The operator of an interval join of elements, on its state."""
    state = KeyedState if spec.dead_letters is None else TransactionalState
    return IntervalJoinOperator(spec, state(backend, context.max_parallelism, in_batch=context.in_batch), context)


def _obstacle(selection: Selection, inputs: Sequence[OperatorInput]) -> str | None:
    """Why an interval join cannot run on columns, or had better not, and what to change; None if it can."""
    obstacle = obstacle_of_fields(selection, [source.key for source in inputs])
    if obstacle is None and any(source.is_punctuated for source in inputs):
        return (
            "a watermark may come between any two elements, each of which would look through a table; with built-in "
            "watermarks, or a generator class that is_periodic, it runs on columns"
        )
    return obstacle


def _on_columns(
    spec: OperatorSpec,
    open: OpenOperator,
    sides: tuple[Side, Side],
    inputs: Sequence[OperatorInput],
    max_parallelism: int,
    depends: dict[str, str],
    *,
    is_union: bool = False,
) -> PlannedOperator:
    fields = {
        "stored form": type(spec).__name__,
        "key columns": " = ".join(", ".join(side.keys) for side in sides),
        "kept fields": " and ".join(str(side.schema.remove_metadata()).replace("\n", ", ") for side in sides),
    }
    return PlannedOperator(
        spec,
        open,
        tuple(side.partitioner(max_parallelism) for side in sides),
        _COLUMNAR,
        identity_of(inputs, max_parallelism) | depends | fields,
        tuple(side.used_fields for side in sides),
        is_union=is_union,
    )
