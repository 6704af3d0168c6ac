"""Windows that are not stretches of time: the count window, and the one window that holds everything."""

from __future__ import annotations

from dataclasses import dataclass

from eventide.common.ms import MAX_MS
from eventide.common.time_window import TimeWindow, Window

__all__ = ["CountWindow", "GlobalWindow", "TimeWindow", "Window"]


@dataclass(frozen=True, slots=True, order=True)
class CountWindow(Window):
    """A window that is known by a number and has no place in time, as `CountSlidingWindowAssigner` has them."""

    id: int

    def max_timestamp(self) -> int:
        """Return the largest time: event time never closes the window before the stream ends."""
        return MAX_MS


@dataclass(frozen=True, slots=True, order=True)
class GlobalWindow(Window):
    """The one window that holds all elements of a key.

    >>> GlobalWindow.get() == GlobalWindow()
    True
    """

    @staticmethod
    def get() -> GlobalWindow:
        """Return the window; all instances are equal."""
        return _GLOBAL_WINDOW

    def max_timestamp(self) -> int:
        """Return the largest time: event time never closes the window before the stream ends."""
        return MAX_MS


_GLOBAL_WINDOW = GlobalWindow()
