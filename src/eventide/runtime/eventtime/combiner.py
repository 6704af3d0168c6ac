"""The one place where several watermarks become one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from eventide.common.ms import MIN_MS


class Members(Enum):
    """Kind of members that a combiner combines: it decides when an idle member counts again, and what says so.

    ``SPLITS`` of a source count with their next watermark, however low, and hold the others; the source says that it is
    active again with its next watermark. Flink: ``WatermarkOutputMultiplexer``.

    ``CHANNELS`` of one input are left out until their watermark has reached what was already emitted, so that one that
    comes back does not hold the others; the input is active as soon as one of them is. Flink: ``StatusWatermarkValve``.

    ``INPUTS`` of an operator count as soon as they are active, and hold the others; the operator is active as soon as
    one of them is. Flink: the combined watermark of an operator with two inputs.
    """

    SPLITS = "splits"
    CHANNELS = "channels"
    INPUTS = "inputs"


@dataclass(slots=True)
class _Member:
    watermark: int = MIN_MS
    idle: bool = False
    aligned: bool = True
    held: int = MIN_MS


@dataclass(frozen=True, slots=True)
class Progress:
    """Result of one :meth:`WatermarkCombiner.advance`.

    ``watermark`` is the new combined watermark in milliseconds, or None if it did not rise. ``idle`` is True or
    False if the combined status changed to idle or active, else None. A watermark comes before an idle status and
    after an active one.
    """

    watermark: int | None = None
    idle: bool | None = None


class WatermarkCombiner:
    """The minimum over the members that count; it never goes back.

    An idle member does not count. When all are idle, the maximum over them is emitted, and then the status is idle.
    Without any member nothing is emitted. Changes are deferred: they take effect together at :meth:`advance`.

    Members that are ``expected`` hold the watermark from the start, until they speak. Others :meth:`join` later,
    or with what they say first, and leave no trace when they are removed.

    Flink: ``CombinedWatermarkStatus``, and those that use it: see :class:`Members`.

    >>> splits = WatermarkCombiner(Members.SPLITS, ["a", "b"])
    >>> splits.update("a", 10)
    >>> splits.advance()
    Progress(watermark=None, idle=None)
    >>> splits.update("b", 7)
    >>> splits.advance()
    Progress(watermark=7, idle=None)
    """

    def __init__(self, kind: Members, expected: Iterable[str] = ()) -> None:
        self._kind = kind
        self._members = {name: _Member() for name in expected}
        self._expected = frozenset(self._members)
        self._removed: set[str] = set()
        self.watermark = MIN_MS
        self.idle = False

    def join(self, name: str) -> None:
        """Count a member that is new: it holds the watermark until it speaks."""
        self._members.setdefault(name, _Member())
        self._removed.discard(name)

    def update(self, name: str, watermark_ms: int) -> None:
        """Take a member's watermark: it counts again, and a lower watermark than its last one changes nothing else.

        An operator says nothing with a watermark that is not higher than its last one, so such a channel stays idle.
        """
        member = self._members.setdefault(name, _Member())
        given = max(watermark_ms, member.held)
        rises = given > member.watermark
        member.idle = member.idle and not (rises or self._kind is Members.SPLITS)
        member.watermark = max(member.watermark, given)
        member.held = MIN_MS

    def hold(self, name: str, watermark_ms: int) -> None:
        """Keep a watermark that a member was not asked for, because it is idle: it comes with its next one."""
        member = self._members.setdefault(name, _Member())
        member.held = max(member.held, watermark_ms)

    def mark_idle(self, name: str) -> None:
        """Leave a member out until it is active again."""
        member = self._members.setdefault(name, _Member())
        member.idle = True
        member.aligned = False

    def mark_active(self, name: str) -> None:
        """Count a member again, with the watermark that it had."""
        self._members.setdefault(name, _Member()).idle = False

    def remove(self, name: str) -> None:
        """Count a member no longer: it has ended, or is gone, and holds no watermark back, after a restart too.

        Only one that is expected from the start must be remembered for that.
        """
        self._members.pop(name, None)
        if name in self._expected:
            self._removed.add(name)

    def furthest(self, names: Iterable[str]) -> str | None:
        """The active member furthest ahead among some that were not expected; None if there is no such member."""
        passing = [name for name in names if name in self._members and name not in self._expected]
        active = [name for name in passing if not self._members[name].idle]
        return max(active, key=lambda name: (self._members[name].watermark, name), default=None)

    def advance(self) -> Progress:
        """Bring the combined watermark and status up to date, and say what changed."""
        if not self._members:
            return Progress()
        active = [member for member in self._members.values() if not member.idle]
        if not active:
            emitted = self._raise_to(max(member.watermark for member in self._members.values()))
            became_idle = not self.idle
            self.idle = True
            return Progress(emitted, True if became_idle else None)
        for member in active:
            member.aligned = member.aligned or member.watermark >= self.watermark
        counting = [m.watermark for m in active if m.aligned or self._kind is not Members.CHANNELS]
        emitted = self._raise_to(min(counting, default=MIN_MS))
        became_active = self.idle and (emitted is not None or self._kind is not Members.SPLITS)
        self.idle = self.idle and not became_active
        return Progress(emitted, False if became_active else None)

    def _raise_to(self, candidate: int) -> int | None:
        if candidate <= self.watermark:
            return None
        self.watermark = candidate
        return candidate

    def holding(self) -> list[str]:
        """The members that count and stand lowest: where they stand, the watermark stands."""
        members = self._members.items()
        counting = {n: m for n, m in members if not m.idle and (m.aligned or self._kind is not Members.CHANNELS)}
        lowest = min((member.watermark for member in counting.values()), default=None)
        return sorted(name for name, member in counting.items() if member.watermark == lowest)

    def watermarks(self) -> dict[str, int]:
        """The watermark of each member, to show which one holds the others."""
        return {name: member.watermark for name, member in self._members.items()}

    def idle_members(self) -> set[str]:
        """The members that do not count."""
        return {name for name, member in self._members.items() if member.idle}

    def snapshot(self) -> list[Any]:
        """All that must survive a restart, as JSON values."""
        members = {name: [m.watermark, m.idle, m.aligned, m.held] for name, m in self._members.items()}
        return [self.watermark, self.idle, members, sorted(self._removed), sorted(self._expected)]

    def restore(self, snapshot: list[Any]) -> None:
        """Become what :meth:`snapshot` saw.

        A member that is expected since then starts at the minimum. One that was expected and is not any more is gone.
        """
        self.watermark, self.idle, members, removed, expected = snapshot
        gone = {*expected} - self._expected
        self._removed = {*removed} & self._expected
        for name in self._removed:
            self._members.pop(name, None)
        self._members.update({name: _Member(*fields) for name, fields in members.items() if name not in gone})
