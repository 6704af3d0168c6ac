"""Session windows, in event time and in processing time: they end when a key has been quiet for a gap."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar, Generic, Self

from eventide.api.windows._assigners import MergingWindowAssigner, WindowAssigner
from eventide.api.windows._time import EVENT_TIME, PROCESSING_TIME, InTime, KindOfTime
from eventide.common.ms import add_ms, to_positive_ms
from eventide.common.time import Duration, Time
from eventide.common.time_window import TimeWindow
from eventide.common.type_variables import T, T_contra
from eventide.errors import DataError, ProgramError


class SessionWindowTimeGapExtractor(ABC, Generic[T_contra]):
    """Gives each element the gap that ends its session."""

    @abstractmethod
    def extract(self, element: T_contra) -> int:
        """Return the gap after this element, in milliseconds, more than 0."""


class _SessionWindows(InTime[T_contra], MergingWindowAssigner[T_contra, TimeWindow]):
    """The shared part of all kinds of sessions."""

    @property
    def merges_neighbours_only(self) -> bool:
        """True, unless a subclass merges in a way of its own."""
        return type(self).merge_windows is _SessionWindows.merge_windows

    def merge_windows(
        self, windows: Iterable[TimeWindow], callback: MergingWindowAssigner.MergeCallback[TimeWindow]
    ) -> None:
        """Merge windows that overlap or touch, so that events exactly one gap apart are in one session."""
        TimeWindow.merge_windows(windows, callback)


@dataclass(frozen=True)
class _GapSessions(_SessionWindows[object]):
    """The shared part of sessions with one gap for all elements, in both kinds of time."""

    session_gap: int

    def __post_init__(self) -> None:
        to_positive_ms(self.session_gap, "session gap")

    @classmethod
    def with_gap(cls, size: Duration | Time | int) -> Self:
        """Return sessions that end after a quiet time of `size`."""
        return cls(to_positive_ms(size, "session gap"))

    def assign_windows(
        self, element: object, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        """Return the window that the element opens; in event time, a `DataError` says that it has no timestamp."""
        time = self._TIME.time_of(element, timestamp, context)
        return [TimeWindow(time, add_ms(time, self.session_gap))]


@dataclass(frozen=True)
class _DynamicSessions(_SessionWindows[T_contra]):
    """The shared part of sessions in which each element brings its own gap, in both kinds of time."""

    session_window_time_gap_extractor: SessionWindowTimeGapExtractor[T_contra] | Callable[[T_contra], int]

    def __post_init__(self) -> None:
        extractor = self.session_window_time_gap_extractor
        if not isinstance(extractor, SessionWindowTimeGapExtractor) and not callable(extractor):
            message = (
                f"session gap: expected a SessionWindowTimeGapExtractor or a function of the element, got {extractor!r}"
            )
            raise ProgramError(message)

    @classmethod
    def with_dynamic_gap(cls, extractor: SessionWindowTimeGapExtractor[T_contra] | Callable[[T_contra], int]) -> Self:
        """Return sessions with the gaps that `extractor` gives."""
        return cls(extractor)

    def assign_windows(
        self, element: T_contra, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        """Return the window that the element opens.

        Raises:
            DataError: The element has no timestamp in event time, or its gap is no positive integer.
        """
        time = self._TIME.time_of(element, timestamp, context)
        return [TimeWindow(time, add_ms(time, self._gap(element)))]

    def _gap(self, element: T_contra) -> int:
        extractor = self.session_window_time_gap_extractor
        gap = extractor.extract(element) if isinstance(extractor, SessionWindowTimeGapExtractor) else extractor(element)
        if type(gap) is not int or gap <= 0:
            message = f"session gap: expected more than 0 ms, got {gap!r} for element {element!r}"
            raise DataError(message)
        return gap


class EventTimeSessionWindows(_GapSessions):
    """Sessions with one gap for all elements.

    Each element opens a window from its timestamp to its timestamp plus the gap; windows that touch become one.

    Raises:
        ProgramError: The gap is not positive.

    >>> sessions = EventTimeSessionWindows.with_gap(Time.minutes(1))
    >>> sessions.assign_windows("element", 5_000, None)
    [TimeWindow(start=5000, end=65000)]
    """

    _TIME: ClassVar[KindOfTime] = EVENT_TIME

    @staticmethod
    def with_dynamic_gap(
        extractor: SessionWindowTimeGapExtractor[T] | Callable[[T], int],
    ) -> DynamicEventTimeSessionWindows[T]:
        """Return sessions in which each element brings its own gap; a plain function will do, beyond PyFlink."""
        return DynamicEventTimeSessionWindows(extractor)


class DynamicEventTimeSessionWindows(_DynamicSessions[T_contra]):
    """Sessions in which each element brings its own gap.

    A session ends where the last of its elements' windows ends: a short gap does not shorten a longer one.

    Raises:
        ProgramError: The extractor is neither a `SessionWindowTimeGapExtractor` nor a function.

    >>> sessions = EventTimeSessionWindows.with_dynamic_gap(lambda element: element["gap"])
    >>> sessions.assign_windows({"gap": 20}, 5, None)
    [TimeWindow(start=5, end=25)]
    """

    _TIME: ClassVar[KindOfTime] = EVENT_TIME


class ProcessingTimeSessionWindows(_GapSessions):
    """Sessions by the clock, with one gap for all elements.

    Each element opens a window from the time at which it is handled, the time of its micro-batch, to that time plus the
    gap; windows that touch become one. Timestamps play no role, and nothing can be late.

    Raises:
        ProgramError: The gap is not positive.

    >>> ProcessingTimeSessionWindows.with_gap(Time.minutes(1))
    ProcessingTimeSessionWindows(session_gap=60000)
    """

    _TIME: ClassVar[KindOfTime] = PROCESSING_TIME

    @staticmethod
    def with_dynamic_gap(
        extractor: SessionWindowTimeGapExtractor[T] | Callable[[T], int],
    ) -> DynamicProcessingTimeSessionWindows[T]:
        """Return sessions in which each element brings its own gap; a plain function will do, beyond PyFlink."""
        return DynamicProcessingTimeSessionWindows(extractor)


class DynamicProcessingTimeSessionWindows(_DynamicSessions[T_contra]):
    """Sessions by the clock, in which each element brings its own gap.

    A session ends where the last of its elements' windows ends: a short gap does not shorten a longer one.

    Raises:
        ProgramError: The extractor is neither a `SessionWindowTimeGapExtractor` nor a function.

    >>> sessions = ProcessingTimeSessionWindows.with_dynamic_gap(lambda element: element["gap"])
    >>> sessions.is_event_time(), sessions.get_default_trigger()
    (False, ProcessingTimeTrigger())
    """

    _TIME: ClassVar[KindOfTime] = PROCESSING_TIME
