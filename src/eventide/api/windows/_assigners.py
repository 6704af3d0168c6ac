"""Which windows an element belongs to: the base classes, and the one window that holds everything."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic

from eventide._absent import says_what_is_absent
from eventide.api.windows._windows import GlobalWindow
from eventide.api.windows.triggers import NeverTrigger, Trigger
from eventide.common.type_variables import T_contra, W, W_contra

if TYPE_CHECKING:
    from eventide.api.functions import KeyedStateStore
    from eventide.api.windows._evictors import Evictor


@says_what_is_absent
class WindowAssigner(ABC, Generic[T_contra, W]):
    """Assigns windows to elements. Elements of one key in one window are a pane, which a `Trigger` fires.

    An assigner pickles, and keeps nothing between elements but in the state that its context gives. PyFlink's
    ``get_window_serializer`` is not asked for: eventide stores windows itself.
    """

    class WindowAssignerContext(ABC):
        """Context of an assigner."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """Return the time of the current micro-batch, in milliseconds since the epoch (UTC)."""

        @abstractmethod
        def get_runtime_context(self) -> KeyedStateStore:
            """Return access to state of the assigner's own, which belongs to the key of the element."""

    @property
    def is_merging(self) -> bool:
        """Whether windows of this assigner can merge, as sessions do."""
        return False

    @abstractmethod
    def assign_windows(
        self, element: T_contra, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[W]:
        """Return the windows of an element, none or more, all different.

        Args:
            element: The element.
            timestamp: Its event time, in milliseconds since the epoch (UTC); the smallest 64-bit integer when the
                element has none.
            context: The surroundings.
        """

    @abstractmethod
    def get_default_trigger(self, env: object = None) -> Trigger[T_contra, W]:
        """Return the trigger of windows for which the program names none; `env` is there for PyFlink's sake."""

    def get_default_evictor(self) -> Evictor[Any, W] | None:
        """Return the evictor of windows for which the program names none; None, as a rule. Not in PyFlink."""
        return None

    @abstractmethod
    def is_event_time(self) -> bool:
        """Say whether the windows follow event time, so that watermarks close them and elements can be late."""

    @property
    def has_time_windows(self) -> bool:
        """Whether the windows are `TimeWindow`s, so that they end, and results by column name them. Not in PyFlink.

        By default, what `is_event_time` says.
        """
        return self.is_event_time()


class MergingWindowAssigner(WindowAssigner[T_contra, W]):
    """An assigner whose windows merge when elements come in between; its trigger must be able to merge too."""

    class MergeCallback(ABC, Generic[W_contra]):
        """Where `merge_windows` says which windows become one."""

        @abstractmethod
        def merge(self, to_be_merged: Sequence[W_contra], merge_result: W_contra) -> None:
            """Take note that the windows `to_be_merged`, two or more, become `merge_result`."""

    @property
    def is_merging(self) -> bool:
        return True

    @property
    def merges_neighbours_only(self) -> bool:
        """Whether a new `TimeWindow` can merge only with those that it overlaps or touches. Not in PyFlink.

        Then `merge_windows` is asked about those alone, however many windows a key has.
        """
        return False

    @abstractmethod
    def merge_windows(self, windows: Iterable[W], callback: MergingWindowAssigner.MergeCallback[W]) -> None:
        """Find the windows that should be one, and tell `callback`, once for each window that results."""


@dataclass(frozen=True)
class GlobalWindows(WindowAssigner[object, GlobalWindow]):
    """One window for everything. It never fires by itself: give it a trigger.

    >>> GlobalWindows.create().assign_windows("element", 0, None)
    [GlobalWindow()]
    """

    @staticmethod
    def create() -> GlobalWindows:
        """Return the assigner."""
        return GlobalWindows()

    def assign_windows(
        self, element: object, timestamp: int, context: WindowAssigner.WindowAssignerContext | None
    ) -> list[GlobalWindow]:
        """Return the global window; the element needs no timestamp."""
        return [GlobalWindow.get()]

    def get_default_trigger(self, env: object = None) -> Trigger[object, GlobalWindow]:
        return NeverTrigger()

    def is_event_time(self) -> bool:
        """False: elements of a global window cannot be late."""
        return False
