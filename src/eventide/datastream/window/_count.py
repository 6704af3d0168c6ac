"""Windows of so many elements of a key: global windows with a count trigger, as Flink's ``countWindow``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from eventide.datastream.window._assigners import WindowAssigner
from eventide.datastream.window._evictors import CountEvictor, Evictor
from eventide.datastream.window._triggers import CountTrigger, PurgingTrigger, Trigger, check_count
from eventide.datastream.window._windows import GlobalWindow


class _CountWindows(WindowAssigner[Any, GlobalWindow]):
    """What both kinds of count windows share."""

    def assign_windows(
        self,
        element: Any,
        timestamp: int,
        context: WindowAssigner.WindowAssignerContext | None,
    ) -> list[GlobalWindow]:
        """Return the global window; the element needs no timestamp."""
        return [GlobalWindow.get()]

    def is_event_time(self) -> bool:
        """False: elements of a count window cannot be late."""
        return False


@dataclass(frozen=True)
class CountTumblingWindowAssigner(_CountWindows):
    """Fires with every `window_size` elements of a key and starts over; a rest never comes out.

    As in Flink's Java API this is the global window under ``PurgingTrigger(CountTrigger(n))``. (PyFlink gives each
    group a `CountWindow` of its own; the results are the same, the window that a function sees is not.)

    Raises:
        ProgramError: The size is no positive integer.

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

    def get_default_trigger(self, env: Any = None) -> Trigger[Any, GlobalWindow]:
        """Return the trigger that fires with every `window_size` elements and clears the window."""
        return PurgingTrigger.of(CountTrigger.of(self.window_size))


@dataclass(frozen=True)
class CountSlidingWindowAssigner(_CountWindows):
    """Fires with every `window_slide` elements of a key and shows the last `window_size` of them.

    As in Flink's Java API this is the global window under ``CountTrigger(slide)`` with a `CountEvictor`, so the first
    firings show fewer than `window_size` elements. (PyFlink assigns each element to several `CountWindow` and
    waits for full ones.)

    Raises:
        ProgramError: Size or slide are no positive integers.

    >>> windows = CountSlidingWindowAssigner.of(10, 5)
    >>> windows.get_default_trigger(), windows.get_default_evictor()
    (CountTrigger(window_size=5), CountEvictor(max_count=10, do_evict_after=False))
    """

    window_size: int
    window_slide: int

    def __post_init__(self) -> None:
        check_count(self.window_size, "count window size")
        check_count(self.window_slide, "count window slide")

    @staticmethod
    def of(window_size: int, window_slide: int) -> CountSlidingWindowAssigner:
        """Return windows of the last `window_size` elements, one every `window_slide` elements."""
        return CountSlidingWindowAssigner(window_size, window_slide)

    def get_default_trigger(self, env: Any = None) -> Trigger[Any, GlobalWindow]:
        """Return the trigger that fires with every `window_slide` elements."""
        return CountTrigger.of(self.window_slide)

    def get_default_evictor(self) -> Evictor[Any, GlobalWindow]:
        """Return the evictor that leaves the last `window_size` elements."""
        return CountEvictor.of(self.window_size)
