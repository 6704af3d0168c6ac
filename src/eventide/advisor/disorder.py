"""Measures of a stream: how far elements are out of order, how far splits are apart, and how long they are silent."""

from __future__ import annotations

from dataclasses import dataclass, field

from eventide.runtime.eventtime.histograms import DurationHistogram


@dataclass(slots=True)
class Split:
    """Measures of one split. All times are milliseconds since the epoch (UTC), all lengths milliseconds.

    Attributes:
        rows: how many elements it has.
        newest_ms: the highest event time.
        begun_ms: when its first element came, by the clock of arrival.
        heard_ms: when its last element came, by the same.
        most_behind_ms: how far an element was older than the newest one of the split before it, at most.
        apart_ms: the sum, over its elements, of the split's lag after the newest element of all splits.
        least_apart_ms: the smallest of these.
        most_apart_ms: the largest of these.
        silence_ms: the longest time between two of its elements, by the clock of arrival.
        leap_ms: how far an element was ahead of the newest one before it, at most, where later elements were not: so
        its time is most probably wrong.
    """

    rows: int
    newest_ms: int
    begun_ms: int
    heard_ms: int
    most_behind_ms: int = 0
    apart_ms: int = 0
    least_apart_ms: int = 0
    most_apart_ms: int = 0
    silence_ms: int = 0
    leap_ms: int = 0

    @property
    def mean_apart_ms(self) -> float:
        """Its lag after the newest element of all splits, on average."""
        return self.apart_ms / self.rows

    @property
    def mean_gap_ms(self) -> float:
        """The time between two of its elements, on average, but for the longest; 0 where there is no other."""
        return (self.heard_ms - self.begun_ms - self.silence_ms) / max(1, self.rows - 2)

    def followed_by(self, later: Split) -> Split:
        """Return the measures of the split over its elements here and those that came later."""
        return Split(
            rows=self.rows + later.rows,
            newest_ms=max(self.newest_ms, later.newest_ms),
            begun_ms=self.begun_ms,
            heard_ms=later.heard_ms,
            most_behind_ms=max(self.most_behind_ms, later.most_behind_ms),
            apart_ms=self.apart_ms + later.apart_ms,
            least_apart_ms=min(self.least_apart_ms, later.least_apart_ms),
            most_apart_ms=max(self.most_apart_ms, later.most_apart_ms),
            silence_ms=max(self.silence_ms, later.silence_ms),
            leap_ms=max(self.leap_ms, later.leap_ms),
        )


@dataclass(slots=True)
class Disorder:
    """The disorder of a stream, or of a stretch of one: what stretches say adds up to what the whole does.

    Attributes:
        own: how far each element is older than the newest one of its split before it; 0 for one that is the newest.
        whole: how far each is older than the newest one of all splits.
        gaps: the times between two elements of a split, by the clock of arrival.
        splits: what is known of each split, by its name.
        named: the names of splits that are there, though they may have no element.
        nulls: how many elements have no time; they are in nothing else here.
        has_clock: whether the clock of arrival is a time that the data has; else it is the newest event time so far.
        future: how many elements say that they happened more than a second after they arrived.
        most_future_ms: by how much, at most.
    """

    own: DurationHistogram = field(default_factory=DurationHistogram)
    whole: DurationHistogram = field(default_factory=DurationHistogram)
    gaps: DurationHistogram = field(default_factory=DurationHistogram)
    splits: dict[str, Split] = field(default_factory=dict)
    named: set[str] = field(default_factory=set)
    nulls: int = 0
    has_clock: bool = False
    future: int = 0
    most_future_ms: int = 0

    @property
    def rows(self) -> int:
        """How many elements have a time."""
        return self.own.total

    @property
    def silent(self) -> list[str]:
        """The splits that have no element with a time."""
        return sorted(self.named.difference(self.splits))

    @property
    def ended_ms(self) -> int:
        """When the last element came, by the clock of arrival."""
        return max(split.heard_ms for split in self.splits.values())

    @property
    def slowest(self) -> tuple[str, Split]:
        """The split that is furthest behind the others, on average, and its name: results wait for it."""
        return max(self.splits.items(), key=lambda named: named[1].mean_apart_ms)

    def follow(self, later: Disorder) -> None:
        """Add the stretch that comes next, which was measured with what this one and those before it have left."""
        self.own.merge(later.own)
        self.whole.merge(later.whole)
        self.gaps.merge(later.gaps)
        for name, split in later.splits.items():
            known = self.splits.get(name)
            self.splits[name] = split if known is None else known.followed_by(split)
        self.named |= later.named
        self.nulls += later.nulls
        self.has_clock |= later.has_clock
        self.future += later.future
        self.most_future_ms = max(self.most_future_ms, later.most_future_ms)
