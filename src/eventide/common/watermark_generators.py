"""Watermark generators of a split: built in, ready made, or supplied by the user.

The built-in ones have no state but the largest timestamp seen, so a description together with that maximum gives the
watermark. The task that runs a strategy keeps the maximum of each split. A supplied generator is a separate object for
each split; the checkpoint keeps what it has learnt.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from eventide.common.code import class_of, emits_at_the_end_only, ignores_elements, keeps_the_highest
from eventide.common.learnt import Learnt
from eventide.common.ms import MIN_MS, add_ms, to_ms, to_positive_ms
from eventide.common.time import Duration, Time
from eventide.common.timestamp_assigner import TimestampAssigner
from eventide.common.type_variables import T_contra
from eventide.common.watermark import Watermark
from eventide.common.watermark_generator import (
    VectorizedWatermarkGenerator,
    WatermarkGenerator,
    WatermarkGeneratorContext,
    WatermarkOutput,
)
from eventide.errors import ProgramError

__all__ = [
    "AscendingTimestampsWatermarks",
    "BoundedOutOfOrderness",
    "BoundedOutOfOrdernessWatermarks",
    "NoWatermarks",
    "NoWatermarksGenerator",
    "PunctuatedWatermarks",
    "SuppliedGenerator",
    "TimeLagWatermarks",
    "WatermarksWithIdleness",
]


class BoundedOutOfOrdernessWatermarks(WatermarkGenerator[object]):
    """Watermarks that trail the highest timestamp by a bound and one millisecond more.

    ``WatermarkStrategy.for_bounded_out_of_orderness`` gives the same watermarks, and computes them for whole columns at
    once. This class is for strategies and generators that use it or override a part of it. Before the first element,
    the watermark is the smallest 64-bit integer. Flink: ``BoundedOutOfOrdernessWatermarks``.

    Args:
        max_out_of_orderness: How much older than the newest element another may be without being late.

    Raises:
        ProgramError: The bound is negative or not a length of time.

    >>> from eventide.common import WatermarkStrategy
    >>> strategy = WatermarkStrategy.for_generator(lambda: BoundedOutOfOrdernessWatermarks(Duration.of_seconds(5)))
    """

    is_periodic = True

    def __init_subclass__(cls, **options: object) -> None:
        """Let a subclass that overrides `on_event` emit there, unless it declares that it does not."""
        super().__init_subclass__(**options)
        if "on_event" in vars(cls) and "is_periodic" not in vars(cls):
            cls.is_periodic = False

    def __init__(self, max_out_of_orderness: Duration | Time | int) -> None:
        self._bound_ms = to_ms(max_out_of_orderness, "out-of-orderness bound", least=0)
        self._highest_ms = add_ms(MIN_MS, self._bound_ms + 1)

    def on_event(self, event: object, event_timestamp: int, output: WatermarkOutput) -> None:
        """Remember the timestamp, if it is the highest so far."""
        self._highest_ms = max(self._highest_ms, event_timestamp)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Emit the highest timestamp less the bound and one millisecond."""
        output.emit_watermark(Watermark(add_ms(self._highest_ms, -self._bound_ms - 1)))


class AscendingTimestampsWatermarks(BoundedOutOfOrdernessWatermarks):
    """Watermarks one millisecond before the highest timestamp, for timestamps that never go back within a split.

    ``WatermarkStrategy.for_monotonous_timestamps`` gives the same watermarks, for whole columns at once. Flink:
    ``AscendingTimestampsWatermarks``.

    >>> from eventide.common import WatermarkStrategy
    >>> strategy = WatermarkStrategy.for_generator(AscendingTimestampsWatermarks)
    """

    def __init__(self) -> None:
        super().__init__(0)


