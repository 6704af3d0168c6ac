"""The seam between operators and whatever stores their state: named values of bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol


class Backend(Protocol):
    """Stores the state of one subtask: of all operators of a stage, or of one of them.

    A call is dear (some 0.1 ms on Spark) whatever it carries up to some 10 KB, so operators make few calls with
    large values. What was put is there at the next micro-batch if this one succeeds, and only then.
    """

    def get(self, name: str) -> bytes | None:
        """The value under a name, or None."""

    def put(self, name: str, value: bytes) -> None:
        """Store a value under a name."""

    def delete(self, name: str) -> None:
        """Forget a name, whether it is there or not."""

    def all_of(self, prefix: str) -> Iterator[tuple[str, bytes]]:
        """Every name that begins in some way, with its value: for each, much cheaper than a call."""


class MemoryBackend:
    """State in a dict: for the twin, for tests, and for harnesses.

    >>> backend = MemoryBackend()
    >>> backend.put("a", b"1")
    >>> backend.get("a"), backend.get("b")
    (b'1', None)
    """

    def __init__(self, values: dict[str, bytes] | None = None) -> None:
        self.values = {} if values is None else values

    def get(self, name: str) -> bytes | None:
        """The value under a name, or None."""
        return self.values.get(name)

    def put(self, name: str, value: bytes) -> None:
        """Store a value under a name."""
        self.values[name] = value

    def delete(self, name: str) -> None:
        """Forget a name, whether it is there or not."""
        self.values.pop(name, None)

    def all_of(self, prefix: str) -> Iterator[tuple[str, bytes]]:
        """Every name that begins in some way, with its value."""
        return ((name, value) for name, value in self.values.items() if name.startswith(prefix))


class PartOfState:
    """A part of the state, whose names all begin alike.

    >>> whole = MemoryBackend()
    >>> PartOfState(whole, "rules/").put("a", b"1")
    >>> whole.get("rules/a")
    b'1'
    """

    def __init__(self, whole: Backend, prefix: str) -> None:
        self._whole = whole
        self._prefix = prefix

    def get(self, name: str) -> bytes | None:
        """The value under a name, or None."""
        return self._whole.get(self._prefix + name)

    def put(self, name: str, value: bytes) -> None:
        """Store a value under a name."""
        self._whole.put(self._prefix + name, value)

    def delete(self, name: str) -> None:
        """Forget a name, whether it is there or not."""
        self._whole.delete(self._prefix + name)

    def all_of(self, prefix: str) -> Iterator[tuple[str, bytes]]:
        """Every name that begins in some way, with its value."""
        return without_prefix(self._prefix, self._whole.all_of(self._prefix + prefix))


def without_prefix(prefix: str, values: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
    """Values by names that have all lost their beginning."""
    return ((name[len(prefix) :], value) for name, value in values)
