"""Sources that wait for each other: which splits are held, by Flink's rule, and how far others are planned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from eventide.api.source import Source
from eventide.common.ms import MAX_MS, add_ms
from eventide.runtime.exchange.rest import Rest

Facts: TypeAlias = Mapping[str, Mapping[str, Any]]
"""Facts about aligned sources after a micro-batch, by their names, as JSON values.

``splits`` has the watermark of each split that counts and has one, ``idle`` names those that do not count, ``done``
those of which nothing more is read in this run; ``ended`` says that the source has. Where splits come and go, as files
do, ``reached`` is how far the source as a whole has come, if it counts: a split without a watermark stands there.
"""

_REST = "rest"

_LEAST_STEP_MS = 1_000
_GROWTH = 4
_HALVINGS = 4


@dataclass(frozen=True, slots=True)
class ByTime:
    """How positions follow from event time: a watermark is the highest timestamp of its split minus ``lag_ms``.

    ``column`` has the timestamps; None if they are those that the source itself gives.
    """

    lag_ms: int
    column: str | None = None


@dataclass(frozen=True, slots=True)
class SourceAlignment:
    """Settings of a source that waits for others.

    Attributes:
        group: the name of its group.
        drift_ms: how far a split may be ahead of the lowest watermark of the group.
        members: the names of all sources of the group, its own among them.
        by_time: how its positions follow from event time, where they do.
        storage: where a host keeps the facts; None if it is not known, or needs none.
    """

    group: str
    drift_ms: int
    members: tuple[str, ...]
    by_time: ByTime | None = None
    storage: str | None = None


class AlignmentStanding:
    """Where a source and its group stand.

    The watermark of a group is the lowest of all splits of all its sources. Splits that are idle or have ended hold no
    other, and splits without a watermark say nothing. A split is held if its watermark is above that plus the drift;
    one that is idle never is. Flink: ``SourceCoordinator.announceCombinedWatermark`` and
    ``SourceOperator.checkSplitWatermarkAlignment``.

    >>> alignment = SourceAlignment("trips", 100, members=("taxis", "buses"))
    >>> facts = {"taxis": {"splits": {"a": 10, "b": 150}}, "buses": {"splits": {"c": 40}}}
    >>> standing = AlignmentStanding(alignment, "taxis", facts)
    >>> standing.allowed_ms, standing.is_held("a"), standing.is_held("b")
    (110, False, True)
    """

    def __init__(self, alignment: SourceAlignment, source: str, facts: Facts) -> None:
        self.alignment = alignment
        self.is_unheard = not facts
        own = facts.get(source, {})
        self._watermarks: Mapping[str, int] = own.get("splits", {})
        self._idle = frozenset(own.get("idle", ()))
        self._reached: int | None = own.get("reached")
        others = [lowest(facts[name]) for name in alignment.members if name in facts and name != source]
        self._others_ms = min((ms for ms in others if ms is not None), default=None)
        known = [ms for ms in (lowest(own), self._others_ms) if ms is not None]
        self.lowest_ms = min(known, default=None)
        self.allowed_ms = self._plus_drift(self.lowest_ms)

    @property
    def allowed_by_others_ms(self) -> int | None:
        """How far the other sources of the group let this one go; None if they say nothing."""
        return self._plus_drift(self._others_ms)

    def watermark_of(self, split: str) -> int | None:
        """Where a split stands; None if that is not known, or does not count."""
        return None if split in self._idle else self._watermarks.get(split, self._reached)

    def knows(self, split: str) -> bool:
        """Whether a split has spoken."""
        return split in self._watermarks or split in self._idle

    def is_held(self, split: str) -> bool:
        """Whether a split must wait."""
        watermark = self.watermark_of(split)
        return watermark is not None and self.allowed_ms is not None and watermark > self.allowed_ms

    def _plus_drift(self, watermark_ms: int | None) -> int | None:
        return None if watermark_ms is None else add_ms(watermark_ms, self.alignment.drift_ms)


def lowest(source: Mapping[str, Any]) -> int | None:
    """The lowest watermark of the splits of a source that count; None if no other has to wait for it."""
    if source.get("ended"):
        return None
    done = source.get("done", ())
    counting = [ms for split, ms in source.get("splits", {}).items() if split not in done]
    return min(counting, default=source.get("reached"))


def planned_together(
    source: Source,
    standing: AlignmentStanding,
    now: Mapping[str, Mapping[str, Any]],
    limit_of: Mapping[str, int | None],
    max_rows: int | None,
) -> dict[str, int]:
    """Ends of the parts that need not wait: at one time, if the source knows about time; else one by one.

    A split that nothing was read of gives its first row: from that it is known where it stands. Before the first
    micro-batch on a checkpoint has ended, that is each split, because the job may begin with a savepoint. ``now`` says
    where the parts stand, and ``limit_of`` which position must not be passed in each; None for none.
    """
    unread = {part: at["position"] for part, at in now.items() if not at["ended"]}
    split_of = {part: source.split_of(part) for part in unread}
    read = [part for part in unread if now[part]["position"] != now[part]["start"]]
    begun = set() if standing.is_unheard else {split_of[part] for part in read}
    new = {
        part: position
        for part, position in unread.items()
        if split_of[part] not in begun and standing.watermark_of(split_of[part]) is None
    }
    first = source.next_positions(new, 1) if new else {}
    unread = {part: position for part, position in unread.items() if part not in new}
    by_time = standing.alignment.by_time
    if by_time is not None:
        level = AlignmentPlanner(source, standing, by_time, split_of, limit_of, unread).plan(max_rows)
        if level is not None:
            return {**first, **level}
    free = {part: position for part, position in unread.items() if not standing.is_held(split_of[part])}
    return {**first, **source.next_positions(free, max_rows)} if free else first


def with_rests(
    source: Source,
    standing: AlignmentStanding | None,
    now: Mapping[str, Mapping[str, Any]],
    end: dict[str, dict[str, Any]],
    target: Mapping[str, int] | None,
) -> dict[str, dict[str, Any]]:
    """The offsets at the end of a micro-batch, with what has to rest; nothing has, where the source does not wait.

    A part is held if it might be read further, and is not. Where a run ends with what was there at its start, all that
    it has read is done: no other waits for it.
    """

    def is_read(part: str) -> bool:
        return end[part]["ended"] or (target is not None and end[part]["position"] >= target.get(part, 0))

    if standing is None and not any(_REST in at for at in end.values()):
        return end
    is_over = target is not None and all(map(is_read, end))
    rested: dict[str, dict[str, Any]] = {}
    for part, at in end.items():
        split, moves = source.split_of(part), at["position"] != now[part]["position"]
        rested[part] = {what: value for what, value in at.items() if what != _REST or now[part]["ended"]}
        if standing is None:
            continue
        if target is not None and is_read(part) and (not at["ended"] or (is_over and moves)):
            rested[part][_REST] = Rest.DONE.value
        elif not at["ended"] and not moves and standing.knows(split) and standing.is_held(split):
            rested[part][_REST] = Rest.HELD.value
    return rested


def rest_of(source: Source, offsets: Mapping[str, Mapping[str, Any]]) -> dict[str, Rest]:
    """The splits that rest: held with any part of theirs, done with all."""
    if not any(_REST in at for at in offsets.values()):
        return {}
    rests: dict[str, set[str]] = {}
    for part, at in offsets.items():
        if not at["ended"] or _REST in at:
            rests.setdefault(source.split_of(part), set()).add(at.get(_REST, Rest.NONE.value))
    held = {split: Rest.HELD for split, some in rests.items() if Rest.HELD.value in some}
    return held | {split: Rest.DONE for split, some in rests.items() if some == {Rest.DONE.value}}


class AlignmentPlanner:
    """Plans the parts of a source up to one time, and each of their splits by one row further.

    The one row is what brings the watermark of every split over that time, so that all before it is complete, and no
    split stands still at a gap. What is allowed is always good enough as that time. It may be later, as long as no
    split runs out of rows before it that may have more one day: then all have passed it, and are as near to each other
    as their rows let them. Only what other sources allow is never passed.

    ``unread`` are the parts that have not ended, with their positions.
    """

    def __init__(
        self,
        source: Source,
        standing: AlignmentStanding,
        by_time: ByTime,
        split_of: Mapping[str, str],
        limit_of: Mapping[str, int | None],
        unread: Mapping[str, int],
    ) -> None:
        self._source = source
        self._standing = standing
        self._by_time = by_time
        self._split_of = split_of
        self._limit_of = limit_of
        self._unread = unread
        self._found: dict[int, dict[str, int] | None] = {}
        self._ends: dict[str, int] = {}

    def plan(self, max_rows: int | None) -> dict[str, int] | None:
        """Where the next micro-batch ends, in those parts that it reads something of.

        It has at most ``max_rows`` and one row of each split. None, if the source cannot say what comes before a time,
        or nothing is known of any split.
        """
        unread = self._unread
        times = {split: self._time_of(split) for split in {self._split_of[part] for part in unread}}
        known = [ms for ms in times.values() if ms is not None]
        if not known or self._standing.allowed_ms is None:
            return None
        sure = add_ms(self._standing.allowed_ms, self._by_time.lag_ms)
        begun = self._positions(sure)
        if begun is None:
            return None
        splits = {self._split_of[part] for part in begun}
        budget = None if max_rows is None else max(1, max_rows - len(splits))
        level = self._latest(min(known), sure, budget)
        planned = {} if level == min(known) else self._up_to(level, sure, times)
        moves = any(position != unread[part] for part, position in planned.items())
        return planned if moves else self._shared_out(sure, budget)

    def _up_to(self, level: int, sure: int, times: Mapping[str, int | None]) -> dict[str, int]:
        """All splits up to one time, and those that stood before it by one row further."""
        # A split at the allowed time is read, as by the rule.
        before = add_ms(level, 1) if level == sure else level
        # One that does not count is read like those that have still to come there.
        highest = {part: times[self._split_of[part]] for part in self._unread}
        behind = {part: at for part, at in self._unread.items() if (ms := highest[part]) is None or ms < before}
        planned = {part: reached for part in self._unread if (reached := self._reached(part, level)) is not None}
        return self._with_one_more(planned, behind)

    def _shared_out(self, sure: int, budget: int | None) -> dict[str, int]:
        """Plan up to the allowed time, where not even the oldest rows have room: each split gets a share."""
        free = {part: at for part, at in self._unread.items() if not self._standing.is_held(self._split_of[part])}
        limited = self._source.next_positions(free, budget) if free else {}
        planned = {part: min(at, self._reached(part, sure) or free[part]) for part, at in limited.items()}
        return self._with_one_more(planned, free)

    def _with_one_more(self, planned: dict[str, int], parts: Mapping[str, int]) -> dict[str, int]:
        """Add one row for some parts to the plan; a part that is not yet begun is named only if that begins it."""
        further = {part: planned.get(part, at) for part, at in parts.items()}
        return {**planned, **(self._source.next_positions(further, 1) if further else {})}

    def _time_of(self, split: str) -> int | None:
        """The highest timestamp of a split; None if that is not known, or does not count."""
        watermark = self._standing.watermark_of(split)
        return None if watermark is None else add_ms(watermark, self._by_time.lag_ms)

    def _latest(self, oldest: int, sure: int, budget: int | None) -> int:
        """The latest time that fits, as far as few questions tell; the oldest of all if none does."""
        good, bad = oldest, sure
        last = self._last_of_all(sure)
        if self._fits(sure, sure, budget):
            good, step = sure, max(sure - oldest, _LEAST_STEP_MS)
            while good < last:
                step = min(step * _GROWTH, MAX_MS)
                bad = min(last, add_ms(oldest, step))
                if not self._fits(bad, sure, budget):
                    break
                good = bad
                if self._is_all(good):
                    return good
            else:
                return good
        for _ in range(_HALVINGS):
            middle = good + (bad - good) // 2
            if self._fits(middle, sure, budget):
                good = middle
            else:
                bad = middle
        return good

    def _last_of_all(self, sure: int) -> int:
        """The time that must not be passed, which follows from the other sources."""
        allowed = self._standing.allowed_by_others_ms
        return MAX_MS if allowed is None else max(sure, add_ms(allowed, self._by_time.lag_ms))

    def _fits(self, time_ms: int, sure: int, budget: int | None) -> bool:
        """Whether there is room for all rows up to a time, and no split ends before it, unless it is sure."""
        rows = 0
        goes_on: dict[str, bool] = {}
        for part, position in self._unread.items():
            reached, split = self._reached(part, time_ms), self._split_of[part]
            rows += 0 if reached is None else self._source.rows_between(part, position, reached)
            more = reached is None or time_ms <= sure or reached < self._ends[part] or self._is_over(part, reached)
            goes_on[split] = goes_on.get(split, False) or more
        stopped = [self._time_of(split) for split, is_more in goes_on.items() if not is_more]
        return (budget is None or rows <= budget) and all(ms is None or ms >= time_ms for ms in stopped)

    def _is_over(self, part: str, position: int) -> bool:
        """Whether the split of a part has nothing after a position in it, so that no other waits for it then."""
        limit, split = self._limit_of[part], self._split_of[part]
        may_grow = split != part and self._source.may_grow(split)
        is_at_limit = limit is not None and position >= limit
        return is_at_limit or (not may_grow and self._source.has_ended(part, position))

    def _is_all(self, time_ms: int) -> bool:
        """Whether reading up to a time reads all that is unread."""
        reached = ((part, self._reached(part, time_ms)) for part in self._unread)
        return all(position is not None and position == self._ends[part] for part, position in reached)

    def _positions(self, time_ms: int) -> dict[str, int] | None:
        if time_ms not in self._found:
            found = self._source.positions_at(time_ms, self._unread, self._by_time.column)
            self._found[time_ms] = found
            new = (found or {}).keys() - self._ends.keys()
            for part, end in (self._source.ends(new) if new else {}).items():
                limit = self._limit_of[part]
                self._ends[part] = end if limit is None else min(limit, end)
        return self._found[time_ms]

    def _reached(self, part: str, time_ms: int) -> int | None:
        """The position of a part before what is later; None for one that is not to be begun yet."""
        position = (self._positions(time_ms) or {}).get(part)
        return None if position is None else max(self._unread[part], min(position, self._ends[part]))