class NoWatermarksGenerator(WatermarkGenerator[object]):
    """Emits no watermarks; only the end of the stream emits one. Flink: ``NoWatermarksGenerator``."""

    is_periodic = True

    def on_event(self, event: object, event_timestamp: int, output: WatermarkOutput) -> None:
        """Do nothing."""

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Do nothing."""


class WatermarksWithIdleness(WatermarkGenerator[T_contra]):
    """Watermarks of another generator, and idleness while there are no elements. Flink: ``WatermarksWithIdleness``.

    Time is that of micro-batches. It begins with the first micro-batch without elements, and more than the timeout must
    have passed. ``WatermarkStrategy.with_idleness`` does the same for any strategy, without calling Python for it.

    Args:
        watermarks: The generator that makes the watermarks while there are elements.
        idle_timeout: How long a split may be without elements.
        context: The context that the strategy was given, which has the clock.

    Raises:
        ProgramError: The timeout is not positive.
    """

    def __init__(
        self,
        watermarks: WatermarkGenerator[T_contra],
        idle_timeout: Duration | Time | int,
        context: WatermarkGeneratorContext,
    ) -> None:
        self._watermarks = watermarks
        self._learnt = Learnt(watermarks)
        self._timeout_ms = to_positive_ms(idle_timeout, "idle timeout")
        self._context = context
        self._has_heard = False
        self._silent_since_ms: int | None = None
        self._asked_ms: int | None = None
        self._is_idle = False

    def on_event(self, event: T_contra, event_timestamp: int, output: WatermarkOutput) -> None:
        """Show an element to the generator, which ends idleness."""
        self._watermarks.on_event(event, event_timestamp, output)
        self._has_heard, self._is_idle = True, False

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Mark the split as idle, once, after a silence longer than the timeout; until then, ask the generator."""
        now_ms = self._context.get_current_processing_time()
        if self._silent_since_ms is not None and self._asked_ms is not None and now_ms < self._asked_ms:
            self._silent_since_ms += now_ms - self._asked_ms  # the clock was set back; what was waited before counts
        self._asked_ms = now_ms
        if self._has_heard:
            self._has_heard, self._silent_since_ms = False, None
        elif self._silent_since_ms is None:
            self._silent_since_ms = now_ms
        elif now_ms - self._silent_since_ms > self._timeout_ms:
            if not self._is_idle:
                output.mark_idle()
                self._is_idle = True
            return
        self._watermarks.on_periodic_emit(output)

    def snapshot_state(self) -> Any:
        """Return the generator's state, and the time since which there have been no elements."""
        return self._learnt.snapshot(), self._has_heard, self._silent_since_ms, self._is_idle, self._asked_ms

    def restore_state(self, state: Any) -> None:
        """Continue from the result of `snapshot_state`."""
        snapshot, self._has_heard, self._silent_since_ms, self._is_idle, *asked = state
        self._asked_ms = asked[0] if asked else None
        self._learnt.restore(snapshot)


class TimeLagWatermarks(WatermarkGenerator[object]):
    """Watermarks that trail the clock, regardless of elements.

    Flink's documentation calls it ``TimeLagWatermarkGenerator``. The clock is that of the micro-batch.

    >>> from eventide.common import WatermarkStrategy
    >>> strategy = WatermarkStrategy.for_generator(lambda context: TimeLagWatermarks(Duration.of_seconds(5), context))

    Raises:
        ProgramError: The lag is not a length of time.
    """

    is_periodic = True

    def __init__(self, max_time_lag: Duration | Time | int, context: WatermarkGeneratorContext) -> None:
        self._lag_ms = to_ms(max_time_lag, "time lag")
        self._context = context

    def on_event(self, event: object, event_timestamp: int, output: WatermarkOutput) -> None:
        """Do nothing: the clock decides."""

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Emit the time of the micro-batch less the lag."""
        output.emit_watermark(Watermark(self._context.get_current_processing_time() - self._lag_ms))


class PunctuatedWatermarks(WatermarkGenerator[T_contra]):
    """Watermarks after single elements that mark progress, such as the end of a batch of data.

    Args:
        marked: A function ``(element, timestamp)`` that returns the watermark after the element, in milliseconds, or
            None.

    >>> from eventide.common import WatermarkStrategy
    >>> strategy = WatermarkStrategy.for_generator(
    ...     lambda: PunctuatedWatermarks(lambda element, timestamp: timestamp if element["is_marker"] else None))
    """

    def __init__(self, marked: Callable[[T_contra, int], int | None]) -> None:
        self._marked = marked

    def on_event(self, event: T_contra, event_timestamp: int, output: WatermarkOutput) -> None:
        watermark = self._marked(event, event_timestamp)
        if watermark is not None:
            output.emit_watermark(Watermark(watermark))

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Do nothing: elements decide."""


@dataclass(frozen=True, slots=True)
class BoundedOutOfOrderness:
    """Watermarks that trail the largest timestamp by a bound and one millisecond more.

    An element may be up to `bound_ms` older than the newest one before it counts as late. The extra millisecond is
    needed because a watermark t also rules out elements at t itself. A bound of 0 is for timestamps that never go back.
    The subtraction saturates.

    Flink: ``BoundedOutOfOrdernessWatermarks``, and with 0 ``AscendingTimestampsWatermarks``; a
    ``BoundedOutOfOrdernessTimestampExtractor`` has a bound one millisecond smaller, -1 at the least.

    >>> BoundedOutOfOrderness(100).watermark_for(1_000)
    899
    """

    bound_ms: int

    def watermark_for(self, max_timestamp_ms: int) -> int:
        """Return ``max_timestamp_ms - bound_ms - 1``, not below the smallest time."""
        return add_ms(max_timestamp_ms, -self.bound_ms - 1)

    def create(self, context: WatermarkGeneratorContext) -> WatermarkGenerator[object]:
        """Return a `BoundedOutOfOrdernessWatermarks`; with a bound of 0, an `AscendingTimestampsWatermarks`."""
        return BoundedOutOfOrdernessWatermarks(self.bound_ms) if self.bound_ms else AscendingTimestampsWatermarks()

    def describe(self) -> str:
        """Return a few words for plans and logs."""
        return f"bounded out-of-orderness {self.bound_ms} ms" if self.bound_ms else "monotonous timestamps"


