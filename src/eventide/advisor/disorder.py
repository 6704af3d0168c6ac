"""Disorder of a stream: how far elements are out of order, splits apart and silent; measured in order of arrival."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from eventide.common.ms import MIN_MS
from eventide.runtime.observation.histograms import DurationHistogram, Ints

_TOLERANCE_MS = 1_000
_LEAP_MS = 3_600_000
_BEHIND_A_LEAP = 100
_FEW = 10


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
        leap_ms: how far an element was ahead of the newest one before it, at most, where later elements were not; its
            time is most probably wrong.
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
        """The mean lag of the split after the newest element of all splits."""
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
    """The disorder of a stream, or of a stretch of one; those of stretches add up to that of the whole.

    Attributes:
        own: how far each element is older than the newest one of its split before it; 0 for one that is the newest.
        whole: how far each is older than the newest one of all splits.
        gaps: the times between two elements of a split, by the clock of arrival.
        splits: the measurement of each split, by its name.
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


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some elements, in the order of their arrival.

    Attributes:
        times: their event times, in milliseconds since the epoch (UTC).
        names: the names of the splits that they are of.
        places: for each element, the place of its split's name in ``names``.
        clock: when they arrived, in the same unit and never back; None if that is not known.
        nulls: how many elements were left out because they have no time.
    """

    times: Ints
    names: list[str]
    places: npt.NDArray[np.int32]
    clock: Ints | None = None
    nulls: int = 0


@dataclass(frozen=True, slots=True)
class Fronts:
    """Reference for elements: the newest event time of each split so far, and when it was last heard of.

    ``has_clock`` says whether the latter is a time of arrival; else it is the newest event time of all splits by then.
    """

    newest: Mapping[str, int]
    heard: Mapping[str, int]
    has_clock: bool = False

    def followed_by(self, later: Fronts) -> Fronts:
        """After another stretch, for which these were not known."""
        newest = MIN_MS if later.has_clock else max(self.newest.values(), default=MIN_MS)
        heard = {name: max(newest, at) for name, at in later.heard.items()}
        highest = {name: max(self.newest.get(name, MIN_MS), at) for name, at in later.newest.items()}
        return Fronts({**self.newest, **highest}, {**self.heard, **heard}, later.has_clock)


class DisorderMeter:
    """Measures one stretch after the other, with exact maxima of all that came before.

    A stream may be measured in parts, by several meters, if each begins with the fronts that those before it left. A
    first pass finds these: :meth:`Fronts.followed_by` adds up what meters leave that knew of nothing before.

    Args:
        fronts: the fronts that the stretches before have left; nothing, by default.

    >>> meter = DisorderMeter()
    >>> meter.take(Stretch(np.array([10, 20, 13]), ["a", "b"], np.array([0, 1, 0], np.int32)))
    >>> found = meter.disorder
    >>> found.own.longest_ms, found.whole.longest_ms, found.splits["a"].most_apart_ms
    (0, 7, 7)
    """

    def __init__(self, fronts: Fronts | None = None) -> None:
        known = fronts or Fronts({}, {})
        self.disorder = Disorder()
        self._numbers = {name: number for number, name in enumerate(known.newest)}
        self._newest = np.array(list(known.newest.values()), np.int64)
        self._heard = np.array([known.heard[name] for name in known.newest], np.int64)
        self._newest_of_all = int(self._newest.max(initial=MIN_MS))

    @property
    def fronts(self) -> Fronts:
        """The newest times of each split."""
        names = list(self._numbers)
        newest, heard = (dict(zip(names, times.tolist(), strict=True)) for times in (self._newest, self._heard))
        return Fronts(newest, heard, self.disorder.has_clock)

    def take(self, stretch: Stretch) -> None:
        """Measure what came next."""
        self.disorder.nulls += stretch.nulls
        times = stretch.times
        if not len(times):
            self.disorder.named.update(stretch.names)
            return
        whole = np.concatenate(([self._newest_of_all], times))
        np.maximum.accumulate(whole, out=whole)
        self._newest_of_all = int(whole[-1])
        self.disorder.whole.add(_behind(whole[:-1], times))
        if stretch.clock is not None:
            self._compare_with_clock(times, stretch.clock)
        runs, newest = _RunsOfSplits(stretch.places, stretch.names), whole[1:]
        clock = newest if stretch.clock is None else stretch.clock
        self._measure_splits(runs, runs.sort(times), runs.sort(newest), runs.sort(clock))

    def _measure_splits(self, runs: _RunsOfSplits, times: Ints, whole: Ints, clock: Ints) -> None:
        """Measure elements that are sorted by split; ``whole`` is the newest time of all, with each of them."""
        numbers, starts, lasts = self._numbered(runs.names), runs.starts, runs.lasts
        after = times.copy()
        after[starts] = np.maximum(after[starts], self._newest[numbers])
        for start, end in runs.bounds():
            np.maximum.accumulate(after[start:end], out=after[start:end])
        before = np.concatenate(([0], after[:-1]))
        before[starts] = self._newest[numbers]
        behind = _behind(before, times)
        self.disorder.own.add(behind)

        gaps = np.diff(clock, prepend=0)
        gaps[starts] = clock[starts] - np.where(self._heard[numbers] == MIN_MS, clock[starts], self._heard[numbers])
        is_first = np.zeros(len(times), np.bool_)
        is_first[starts] = self._heard[numbers] == MIN_MS
        self.disorder.gaps.add(gaps[~is_first])

        apart = whole - after
        leaps = _leaps(runs, times, before)
        self._newest[numbers], self._heard[numbers] = after[lasts], clock[lasts]
        columns = zip(
            runs.names,
            np.diff(starts, append=len(times)).tolist(),
            after[lasts].tolist(),
            clock[starts].tolist(),
            clock[lasts].tolist(),
            np.maximum.reduceat(behind, starts).tolist(),
            np.add.reduceat(apart, starts).tolist(),
            np.minimum.reduceat(apart, starts).tolist(),
            np.maximum.reduceat(apart, starts).tolist(),
            np.maximum.reduceat(gaps, starts).tolist(),
            leaps,
            strict=True,
        )
        for name, *values in columns:
            found, known = Split(*values), self.disorder.splits.get(name)
            self.disorder.splits[name] = found if known is None else known.followed_by(found)

    def _compare_with_clock(self, times: Ints, clock: Ints) -> None:
        ahead = times - clock
        self.disorder.has_clock = True
        self.disorder.future += int(np.count_nonzero(ahead > _TOLERANCE_MS))
        self.disorder.most_future_ms = max(self.disorder.most_future_ms, int(ahead.max()))

    def _numbered(self, names: list[str]) -> npt.NDArray[np.intp]:
        """The places of splits in the arrays; those that have not been heard of are added."""
        new = sum(self._numbers.setdefault(name, len(self._numbers)) >= len(self._newest) for name in names)
        if new:
            nothing = np.full(len(self._numbers) - len(self._newest), MIN_MS)
            self._newest, self._heard = np.append(self._newest, nothing), np.append(self._heard, nothing)
        return np.array([self._numbers[name] for name in names], np.intp)


class _RunsOfSplits:
    """Elements sorted by split, those of one split still in their order."""

    def __init__(self, places: npt.NDArray[np.int32], names: list[str]) -> None:
        # Small numbers are sorted by their digits, which is ten times as fast.
        keys = places.astype(np.int16) if len(names) <= np.iinfo(np.int16).max else places
        self._order = None if len(names) == 1 else np.argsort(keys, kind="stable")
        ordered = places if self._order is None else places[self._order]
        self.starts = np.flatnonzero(np.diff(ordered, prepend=-1))
        self.lasts = np.append(self.starts[1:], len(places)) - 1
        self.names = [names[place] for place in ordered[self.starts].tolist()]

    def sort(self, values: Ints) -> Ints:
        return values if self._order is None else values[self._order]

    def bounds(self) -> Iterable[tuple[int, int]]:
        return zip(self.starts.tolist(), (self.lasts + 1).tolist(), strict=True)


def _leaps(runs: _RunsOfSplits, times: Ints, before: Ints) -> list[int]:
    """How far the element of each split was ahead that went furthest, if later ones did not go there too."""
    ahead = np.where(before == MIN_MS, 0, times - np.where(before == MIN_MS, times, before))
    leaps = np.maximum.reduceat(ahead, runs.starts)
    leaps[leaps < _LEAP_MS] = 0
    bounds = list(runs.bounds())
    for run in np.flatnonzero(leaps).tolist():
        start, end = bounds[run]
        place = start + int(np.argmax(ahead[start:end]))
        behind = times[place + 1 : min(place + 1 + _BEHIND_A_LEAP, end)]
        stayed = np.count_nonzero(behind < before[place] + leaps[run] // 2)
        if len(behind) < _FEW or stayed < 0.9 * len(behind):
            leaps[run] = 0
    found: list[int] = leaps.tolist()
    return found


def _behind(newest: Ints, times: Ints) -> Ints:
    """How far elements are out of order; 0 where they are not, or nothing came before."""
    return np.where(newest > times, newest - times, 0)
