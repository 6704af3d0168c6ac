"""Splits that are planned to one time: where a source finds positions by event time, no split runs ahead at all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from eventide.api.source import Source
from eventide.common.ms import MAX_MS, add_ms
from eventide.runtime.sources.alignment import AlignmentStanding, ByTime

_LEAST_STEP_MS = 1_000
_GROWTH = 4
_HALVINGS = 4


class Leveling:
    """Plans the parts of a source up to one time, and each of their splits by one row further.

    The one row is what brings the watermark of every split over that time, so that all before it is complete, and no
    split stands still at a gap. What is allowed is always good enough as that time. It may be later, as long as no
    split runs out of rows before it that may have more one day: then all have passed it, and are as near to each other
    as their rows let them. Only what other sources allow is never passed.

    Args:
        source: the source.
        standing: where it stands.
        by_time: how its positions follow from event time.
        split_of: the split of each part.
        ends_of: gives the positions that parts may be read up to.
        is_over: whether a split has nothing after a position of one of its parts, so that no other waits for it then.
    """

    def __init__(
        self,
        source: Source,
        standing: AlignmentStanding,
        by_time: ByTime,
        split_of: Mapping[str, str],
        ends_of: Callable[[Collection[str]], Mapping[str, int]],
        is_over: Callable[[str, int], bool],
    ) -> None:
        self._source = source
        self._standing = standing
        self._by_time = by_time
        self._split_of = split_of
        self._ends_of = ends_of
        self._is_over = is_over
        self._found: dict[int, dict[str, int] | None] = {}
        self._ends: dict[str, int] = {}
        self._unread: Mapping[str, int] = {}

    def plan(self, unread: Mapping[str, int], max_rows: int | None) -> dict[str, int] | None:
        """Where the next micro-batch ends, in those parts that it reads something of.

        Args:
            unread: the parts that have not ended, with their positions.
            max_rows: how many rows to read at most, but for one of each split.

        Returns:
            None, if the source cannot say what comes before a time, or nothing is known of any split.
        """
        self._unread = unread
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
        behind = {part: at for part, at in self._unread.items() if _is_before(times[self._split_of[part]], before)}
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
        """The time that must not be passed: what other sources allow."""
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

    def _is_all(self, time_ms: int) -> bool:
        """Whether nothing is left behind a time."""
        reached = ((part, self._reached(part, time_ms)) for part in self._unread)
        return all(position is not None and position == self._ends[part] for part, position in reached)

    def _positions(self, time_ms: int) -> dict[str, int] | None:
        if time_ms not in self._found:
            found = self._source.positions_at(time_ms, self._unread, self._by_time.column)
            self._found[time_ms] = found
            if new := (found or {}).keys() - self._ends.keys():
                self._ends.update(self._ends_of(new))
        return self._found[time_ms]

    def _reached(self, part: str, time_ms: int) -> int | None:
        """The position of a part before what is later; None for one that is not to be begun yet."""
        position = (self._positions(time_ms) or {}).get(part)
        return None if position is None else max(self._unread[part], min(position, self._ends[part]))


def _is_before(split_ms: int | None, time_ms: int) -> bool:
    """Whether a split has still to come to a time; one that does not count is read like those that have."""
    return split_ms is None or split_ms < time_ms
