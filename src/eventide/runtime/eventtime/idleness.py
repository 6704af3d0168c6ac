"""Which channels have been silent for too long, by the clock of micro-batches."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any


class Idleness:
    """Watches the channels of one input.

    A channel counts as silent when more than ``timeout_ms`` have gone by since the last micro-batch in which it spoke,
    or since it was first heard of. While it is held back, the clock stands still for it. A clock that is set back has
    not gone on since the last micro-batch, as Flink's never goes back. Flink: ``WatermarksWithIdleness``, and its
    ``PausableRelativeClock``.

    >>> watched = Idleness(timeout_ms=100)
    >>> watched.end_batch({"a", "b"}, clock_ms=1_000)
    >>> watched.hear("a")
    >>> watched.end_batch({"a", "b"}, clock_ms=1_101)
    >>> watched.silent, watched.next_deadline_ms
    ({'b'}, 1202)
    """

    def __init__(self, timeout_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._heard: set[str] = set()
        self._last: dict[str, int] = {}
        self._looked_ms: int | None = None
        self._held: set[str] = set()
        self._held_from_now_on: dict[str, bool] = {}
        self.silent: set[str] = set()

    def hear(self, channel: str) -> None:
        """Take note that a channel had elements in this micro-batch."""
        self._heard.add(channel)
        self.silent.discard(channel)

    def hold(self, channel: str, is_held: bool) -> None:
        """Take note that a channel is held back from this micro-batch on, or no longer."""
        self._held_from_now_on[channel] = is_held

    def end_batch(self, channels: Collection[str], clock_ms: int) -> None:
        """Look at the clock: the ``channels`` are those that there are now."""
        passed_ms = 0 if self._looked_ms is None else clock_ms - self._looked_ms
        if passed_ms < 0:
            self._last = {name: last_ms + passed_ms for name, last_ms in self._last.items()}
            passed_ms = 0
        self._last = {name: self._last_of(name, clock_ms, passed_ms) for name in channels}
        self._looked_ms = clock_ms
        self._heard.clear()
        kept = {name for name in self._held if self._held_from_now_on.get(name, True)}
        self._held = (kept | {name for name, is_held in self._held_from_now_on.items() if is_held}) & {*channels}
        self._held_from_now_on.clear()
        self.silent = {name for name, last_ms in self._last.items() if clock_ms - last_ms > self._timeout_ms}

    def _last_of(self, channel: str, clock_ms: int, passed_ms: int) -> int:
        if channel in self._heard:
            return clock_ms
        return self._last.get(channel, clock_ms) + (passed_ms if channel in self._held else 0)

    def begin_anew(self) -> set[str]:
        """Start the timeouts of all channels anew at the next look at the clock; return those that were silent."""
        silent, self.silent = self.silent, set()
        self._last.clear()
        self._looked_ms = None
        return silent

    @property
    def next_deadline_ms(self) -> int | None:
        """When the next channel will have been silent for too long; None if all are, or are held, or there is none."""
        waiting = [last_ms for name, last_ms in self._last.items() if name not in self.silent | self._held]
        return min(waiting) + self._timeout_ms + 1 if waiting else None

    def snapshot(self) -> list[Any]:
        """All that must survive a restart, as JSON values."""
        return [self._last, sorted(self.silent), sorted(self._held), self._looked_ms]

    def restore(self, snapshot: list[Any]) -> None:
        """Become what :meth:`snapshot` saw."""
        self._last, silent, *of_alignment = snapshot
        self.silent = set(silent)
        if of_alignment:  # one that is older knows of none
            held, self._looked_ms = of_alignment
            self._held = set(held)
