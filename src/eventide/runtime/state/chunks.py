"""Rows of chunks in a state backend: appended batch by batch, merged now and then, read when they are wanted."""

from __future__ import annotations

import json
from typing import Generic, Protocol, TypeAlias, TypeVar

from eventide.runtime.elements.elements import without_collection
from eventide.runtime.state.backend import Backend, content_of

_PIECE = 1 << 20
"""The bytes of one value at most: a larger chunk is stored in pieces."""

T = TypeVar("T")


_ChunkEntry: TypeAlias = int | list[int]
"""A chunk in the index: its number of entries, and, if that is not one, its number of pieces.

It stays as it is in JSON: of many chunks, few are looked at.
"""


CHUNKS = "chunks"
"""The key of the index of chunks, and the beginning of the names of chunks, before a slash."""


class ChunkForm(Protocol[T]):
    """Form of chunks, given by the user of the store: their size, how they merge, and how they become bytes."""

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


class StoredChunks:
    """Rows of chunks as bytes, each row named by a number; a small index names all chunks, with the size of each."""

    def __init__(self, backend: Backend, name: str = CHUNKS) -> None:
        self._backend = backend
        self._index = name
        stored = backend.get(name)
        content = {} if stored is None else json.loads(stored)
        self._entries: dict[int, list[_ChunkEntry]] = {int(row): entries for row, entries in content.items()}
        self._changed = False

    def rows(self) -> list[int]:
        """The rows that hold anything, in the order of their numbers."""
        return sorted(self._entries)

    def __contains__(self, row: int) -> bool:
        """Whether a row holds anything."""
        return row in self._entries

    def count(self, row: int) -> int:
        """How many chunks a row has."""
        return len(self._entries.get(row, ()))

    def entries(self, row: int) -> int:
        """How many entries the chunks of a row have."""
        return sum(map(_size, self._entries.get(row, ())))

    def contents(self, row: int) -> list[bytes]:
        """The chunks of a row as they are stored, oldest first."""
        return [self._content(row, i) for i in range(self.count(row))]

    def put(self, row: int, i: int, content: bytes, size: int) -> None:
        """Store the chunk of a number, with `size` entries: one that is there, or the next."""
        entries = self._entries.setdefault(row, [])
        pieces = max(1, -(-len(content) // _PIECE))
        for piece in range(pieces):
            self._backend.put(self._name(row, i, piece), content[piece * _PIECE : (piece + 1) * _PIECE])
        self._changed = True
        entries[i : i + 1] = [size if pieces == 1 else [size, pieces]]

    def drop(self, row: int) -> None:
        """Forget a row, whether there is one or not."""
        for i, entry in enumerate(self._entries.pop(row, ())):
            self._delete(row, i, entry)

    def flush(self) -> None:
        """Store the index; call it once at the end of a micro-batch."""
        if not self._changed:
            return
        self._changed = False
        if self._entries:
            self._backend.put(self._index, json.dumps(self._entries, separators=(",", ":")).encode())
        else:
            self._backend.delete(self._index)

    def _delete(self, row: int, i: int, entry: _ChunkEntry) -> None:
        for piece in range(_pieces(entry)):
            self._backend.delete(self._name(row, i, piece))
        self._changed = True

    def _content(self, row: int, i: int) -> bytes:
        names = [self._name(row, i, piece) for piece in range(_pieces(self._entries[row][i]))]
        return b"".join(content_of(self._backend, name) for name in names)

    def _name(self, row: int, i: int, piece: int) -> str:
        return f"{self._index}/{row}/{i}" + (f"/{piece}" if piece else "")


class ChunkStore(StoredChunks, Generic[T]):
    """Rows of chunks of some form.

    What a micro-batch adds to a row is appended as one chunk, so nothing is read back to add to it. The newest chunks
    are merged as long as the next older one is no more than twice as large: so an entry is handled again only a
    logarithmic number of times. The oldest chunk of a row is its base.
    """

    def __init__(self, backend: Backend, form: ChunkForm[T], name: str = CHUNKS) -> None:
        super().__init__(backend, name)
        self._form = form

    @without_collection()
    def chunks(self, row: int) -> list[T]:
        """The chunks of a row, oldest first."""
        return [self._form.decode(content) for content in self.contents(row)]

    @without_collection()
    def append(self, row: int, chunk: T) -> None:
        """Store one more chunk; call it once for each row of a micro-batch, or few times."""
        entries = self._entries.setdefault(row, [])
        at = len(entries)
        size = self._form.size(chunk)
        if at >= self._form.patience:
            while at and _size(entries[at - 1]) <= 2 * size:
                at -= 1
                size += _size(entries[at])
        if at < len(entries):
            older = [self._form.decode(self._content(row, i)) for i in range(at, len(entries))]
            chunk = self._form.merged([*older, chunk], from_base=at == 0)
        for i in range(at, len(entries)):
            self._delete(row, i, entries[i])
        del entries[at:]
        self.put(row, at, self._form.encode(chunk), self._form.size(chunk))


def _size(entry: _ChunkEntry) -> int:
    return entry if isinstance(entry, int) else entry[0]


def _pieces(entry: _ChunkEntry) -> int:
    return 1 if isinstance(entry, int) else entry[1]
