"""The positions of sources, and the ranges that the next micro-batch reads: plain values, planned beside the driver.

A split that has been read stays known for as long as its source names it, and every micro-batch says so again. Spark
keeps the offsets of a micro-batch several times: in its log, in each report of progress, and on the way to the planner.
So they are logged with the time of their micro-batch, and as compressed columns where there are many parts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from heapq import heappop, heappush, nlargest
from typing import Any, TypeAlias

from eventide.api.source import PartRange, Source
from eventide.common.checksum import checksum_of
from eventide.errors import StateError
from eventide.runtime.compact import as_compact_text, from_compact_text
from eventide.runtime.exchange.rest import Rest
from eventide.runtime.sources.alignment import (
    AlignmentStanding,
    Facts,
    SourceAlignment,
    planned_together,
    rest_of,
    with_rests,
)

Offsets: TypeAlias = dict[str, dict[str, Any]]
"""Where a source stands: for each part of it (most often, a split) its ``start``, the ``position`` that has been
reached, whether it has ``ended``, and the ``audience`` that knows; and its ``stop`` and ``identity``, if it has them,
and, with watermark alignment, whether it has to ``rest``. Empty before the first micro-batch.

A beginning is asked for once, when a part is first seen, and then is in the checkpoint with the end of that
micro-batch: if it is repeated, it reads what it read before, although a start, or a stop, may be "now".

A job that begins from a savepoint finds its parts ``restored``: all of its splits are named in the first micro-batch,
so that every subtask runs, also if there is nothing to read.

That a split has joined, or that something has ended, is said once. An operator that a changed program has beside the
old ones has not heard it, and would not wait for the split, or would wait for ever. So both are said again to another
audience, in a micro-batch of its own if need be.
"""

_RESTORED = "restored"

_FEW = 100
"""Number of parts that stay legible: of those that have ended, and of the others."""
_TOLD = 200
"""Number of splits of a source whose pending elements are told one by one, in each report of Spark."""
_ENDED, _OPEN = "\0ended", "\0open"
_CLOCK = "\0clock"
"""Names that no part has."""


@dataclass(frozen=True, slots=True)
class SplitRange:
    """Range of one split that one micro-batch reads, part by part; ``ended`` says that nothing comes after it.

    A split that is gone has ended, and nothing of it is read. ``lost`` counts the parts that are gone and had not been
    read to their end. One that has ``joined`` is new, perhaps only to some listeners, and holds the watermark from now
    on, also if nothing is read.
    ``rest`` says how it is treated from now on, where that has changed: see `Rest`.
    """

    split: str
    parts: tuple[PartRange, ...]
    ended: bool
    lost: int = 0
    joined: bool = False
    rest: str | None = None

    @staticmethod
    def of(split: str, parts: Iterable[Sequence[Any]], *others: Any) -> SplitRange:
        """The range of the values that ``dataclasses.astuple`` has of one, in lists or tuples."""
        return SplitRange(split, tuple(PartRange(*part) for part in parts), *others)

    @property
    def length(self) -> int:
        """Number of positions in the range; a measure of the work."""
        return sum(part.end - part.start for part in self.parts)


@dataclass(frozen=True, slots=True)
class PlannedSource:
    """A source as a process sees it that plans micro-batches, and runs nothing of what comes after it; picklable.

    With ``alignment``, its splits wait for those of others. The folder ``reached_in`` says where operators stand that
    tell its tasks; None if none does.
    """

    name: str
    source: Source
    alignment: SourceAlignment | None
    reached_in: str | None = None

    def standing(self, facts: Facts) -> AlignmentStanding | None:
        """Where the source stands among others, by what the last micro-batch has reached; None if it does not wait."""
        return None if self.alignment is None else AlignmentStanding(self.alignment, self.name, facts)


def restored(offsets: Offsets) -> Offsets:
    """Return the first offsets of a source that continues another job's; nothing of them has been reported here."""
    kept = {"start", "position", "ended", "stop", "identity"}
    return {
        part: {**{what: value for what, value in at.items() if what in kept}, _RESTORED: True}
        for part, at in offsets.items()
    }


