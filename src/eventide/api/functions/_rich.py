"""Source functions; and functions that remember their runtime context, under the names that Flink has in Java."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Generic

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
from eventide.common.watermark import Watermark
from eventide.errors import ProgramError


class SourceContext(ABC, Generic[T_contra]):
    """Context with which a :class:`SourceFunction` emits elements and watermarks.

    The order of emission is kept, across threads too. When too much is emitted that the job has not read, a method
    waits until there is room; once the job has stopped, it does not return.

    Flink: ``SourceFunction.SourceContext``.
    """

    @abstractmethod
    def collect(self, value: T_contra) -> None:
        """Emit an element without a timestamp, as it is at this moment: later changes to it have no effect.

        Windows of event time need timestamps: use `collect_with_timestamp`, or a strategy after the source.
        """

    @abstractmethod
    def collect_with_timestamp(self, value: T_contra, timestamp: int) -> None:
        """Emit an element with its event time, in milliseconds since the epoch (UTC).

        Raises:
            ProgramError: The timestamp is not an integer, or not one of 64 bits.
        """

    @abstractmethod
    def emit_watermark(self, mark: Watermark) -> None:
        """Promise that no element with a timestamp at or before that of the watermark will follow.

        A watermark that is not above the last one changes nothing. The end of `run` is ``MAX_WATERMARK``.

        Raises:
            ProgramError: `mark` is not a `Watermark`.
        """

    @abstractmethod
    def mark_as_temporarily_idle(self) -> None:
        """Mark the source as idle: it does not hold the watermark back until it emits again."""

    @abstractmethod
    def get_checkpoint_lock(self) -> AbstractContextManager[Any]:
        """Return the lock under which elements are emitted, and under which `snapshot_state` is called.

        Emit and change the state that goes with it under the lock, so that no snapshot falls between the two. A
        thread that has it may take it again. Emitting under it never waits for room; taking it does.
        """


class SourceFunction(Function, Generic[T_co]):
    """A source that runs by itself: a client of a socket, a queue, a device, a simulation.

    `run` is called once, in a thread of its own beside the driver, and the source ends when it returns: then all
    windows close. What it emitted is written ahead below the job's checkpoint before it is read, so that a micro-batch
    that fails is repeated with the same elements.

    When the job is started again on its checkpoint, the function runs again from its own start. If it has the methods
    ``snapshot_state()``, which returns anything that pickles, and ``restore_state(state)``, it continues from where it
    was: `restore_state` is called before `open`, with the snapshot that was taken after the last element that the
    checkpoint has. It is not called at the first start.

    The source is one split and one subtask. Flink: ``SourceFunction``, with ``CheckpointedFunction``.

    >>> class Countdown(SourceFunction):
    ...     def __init__(self, start):
    ...         self.left, self.running = start, True
    ...     def run(self, ctx):
    ...         while self.running and self.left:
    ...             with ctx.get_checkpoint_lock():
    ...                 ctx.collect(self.left)
    ...                 self.left -= 1
    ...     def cancel(self):
    ...         self.running = False
    ...     def snapshot_state(self):
    ...         return self.left
    ...     def restore_state(self, state):
    ...         self.left = state
    >>> from eventide.testing import local_environment
    >>> list(local_environment().add_source(Countdown(3)).execute_and_collect())
    [3, 2, 1]
    """

    @abstractmethod
    def run(self, ctx: SourceContext[T_co]) -> None:
        """Emit elements and watermarks until there are no more, or until `cancel` was called."""

    @abstractmethod
    def cancel(self) -> None:
        """Make `run` return soon; called from another thread when the job stops before the source has ended.

        On Spark it is nearly always called when the job is cancelled, and may not be called when the driver dies.
        """


class RichFunction(Function):
    """A function that has its runtime context from `open` on, even if a subclass overrides `open`.

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
