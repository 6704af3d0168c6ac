"""The one place where several watermarks become one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from eventide.common._ms import MIN_MS


class Rejoin(Enum):
    """When a channel that was idle counts again.

    ``AT_ONCE`` is the rule for the splits of a source (Flink's output multiplexer): it counts with its next
    watermark, however low. ``WHEN_CAUGHT_UP`` is the rule for the inputs of an operator (Flink's valve): it is
    left out until its watermark has reached what was already put out, so that it does not hold the others.
    """

    AT_ONCE = "at once"
    WHEN_CAUGHT_UP = "when caught up"


@dataclass(slots=True)
class _Channel:
    watermark: int = MIN_MS
    idle: bool = False
    aligned: bool = True


@dataclass(frozen=True, slots=True)
class Progress:
    """What one :meth:`Combiner.advance` brought.

    ``watermark`` is the new combined watermark in milliseconds, or None if it did not rise. ``idle`` is True or
    False if the combined status changed to idle or active, else None. A watermark comes before an idle status and
    after an active one.
    """

    watermark: int | None = None
    idle: bool | None = None


class Combiner:
    """The minimum over the channels that count; it never goes back.

    An idle channel does not count. When all are idle, the maximum over them is put out, and then the status is idle.
    Without any channel nothing is put out. Changes are deferred: they take effect together at :meth:`advance`.

    Flink: ``CombinedWatermarkStatus`` with ``WatermarkOutputMultiplexer``, and ``StatusWatermarkValve``.

    >>> splits = Combiner(Rejoin.AT_ONCE, ["a", "b"])
    >>> splits.update("a", 10)
    >>> splits.advance()
    Progress(watermark=None, idle=None)
    >>> splits.update("b", 7)
    >>> splits.advance()
    Progress(watermark=7, idle=None)
    """

    def __init__(self, rejoin: Rejoin, channels: Iterable[str] = ()) -> None:
        self._rejoin = rejoin
        self._channels = {name: _Channel() for name in channels}
        self._expected = frozenset(self._channels)
        self._removed: set[str] = set()
        self.watermark = MIN_MS
        self.idle = False

    def update(self, channel: str, watermark_ms: int) -> None:
        """Take a channel's watermark: it counts again, and a lower watermark than its last one changes nothing else.

        An operator says nothing with a watermark that is not higher than its last one, so such an input stays idle.
        """
        state = self._channels.setdefault(channel, _Channel())
        rises = watermark_ms > state.watermark
        state.idle = state.idle and not (rises or self._rejoin is Rejoin.AT_ONCE)
        state.watermark = max(state.watermark, watermark_ms)

    def mark_idle(self, channel: str) -> None:
        """Leave a channel out until it is active again."""
        state = self._channels.setdefault(channel, _Channel())
        state.idle = True
        state.aligned = False

    def mark_active(self, channel: str) -> None:
        """Count a channel again, with the watermark that it had."""
        self._channels.setdefault(channel, _Channel()).idle = False

    def remove(self, channel: str) -> None:
        """Count a channel no longer: it has ended and holds nobody back, after a restart too.

        Only one that is expected from the start must be remembered for that; the others come and go without a trace.
        """
        self._channels.pop(channel, None)
        if channel in self._expected:
            self._removed.add(channel)

    def furthest(self, channels: Iterable[str]) -> str | None:
        """Of some channels, the active one that is furthest ahead and was not expected; None where there is none."""
        passing = [name for name in channels if name in self._channels and name not in self._expected]
        active = [name for name in passing if not self._channels[name].idle]
        return max(active, key=lambda name: (self._channels[name].watermark, name), default=None)

    def advance(self) -> Progress:
        """Bring the combined watermark and status up to date, and say what changed."""
        if not self._channels:
            return Progress()
        active = [channel for channel in self._channels.values() if not channel.idle]
        if not active:
            emitted = self._raise_to(max(channel.watermark for channel in self._channels.values()))
            became_idle = not self.idle
            self.idle = True
            return Progress(emitted, True if became_idle else None)
        for channel in active:
            channel.aligned = channel.aligned or channel.watermark >= self.watermark
        counting = [c.watermark for c in active if c.aligned or self._rejoin is Rejoin.AT_ONCE]
        emitted = self._raise_to(min(counting, default=MIN_MS))
        # A source says that it is active again by its next watermark; an operator as soon as an input is.
        became_active = self.idle and (emitted is not None or self._rejoin is Rejoin.WHEN_CAUGHT_UP)
        self.idle = self.idle and not became_active
        return Progress(emitted, False if became_active else None)

    def _raise_to(self, candidate: int) -> int | None:
        if candidate <= self.watermark:
            return None
        self.watermark = candidate
        return candidate

    def channel_watermarks(self) -> dict[str, int]:
        """Each channel's own watermark, for those who want to see who holds whom."""
        return {name: channel.watermark for name, channel in self._channels.items()}

    def snapshot(self) -> list[Any]:
        """All that must survive a restart, as JSON values."""
        channels = {name: [c.watermark, c.idle, c.aligned] for name, c in self._channels.items()}
        return [self.watermark, self.idle, channels, sorted(self._removed)]

    def restore(self, snapshot: list[Any]) -> None:
        """Become what :meth:`snapshot` saw; a channel that is new since then starts at the minimum."""
        self.watermark, self.idle, channels, removed = snapshot
        for name in removed:
            self._channels.pop(name, None)
        self._removed = set(removed)
        self._channels.update({name: _Channel(*fields) for name, fields in channels.items()})
