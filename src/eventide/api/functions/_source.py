"""The function that is a source: it runs by itself, and says what it has when it has it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import Any, Generic

from eventide.api.functions._basic import Function
from eventide.common.type_variables import T_co, T_contra
from eventide.common.watermark import Watermark


class SourceContext(ABC, Generic[T_contra]):
    """How a :class:`SourceFunction` emits elements and watermarks.

    What is emitted keeps its order, from whichever thread it comes. Where more has been emitted than the job has
    taken, a method waits until there is room; once the job has stopped, it does not return.

    Flink: ``SourceFunction.SourceContext``.
    """

    @abstractmethod
    def collect(self, value: T_contra) -> None:
        """Emit an element without a timestamp. It is as it was at this moment, whatever happens to it later.

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
            ProgramError: `mark` is no `Watermark`.
        """

    @abstractmethod
    def mark_as_temporarily_idle(self) -> None:
        """Say that there is nothing to say for now: the source holds no watermark back until it emits again."""

    @abstractmethod
    def get_checkpoint_lock(self) -> AbstractContextManager[Any]:
        """Return the lock under which elements are emitted, and under which `snapshot_state` is called.

        Emit and change the state that goes with it under the lock, so that no snapshot falls between the two. The
        thread that has it may take it again. What is emitted under it never waits for room; taking it does.
        """


class SourceFunction(Function, Generic[T_co]):
    """A source that runs by itself: a client of a socket, a queue, a device, a simulation.

    `run` is called once, in a thread of its own beside the driver, and the source ends when it returns: then all
    windows close. What it emitted is written ahead below the job's checkpoint before it is read, so that a micro-batch
    that fails is repeated with the same elements.

    When the job is started again on its checkpoint, the function runs again from its own start. If it has the methods
    ``snapshot_state()``, which returns anything that pickles, and ``restore_state(state)``, it goes on from where it
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

        On Spark that is as good as certain when the job is cancelled, and not certain when the driver dies.
        """
