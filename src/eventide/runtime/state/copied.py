"""State whose immutable values are read from copies, which are much cheaper to read than Spark's store.

The store has the truth. The id of a copy is drawn when its values are stored, and counts only if the head of the state
names it: so a copy that a failed attempt has left is never read. Where a copy is missing, the store is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from eventide.runtime.state.backend import Backend

_FEW = 2
"""The fewest values that are copied: one costs a call to read, and its id would take room in the head."""


class ValueCopies(Protocol):
    """Where copies lie; any of them may be missing, and its values may be damaged."""

    def write(self, values: Sequence[bytes], copy: str | None = None) -> str:
        """Copy values under an id, or under a new one, and return that."""

    def read(self, copy: str, numbers: Sequence[int]) -> list[bytes] | None:
        """The values at some places of a copy, or None."""

    def delete(self, copy: str) -> None:
        """Delete a copy."""


class CopiedState(Backend):
    """State whose immutable values are read from copies, where there are some.

    Args:
        whole: where all values lie.
        copies: where their copies lie.
    """

    def __init__(self, whole: Backend, copies: ValueCopies) -> None:
        self._whole = whole
        self._copies = copies

    def get(self, name: str) -> bytes | None:
        return self._whole.get(name)

    def put(self, name: str, value: bytes) -> None:
        self._whole.put(name, value)

    def delete(self, name: str) -> None:
        self._whole.delete(name)

    def all_of(self, prefix: str) -> Iterator[tuple[str, bytes]]:
        return self._whole.all_of(prefix)

    def put_immutable(self, values: Mapping[str, bytes]) -> str:
        super().put_immutable(values)
        return self._copies.write([*values.values()]) if len(values) >= _FEW else ""

    def get_immutable(self, names: Mapping[int, str], copy: str, count: int) -> list[bytes]:
        """Some of the values that were stored together; if all of them are read from the store, they are copied."""
        found = self._copies.read(copy, [*names]) if copy else None
        if found is None:
            found = super().get_immutable(names, copy, count)
            if copy and len(found) == count:
                self._copies.write(found, copy)
        return found

    def delete_immutable(self, names: Iterable[str], copy: str) -> None:
        super().delete_immutable(names, copy)
        if copy:
            self._copies.delete(copy)
