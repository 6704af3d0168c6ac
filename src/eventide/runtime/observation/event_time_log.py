"""Memory of an operator for questions about its watermark and its late elements: results depend on none of it."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from eventide.common.ms import MIN_MS
from eventide.runtime.eventtime.valve import Holder
from eventide.runtime.observation.histograms import EIGHTHS, DurationHistogram, TimestampSummary

_MOVES = 64

_KEPT = 8

EVENT_TIME, LATE, NUMBERS = "event time", "late", "numbers"
"""The names of the values: the log of splits and of the watermark, what came too late, what was counted and is held."""

REMEMBERED = (EVENT_TIME, LATE, NUMBERS)

_FORM = 2


@dataclass(slots=True)
class SplitRecord:
    """A split as an operator has known it; times of the clock and of events are in milliseconds.

    Attributes:
        since: when it was first known, by the clock.
        heard: when it last had elements, by the clock; None if it never had.
        rows: how many elements it had.
        newest: the highest timestamp; the smallest number there is while there was none.
        behind: how far elements were older than the newest of their split before them.
        worst: how far an element was behind the watermark of the operator before its micro-batch; 0 for none.
        late: how many elements came when the operator takes none of their time any more; an estimate where there were
            many.
    """

    since: int
    heard: int | None = None
    rows: int = 0
    newest: int = MIN_MS
    behind: DurationHistogram = field(default_factory=lambda: DurationHistogram(EIGHTHS))
    worst: int = 0
    late: float = 0

    def take(self, summary: TimestampSummary, newest_before: int, watermark: int, late_until: int = MIN_MS) -> None:
        """Add what it brought in a micro-batch.

        What was ahead of the micro-batch was ahead of its first elements, and of all of them if none came up to it;
        between these two, the disorder of elements may be counted as less.
        """
        self.rows += summary.rows
        if newest_before == MIN_MS:
            self.behind.reach(summary.largest)
            newest_before = summary.first[0] if summary.first else summary.oldest
        else:
            self.behind.reach(max(summary.largest, newest_before - summary.oldest))
        if summary.first:
            first = np.array(summary.first, np.int64)
            self.behind.add(np.maximum(np.maximum.accumulate(first), newest_before) - first)
            self.behind.merge(summary.behind, max(newest_before - summary.newest, 0))
        self.newest = max(self.newest, summary.newest)
        if watermark != MIN_MS:
            self.worst = max(self.worst, watermark - summary.oldest)
        if late_until != MIN_MS:
            self.late += summary.until(late_until)

    def snapshot(self) -> list[Any]:
        """The log as JSON values."""
        return [self.since, self.heard, self.rows, self.newest, self.behind.snapshot(), self.worst, self.late]

    @classmethod
    def of(cls, snapshot: list[Any]) -> SplitRecord:
        """The inverse of :meth:`snapshot`."""
        since, heard, rows, newest, behind, worst, late = snapshot
        return cls(since, heard, rows, newest, DurationHistogram.of(behind), worst, late)


class EventTimeLog:
    """The splits before an operator, what became of those that ended, and how its watermark moved.

    Of the splits that are gone, ``ended`` has all as one by edge.
    ``moves`` are the last places of the watermark: the time by the clock, the watermark, and the holder there.
    ``holder`` is the present holder, and since when.

    Records are read when they are needed: of many splits, few may have elements in a micro-batch.
    """

    def __init__(self) -> None:
        self._stored: dict[str, dict[str, list[Any]]] = {}
        self._records: dict[tuple[str, str], SplitRecord] = {}
        self.ended: dict[str, SplitRecord] = {}
        self.ended_count: dict[str, int] = {}
        self.moves: list[tuple[int, int, Holder]] = []
        self.holder: tuple[Holder, int] | None = None

    @property
    def splits(self) -> dict[tuple[str, str], SplitRecord]:
        """The splits that are there, by the name of their edge and their own, in that order."""
        return {at: self._record(at) for at in sorted(self._there())}

    def _there(self) -> set[tuple[str, str]]:
        return {(edge, split) for edge, splits in self._stored.items() for split in splits} | self._records.keys()

    def _record(self, at: tuple[str, str]) -> SplitRecord:
        if at not in self._records:
            self._records[at] = SplitRecord.of(self._stored[at[0]][at[1]])
        return self._records[at]

    def end_batch(
        self,
        known: Iterable[tuple[str, str]],
        spoke: Iterable[tuple[str, str]],
        arrived: Iterable[tuple[str, str, TimestampSummary]],
        clock_ms: int,
        watermark_before: int,
        late_until: int = MIN_MS,
    ) -> None:
        """Take a micro-batch, after which the splits ``known`` count; those that ``spoke`` had elements.

        Several tasks may have read parts of one that ``arrived``. When the micro-batch began, ``watermark_before`` was
        the operator's watermark, and ``late_until`` the last event time of which it took no elements.
        """
        brought, heard = [*arrived], {*spoke}
        kept, there = {*known}, self._there()
        new = (kept | {(edge, split) for edge, split, _ in brought} | heard) - there
        self._records |= {at: SplitRecord(clock_ms) for at in new}
        for at in heard:
            self._record(at).heard = clock_ms
        before = {(edge, split): self._record((edge, split)).newest for edge, split, _ in brought}
        for edge, split, summary in brought:
            record = self._record((edge, split))
            record.heard = clock_ms
            record.take(summary, before[edge, split], watermark_before, late_until)
        for at in (there | new) - kept:
            self._end(at)

    def _end(self, at: tuple[str, str]) -> None:
        edge, record = at[0], self._record(at)
        del self._records[at]
        self._stored.get(edge, {}).pop(at[1], None)
        gone = self.ended.setdefault(edge, SplitRecord(record.since))
        self.ended_count[edge] = self.ended_count.get(edge, 0) + 1
        gone.heard = max((ms for ms in (gone.heard, record.heard) if ms is not None), default=None)
        gone.rows += record.rows
        gone.newest = max(gone.newest, record.newest)
        gone.behind.merge(record.behind)
        gone.worst = max(gone.worst, record.worst)
        gone.late += record.late

    def stand(self, clock_ms: int, watermark: int, holder: Holder | None) -> None:
        """Take note of where the watermark stands after a micro-batch, and of its holder."""
        if holder is None:
            self.holder = None
        elif self.holder is None or self.holder[0][:2] != holder[:2]:
            self.holder = holder, clock_ms
        else:
            self.holder = holder, self.holder[1]
        if holder is not None and (not self.moves or self.moves[-1][1] != watermark):
            self.moves = [*self.moves, (clock_ms, watermark, holder)][-_MOVES:]

    def snapshot(self) -> dict[str, Any]:
        """All that must survive a restart, as JSON values."""
        splits = {edge: {**of_edge} for edge, of_edge in self._stored.items()}
        for (edge, split), record in self._records.items():
            splits.setdefault(edge, {})[split] = record.snapshot()
        return {
            "splits": splits,
            "ended": [[edge, self.ended_count[edge], *record.snapshot()] for edge, record in self.ended.items()],
            "moves": self.moves,
            "holder": self.holder,
        }

    @classmethod
    def of(cls, snapshot: dict[str, Any]) -> EventTimeLog:
        """The inverse of :meth:`snapshot`."""
        log = cls()
        splits = snapshot["splits"]
        if isinstance(splits, list):  # of an earlier version
            log._records = {(edge, split): SplitRecord.of(rest) for edge, split, *rest in splits}
        else:
            log._stored = {edge: {**of_edge} for edge, of_edge in splits.items()}
        for edge, count, *rest in snapshot["ended"]:
            log.ended[edge], log.ended_count[edge] = SplitRecord.of(rest), count
        log.moves = [(clock, watermark, Holder(*holder)) for clock, watermark, holder in snapshot["moves"]]
        if snapshot["holder"] is not None:
            holder, since = snapshot["holder"]
            log.holder = Holder(*holder), since
        return log


class LateElement(NamedTuple):
    """A late element, or several that were summed up before they came: all times are in milliseconds.

    ``timestamp`` is the event time, of several the latest that one of them can have; ``watermark`` is the one that had
    passed them; ``clock`` is when that was.
    """

    timestamp: int
    watermark: int
    clock: int
    elements: int = 1


class Lateness:
    """Late elements of a subtask since its state began.

    >>> late = Lateness()
    >>> late.add([1_000, 4_000], 5_000, clock_ms=0)
    >>> late.behind.total, late.behind.longest_ms
    (2, 4000)
    """

    def __init__(self) -> None:
        self.behind = DurationHistogram(EIGHTHS)
        """How far the late elements were behind the watermark."""
        self.last: deque[LateElement] = deque(maxlen=_KEPT)
        """The last late elements, oldest first."""
        self.from_panes = False
        """Whether some had been summed up before they came, so that the end of their pane stands for their times."""

    def __bool__(self) -> bool:
        return bool(self.last)

    def add(self, timestamps: object, watermark: int, clock_ms: int, counts: Any = None) -> None:
        """Take late elements by their event times, or sums of several, each with its count."""
        times = np.asarray(timestamps, np.int64)
        if len(times) == 0:
            return
        self.behind.add(np.maximum(watermark - times, 0), counts)
        self.from_panes = self.from_panes or counts is not None
        for i in range(max(len(times) - _KEPT, 0), len(times)):
            self.last.append(LateElement(int(times[i]), watermark, clock_ms, 1 if counts is None else int(counts[i])))

    def take(self, other: Lateness) -> None:
        """Take all of another."""
        self.behind.merge(other.behind)
        self.from_panes = self.from_panes or other.from_panes
        self.last = deque(sorted([*self.last, *other.last], key=lambda one: one.clock), _KEPT)

    def snapshot(self) -> list[Any]:
        """All that must survive a restart, as JSON values."""
        return [self.behind.snapshot(), list(self.last), self.from_panes]

    @classmethod
    def of(cls, snapshot: list[Any]) -> Lateness:
        """The inverse of :meth:`snapshot`."""
        late = cls()
        behind, last, late.from_panes = snapshot
        late.behind = DurationHistogram.of(behind)
        late.last.extend(LateElement(*one) for one in last)
        return late


def formed(content: object) -> dict[str, Any]:
    """A value of JSON with the number of its form."""
    return {"form": _FORM, "content": content}


def in_form(found: object) -> Any:
    """The inverse of :func:`formed`; None, to start empty, if nothing is stored or a version used another form."""
    return found["content"] if isinstance(found, dict) and found.get("form") == _FORM else None


def stored(content: object) -> bytes:
    """A value as it is stored, of JSON values."""
    return json.dumps(formed(content)).encode()


def remembered(value: bytes | None) -> Any:
    """The inverse of :func:`stored`; None if nothing is in this form.

    >>> remembered(stored([1, 2])), remembered(b"[1, 2]"), remembered(None)
    ([1, 2], None, None)
    """
    return None if value is None else in_form(json.loads(value))
