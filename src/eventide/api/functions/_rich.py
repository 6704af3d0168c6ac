"""Functions that remember their runtime context, under the names that Flink has for them in Java."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from eventide.api.functions._basic import (
    AggregateFunction,
    AllWindowFunction,
    CoGroupFunction,
    FilterFunction,
    FlatJoinFunction,
    FlatMapFunction,
    Function,
    JoinFunction,
    MapFunction,
    ReduceFunction,
    RuntimeContext,
    WindowFunction,
)
from eventide.api.functions._process import CoFlatMapFunction, CoMapFunction
from eventide.api.functions._source import SourceFunction
from eventide.api.functions.asynchronous import AsyncFunction
from eventide.common.type_variables import (
    ACC,
    IN1_contra,
    IN2_contra,
    IN_contra,
    KEY_contra,
    OUT_co,
    T,
    T_co,
    T_contra,
    W_contra,
)
from eventide.errors import ProgramError


class RichFunction(Function):
    """A function that has its current runtime context from `open` on, whether a subclass overrides that or not.

    Every `Function` of eventide has `open` and `close`, as in PyFlink; this class adds `get_runtime_context`. Flink:
    ``RichFunction``, which PyFlink does not have.

    >>> class Numbered(RichMapFunction):
    ...     def map(self, value):
    ...         return self.get_runtime_context().get_index_of_this_subtask(), value
    >>> from eventide.testing import local_environment
    >>> list(local_environment().from_collection(["a"]).map(Numbered()).execute_and_collect())
    [(0, 'a')]
    """

    _runtime_context: RuntimeContext | None = None

    def __init_subclass__(cls, **options: object) -> None:
        """Let an `open` of a subclass remember the context first."""
        super().__init_subclass__(**options)
        if "open" in vars(cls):
            setattr(cls, "open", _remembering(vars(cls)["open"]))  # noqa: B010 - mypy takes no other for a method

    def open(self, runtime_context: RuntimeContext) -> None:
        self._runtime_context = runtime_context

    def get_runtime_context(self) -> RuntimeContext:
        """Return the context that `open` was given.

        Raises:
            ProgramError: The function has not been opened.
        """
        if self._runtime_context is None:
            raise ProgramError(
                f"{type(self).__name__}.get_runtime_context() was called before open(runtime_context); call it in "
                "open, or while elements are handled"
            )
        return self._runtime_context

    def __getstate__(self) -> Any:
        """Leave the context out: it belongs to the subtask in which the function was opened."""
        state: object = super().__getstate__()
        return {k: v for k, v in state.items() if k != "_runtime_context"} if isinstance(state, dict) else state


def _remembering(opens: Callable[[Any, RuntimeContext], None]) -> Callable[[Any, RuntimeContext], None]:
    @functools.wraps(opens)
    def open_function(self: RichFunction, runtime_context: RuntimeContext) -> None:
        self._runtime_context = runtime_context
        opens(self, runtime_context)

    return open_function


class RichMapFunction(RichFunction, MapFunction[IN_contra, OUT_co]):
    """A `MapFunction` with its runtime context. Flink: ``RichMapFunction``."""


class RichFilterFunction(RichFunction, FilterFunction[T_contra]):
    """A `FilterFunction` with its runtime context. Flink: ``RichFilterFunction``."""


class RichFlatMapFunction(RichFunction, FlatMapFunction[IN_contra, OUT_co]):
    """A `FlatMapFunction` with its runtime context. Flink: ``RichFlatMapFunction``."""


class RichReduceFunction(RichFunction, ReduceFunction[T]):
    """A `ReduceFunction` with its runtime context. Flink: ``RichReduceFunction``."""


class RichAggregateFunction(RichFunction, AggregateFunction[IN_contra, ACC, OUT_co]):
    """An `AggregateFunction` with its runtime context. Flink: ``RichAggregateFunction``."""


class RichCoMapFunction(RichFunction, CoMapFunction[IN1_contra, IN2_contra, OUT_co]):
    """A `CoMapFunction` with its runtime context. Flink: ``RichCoMapFunction``."""


class RichCoFlatMapFunction(RichFunction, CoFlatMapFunction[IN1_contra, IN2_contra, OUT_co]):
    """A `CoFlatMapFunction` with its runtime context. Flink: ``RichCoFlatMapFunction``."""


class RichJoinFunction(RichFunction, JoinFunction[IN1_contra, IN2_contra, OUT_co]):
    """A `JoinFunction` with its runtime context. Flink: ``RichJoinFunction``."""


class RichFlatJoinFunction(RichFunction, FlatJoinFunction[IN1_contra, IN2_contra, OUT_co]):
    """A `FlatJoinFunction` with its runtime context. Flink: ``RichFlatJoinFunction``."""


class RichCoGroupFunction(RichFunction, CoGroupFunction[IN1_contra, IN2_contra, OUT_co]):
    """A `CoGroupFunction` with its runtime context. Flink: ``RichCoGroupFunction``."""


class RichWindowFunction(RichFunction, WindowFunction[IN_contra, OUT_co, KEY_contra, W_contra]):
    """A `WindowFunction` with its runtime context. Flink: ``RichWindowFunction``."""


class RichAllWindowFunction(RichFunction, AllWindowFunction[IN_contra, OUT_co, W_contra]):
    """An `AllWindowFunction` with its runtime context. Flink: ``RichAllWindowFunction``."""


class RichAsyncFunction(RichFunction, AsyncFunction[IN_contra, OUT_co]):
    """An `AsyncFunction` with its runtime context. Flink: ``RichAsyncFunction``."""


class RichSourceFunction(RichFunction, SourceFunction[T_co]):
    """A `SourceFunction` with its runtime context. Flink: ``RichSourceFunction``."""
