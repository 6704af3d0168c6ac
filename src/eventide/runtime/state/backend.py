"""The seam between operators and whatever stores their state: named values of bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from eventide.common.checksum import with_checksum, without_checksum
from eventide.errors import StateError


class Backend(Protocol):
    """Stores the state of one subtask: of all operators of a stage, or of one of them.

    A call is dear (some 0.1 ms on Spark), whether it carries a byte or 10 KB, so operators make few calls with
    large values. A value is there at the next micro-batch if this one succeeds, and only then.
    """

    def get(self, name: str) -> bytes | None:
        """The value under a name, or None."""

    def put(self, name: str, value: bytes) -> None:
        """Store a value under a name."""

    def delete(self, name: str) -> None:
        """Forget a name, whether it is there or not."""

    def all_of(self, prefix: str) -> Iterator[tuple[str, bytes]]:
        """Every name that begins in some way, with its value: for each, much cheaper than a call."""

    def put_immutable(self, values: Iterable[tuple[str, bytes]]) -> str:
        """Store values, each with its name, that are never replaced, and are deleted together.

        Returns:
            The id of a copy that is cheaper to read; empty if there is none.
        """
        for name, value in values:
            self.put(name, value)
        return ""

    def get_immutable(
        self, numbers: Sequence[int], name_of: Callable[[int], str], copy: str, count: int
    ) -> Iterator[bytes]:
        """Read some of the values that were stored together, one after the other.

        Args:
            numbers: their places among all of these, in ascending order.
            name_of: the name of the value at a place.
            copy: the id of the copy.
            count: how many were stored together.

        Raises:
            StateError: if one is not there.
        """
        return (content_of(self, name_of(number)) for number in numbers)

    def delete_immutable(self, names: Iterable[str], copy: str) -> None:
        """Forget all values that were stored together, and their copy; without names, the copy alone."""
        for name in names:
            self.delete(name)


def content_of(backend: Backend, name: str) -> bytes:
    """The content under a name that must be there.

    Raises:
        StateError: if it is not.
    """
    stored = backend.get(name)
    if stored is None:
        raise StateError(
            f"{name!r} is named by the head of the state, and is not there: the checkpoint is damaged; restore a "
            "backup of it, or begin with a savepoint"
        )
    return stored


class MemoryBackend(Backend):
    """State in a dict: for programs without Spark, for tests, and for harnesses.

    >>> backend = MemoryBackend()
    >>> backend.put("a", b"1")
    >>> backend.get("a"), backend.get("b")
    (b'1', None)
    """

    def __init__(self, values: dict[str, bytes] | None = None) -> None:
        self.values = {} if values is None else values

    def get(self, name: str) -> bytes | None:
        return self.values.get(name)

    def put(self, name: str, value: bytes) -> None:
        self.values[name] = value

    def delete(self, name: str) -> None:
        self.values.pop(name, None)

    def all_of(self, prefix: str) -> Iterator[tuple[str, bytes]]:
        return ((name, value) for name, value in self.values.items() if name.startswith(prefix))


class PartOfState(Backend):
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
        return self._whole.get(self._prefix + name)

    def put(self, name: str, value: bytes) -> None:
        self._whole.put(self._prefix + name, value)

    def delete(self, name: str) -> None:
        self._whole.delete(self._prefix + name)

    def all_of(self, prefix: str) -> Iterator[tuple[str, bytes]]:
        return ((name.removeprefix(self._prefix), value) for name, value in self._whole.all_of(self._prefix + prefix))

    def put_immutable(self, values: Iterable[tuple[str, bytes]]) -> str:
        return self._whole.put_immutable((self._prefix + name, value) for name, value in values)

    def get_immutable(
        self, numbers: Sequence[int], name_of: Callable[[int], str], copy: str, count: int
    ) -> Iterator[bytes]:
        return self._whole.get_immutable(numbers, lambda number: self._prefix + name_of(number), copy, count)

    def delete_immutable(self, names: Iterable[str], copy: str) -> None:
        self._whole.delete_immutable([self._prefix + name for name in names], copy)


class CheckedBackend(Backend):
    """State whose values have checksums: a value that is not as it was stored is an error.

    Args:
        whole: where the values lie.
        where: says in words whose state lies under a name.

    >>> whole = MemoryBackend()
    >>> CheckedBackend(whole, repr).put("a", b"1")
    >>> whole.put("a", whole.get("a")[:-1] + b"2")
    >>> CheckedBackend(whole, repr).get("a")
    Traceback (most recent call last):
        ...
    eventide.errors.StateError: the state 'a' is not as it was stored; ...
    """

    def __init__(self, whole: Backend, where: Callable[[str], str]) -> None:
        self._whole = whole
        self._where = where

    def get(self, name: str) -> bytes | None:
        """The value under a name, or None.

        Raises:
            StateError: if it is damaged.
        """
        stored = self._whole.get(name)
        return None if stored is None else value_of(stored, name, self._where)

    def put(self, name: str, value: bytes) -> None:
        self._whole.put(name, with_checksum(value))

    def delete(self, name: str) -> None:
        self._whole.delete(name)

    def all_of(self, prefix: str) -> Iterator[tuple[str, bytes]]:
        return ((name, value_of(stored, name, self._where)) for name, stored in self._whole.all_of(prefix))

    def put_immutable(self, values: Iterable[tuple[str, bytes]]) -> str:
        return self._whole.put_immutable((name, with_checksum(value)) for name, value in values)

    def get_immutable(
        self, numbers: Sequence[int], name_of: Callable[[int], str], copy: str, count: int
    ) -> Iterator[bytes]:
        """Read some of the values that were stored together; where a copy is damaged, those that were stored.

        Raises:
            StateError: if one is not there, or what was stored is damaged.
        """
        found = self._whole.get_immutable(numbers, name_of, copy, count)
        for number, stored in zip(numbers, found, strict=True):
            value = without_checksum(stored)
            if value is None:
                name = name_of(number)
                value = value_of(content_of(self._whole, name), name, self._where)
                self._whole.delete_immutable((), copy)
            yield value

    def delete_immutable(self, names: Iterable[str], copy: str) -> None:
        self._whole.delete_immutable(names, copy)


def value_of(stored: bytes, name: str, where: Callable[[str], str] = repr) -> bytes:
    """The value that was stored under a name with a checksum, given what is there.

    Raises:
        StateError: if it is damaged.
    """
    value = without_checksum(stored)
    if value is None:
        raise StateError(
            f"the state {where(name)} is not as it was stored; put a copy of the checkpoint back, or start with a new "
            "checkpoint location, from a savepoint if there is one"
        )
    return value
