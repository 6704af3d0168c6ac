"""Functions of the contents of a window."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Generic

from eventide.api.functions._basic import Function
from eventide.api.keyed_state import KeyedStateStore
from eventide.common.type_variables import IN_contra, KEY_contra, OUT_co, W_co, W_contra

if TYPE_CHECKING:
    from eventide.api.functions.output_tag import Emitted


class WindowFunction(Function, Generic[IN_contra, OUT_co, KEY_contra, W_contra]):
    """Turns the contents of a key's window into results."""

    @abstractmethod
    def apply(self, key: KEY_contra, window: W_contra, inputs: Iterable[IN_contra]) -> Emitted[OUT_co]:
        """Return, or yield, the results of a window that fires; each gets the window's last millisecond as its time.

        Args:
            key: The key.
            window: The window.
            inputs: Its elements, in the order of arrival; only the aggregate, after ``reduce`` or ``aggregate``.
        """


class AllWindowFunction(Function, Generic[IN_contra, OUT_co, W_contra]):
    """Turns the contents of a window over a stream without keys into results."""

    @abstractmethod
    def apply(self, window: W_contra, inputs: Iterable[IN_contra]) -> Emitted[OUT_co]:
        """Return, or yield, the results of a window that fires; see `WindowFunction.apply`."""


class ProcessWindowFunction(Function, Generic[IN_contra, OUT_co, KEY_contra, W_contra]):
    """Turns the contents of a key's window into results, and can ask for times and state.

    >>> class Count(ProcessWindowFunction):
    ...     def process(self, key, context, elements):
    ...         yield key, context.window().start, len(list(elements))
    """

    class Context(ABC, Generic[W_co]):
        """The window that fires, the times at which it does, and state. All times are in milliseconds."""

        @abstractmethod
        def window(self) -> W_co:
            """Return the window."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """Return the time of the current micro-batch, in milliseconds since the epoch (UTC)."""

        @abstractmethod
        def current_watermark(self) -> int:
            """Return the current watermark of the operator."""

        @abstractmethod
        def window_state(self) -> KeyedStateStore:
            """Return the state of this key in this window; the function's ``clear`` must delete it."""

        @abstractmethod
        def global_state(self) -> KeyedStateStore:
            """Return the state of this key in all windows together."""

    @abstractmethod
    def process(self, key: KEY_contra, context: Context[W_contra], elements: Iterable[IN_contra]) -> Emitted[OUT_co]:
        """Return, or yield, the results of a window that fires; each gets the window's last millisecond as its time.

        Args:
            key: The key.
            context: The window, the watermark and state.
            elements: Its elements, in the order of arrival; only the aggregate, after ``reduce`` or ``aggregate``.
        """

    def clear(self, context: Context[W_contra]) -> None:
        """Delete the function's own state of a window that closes, its ``window_state()``."""


class ProcessAllWindowFunction(Function, Generic[IN_contra, OUT_co, W_contra]):
    """Turns the contents of a window over a stream without keys into results, and can ask for times and state.

    Its `Context` knows the times too, which PyFlink's does not.
    """

    class Context(ProcessWindowFunction.Context[W_co]):
        """The window that fires, the times at which it does, and state. All times are in milliseconds."""

    @abstractmethod
    def process(self, context: Context[W_contra], elements: Iterable[IN_contra]) -> Emitted[OUT_co]:
        """Return, or yield, the results of a window that fires; see `ProcessWindowFunction.process`."""

    def clear(self, context: Context[W_contra]) -> None:
        """Delete the function's own state of a window that closes, its ``window_state()``."""
