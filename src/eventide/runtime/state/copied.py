"""State whose immutable values are read from copies, which are much cheaper to read than Spark's store.

The store has the truth. The id of a copy is drawn when its values are stored, and counts only if the head of the state
names it: so a copy that a failed attempt has left is never read. Where a copy is missing, the store is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from eventide.runtime.state.backend import Backend, content_of

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

    def write(self, copy: str) -> CopyWriter | None:
        """Begin a copy with an id; None if there is no room for one."""

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
        first, writer, count = list[bytes](), None, 0
        copy = self._copies.new_id()
        try:
            for name, value in values:
                self.whole.put(name, value)
                count += 1
                if count < _FEW:
                    first.append(value)
                    continue
                if count == _FEW and (writer := self._copies.write(copy)) is not None:
                    for earlier in first:
                        writer.add(earlier)
                if writer is not None:
                    writer.add(value)
        except BaseException:
            if writer is not None:
                writer.drop()
            raise
        if writer is not None:
            writer.end()
        return copy if count >= _FEW else ""

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
        is_dense = copy and len(numbers) * _SHARE >= count
        writer = self._copies.write(copy) if is_dense else None
        if writer is None:
            return self.whole.get_immutable(numbers, name_of, "", count)
        return self._copied(numbers, name_of, count, writer)

    def _copied(
        self, numbers: Sequence[int], name_of: Callable[[int], str], count: int, writer: CopyWriter
    ) -> Iterator[bytes]:
        wanted, is_whole = frozenset(numbers), True
        try:
            for number in range(count):
                if number in wanted:
                    value = content_of(self.whole, name_of(number))
                    writer.add(value)
                    yield value
                elif is_whole:  # if it is not there, that is an error for a caller that asks for it
                    beside = self.whole.get(name_of(number))
                    is_whole = beside is not None
                    writer.add(beside or b"")
        except BaseException:  # the reader may end too early as well
            writer.drop()
            raise
        if is_whole:
            writer.end()
        else:
            writer.drop()

    def delete_immutable(self, names: Iterable[str], copy: str) -> None:
        self.whole.delete_immutable(names, "")
        if copy:
            self._copies.delete(copy)