def next_offsets(
    source: Source,
    start: Offsets,
    max_rows: int | None,
    target: Mapping[str, int] | None = None,
    audience: str = "",
    standing: AlignmentStanding | None = None,
) -> Offsets:
    """Where the next micro-batch ends; ``start`` itself if there is nothing to do.

    There is something to do where there is something to read, where a part is new, so that its start is kept, where it
    has to be said that one is gone, and where the audience is another. Where it need not be said that a part is gone,
    it is forgotten with the next micro-batch.

    Args:
        source: the source.
        start: where it stands.
        max_rows: how many rows to read at most.
        target: the positions after which nothing is read; a part that is missing here and in ``start`` is left for
            later. What has a stop of its own is read up to that.
        audience: a name for the listeners.
        standing: where the source and its group stand, if it waits for others. What follows from that is in the answer,
            so that a micro-batch that is run again reads what it read before.
    """
    known = {part: None if at["ended"] else at["position"] for part, at in start.items()}
    named = [part for part in source.parts(known) if target is None or part in target or part in start]
    begun = _beginnings(source, [part for part in named if part not in start])
    now = {part: _told(start.get(part) or begun[part], audience) for part in named}
    unread = {part: at["position"] for part, at in now.items() if not at["ended"]}
    limit_of = {part: at["stop"] if "stop" in at else (target or {}).get(part) for part, at in now.items()}
    planned = (
        source.next_positions(unread, max_rows)
        if standing is None
        else planned_together(source, standing, now, limit_of, max_rows)
    )
    end = dict(now)
    for part, position in planned.items():
        at, limit = now[part], limit_of[part]
        reached = max(at["position"], position if limit is None else min(position, limit))
        ended = reached >= at["stop"] if "stop" in at else source.has_ended(part, reached)
        end[part] = {**at, "position": reached, "ended": ended}
    while all(at["ended"] for at in end.values()):
        following = [part for part in source.following(end) if target is None or part in target]
        if not following:
            break
        new = {part: _told(at, audience) for part, at in _beginnings(source, following).items()}
        now, end = now | new, end | new
    end = with_rests(source, standing, now, end, target)
    rests = all(start.get(part) == at for part, at in end.items())
    return start if rests and (len(start) == len(end) or not ranges_between(source, start, end)) else end


def deferred(start: Offsets, end: Offsets) -> Offsets:
    """Return the end of a micro-batch that reads nothing, in place of one that was planned up to ``end``.

    All that was found out when it was planned stays known, such as where new parts begin, so that the micro-batches
    after it read exactly what it would have read.

    >>> new = {"start": 3, "position": 9, "ended": True, "audience": "", "stop": 9}
    >>> deferred({}, {"a": new}) == {"a": {**new, "position": 3, "ended": False}}
    True
    """
    nothing: Offsets = {}
    for part, at in end.items():
        before = start.get(part, {"position": at["start"]})
        nothing[part] = at
        if at["position"] != before["position"]:
            kept = {name: value for name, value in at.items() if name != "rest"}
            rest = {"rest": before["rest"]} if "rest" in before else {}
            nothing[part] = {**kept, **rest, "position": before["position"], "ended": False}
    return nothing


def everything(source: Source, audience: str = "") -> Offsets:
    """Return the offsets of a source after all that it has now.

    A part that the source no longer names after it has been read stays: all is read in one micro-batch.
    """
    end: Offsets = {}
    # What never ends, and never rests, would give ever more.
    now = None if source.is_bounded() else source.latest_positions()
    while (further := end | next_offsets(source, end, None, now, audience)) != end:
        end = further
    return end


def pending_records(source: Source, offsets: Offsets, is_limited: bool) -> dict[str, int] | None:
    """Return how many elements each split has beyond some offsets, which a micro-batch reaches; None if not known.

    Splits that have ended are missing.

    Args:
        source: the source.
        offsets: where the micro-batch ends.
        is_limited: whether it may have left something that was there.
    """
    positions = {part: at["position"] for part, at in offsets.items() if not at["ended"]}
    try:
        found = source.pending_records(positions, is_limited)
    except Exception:  # a metric: if the source cannot be read, that is found out when it is
        return None
    if found is None:
        return None
    pending: dict[str, int] = {}
    for part in positions:
        split = source.split_of(part)
        pending[split] = pending.get(split, 0) + found.get(part, 0)
    return pending


