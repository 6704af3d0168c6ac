"""Elements that a function has emitted and that were not taken yet, and the lock around them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import TypeVar

from eventide.errors import ProgramError

T = TypeVar("T")
_MOMENT_S = 0.1


class Cancelled(BaseException):
    """Ends the thread of a function that emits after its job has stopped; no ``except Exception`` holds it up."""


class Emission:
    """Items in the order in which they were emitted, limited in number and size.

    It is the lock of its function: entered, it keeps others from emitting, and nothing is taken. A thread that has
    entered it may enter it again. Only a thread that enters it for the first time waits for room, because there the
    function is not in the midst of something: what is taken in that while fits the state of the function.

    Args:
        max_items: how many items may wait.
        max_bytes: how many bytes may wait; one item may have more.
    """

    def __init__(self, max_items: int, max_bytes: int) -> None:
        self._changed = threading.Condition(threading.RLock())
        self._limits = max_items, max_bytes
        self._depth = 0
        self._items: list[bytes] = []
        self._bytes = 0
        self._is_over = False
        self._is_cancelled = False

    def __enter__(self) -> Emission:
        self._changed.acquire()
        try:
            if self._depth == 0:
                self._changed.wait_for(lambda: self._is_cancelled or not self.is_full())
            if self._is_cancelled:
                raise Cancelled
        except BaseException:
            self._changed.release()
            raise
        self._depth += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._depth -= 1
        self._changed.release()

    def add(self, item: bytes) -> None:
        """Emit an item.

        Raises:
            ProgramError: if the function has returned before.
        """
        with self:
            if self._is_over:
                raise ProgramError("a SourceFunction emitted something after its run() had returned")
            self._items.append(item)
            self._bytes += len(item)
            if len(self._items) == 1 or self.is_full():
                self._changed.notify_all()

    @property
    def is_over(self) -> bool:
        """Whether nothing will be emitted any more."""
        return self._is_over

    def is_full(self) -> bool:
        """Whether the emitting thread has to wait."""
        max_items, max_bytes = self._limits
        return len(self._items) >= max_items or self._bytes >= max_bytes

    def take(self, keep: Callable[[list[bytes]], None]) -> None:
        """Hand all items over to `keep`, while nothing is emitted; if that fails, they stay."""
        with self._changed:
            if self._items:
                keep(self._items)
                self._items, self._bytes = [], 0
                self._changed.notify_all()

    def finish(self) -> None:
        """Say that nothing will be emitted any more."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    def cancel(self) -> None:
        """Let nothing more be emitted: a thread that tries, or waits for room, is thrown out.

        It does not wait for the thread that has entered, which may take a cancelled function. A thread that waits for
        room after that one is thrown out when it is called again.
        """
        self._is_cancelled = True
        if self._changed.acquire(timeout=_MOMENT_S):
            self._changed.notify_all()
            self._changed.release()

    def wait(self, seconds: float, *, until_full: bool = False) -> None:
        """Wait until there is something to take, or, with ``until_full``, so much that the function has to wait."""
        with self._changed:
            enough = self.is_full if until_full else lambda: bool(self._items)
            self._changed.wait_for(lambda: self._is_over or enough(), seconds)
