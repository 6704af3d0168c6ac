"""Evictors, which choose the elements of a window that the function sees and the window keeps; PyFlink has none."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic

from eventide.api.windows.triggers import check_count
from eventide.common.ms import add_ms, to_ms
from eventide.common.time import Duration, Time
from eventide.common.type_variables import T, W_contra
from eventide.common.windows import Window
from eventide.errors import ProgramError


@dataclass(frozen=True, slots=True)
class TimestampedValue(Generic[T]):
    """An element with its event time in milliseconds, or None if it has none: in a window, or from a source."""

    value: T
    timestamp: int | None = None


class Evictor(ABC, Generic[T, W_contra]):
    """Removes elements from a window when it fires, before or after the window function sees them.

    Flink's evictors remove from an iterable; eventide's return the elements that stay, in their order. Elements evicted
    before the function are gone for later firings too.
    """

    class EvictorContext(ABC):
        """Context of an evictor."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """Return the time of the current micro-batch, in milliseconds since the epoch (UTC)."""

        @abstractmethod
        def get_current_watermark(self) -> int:
            """Return the current watermark of the operator, in milliseconds."""

    @abstractmethod
    def evict_before(
        self, elements: list[TimestampedValue[T]], size: int, window: W_contra, ctx: Evictor.EvictorContext
    ) -> list[TimestampedValue[T]]:
        """Return the elements that stay, before the window function is called with them.

        Args:
            elements: The contents of the window, in the order of arrival.
            size: How many they are.
            window: The window.
            ctx: The context of the evictor.
        """

    @abstractmethod
    def evict_after(
        self, elements: list[TimestampedValue[T]], size: int, window: W_contra, ctx: Evictor.EvictorContext
    ) -> list[TimestampedValue[T]]:
        """Return the elements that stay, after the window function was called; arguments as for `evict_before`."""

    def can_merge(self) -> bool:
        """Say whether windows that merge may use this evictor; one that keeps something per window says False."""
        return True


class _OneSidedEvictor(Evictor[Any, Window]):
    """An evictor with one rule, which it applies either before or after the window function."""

    do_evict_after: bool

    def evict_before(
        self,
        elements: list[TimestampedValue[Any]],
        size: int,
        window: Window | None,
        ctx: Evictor.EvictorContext | None,
    ) -> list[TimestampedValue[Any]]:
        """Apply the rule, unless it is to be applied after the window function."""
        return elements if self.do_evict_after else self._stay(elements)

    def evict_after(
        self,
        elements: list[TimestampedValue[Any]],
        size: int,
        window: Window | None,
        ctx: Evictor.EvictorContext | None,
    ) -> list[TimestampedValue[Any]]:
        return self._stay(elements) if self.do_evict_after else elements

    @abstractmethod
    def _stay(self, elements: list[TimestampedValue[Any]]) -> list[TimestampedValue[Any]]:
        """Return the elements that stay."""


@dataclass(frozen=True)
class CountEvictor(_OneSidedEvictor):
    """Keeps the last `max_count` elements.

    Raises:
        ProgramError: The count is not a positive integer.

    >>> two = CountEvictor.of(2)
    >>> [kept.value for kept in two.evict_before([TimestampedValue(v) for v in "abc"], 3, None, None)]
    ['b', 'c']
    """

    max_count: int
    do_evict_after: bool = False

    def __post_init__(self) -> None:
        check_count(self.max_count, "count evictor")

    @staticmethod
    def of(max_count: int, do_evict_after: bool = False) -> CountEvictor:
        """Return an evictor that keeps `max_count` elements, applied before the window function or after it."""
        return CountEvictor(max_count, do_evict_after)

    def _stay(self, elements: list[TimestampedValue[Any]]) -> list[TimestampedValue[Any]]:
        return elements[-self.max_count :]


@dataclass(frozen=True)
class TimeEvictor(_OneSidedEvictor):
    """Keeps the elements that are newer than the newest one minus `window_size` milliseconds.

    An element exactly that old is removed; with a size of 0 all are. If the first element has no timestamp, all stay.

    Raises:
        ProgramError: The size is negative or not a length of time.

    >>> recent = TimeEvictor.of(Time.milliseconds(5))
    >>> elements = [TimestampedValue("a", 1), TimestampedValue("b", 10), TimestampedValue("c", 6)]
    >>> [kept.value for kept in recent.evict_before(elements, 3, None, None)]
    ['b', 'c']
    """

    window_size: int
    do_evict_after: bool = False

    def __post_init__(self) -> None:
        to_ms(self.window_size, "time evictor", least=0)

    @staticmethod
    def of(window_size: Duration | Time | int, do_evict_after: bool = False) -> TimeEvictor:
        """Return an evictor that keeps `window_size` of time, applied before the window function or after it."""
        return TimeEvictor(to_ms(window_size, "time evictor"), do_evict_after)

    def _stay(self, elements: list[TimestampedValue[Any]]) -> list[TimestampedValue[Any]]:
        if not elements or elements[0].timestamp is None:
            return elements
        times = [element.timestamp for element in elements if element.timestamp is not None]
        cutoff = add_ms(max(times), -self.window_size)
        return [element for element in elements if element.timestamp is None or element.timestamp > cutoff]


@dataclass(frozen=True)
class DeltaEvictor(_OneSidedEvictor):
    """Keeps the elements whose distance to the last one is below a threshold, or NaN.

    Args:
        threshold: The distance from which on an element is removed.
        delta_function: Gives the distance of an element (first argument) to the last element (second).
        do_evict_after: Whether to apply the rule after the window function instead of before.

    Raises:
        ProgramError: `delta_function` cannot be called.

    >>> near = DeltaEvictor.of(5, lambda element, last: abs(element - last))
    >>> [kept.value for kept in near.evict_before([TimestampedValue(v) for v in (1, 8, 6)], 3, None, None)]
    [8, 6]
    """

    threshold: float
    delta_function: Callable[[Any, Any], float]
    do_evict_after: bool = False

    def __post_init__(self) -> None:
        if not callable(self.delta_function):
            raise ProgramError(f"delta evictor: expected a function of two elements, got {self.delta_function!r}")

    @staticmethod
    def of(threshold: float, delta_function: Callable[[Any, Any], float], do_evict_after: bool = False) -> DeltaEvictor:
        """Return an evictor that keeps elements near the last one, applied before the window function or after."""
        return DeltaEvictor(threshold, delta_function, do_evict_after)

    def _stay(self, elements: list[TimestampedValue[Any]]) -> list[TimestampedValue[Any]]:
        if not elements:
            return elements
        last = elements[-1].value
        distances = [self.delta_function(element.value, last) for element in elements]
        return [kept for kept, distance in zip(elements, distances, strict=True) if not distance >= self.threshold]
