"""How watermarks follow from the elements of a split: built in, ready made, or supplied by the user.

The built-in ones have no state but the largest timestamp seen, so a description together with that maximum gives the
watermark. Whoever runs a strategy keeps the maximum, one for each split. A generator that is supplied is an object of
its own for each split; the checkpoint keeps what it has learnt.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from eventide.common._ms import add_ms, to_ms
from eventide.common.time import Duration, Time
from eventide.common.watermark import Watermark
from eventide.common.watermark_generator import WatermarkGenerator, WatermarkGeneratorContext, WatermarkOutput
from eventide.errors import ProgramError

__all__ = [
    "BoundedOutOfOrderness",
    "MaximumBasedGenerator",
    "NoWatermarks",
    "PunctuatedWatermarks",
    "SuppliedGenerator",
    "TimeLagWatermarks",
]


class TimeLagWatermarks(WatermarkGenerator):
    """Watermarks that trail the clock, whatever the elements are, and with no elements at all.

    Flink's documentation calls it ``TimeLagWatermarkGenerator``. The clock is that of the micro-batch.

    >>> from eventide.common import WatermarkStrategy
    >>> strategy = WatermarkStrategy.for_generator(lambda context: TimeLagWatermarks(Duration.of_seconds(5), context))

    Raises:
        ProgramError: The lag is no length of time.
    """

    is_periodic = True

    def __init__(self, max_time_lag: Duration | Time | int, context: WatermarkGeneratorContext) -> None:
        self._lag_ms = to_ms(max_time_lag, "time lag")
        self._context = context

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        """Do nothing: the clock decides."""

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Emit the time of the micro-batch less the lag."""
        output.emit_watermark(Watermark(self._context.get_current_processing_time() - self._lag_ms))


class PunctuatedWatermarks(WatermarkGenerator):
    """Watermarks that follow from single elements, which mark that something is complete.

    Args:
        marked: A function ``(element, timestamp)`` that returns the watermark behind the element, in milliseconds, or
            None.

    >>> from eventide.common import WatermarkStrategy
    >>> strategy = WatermarkStrategy.for_generator(
    ...     lambda: PunctuatedWatermarks(lambda element, timestamp: timestamp if element["is_marker"] else None))
    """

    def __init__(self, marked: Callable[[Any, int], int | None]) -> None:
        self._marked = marked

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        """Emit the element's watermark, if it has one."""
        watermark = self._marked(event, event_timestamp)
        if watermark is not None:
            output.emit_watermark(Watermark(watermark))

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Do nothing: elements decide."""


class MaximumBasedGenerator(Protocol):
    """A description of watermarks that follow from the largest timestamp of a split and from nothing else."""

    def watermark_for(self, max_timestamp_ms: int) -> int | None:
        """Return the watermark after elements up to `max_timestamp_ms`, or None when there is none to emit."""

    def describe(self) -> str:
        """Return a few words for plans and logs."""


@dataclass(frozen=True, slots=True)
class BoundedOutOfOrderness:
    """Watermarks that trail the largest timestamp by a bound and one millisecond more.

    An element may be up to `bound_ms` older than the newest one before it counts as late. The extra millisecond
    is there because a watermark t also rules out elements at t itself. A bound of 0 is for timestamps that never
    go back. The subtraction saturates.

    Flink: ``BoundedOutOfOrdernessWatermarks``, and with 0 ``AscendingTimestampsWatermarks``.

    Raises:
        ProgramError: The bound is negative or no length of time.

    >>> BoundedOutOfOrderness(100).watermark_for(1_000)
    899
    """

    bound_ms: int

    def __post_init__(self) -> None:
        if to_ms(self.bound_ms, "out-of-orderness bound") < 0:
            message = f"out-of-orderness bound: expected at least 0 ms, got {self.bound_ms!r}"
            raise ProgramError(message)

    def watermark_for(self, max_timestamp_ms: int) -> int:
        """Return ``max_timestamp_ms - bound_ms - 1``, not below the smallest time."""
        return add_ms(max_timestamp_ms, -self.bound_ms - 1)

    def describe(self) -> str:
        """Return a few words for plans and logs."""
        return f"bounded out-of-orderness {self.bound_ms} ms" if self.bound_ms else "monotonous timestamps"


@dataclass(frozen=True, slots=True)
class NoWatermarks:
    """No watermarks while the stream runs; only its end gives one.

    >>> NoWatermarks().watermark_for(1_000) is None
    True
    """

    def watermark_for(self, max_timestamp_ms: int) -> None:
        """Return None: there is no watermark, whatever the elements are."""
        return

    def describe(self) -> str:
        """Return a few words for plans and logs."""
        return "no watermarks"


@dataclass(frozen=True, slots=True)
class SuppliedGenerator:
    """Watermarks of a `WatermarkGenerator` that a supplier makes, one for each split.

    Args:
        supplier: A class of generators, or a function that returns one; called with a `WatermarkGeneratorContext` if it
            has an argument without a default.
        name: What to call it in plans and logs; by default, the supplier's own name.

    Raises:
        ProgramError: The supplier cannot be called in one of the two ways.
    """

    supplier: Callable[..., WatermarkGenerator]
    name: str = ""
    _takes_context: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not callable(self.supplier) or isinstance(self.supplier, WatermarkGenerator):
            message = (
                "watermark generator: expected a class or a function that makes a WatermarkGenerator, one for each "
                f"split, got {self.supplier!r}"
            )
            raise ProgramError(message)
        if len(self._required()) > 1 or self._keywords():
            needed = ", ".join([*self._required(), *self._keywords()])
            message = (
                f"watermark generator: {self._name()} needs the arguments {needed}; a supplier takes one, the context, "
                "or none: wrap it in a lambda"
            )
            raise ProgramError(message)
        object.__setattr__(self, "_takes_context", bool(self._required()))

    @property
    def is_periodic(self) -> bool:
        """Whether watermarks come at the end of micro-batches only, as far as the supplier tells: a class does."""
        return isinstance(self.supplier, type) and bool(getattr(self.supplier, "is_periodic", False))

    def create(self, context: WatermarkGeneratorContext) -> WatermarkGenerator:
        """Return a new generator.

        Raises:
            ProgramError: The supplier returned something else.
        """
        made = self.supplier(context) if self._takes_context else self.supplier()
        if not isinstance(made, WatermarkGenerator):
            message = f"watermark generator: {self._name()} returned {made!r}, which is no WatermarkGenerator"
            raise ProgramError(message)
        return made

    def describe(self) -> str:
        """Return a few words for plans and logs."""
        return f"watermarks of {self._name()}"

    def _required(self) -> list[str]:
        return self._without_default(inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)

    def _keywords(self) -> list[str]:
        return self._without_default(inspect.Parameter.KEYWORD_ONLY)

    def _without_default(self, *kinds: Any) -> list[str]:
        try:
            parameters = inspect.signature(self.supplier).parameters.values()
        except ValueError:  # a class written in C, which has none to tell
            return []
        return [p.name for p in parameters if p.kind in kinds and p.default is inspect.Parameter.empty]

    def _name(self) -> str:
        return self.name or getattr(self.supplier, "__qualname__", type(self.supplier).__name__)