def furthest_behind(pending: Mapping[str, int]) -> dict[str, int]:
    """Return the splits in which most elements wait, the first with most; of many, only 200.

    >>> furthest_behind({"0": 3, "1": 8, "2": 0})
    {'1': 8, '0': 3, '2': 0}
    """
    return dict(nlargest(_TOLD, pending.items(), key=lambda of_split: of_split[1]))


def identities(offsets: Offsets) -> dict[str, str]:
    """Return what tells the parts of a source from others of their names, where something does."""
    return {part: at["identity"] for part, at in offsets.items() if "identity" in at}


def ranges_between(source: Source, start: Offsets, end: Offsets) -> list[SplitRange]:
    """Return the ranges between two offsets, split by split; one that merely ends, or has joined, is empty.

    Of the parts of one split, what was begun comes first, the others follow in the order of their names.
    """
    still_open = _open_splits(source, end)
    heard = _splits(source, start)
    joined = source.joining(_splits(source, end) - (heard - still_open if _hear_others(start, end) else heard))
    moved: dict[str, list[tuple[bool, str, PartRange]]] = {}
    for part, at in end.items():
        before = start.get(part) or {"start": at["start"], "position": at["start"], "ended": False}
        if at["position"] != before["position"] or (at["ended"] and not _is_known(before, at)):
            is_new = before["position"] == before["start"]
            way = PartRange(part, before["position"], at["position"])
            moved.setdefault(source.split_of(part), []).append((is_new, part, way))
    lost = Counter(source.split_of(part) for part, at in start.items() if part not in end and not at["ended"])
    closed = _open_splits(source, start) - still_open
    rests = {source.split_of(part): str(Rest.NONE) for part, at in start.items() if _RESTORED in at}
    rests |= _new_rests(source, start, end)
    ranges = []
    for split in [*moved, *sorted((closed | lost.keys() | joined | rests.keys()) - moved.keys())]:
        ways = tuple(way for _, _, way in sorted(moved.get(split, []), key=lambda entry: entry[:2]))
        ended = split not in still_open
        ranges.append(SplitRange(split, ways, ended, lost[split], split in joined, rests.get(split)))
    return ranges


def dealt_out(ranges: Sequence[SplitRange], count: int) -> list[list[SplitRange]]:
    """Deal whole splits out to `count` tasks, so that the work is even: the longest first, to the idlest task."""
    tasks: list[list[SplitRange]] = [[] for _ in range(count)]
    loads = [(0, place) for place in range(count)]
    for part in sorted(ranges, key=lambda part: (-part.length, part.split)):
        load, place = heappop(loads)
        tasks[place].append(part)
        heappush(loads, (load + max(1, part.length), place))
    return tasks


def source_ends(source: Source, start: Offsets, end: Offsets) -> bool:
    """Whether the whole source ends between two offsets; one that has not found anything yet does not."""
    done = source.may_end() and bool(end) and all(at["ended"] for at in end.values())
    return done and not (start and all(part in start and _is_known(start[part], at) for part, at in end.items()))


def packed(offsets: Offsets, clock_ms: int | None = None) -> dict[str, Any]:
    r"""Return offsets for the log. Those of many parts are compressed: some ten bytes for each part, not a hundred.

    Parts that have ended are compressed apart from the others, as they stay as they are.

    Args:
        offsets: where the source stands after a micro-batch.
        clock_ms: the time of that micro-batch by the clock, in milliseconds since the epoch. It is logged with the
            offsets, so that a micro-batch that is run again has the same time. None if there is no micro-batch.

    >>> offsets = {f"file-{n:03}": {"start": 0, "position": n, "ended": n < 500} for n in range(501)}
    >>> sorted(packed(offsets))
    ['\x00ended', 'file-500']
    >>> unpacked(packed(offsets)) == offsets
    True
    >>> clock_of(packed(offsets, clock_ms=1_000))
    1000
    """
    logged: dict[str, Any] = {}
    for name, has_ended in ((_ENDED, True), (_OPEN, False)):
        parts = {part: at for part, at in offsets.items() if bool(at["ended"]) == has_ended}
        logged |= parts if len(parts) <= _FEW else {name: {"content": _compressed(parts)}}
    if clock_ms is None:
        return logged
    return {**logged, _CLOCK: {"ms": clock_ms, "checksum": checksum_of({**logged, _CLOCK: clock_ms})}}


