"""Windows of a number of elements of a key."""

from __future__ import annotations

from dataclasses import dataclass

from eventide.api.state import ValueStateDescriptor
from eventide.api.windows._assigners import WindowAssigner
from eventide.api.windows._windows import CountWindow, GlobalWindow
from eventide.api.windows.triggers import CountTrigger, PurgingTrigger, Trigger, check_count
from eventide.common.typeinfo import Types

_SEEN = ValueStateDescriptor("count", Types.LONG())
"""How many elements of a key have come."""


@dataclass(frozen=True)
class CountTumblingWindowAssigner(WindowAssigner[object, GlobalWindow]):
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

    def assign_windows(
        self,
        element: object,
        timestamp: int,
        context: WindowAssigner.WindowAssignerContext | None,
    ) -> list[GlobalWindow]:
        """Return the global window; the element needs no timestamp."""
        return [GlobalWindow.get()]

    def get_default_trigger(self, env: object = None) -> Trigger[object, GlobalWindow]:
        """Return the trigger that fires with every `window_size` elements and clears the window."""
        return PurgingTrigger.of(CountTrigger.of(self.window_size))

    def is_event_time(self) -> bool:
        """False: elements of a count window cannot be late."""
        return False


@dataclass(frozen=True)
class CountSlidingWindowAssigner(WindowAssigner[object, CountWindow]):
    """Windows of `window_size` elements of a key, one beginning every `window_slide`; each fires when it is full.

    As in PyFlink each element is in several `CountWindow`, which are numbered from 0 in each key: window ``n`` begins
    with element ``n * window_slide``. Those that are never full never come out. ``count_window(size, slide)`` of a
    keyed stream fires earlier, as Flink's own does.

    Raises:
        ProgramError: Size or slide are no positive integers.

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
        self,
        element: object,
        timestamp: int,
        context: WindowAssigner.WindowAssignerContext,
    ) -> list[CountWindow]:
        """Return the windows of the key's next element, the latest first; the element needs no timestamp."""
        seen = context.get_runtime_context().get_state(_SEEN)
        number = seen.value() or 0
        seen.update(number + 1)
        last = number // self.window_slide
        first = max(0, (number - self.window_size) // self.window_slide + 1)
        return [CountWindow(n) for n in range(last, first - 1, -1)]

    def get_default_trigger(self, env: object = None) -> Trigger[object, CountWindow]:
        """Return the trigger that fires a window when it is full, and clears it: nothing comes into it any more."""
        return PurgingTrigger.of(CountTrigger.of(self.window_size))

    def is_event_time(self) -> bool:
        """False: elements of a count window cannot be late."""
        return False
