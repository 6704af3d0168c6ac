"""What metrics of functions show, and how two readings of one metric become one.

A reading says what is new in one subtask since its last reading. All that is known of a metric is its readings merged
into one, in the order of the micro-batches. Merging is associative. It is commutative too, but for two gauges of one
subtask, of which the later one counts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeAlias

Number: TypeAlias = int | float


class Reading(ABC):
    """What one metric showed."""

    kind: ClassVar[str]

    @abstractmethod
    def and_then(self, later: Self) -> Self:
        """This reading and a later one as one."""

    @property
    @abstractmethod
    def value(self) -> Any:
        """What the job shows."""

    @abstractmethod
    def fields(self) -> list[Any]:
        """What it consists of, as JSON values, for the way."""

    @classmethod
    @abstractmethod
    def of_fields(cls, *fields: Any) -> Self:
        """The inverse of :meth:`fields`."""


@dataclass(frozen=True, slots=True)
class Count(Reading):
    """How much was counted."""

    kind: ClassVar[str] = "count"
    number: Number

    def and_then(self, later: Count) -> Count:
        """The sum."""
        return Count(self.number + later.number)

    @property
    def value(self) -> Number:
        """The sum."""
        return self.number

    def fields(self) -> list[Any]:
        """The number."""
        return [self.number]

    @classmethod
    def of_fields(cls, *fields: Any) -> Count:
        """The inverse of :meth:`fields`."""
        return cls(*fields)


@dataclass(frozen=True, slots=True)
class Rate(Reading):
    """How many events there were, and when, as far as that matters: in the ``span_s`` seconds up to ``now_s``."""

    kind: ClassVar[str] = "rate"
    count: Number
    span_s: int
    now_s: int
    by_second: Mapping[int, Number]

    @classmethod
    def of(cls, count: Number, *, at_s: int, span_s: int) -> Rate:
        """So many events at one second."""
        return cls(count, span_s, at_s, {at_s: count} if count else {})

    def and_then(self, later: Rate) -> Rate:
        """All events; what lies before the span, of two the shorter one, is counted and no more."""
        now_s, span_s = max(self.now_s, later.now_s), min(self.span_s, later.span_s)
        by_second = dict(self.by_second)
        for second, number in later.by_second.items():
            by_second[second] = by_second.get(second, 0) + number
        recent = {second: number for second, number in by_second.items() if second > now_s - span_s}
        return Rate(self.count + later.count, span_s, now_s, recent)

    @property
    def value(self) -> dict[str, Number]:
        """The number of events, and the rate in events per second."""
        return {"count": self.count, "rate": sum(self.by_second.values()) / self.span_s}

    def fields(self) -> list[Any]:
        """The numbers; seconds in pairs, because keys of JSON are text."""
        return [self.count, self.span_s, self.now_s, [*self.by_second.items()]]

    @classmethod
    def of_fields(cls, *fields: Any) -> Rate:
        """The inverse of :meth:`fields`."""
        count, span_s, now_s, by_second = fields
        return cls(count, span_s, now_s, _mapping(by_second))


@dataclass(frozen=True, slots=True)
class Shown(Reading):
    """What a gauge showed, by subtask."""

    kind: ClassVar[str] = "shown"
    by_subtask: Mapping[int, Number | str]

    def and_then(self, later: Shown) -> Shown:
        """For each subtask, what it showed last."""
        return Shown({**self.by_subtask, **later.by_subtask})

    @property
    def value(self) -> dict[int, Number | str]:
        """By subtask, in their order."""
        return dict(sorted(self.by_subtask.items()))

    def fields(self) -> list[Any]:
        """Subtasks and what they showed, in pairs."""
        return [[*self.by_subtask.items()]]

    @classmethod
    def of_fields(cls, *fields: Any) -> Shown:
        """The inverse of :meth:`fields`."""
        return cls(_mapping(*fields))


@dataclass(frozen=True, slots=True)
class Spread(Reading):
    """How values were distributed; without values, there is no lowest and no highest."""

    kind: ClassVar[str] = "spread"
    count: int
    total: Number
    lowest: Number | None
    highest: Number | None

    def and_then(self, later: Spread) -> Spread:
        """That of all values."""
        if not (self.count and later.count):
            return self if self.count else later
        lowest = min(known for known in (self.lowest, later.lowest) if known is not None)
        highest = max(known for known in (self.highest, later.highest) if known is not None)
        return Spread(self.count + later.count, self.total + later.total, lowest, highest)

    @property
    def value(self) -> dict[str, Number | None]:
        """Count, sum, min, max and mean."""
        mean = self.total / self.count if self.count else None
        return {"count": self.count, "sum": self.total, "min": self.lowest, "max": self.highest, "mean": mean}

    def fields(self) -> list[Any]:
        """The numbers."""
        return [self.count, self.total, self.lowest, self.highest]

    @classmethod
    def of_fields(cls, *fields: Any) -> Spread:
        """The inverse of :meth:`fields`."""
        return cls(*fields)


_KINDS: dict[str, type[Reading]] = {kind.kind: kind for kind in (Count, Rate, Shown, Spread)}


def merged(before: Reading, later: Reading) -> Reading:
    """Two readings of one metric as one.

    Where two functions gave one name to different kinds of metrics, only one of them is shown, as in Flink: whichever
    comes first, it is the same one.
    """
    if type(before) is not type(later):
        return min(before, later, key=lambda reading: reading.kind)
    return before.and_then(later)


def to_json(reading: Reading) -> list[Any]:
    """A reading as JSON values.

    >>> to_json(Shown({1: 7}))
    ['shown', [(1, 7)]]
    """
    return [reading.kind, *reading.fields()]


def from_json(values: Sequence[Any]) -> Reading:
    """The inverse of :func:`to_json`.

    >>> from_json(["spread", 2, 5, 1, 4]).value
    {'count': 2, 'sum': 5, 'min': 1, 'max': 4, 'mean': 2.5}
    """
    return _KINDS[values[0]].of_fields(*values[1:])


def _mapping(pairs: Any) -> dict[Any, Any]:
    return {first: second for first, second in pairs}  # noqa: C416 - pairs of JSON are lists
