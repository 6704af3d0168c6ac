"""Planning of a source that waits for others, and what its offsets remember of that."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from eventide.api.source import Source
from eventide.runtime.exchange.frames import Rest
from eventide.runtime.sources.alignment import AlignmentStanding
from eventide.runtime.sources.leveling import Leveling

_REST = "rest"


def planned_together(
    source: Source,
    standing: AlignmentStanding,
    now: Mapping[str, Mapping[str, Any]],
    limit_of: Mapping[str, int | None],
    max_rows: int | None,
) -> dict[str, int]:
    """Where those parts end that need not wait: at one time, if the source knows about time; else one by one.

    A split that nothing was read of gives its first row: from that it is known where it stands.

    Args:
        source: the source.
        standing: where it and its group stand.
        now: where its parts stand.
        limit_of: for each part, what must not be passed; None for nothing.
        max_rows: how many rows to read at most.
    """
    unread = {part: at["position"] for part, at in now.items() if not at["ended"]}
    split_of = {part: source.split_of(part) for part in unread}
    begun = {split_of[part] for part in unread if now[part]["position"] != now[part]["start"]}
    new = {
        part: position
        for part, position in unread.items()
        if split_of[part] not in begun and standing.watermark_of(split_of[part]) is None
    }
    first = source.next_positions(new, 1) if new else {}
    unread = {part: position for part, position in unread.items() if part not in new}
    by_time = standing.alignment.by_time
    if by_time is not None:

        def ends_of(parts: Collection[str]) -> dict[str, int]:
            latest, limits = source.ends(parts), {part: limit_of[part] for part in parts}
            return {part: end if (limit := limits[part]) is None else min(limit, end) for part, end in latest.items()}

        def is_over(part: str, position: int) -> bool:
            limit, may_grow = limit_of[part], not source.is_bounded() and split_of[part] != part
            return (limit is not None and position >= limit) or (not may_grow and source.has_ended(part, position))

        level = Leveling(source, standing, by_time, split_of, ends_of, is_over).plan(unread, max_rows)
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
