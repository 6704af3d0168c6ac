"""Which splits of a source wait for others: Flink's rule, from what the last micro-batch has reached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from eventide.common.ms import add_ms

Facts: TypeAlias = Mapping[str, Mapping[str, Any]]
"""Facts about aligned sources after a micro-batch, by their names, as JSON values.

``splits`` has the watermark of each split that counts and has one, ``idle`` names those that do not count, ``done``
those of which nothing more is read in this run; ``ended`` says that the source has. Where splits come and go, as files
do, ``reached`` is how far the source as a whole has come, if it counts: a split without a watermark stands there.
"""


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
        storage: where a host keeps the facts; None where it is not known, or needs none.
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
        """How far the other sources of the group let this one go; None where they say nothing."""
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
    """The lowest watermark of the splits of a source that count; None where no other has to wait for it."""
    if source.get("ended"):
        return None
    done = source.get("done", ())
    counting = [ms for split, ms in source.get("splits", {}).items() if split not in done]
    return min(counting, default=source.get("reached"))
