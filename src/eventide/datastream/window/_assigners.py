"""Which windows an element belongs to: the base classes, and windows of fixed size in event time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from eventide.common._ms import MIN_MS, to_ms, to_positive_ms, window_bounds
from eventide.common.time import Duration, Time
from eventide.common.time_window import TimeWindow, Window
from eventide.datastream.window._triggers import EventTimeTrigger, NeverTrigger, Trigger
from eventide.datastream.window._windows import GlobalWindow
from eventide.errors import DataError, ProgramError

if TYPE_CHECKING:
    from eventide.datastream.window._evictors import Evictor

T = TypeVar("T")
W = TypeVar("W", bound=Window)
W2 = TypeVar("W2", bound=Window)


class WindowAssigner(ABC, Generic[T, W]):
    """Assigns windows to elements. Elements of one key in one window are a pane, which a `Trigger` fires.

    An assigner keeps nothing between elements and pickles. PyFlink's ``get_window_serializer`` is not asked for:
    eventide stores windows itself.
    """

    class WindowAssignerContext(ABC):
        """What an assigner may ask about its surroundings."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """Return the time of the current micro-batch, in milliseconds since the epoch (UTC)."""

    @property
    def is_merging(self) -> bool:
        """Whether windows of this assigner can merge, as sessions do."""
        return False

    @abstractmethod
    def assign_windows(
        self, element: T, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[W]:
        """Return the windows of an element, none or more, all different.

        Args:
            element: The element.
            timestamp: Its event time, in milliseconds since the epoch (UTC); the smallest 64-bit integer when the
                element has none.
            context: The surroundings.
        """

    @abstractmethod
    def get_default_trigger(self, env: Any = None) -> Trigger[T, W]:
        """Return the trigger of windows for which the program names none; `env` is there for PyFlink's sake."""

    def get_default_evictor(self) -> Evictor[T, W] | None:
        """Return the evictor of windows for which the program names none; None, as a rule. Not in PyFlink."""
        return None

    @abstractmethod
    def is_event_time(self) -> bool:
        """Say whether the windows follow event time, so that watermarks close them and elements can be late."""


class MergingWindowAssigner(WindowAssigner[T, W]):
    """An assigner whose windows merge when elements come in between; its trigger must be able to merge too."""

    class MergeCallback(ABC, Generic[W2]):
        """Where `merge_windows` says which windows become one."""

        @abstractmethod
        def merge(self, to_be_merged: Sequence[W2], merge_result: W2) -> None:
            """Take note that the windows `to_be_merged`, two or more, become `merge_result`."""

    @property
    def is_merging(self) -> bool:
        """True: the windows of this assigner can merge."""
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
class TumblingEventTimeWindows(WindowAssigner[Any, TimeWindow]):
    """Windows of one size, end to end: each timestamp is in exactly one.

    They start at `offset` plus every multiple of `size`, below zero too. Window bounds saturate at the ends of the
    64-bit range.

    Raises:
        ProgramError: The size is not positive, or the offset is not smaller than the size.

    >>> hours = TumblingEventTimeWindows.of(Time.hours(1))
    >>> hours.assign_windows("element", 3_600_000, None)
    [TimeWindow(start=3600000, end=7200000)]
    """

    size: int
    offset: int = 0

    def __post_init__(self) -> None:
        _check_offset(self.offset, to_positive_ms(self.size, "window size"), "window size")

    @staticmethod
    def of(size: Duration | Time | int, offset: Duration | Time | int | None = None) -> TumblingEventTimeWindows:
        """Return windows of `size`, shifted by `offset`, which may be negative (a day's offset from UTC, say)."""
        return TumblingEventTimeWindows(to_positive_ms(size, "window size"), _offset_ms(offset))

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext | None
    ) -> list[TimeWindow]:
        """Return the one window of the element; a `DataError` says that it has no timestamp."""
        return _assign(element, timestamp, self.offset, self.size, self.size)

    def get_default_trigger(self, env: Any = None) -> Trigger[Any, TimeWindow]:
        """Return an `EventTimeTrigger`."""
        return EventTimeTrigger()

    def is_event_time(self) -> bool:
        """True."""
        return True


