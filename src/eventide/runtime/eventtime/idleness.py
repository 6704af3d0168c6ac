"""Which channels have been silent for too long, by the clock of micro-batches."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any


class Idleness:
    """Watches the channels of one input.

    A channel counts as silent when more than ``timeout_ms`` have gone by since the last micro-batch in which it spoke,
    or since it was first heard of. Flink: ``WatermarksWithIdleness``.

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
        self.silent: set[str] = set()

    def hear(self, channel: str) -> None:
        """Take note that a channel had elements in this micro-batch."""
        self._heard.add(channel)
        self.silent.discard(channel)

    def end_batch(self, channels: Collection[str], clock_ms: int) -> None:
        """Look at the clock: the ``channels`` are those that there are now."""
        self._last = {name: clock_ms if name in self._heard else self._last.get(name, clock_ms) for name in channels}
        self._heard.clear()
        self.silent = {name for name, last_ms in self._last.items() if clock_ms - last_ms > self._timeout_ms}

    @property
    def next_deadline_ms(self) -> int | None:
        """When the next channel will have been silent for too long; None if all are, or there is none."""
        waiting = [last_ms for name, last_ms in self._last.items() if name not in self.silent]
        return min(waiting) + self._timeout_ms + 1 if waiting else None

    def snapshot(self) -> list[Any]:
        """All that must survive a restart, as JSON values."""
        return [self._last, sorted(self.silent)]

    def restore(self, snapshot: list[Any]) -> None:
        """Become what :meth:`snapshot` saw."""
        self._last, silent = snapshot
        self.silent = set(silent)
