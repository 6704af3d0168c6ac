"""How watermarks follow from the elements of a split: descriptions, frozen and picklable.

The built-in generators have no state but the largest timestamp seen, so a description together with that maximum
gives the watermark. Whoever runs a strategy keeps the maximum, one for each split.
"""

from dataclasses import dataclass
from typing import Protocol

from eventide.common._ms import add_ms, to_ms
from eventide.errors import ProgramError

__all__ = ["BoundedOutOfOrderness", "MaximumBasedGenerator", "NoWatermarks"]


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