@dataclass(frozen=True)
class SlidingEventTimeWindows(WindowAssigner[Any, TimeWindow]):
    """Windows of one size that start at every multiple of `slide`, plus `offset`.

    A timestamp is in ``size / slide`` of them; where `slide` is larger than `size` there are gaps, and an element in
    a gap has no window.

    Raises:
        ProgramError: Size or slide are not positive, or the offset is not smaller than the slide.

    >>> windows = SlidingEventTimeWindows.of(Time.seconds(10), Time.seconds(5))
    >>> windows.assign_windows("element", 12_000, None)
    [TimeWindow(start=10000, end=20000), TimeWindow(start=5000, end=15000)]
    """

    size: int
    slide: int
    offset: int = 0

    def __post_init__(self) -> None:
        to_positive_ms(self.size, "window size")
        _check_offset(self.offset, to_positive_ms(self.slide, "window slide"), "window slide")

    @staticmethod
    def of(
        size: Duration | Time | int, slide: Duration | Time | int, offset: Duration | Time | int | None = None
    ) -> SlidingEventTimeWindows:
        """Return windows of `size`, one every `slide`, shifted by `offset`, which may be negative."""
        return SlidingEventTimeWindows(
            to_positive_ms(size, "window size"), to_positive_ms(slide, "window slide"), _offset_ms(offset)
        )

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext | None
    ) -> list[TimeWindow]:
        """Return the windows of the element, the latest first; a `DataError` says that it has no timestamp."""
        return _assign(element, timestamp, self.offset, self.size, self.slide)

    def get_default_trigger(self, env: Any = None) -> Trigger[Any, TimeWindow]:
        """Return an `EventTimeTrigger`."""
        return EventTimeTrigger()

    def is_event_time(self) -> bool:
        """True."""
        return True


@dataclass(frozen=True)
class GlobalWindows(WindowAssigner[Any, GlobalWindow]):
    """One window for everything. It never fires by itself: give it a trigger.

    >>> GlobalWindows.create().assign_windows("element", 0, None)
    [GlobalWindow()]
    """

    @staticmethod
    def create() -> GlobalWindows:
        """Return the assigner."""
        return GlobalWindows()

    def assign_windows(
        self,
        element: Any,
        timestamp: int,
        context: WindowAssigner.WindowAssignerContext | None,
    ) -> list[GlobalWindow]:
        """Return the global window; the element needs no timestamp."""
        return [GlobalWindow.get()]

    def get_default_trigger(self, env: Any = None) -> Trigger[Any, GlobalWindow]:
        """Return a `NeverTrigger`."""
        return NeverTrigger()

    def is_event_time(self) -> bool:
        """False: elements of a global window cannot be late."""
        return False


def check_has_timestamp(element: object, timestamp: int | None) -> None:
    """Raise a `DataError` where an element that needs an event time has none."""
    if timestamp is None or timestamp == MIN_MS:
        message = (
            f"element {element!r} has no timestamp, but its windows follow event time: give the source or the "
            "stream a WatermarkStrategy with a timestamp assigner"
        )
        raise DataError(message)


def _assign(element: object, timestamp: int, offset: int, size: int, slide: int) -> list[TimeWindow]:
    check_has_timestamp(element, timestamp)
    return [TimeWindow(start, end) for start, end in window_bounds(timestamp, offset, size, slide)]


def _offset_ms(offset: Duration | Time | int | None) -> int:
    return 0 if offset is None else to_ms(offset, "window offset")


def _check_offset(offset: int, limit: int, what: str) -> None:
    if abs(to_ms(offset, "window offset")) >= limit:
        message = f"window offset: expected less than the {what} of {limit} ms, got {offset} ms"
        raise ProgramError(message)
