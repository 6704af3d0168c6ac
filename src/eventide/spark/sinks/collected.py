"""The hand-over of collected elements from the query's thread to the program, which takes them when it likes."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

_MOST_WAITING = 10_000


class Stopped(Exception):
    """Somebody has stopped the query whose element waits to be taken."""


class Collected:
    """A queue with limited room for elements: a producer waits while it is full.

    So a query goes no further than its program takes: while a micro-batch waits here, Spark begins no other.

    It ends in one of two ways: the query says that it has ended, or the program that no more is wanted. In either case
    no thread waits any longer, what is put in from then on is dropped, and what is in it can still be taken. A query
    that is stopped while an element waits ends it too, but must not think that the element has been taken: putting it
    in raises `Stopped`.

    >>> collected = Collected(most_waiting=2)
    >>> collected.put("a")
    >>> collected.close()
    >>> list(collected)
    ['a']
    """

    def __init__(self, most_waiting: int = _MOST_WAITING) -> None:
        self._most_waiting = most_waiting
        self._elements: deque[Any] = deque()
        self._changed = threading.Condition()
        self._is_closed = False
        self._is_stopped = False
        self.given = 0
        """How many elements have been handed over."""

    @property
    def taken(self) -> int:
        """How many of them the program has."""
        return self.given - len(self._elements)

    @property
    def is_full(self) -> bool:
        """Whether a producer must wait."""
        return len(self._elements) >= self._most_waiting

    def put(self, element: Any) -> None:
        """Hand an element over, as soon as there is room.

        Raises:
            Stopped: if the query has been stopped meanwhile.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or not self.is_full)
            if self._is_stopped:
                raise Stopped
            if not self._is_closed:
                self._elements.append(element)
                self.given += 1
                self._changed.notify_all()

    def close(self) -> None:
        """Say that nothing will follow, or that it is not wanted."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def stop(self) -> None:
        """Say that nothing will follow, because the query has been stopped before its elements were taken."""
        with self._changed:
            self._is_stopped |= not self._is_closed
            self.close()

    def __iter__(self) -> Collected:
        return self

    def __next__(self) -> Any:
        """The next element, as soon as there is one; StopIteration when there will be none."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._elements)
            if not self._elements:
                raise StopIteration
            element = self._elements.popleft()
            self._changed.notify_all()
            return element


class Taken:
    """The elements of a queue as one program takes them; when it has forgotten them, the job does not wait for it.

    Args:
        collected: the queue.
        at_end: called after the last element; it raises what made the job fail.
    """

    def __init__(self, collected: Collected, at_end: Callable[[], Any]) -> None:
        self._collected = collected
        self._at_end = at_end

    def __iter__(self) -> Taken:
        return self

    def __next__(self) -> Any:
        try:
            return next(self._collected)
        except StopIteration:
            self._at_end()
            raise

    def __del__(self) -> None:
        self._collected.close()
