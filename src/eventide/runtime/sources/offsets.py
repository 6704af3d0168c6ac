"""Where sources stand, and what the next micro-batch reads of them: plain values, planned beside the driver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, TypeAlias

from eventide.datastream.connectors.source import Source

Offsets: TypeAlias = dict[str, dict[str, Any]]
"""Where a source stands: for each part of it (most often, a split) its ``position``, and whether it has ``ended``."""


@dataclass(frozen=True, slots=True)
class PartRange:
    """What is read of one part: from position ``start`` up to, not including, ``end``."""

    part: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class SplitRange:
    """What one micro-batch reads of one split, part by part; ``ended`` says that nothing comes behind it."""

    split: str
    parts: tuple[PartRange, ...]
    ended: bool

    @property
    def length(self) -> int:
        """How far it goes, in the positions of its source; a measure of the work."""
        return sum(part.end - part.start for part in self.parts)


def initial_offsets(source: Source) -> Offsets:
    """Where a source stands before its first micro-batch."""
    return {part: _beginning(source, part) for part in source.parts({})}


def next_offsets(
    source: Source, start: Offsets, max_rows: int | None, target: Mapping[str, int] | None = None
) -> Offsets:
    """Where the next micro-batch ends; equal to ``start`` if there is nothing to do.

    Args:
        source: the source.
        start: where it stands.
        max_rows: how many rows to read at most.
        target: the positions behind which nothing is read; what is neither here nor in ``start`` is not begun.
    """
    known = {part: None if at["ended"] else at["position"] for part, at in start.items()}
    named = [part for part in source.parts(known) if target is None or part in target or part in start]
    now = {part: start.get(part) or _beginning(source, part) for part in named}
    planned = source.next_positions({part: at["position"] for part, at in now.items() if not at["ended"]}, max_rows)
    if target is not None:
        planned = {part: min(position, target.get(part, position)) for part, position in planned.items()}
    ends = {part: {"position": at, "ended": source.has_ended(part, at)} for part, at in planned.items()}
    if all(now[part] == end for part, end in ends.items()):
        return start
    in_progress = {part: at for part, at in start.items() if not at["ended"] and at != _beginning(source, part)}
    return in_progress | now | ends


def everything(source: Source) -> Offsets:
    """Where a source stands behind all that it has now."""
    end = initial_offsets(source)
    now = {part: source.latest_position(part) for part in end}  # what never rests would give more again and again
    while (further := next_offsets(source, end, None, now)) != end:
        end = further
    return end


def ranges_between(source: Source, start: Offsets, end: Offsets) -> list[SplitRange]:
    """What is read between two offsets, split by split; a split that merely ends has an empty range.

    A part that is new since ``start`` begins at its initial position. Of the parts of one split, what was begun comes
    first, the others follow in the order of their names.
    """
    moved: dict[str, list[tuple[bool, str, PartRange]]] = {}
    unfinished = set()
    for part, at in end.items():
        if not at["ended"]:
            unfinished.add(source.split_of(part))
        initial = _beginning(source, part)
        before = start.get(part) or initial
        if at != before:
            way = PartRange(part, before["position"], at["position"])
            moved.setdefault(source.split_of(part), []).append((before == initial, part, way))
    ranges = []
    for split, parts in moved.items():
        last = source.is_bounded() or all(part == split for _, part, _ in parts)
        ways = tuple(way for _, _, way in sorted(parts, key=lambda entry: entry[:2]))
        ranges.append(SplitRange(split, ways, ended=last and split not in unfinished))
    return ranges


def dealt_out(ranges: Sequence[SplitRange], count: int) -> list[list[SplitRange]]:
    """Whole splits for each of so many tasks, so that the work is even: the longest first, to who has the least."""
    tasks: list[list[SplitRange]] = [[] for _ in range(count)]
    loads = [(0, place) for place in range(count)]
    for part in sorted(ranges, key=lambda part: (-part.length, part.split)):
        load, place = heappop(loads)
        tasks[place].append(part)
        heappush(loads, (load + max(1, part.length), place))
    return tasks


def source_ends(source: Source, start: Offsets, end: Offsets) -> bool:
    """Whether the whole source ends between two offsets."""
    done = source.may_end() and all(at["ended"] for at in end.values())
    return done and not (start and all(at["ended"] for at in start.values()))


def _beginning(source: Source, part: str) -> dict[str, Any]:
    return {"position": source.initial_position(part), "ended": False}