@dataclass(frozen=True, slots=True)
class NoWatermarks:
    """No watermarks while the stream runs; only its end emits one.

    >>> NoWatermarks().watermark_for(1_000) is None
    True
    """

    def watermark_for(self, max_timestamp_ms: int) -> None:
        """Return None: elements give no watermark."""
        return

    def create(self, context: WatermarkGeneratorContext) -> WatermarkGenerator[object]:
        """Return a `NoWatermarksGenerator`."""
        return NoWatermarksGenerator()

    def describe(self) -> str:
        """Return a few words for plans and logs."""
        return "no watermarks"


@dataclass(frozen=True, slots=True)
class SuppliedGenerator:
    """Watermarks of a `WatermarkGenerator` that a supplier makes, one for each split.

    Args:
        supplier: A class of generators, or a function that returns one; called with a `WatermarkGeneratorContext` if it
            has an argument without a default.
        name: The name in plans and logs; by default, the supplier's own name.

    Attributes:
        is_periodic: Whether watermarks are emitted at the end of micro-batches only: the class declares it, or its code
            shows it.
        columns: The fields that its generators use; None for all. A class may name them, or its code may show that it
            uses none.
        ignores_elements: Whether the code shows that only timestamps are used.
        needs_highest_only: Whether the code shows that of the timestamps in a micro-batch, only the highest is used.
        is_assigner: Whether its generators may give timestamps as well.

    If a supplier is not a class, and does more than call one, the opposite is assumed.

    Raises:
        ProgramError: The supplier cannot be called in one of the two ways.

    >>> class Highest(WatermarkGenerator):
    ...     highest = MIN_MS
    ...     def on_event(self, event, event_timestamp, output):
    ...         self.highest = max(self.highest, event_timestamp)
    ...     def on_periodic_emit(self, output):
    ...         output.emit_watermark(Watermark(self.highest))
    >>> supplied = SuppliedGenerator(lambda: Highest())
    >>> supplied.is_periodic, supplied.columns, supplied.needs_highest_only
    (True, (), True)
    """

    supplier: Callable[..., WatermarkGenerator]
    name: str = ""
    is_periodic: bool = field(init=False, repr=False, compare=False)
    columns: tuple[str, ...] | None = field(init=False, repr=False, compare=False)
    ignores_elements: bool = field(init=False, repr=False, compare=False)
    needs_highest_only: bool = field(init=False, repr=False, compare=False)
    is_assigner: bool = field(init=False, repr=False, compare=False)
    _takes_context: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not callable(self.supplier) or isinstance(self.supplier, WatermarkGenerator):
            raise ProgramError(
                "watermark generator: expected a class or a function that makes a WatermarkGenerator, one for each "
                f"split, got {self.supplier!r}"
            )
        needed = _needed(self.supplier)
        if len(needed) > 1 or any(parameter.kind is parameter.KEYWORD_ONLY for parameter in needed):
            names = ", ".join(parameter.name for parameter in needed)
            raise ProgramError(
                f"watermark generator: {self._name()} needs the arguments {names}; a supplier takes one, the context, "
                "or none: wrap it in a lambda"
            )
        kind = class_of(self.supplier)
        ignores = kind is not None and ignores_elements(kind)
        named = kind.columns if kind is not None and issubclass(kind, VectorizedWatermarkGenerator) else None
        if isinstance(named, str):
            raise ProgramError(f"watermark generator: the columns of {self._name()} are a list of names, not {named!r}")
        is_periodic = kind is not None and (bool(kind.is_periodic) or emits_at_the_end_only(kind))
        shown = {
            "_takes_context": bool(needed),
            "is_periodic": is_periodic,
            "columns": tuple(named) if named is not None else () if ignores else None,
            "ignores_elements": ignores,
            "needs_highest_only": kind is not None and is_periodic and not named and keeps_the_highest(kind),
            "is_assigner": kind is None or issubclass(kind, TimestampAssigner),
        }
        for name, value in shown.items():
            object.__setattr__(self, name, value)

    def create(self, context: WatermarkGeneratorContext) -> WatermarkGenerator:
        """Return a new generator.

        Raises:
            ProgramError: The supplier returned something else.
        """
        made = self.supplier(context) if self._takes_context else self.supplier()
        if not isinstance(made, WatermarkGenerator):
            raise ProgramError(
                f"watermark generator: {self._name()} returned {made!r}, which is not a WatermarkGenerator"
            )
        return made

    def describe(self) -> str:
        """Return a few words for plans and logs."""
        return f"watermarks of {self._name()}"

    def _name(self) -> str:
        return self.name or getattr(self.supplier, "__qualname__", type(self.supplier).__name__)


def _needed(supplier: Callable[..., object]) -> list[inspect.Parameter]:
    """The parameters of a supplier that have no default."""
    try:
        parameters = inspect.signature(supplier).parameters.values()
    except ValueError:  # a class written in C, which has none to tell
        return []
    return [p for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
