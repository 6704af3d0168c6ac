"""Window assigners: which windows an element belongs to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self

from eventide._absent import says_what_is_absent
from eventide.api.state import ValueStateDescriptor
from eventide.api.windows.triggers import (
    CountTrigger,
    EventTimeTrigger,
    NeverTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
    Trigger,
    check_count,
)
from eventide.common.ms import MIN_MS, add_ms, to_ms, to_positive_ms, window_bounds
from eventide.common.time import Duration, Time
from eventide.common.type_variables import T, T_contra, W, W_contra
from eventide.common.typeinfo import Types
from eventide.common.windows import CountWindow, GlobalWindow, TimeWindow
from eventide.errors import DataError, ProgramError

if TYPE_CHECKING:
    from eventide.api.functions import RuntimeContext
    from eventide.api.windows._evictors import Evictor


@says_what_is_absent
class WindowAssigner(ABC, Generic[T_contra, W]):
    """Assigns windows to elements. Elements of one key in one window are a pane, which a `Trigger` fires.

    An assigner pickles, and keeps nothing between elements, except in the state of its context. PyFlink's
    ``get_window_serializer`` is not needed: eventide stores windows itself.
    """

    class WindowAssignerContext(ABC):
        """Context of an assigner."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """Return the time of the current micro-batch, in milliseconds since the epoch (UTC)."""

        @abstractmethod
        def get_runtime_context(self) -> RuntimeContext:
            """Return where the assigner runs; its state is the assigner's own, for the key of the element."""

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
            context: The context of the assigner.
        """

    @abstractmethod
    def get_default_trigger(self, env: object = None) -> Trigger[T_contra, W]:
        """Return the trigger of windows for which the program names none; `env` is there because PyFlink has it."""

    def get_default_evictor(self) -> Evictor[Any, W] | None:
        """Return the evictor of windows for which the program names none; None, as a rule. Not in PyFlink."""
        return None

    @abstractmethod
    def is_event_time(self) -> bool:
        """Say whether the windows follow event time, so that watermarks close them and elements can be late."""

    @property
    def has_time_windows(self) -> bool:
        """Whether the windows are `TimeWindow`s: then they end, and results by column have them. Not in PyFlink.

        By default, what `is_event_time` says.
        """
        return self.is_event_time()


class MergingWindowAssigner(WindowAssigner[T_contra, W]):
    """An assigner whose windows merge when elements come in between; its trigger must be able to merge too."""

    class MergeCallback(ABC, Generic[W_contra]):
        """Callback with which `merge_windows` reports the windows that become one."""

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


class _OneWindow(WindowAssigner[object, GlobalWindow]):
    """Puts all elements of a key into the one global window; they need no timestamps."""

    def assign_windows(
        self, element: object, timestamp: int, context: WindowAssigner.WindowAssignerContext | None
    ) -> list[GlobalWindow]:
        """Return the global window; the element needs no timestamp."""
        return [GlobalWindow.get()]

    def is_event_time(self) -> bool:
        return False


@dataclass(frozen=True)
class GlobalWindows(_OneWindow):
    """One window for everything. It never fires by itself: give it a trigger.

    >>> GlobalWindows.create().assign_windows("element", 0, None)
    [GlobalWindow]
    """

    @staticmethod
    def create() -> GlobalWindows:
        """Return the assigner."""
        return GlobalWindows()

    def get_default_trigger(self, env: object = None) -> Trigger[object, GlobalWindow]:
        return NeverTrigger()


class InTime(WindowAssigner[T_contra, TimeWindow]):
    """Windows of event time, or of processing time: the time of the micro-batch in which an element is handled."""

    _IS_EVENT_TIME: ClassVar[bool] = True

    @property
    def has_time_windows(self) -> bool:
        return True

    def get_default_trigger(self, env: object = None) -> Trigger[T_contra, TimeWindow]:
        """Return an `EventTimeTrigger` or a `ProcessingTimeTrigger`, as the windows are."""
        return EventTimeTrigger() if self._IS_EVENT_TIME else ProcessingTimeTrigger()

    def is_event_time(self) -> bool:
        return self._IS_EVENT_TIME

    def _time_of(self, element: object, timestamp: int, context: WindowAssigner.WindowAssignerContext) -> int:
        """The time of an element, in milliseconds since the epoch (UTC)."""
        if not self._IS_EVENT_TIME:
            return context.get_current_processing_time()
        if timestamp is None or timestamp == MIN_MS:
            raise DataError(
                f"element {element!r} has no timestamp, but its windows follow event time: give the source or the "
                "stream a WatermarkStrategy with a timestamp assigner"
            )
        return timestamp


@dataclass(frozen=True)
class _TumblingWindows(InTime[object]):
    """The shared part of tumbling windows of both kinds of time."""

    size: int
    offset: int = 0

    def __post_init__(self) -> None:
        check_offset(self.offset, to_positive_ms(self.size, "window size"), "window size")

    @classmethod
    def of(cls, size: Duration | Time | int, offset: Duration | Time | int | None = None) -> Self:
        """Return windows of `size`, shifted by `offset`, which may be negative (a day's offset from UTC, say)."""
        return cls(to_positive_ms(size, "window size"), offset_ms_of(offset))

    def assign_windows(
        self, element: object, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        """Return the one window of the element; in event time, a `DataError` says that it has no timestamp."""
        time = self._time_of(element, timestamp, context)
        return [TimeWindow(start, end) for start, end in window_bounds(time, self.offset, self.size, self.size)]


class TumblingEventTimeWindows(_TumblingWindows):
    """Windows of one size, end to end: each timestamp is in exactly one.

    They start at `offset` plus every multiple of `size`, below zero too. Window bounds saturate at the ends of the
    64-bit range.

    Raises:
        ProgramError: The size is not positive, or the offset is not smaller than the size.

    >>> hours = TumblingEventTimeWindows.of(Time.hours(1))
    >>> hours.assign_windows("element", 3_600_000, None)
    [TimeWindow(start=3600000, end=7200000)]
    """


class TumblingProcessingTimeWindows(_TumblingWindows):
    """Windows of one size, end to end, by the clock: an element is in the window of the time at which it is handled.

    That is the time of its micro-batch; timestamps play no role, and no element can be late. A window fires in the
    first micro-batch whose time has reached its last millisecond, and is then removed. Windows start where those of
    `TumblingEventTimeWindows` do.

    Raises:
        ProgramError: The size is not positive, or the offset is not smaller than the size.

    >>> TumblingProcessingTimeWindows.of(Time.hours(1), Time.minutes(15))
    TumblingProcessingTimeWindows(size=3600000, offset=900000)
    """

    _IS_EVENT_TIME = False


@dataclass(frozen=True)
class _SlidingWindows(InTime[object]):
    """The shared part of sliding windows of both kinds of time."""

    size: int
    slide: int
    offset: int = 0

    def __post_init__(self) -> None:
        to_positive_ms(self.size, "window size")
        check_offset(self.offset, to_positive_ms(self.slide, "window slide"), "window slide")

    @classmethod
    def of(
        cls, size: Duration | Time | int, slide: Duration | Time | int, offset: Duration | Time | int | None = None
    ) -> Self:
        """Return windows of `size`, one every `slide`, shifted by `offset`, which may be negative."""
        return cls(to_positive_ms(size, "window size"), to_positive_ms(slide, "window slide"), offset_ms_of(offset))

    def assign_windows(
        self, element: object, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        """Return the windows of the element, latest first; in event time, a `DataError` says it has no timestamp."""
        time = self._time_of(element, timestamp, context)
        return [TimeWindow(start, end) for start, end in window_bounds(time, self.offset, self.size, self.slide)]


class SlidingEventTimeWindows(_SlidingWindows):
    """Windows of one size that start at every multiple of `slide`, plus `offset`.

    A timestamp is in ``size / slide`` of them; where `slide` is larger than `size` there are gaps, and an element in
    a gap has no window.

    Raises:
        ProgramError: Size or slide are not positive, or the offset is not smaller than the slide.

    >>> windows = SlidingEventTimeWindows.of(Time.seconds(10), Time.seconds(5))
    >>> windows.assign_windows("element", 12_000, None)
    [TimeWindow(start=10000, end=20000), TimeWindow(start=5000, end=15000)]
    """


class SlidingProcessingTimeWindows(_SlidingWindows):
    """Windows of one size by the clock, which start at every multiple of `slide`, plus `offset`.

    An element is in the windows of the time at which it is handled, the time of its micro-batch; timestamps play no
    role, and no element can be late.

    Raises:
        ProgramError: Size or slide are not positive, or the offset is not smaller than the slide.

    >>> SlidingProcessingTimeWindows.of(Time.seconds(10), Time.seconds(5))
    SlidingProcessingTimeWindows(size=10000, slide=5000, offset=0)
    """

    _IS_EVENT_TIME = False


def offset_ms_of(offset: Duration | Time | int | None) -> int:
    return 0 if offset is None else to_ms(offset, "window offset")


def check_offset(offset: int, limit: int, what: str) -> None:
    if abs(to_ms(offset, "window offset")) >= limit:
        raise ProgramError(f"window offset: expected less than the {what} of {limit} ms, got {offset} ms")


class SessionWindowTimeGapExtractor(ABC, Generic[T_contra]):
    """Gives each element the gap that ends its session."""

    @abstractmethod
    def extract(self, element: T_contra) -> int:
        """Return the gap after this element, in milliseconds, more than 0."""


class _SessionWindows(InTime[T_contra], MergingWindowAssigner[T_contra, TimeWindow]):
    """The shared part of all kinds of sessions."""

    @property
    def merges_neighbours_only(self) -> bool:
        """True, unless a subclass merges differently."""
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
        time = self._time_of(element, timestamp, context)
        return [TimeWindow(time, add_ms(time, self.session_gap))]


@dataclass(frozen=True)
class _DynamicSessions(_SessionWindows[T_contra]):
    """The shared part of sessions in which each element brings its own gap, in both kinds of time."""

    session_window_time_gap_extractor: SessionWindowTimeGapExtractor[T_contra] | Callable[[T_contra], int]

    def __post_init__(self) -> None:
        extractor = self.session_window_time_gap_extractor
        if not isinstance(extractor, SessionWindowTimeGapExtractor) and not callable(extractor):
            raise ProgramError(
                f"session gap: expected a SessionWindowTimeGapExtractor or a function of the element, got {extractor!r}"
            )

    @classmethod
    def with_dynamic_gap(cls, extractor: SessionWindowTimeGapExtractor[T_contra] | Callable[[T_contra], int]) -> Self:
        """Return sessions with the gaps that `extractor` gives."""
        return cls(extractor)

    def assign_windows(
        self, element: T_contra, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        """Return the window that the element opens.

        Raises:
            DataError: The element has no timestamp in event time, or its gap is not a positive integer.
        """
        time = self._time_of(element, timestamp, context)
        return [TimeWindow(time, add_ms(time, self.gap_of(element)))]

    def gap_of(self, element: T_contra) -> int:
        """Return the gap that an element brings, in milliseconds.

        Raises:
            DataError: It is not a positive integer.
        """
        extractor = self.session_window_time_gap_extractor
        gap = extractor.extract(element) if isinstance(extractor, SessionWindowTimeGapExtractor) else extractor(element)
        if type(gap) is not int or gap <= 0:
            raise DataError(f"session gap: expected more than 0 ms, got {gap!r} for element {element!r}")
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

    @staticmethod
    def with_dynamic_gap(
        extractor: SessionWindowTimeGapExtractor[T] | Callable[[T], int],
    ) -> DynamicEventTimeSessionWindows[T]:
        """Return sessions in which each element brings its own gap; beyond PyFlink, `extractor` may be a function."""
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


class ProcessingTimeSessionWindows(_GapSessions):
    """Sessions by the clock, with one gap for all elements.

    Each element opens a window from the time at which it is handled, the time of its micro-batch, to that time plus the
    gap; windows that touch become one. Timestamps play no role, and no element can be late.

    Raises:
        ProgramError: The gap is not positive.

    >>> ProcessingTimeSessionWindows.with_gap(Time.minutes(1))
    ProcessingTimeSessionWindows(session_gap=60000)
    """

    _IS_EVENT_TIME = False

    @staticmethod
    def with_dynamic_gap(
        extractor: SessionWindowTimeGapExtractor[T] | Callable[[T], int],
    ) -> DynamicProcessingTimeSessionWindows[T]:
        """Return sessions in which each element brings its own gap; beyond PyFlink, `extractor` may be a function."""
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

    _IS_EVENT_TIME = False


_SEEN = ValueStateDescriptor("count", Types.LONG())
"""How many elements of a key have arrived."""


@dataclass(frozen=True)
class CountTumblingWindowAssigner(_OneWindow):
    """Fires with every `window_size` elements of a key and starts over; an incomplete window never fires.

    As in Flink's Java API this is the global window under ``PurgingTrigger(CountTrigger(n))``. (PyFlink gives each
    group its own `CountWindow`; the results are equal, but a function sees a different window.)

    Raises:
        ProgramError: The size is not a positive integer.

    >>> CountTumblingWindowAssigner.of(3).get_default_trigger()
    PurgingTrigger(nested_trigger=CountTrigger(window_size=3))
    """

    window_size: int

    def __post_init__(self) -> None:
        check_count(self.window_size, "count window size")

    @staticmethod
    def of(window_size: int) -> CountTumblingWindowAssigner:
        """Return windows of `window_size` elements."""
        return CountTumblingWindowAssigner(window_size)

    def get_default_trigger(self, env: object = None) -> Trigger[object, GlobalWindow]:
        """Return the trigger that fires with every `window_size` elements and clears the window."""
        return PurgingTrigger.of(CountTrigger.of(self.window_size))


@dataclass(frozen=True)
class CountSlidingWindowAssigner(WindowAssigner[object, CountWindow]):
    """Windows of `window_size` elements of a key, one beginning every `window_slide`; each fires when it is full.

    As in PyFlink each element is in several `CountWindow`, which are numbered from 0 in each key: window ``n`` begins
    with element ``n * window_slide``. A window that is not full has no result. ``count_window(size, slide)`` of a keyed
    stream fires earlier, as Flink's own does.

    Raises:
        ProgramError: Size or slide are not positive integers.

    >>> CountSlidingWindowAssigner.of(10, 5).get_default_trigger()
    PurgingTrigger(nested_trigger=CountTrigger(window_size=10))
    """

    window_size: int
    window_slide: int

    def __post_init__(self) -> None:
        check_count(self.window_size, "count window size")
        check_count(self.window_slide, "count window slide")

    @staticmethod
    def of(window_size: int, window_slide: int) -> CountSlidingWindowAssigner:
        """Return windows of `window_size` elements, one every `window_slide` elements."""
        return CountSlidingWindowAssigner(window_size, window_slide)

    def assign_windows(
        self, element: object, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[CountWindow]:
        """Return the windows of the key's next element, the latest first; the element needs no timestamp."""
        seen = context.get_runtime_context().get_state(_SEEN)
        number = seen.value() or 0
        seen.update(number + 1)
        last = number // self.window_slide
        first = max(0, (number - self.window_size) // self.window_slide + 1)
        return [CountWindow(n) for n in range(last, first - 1, -1)]

    def get_default_trigger(self, env: object = None) -> Trigger[object, CountWindow]:
        """Return the trigger that fires a window when it is full, and clears it: it gets no more elements."""
        return PurgingTrigger.of(CountTrigger.of(self.window_size))

    def is_event_time(self) -> bool:
        return False
