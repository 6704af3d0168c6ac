"""State whose immutable values are read from copies, which are much cheaper to read than Spark's store.

The store has the truth. The id of a copy is drawn when its values are stored, and counts only if the head of the state
names it: so a copy that a failed attempt has left is never read. Where a copy is missing, the store is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from eventide.runtime.state.backend import Backend

_FEW = 2
"""The fewest values that are copied: one costs a call to read, and its id would take room in the head."""


_SHARE = 2
"""Where one in this many values comes from the store, the others are copied with them: they are likely to be read."""


class CopyWriter(Protocol):
    """Writes a copy, value by value."""

    def add(self, value: bytes) -> None:
        """Copy the next value."""

    def end(self) -> None:
        """Let the copy be read."""

    def drop(self) -> None:
        """Delete what was copied."""


class ValueCopies(Protocol):
    """Where copies lie; any of them may be missing, and its values may be damaged."""

    def new_id(self) -> str:
        """Return an id that no copy has, nor ever had."""

    def write(self, copy: str) -> CopyWriter:
        """Begin a copy with an id."""

    def read(self, copy: str, numbers: Sequence[int], count: int) -> Iterator[bytes] | None:
        """The values at some places of a copy of ``count`` values; None if there is none."""

    def delete(self, copy: str) -> None:
        """Delete a copy."""


class CopiedState(Backend):
    """State whose immutable values are read from copies, where there are some.

    Args:
        whole: where all values lie.
        copies: where their copies lie.
    """

    def __init__(self, whole: Backend, copies: ValueCopies) -> None:
        self.whole = whole
        self._copies = copies

    def get(self, name: str) -> bytes | None:
        return self.whole.get(name)

    def put(self, name: str, value: bytes) -> None:
        self.whole.put(name, value)

    def delete(self, name: str) -> None:
        self.whole.delete(name)

    def all_of(self, prefix: str) -> Iterator[tuple[str, bytes]]:
        return self.whole.all_of(prefix)

    def put_immutable(self, values: Iterable[tuple[str, bytes]]) -> str:
        first, writer = list[bytes](), None
        copy = self._copies.new_id()
        try:
            for name, value in values:
                self.whole.put(name, value)
                if writer is None and len(first) + 1 < _FEW:
                    first.append(value)
                    continue
                if writer is None:
                    writer = self._copies.write(copy)
                    for earlier in first:
                        writer.add(earlier)
                writer.add(value)
        except BaseException:
            if writer is not None:
                writer.drop()
            raise
        if writer is None:
            return ""
        writer.end()
        return copy

    def get_immutable(
        self, numbers: Sequence[int], name_of: Callable[[int], str], copy: str, count: int
    ) -> Iterator[bytes]:
        """Read some of the values that were stored together; where half of them come from the store, copy them all.

        Raises:
            StateError: if one is not there.
        """
        found = self._copies.read(copy, numbers, count) if copy and numbers else None
        if found is not None:
            return found
        if not copy or len(numbers) * _SHARE < count:
            return self.whole.get_immutable(numbers, name_of, "", count)
        return self._copied(numbers, self.whole.get_immutable(range(count), name_of, "", count), copy)

    def _copied(self, numbers: Sequence[int], all_values: Iterator[bytes], copy: str) -> Iterator[bytes]:
        writer, wanted = self._copies.write(copy), frozenset(numbers)
        try:
            for number, value in enumerate(all_values):
                writer.add(value)
                if number in wanted:
                    yield value
        except BaseException:  # the reader may end too early as well
            writer.drop()
            raise
        writer.end()

    def delete_immutable(self, names: Iterable[str], copy: str) -> None:
        self.whole.delete_immutable(names, "")
        if copy:
            self._copies.delete(copy)
