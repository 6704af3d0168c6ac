"""Rows of chunks in a state backend: appended batch by batch, merged now and then, read when they are wanted."""

from __future__ import annotations

import json
from typing import Generic, Protocol, TypeVar

from eventide.runtime.state.backend import StateBackend
from eventide.runtime.state.collection import without_collection

T = TypeVar("T")


class ChunkForm(Protocol[T]):
    """What its user knows of chunks: their size, how they merge, and how they become bytes."""

    @property
    def patience(self) -> int:
        """How many chunks a row has before the newest are merged.

        With 1, what is appended is merged at once with what is no more than twice as large.
        """

    def size(self, chunk: T) -> int:
        """How many entries a chunk has."""

    def merged(self, chunks: list[T], *, from_base: bool) -> T:
        """One chunk of several, the oldest first; ``from_base`` says that the first is the oldest of its row."""

    def encode(self, chunk: T) -> bytes:
        """A chunk to bytes."""

    def decode(self, data: bytes) -> T:
        """The inverse of :meth:`encode`."""


class ChunkStore(Generic[T]):
    """Rows of chunks, each row named by a number; a small index names them all, with the size of each chunk.

    What a micro-batch adds to a row is appended as one chunk, so nothing is read back to add to it. The newest chunks
    are merged as long as the next older one is no more than twice as large: so an entry is handled again only a
    logarithmic number of times. The oldest chunk of a row is its base.
    """

    def __init__(self, backend: StateBackend, form: ChunkForm[T], name: str = "chunks") -> None:
        self._backend = backend
        self._form = form
        self._index = name
        stored = backend.get(name)
        content = {} if stored is None else json.loads(stored)
        self._sizes: dict[int, list[int]] = {int(row): sizes for row, sizes in content.items()}
        self._changed = False

    def rows(self) -> list[int]:
        """The rows that hold anything, in the order of their numbers."""
        return sorted(self._sizes)

    def __contains__(self, row: int) -> bool:
        """Whether a row holds anything."""
        return row in self._sizes

    def chunks(self, row: int) -> list[T]:
        """The chunks of a row, oldest first."""
        with without_collection():
            return [self._chunk(row, i) for i in range(len(self._sizes.get(row, ())))]

    def append(self, row: int, chunk: T) -> None:
        """Store one more chunk; call it once for each row of a micro-batch, or few times."""
        with without_collection():
            self._append(row, chunk)

    def drop(self, row: int) -> None:
        """Forget a row, whether there is one or not."""
        for i in range(len(self._sizes.pop(row, ()))):
            self._backend.delete(self._name(row, i))
            self._changed = True

    def flush(self) -> None:
        """Store the index; call it once at the end of a micro-batch."""
        if not self._changed:
            return
        self._changed = False
        if self._sizes:
            self._backend.put(self._index, json.dumps(self._sizes, separators=(",", ":")).encode())
        else:
            self._backend.delete(self._index)

    def _append(self, row: int, chunk: T) -> None:
        sizes = self._sizes.setdefault(row, [])
        at = len(sizes)
        size = self._form.size(chunk)
        if at >= self._form.patience:
            while at and sizes[at - 1] <= 2 * size:
                at -= 1
                size += sizes[at]
            if at < len(sizes):
                older = [self._chunk(row, i) for i in range(at, len(sizes))]
                chunk = self._form.merged([*older, chunk], from_base=at == 0)
        for i in range(at + 1, len(sizes)):
            self._backend.delete(self._name(row, i))
        self._backend.put(self._name(row, at), self._form.encode(chunk))
        sizes[at:] = [self._form.size(chunk)]
        self._changed = True

    def _chunk(self, row: int, i: int) -> T:
        content = self._backend.get(self._name(row, i))
        if content is None:
            raise KeyError(f"chunk {i} of row {row} is in the index but not in the state")
        return self._form.decode(content)

    def _name(self, row: int, chunk: int) -> str:
        return f"{self._index}/{row}/{chunk}"