def clock_of(logged: Mapping[str, Any]) -> int | None:
    """Return the time of the micro-batch that ends at these offsets, in milliseconds; None if none was logged."""
    return logged[_CLOCK]["ms"] if _CLOCK in logged else None


def unpacked(logged: Mapping[str, Any]) -> dict[str, Any]:
    """Return the offsets that were given to :func:`packed`; offsets of another kind are returned as they are.

    Raises:
        StateError: if they are damaged.
    """
    checksums = {name: at for name, at in logged.items() if isinstance(at, dict) and "checksum" in at}
    for name, at in checksums.items():
        if name != _CLOCK or at["checksum"] != checksum_of({**logged, _CLOCK: at.get("ms")}):
            raise StateError(
                "the offsets of a source in Spark's log, in the folder offsets of the checkpoint, are not as they were "
                "written; put a copy of that folder back, or start the job with a new checkpoint location, from a "
                "savepoint if there is one"
            )
    offsets = {part: at for part, at in logged.items() if part not in {_CLOCK, _ENDED, _OPEN}}
    for name in (_ENDED, _OPEN):
        if name in logged:
            offsets |= _decompressed(logged[name]["content"])
    return offsets


def _compressed(parts: Offsets) -> str:
    """Return parts as text: their names, and a column for each fact, with None where a part lacks it."""
    names = sorted(parts)
    facts = sorted({what for at in parts.values() for what in at})
    columns = {what: [parts[name].get(what) for name in names] for what in facts}
    return as_compact_text({"parts": names, "facts": columns})


@lru_cache(maxsize=4)  # the end of a micro-batch is unpacked three times: to plan it, and to plan the next one
def _decompressed(content: str) -> Offsets:
    """Return the parts that were given to :func:`_compressed`; the caller changes none of it."""
    found = from_compact_text(content)
    if isinstance(found, list):
        return dict(found)  # of an earlier version: pairs of a name and its facts
    facts = [*found["facts"]]
    rows = zip(*found["facts"].values(), strict=True)
    return {
        part: {what: value for what, value in zip(facts, row, strict=True) if value is not None}
        for part, row in zip(found["parts"], rows, strict=True)
    }


def _new_rests(source: Source, start: Offsets, end: Offsets) -> dict[str, str]:
    """The splits that are treated in another way from now on, or of which others hear now."""
    before, after = rest_of(source, start), rest_of(source, end)
    if not before and not after:
        return {}
    told = {} if _hear_others(start, end) else before
    gone = dict.fromkeys(before.keys() - after.keys(), Rest.NONE)
    return {split: str(rest) for split, rest in {**gone, **after}.items() if told.get(split, Rest.NONE) != rest}


def _splits(source: Source, offsets: Offsets) -> set[str]:
    return {source.split_of(part) for part in offsets}


def _open_splits(source: Source, offsets: Offsets) -> set[str]:
    """The splits that have not ended: something is unread, or one more part of it may appear."""
    split_of = {part: source.split_of(part) for part in offsets}
    return {
        split
        for part, split in split_of.items()
        if not offsets[part]["ended"] or (part != split and source.may_grow(split))
    }


def _told(at: dict[str, Any], audience: str) -> dict[str, Any]:
    """Return the facts about a part that are kept after a micro-batch that an audience hears; most stay as they are."""
    if at.get("audience") == audience and _RESTORED not in at:
        return at
    return {**{what: value for what, value in at.items() if what != _RESTORED}, "audience": audience}


def _is_known(before: Mapping[str, Any], at: Mapping[str, Any]) -> bool:
    """Whether the listeners know already that a part has ended."""
    return before["ended"] and before.get("audience") == at.get("audience")


def _hear_others(start: Offsets, end: Offsets) -> bool:
    """Whether others hear of a micro-batch than of the one before."""
    return len({at.get("audience") for offsets in (start, end) for at in offsets.values()}) > 1


def _beginnings(source: Source, parts: Sequence[str]) -> Offsets:
    found: Offsets = {}
    for part, at in (source.beginnings(parts) if parts else {}).items():
        found[part] = {"start": at.start, "position": at.start, "ended": at.stop is not None and at.start >= at.stop}
        known = {"stop": at.stop, "identity": at.identity}
        found[part] |= {name: value for name, value in known.items() if value is not None}
    return found
