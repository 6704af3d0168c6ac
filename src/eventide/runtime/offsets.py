"""Where sources stand, and what the next micro-batch reads of them: plain values, planned beside the driver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from eventide.datastream.connectors.source import Source
from eventide.errors import ProgramError

Offsets: TypeAlias = dict[str, dict[str, Any]]
"""Where a source stands: for each split its ``position``, and whether it has ``ended``."""


@dataclass(frozen=True, slots=True)
class SplitRange:
    """What one micro-batch reads of one split; ``ended`` says that nothing comes behind it."""

    split: str
    start: int
    end: int
    ended: bool


def initial_offsets(source: Source) -> Offsets:
    """Where a source stands before its first micro-batch.

    Raises:
        ProgramError: if it has no splits, because such a stream would never end nor say anything.
    """
    splits = source.splits()
    if not splits:
        raise ProgramError(f"the source {source!r} has no splits; splits() must name at least one")
    return {split: {"position": source.initial_position(split), "ended": False} for split in splits}


def next_offsets(source: Source, start: Offsets, max_rows: int | None) -> Offsets:
    """Where the next micro-batch ends; equal to ``start`` if there is nothing to do."""
    known = {split: start.get(split) or initial for split, initial in initial_offsets(source).items()}
    open_positions = {split: at["position"] for split, at in known.items() if not at["ended"]}
    planned = source.next_positions(open_positions, max_rows)
    ends = {
        split: {"position": position, "ended": source.has_ended(split, position)} for split, position in planned.items()
    }
    return start | known | ends


def everything(source: Source) -> Offsets:
    """Where a source stands behind all that it has now."""
    end = initial_offsets(source)
    while (further := next_offsets(source, end, None)) != end:
        end = further
    return end


def ranges_between(source: Source, start: Offsets, end: Offsets) -> list[SplitRange]:
    """The parts of splits between two offsets; a split that merely ends has an empty one.

    A split that is new since ``start`` begins at its initial position.
    """
    ranges = []
    for split, at in end.items():
        before = start.get(split) or {"position": source.initial_position(split), "ended": False}
        if at != before or split not in start:
            ranges.append(SplitRange(split, before["position"], at["position"], at["ended"]))
    return ranges


def source_ends(start: Offsets, end: Offsets) -> bool:
    """Whether the whole source ends between two offsets."""
    return all(at["ended"] for at in end.values()) and not (start and all(at["ended"] for at in start.values()))
