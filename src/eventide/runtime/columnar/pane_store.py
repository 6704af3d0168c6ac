"""Partial aggregates by pane, in a state backend."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from eventide.runtime.elements.codec import decode_table, encode_table
from eventide.runtime.state.backend import Backend
from eventide.runtime.state.chunks import ChunkStore

Merge: TypeAlias = Callable[[pa.Table], pa.Table]


@dataclass(frozen=True, slots=True)
class Tables:
    """Chunks are tables, with at most one row for a key in each."""

    merge: Merge
    patience: int = 8

    def size(self, chunk: pa.Table) -> int:
        """Its rows."""
        return len(chunk)

    def merged(self, chunks: list[pa.Table], *, from_base: bool) -> pa.Table:
        """One row for a key."""
        return self.merge(pa.concat_tables(chunks))

    def encode(self, chunk: pa.Table) -> bytes:
        """An Arrow IPC stream."""
        return encode_table(chunk)

    def decode(self, data: bytes) -> pa.Table:
        """The inverse of :meth:`encode`."""
        return decode_table(data)


class PaneStore:
    """Each pane is a row of chunks, with what this micro-batch has added to it, which may never be stored.

    Panes are known by their numbers.
    """

    def __init__(self, backend: Backend, merge: Merge) -> None:
        self._merge = merge
        self._chunks: ChunkStore[pa.Table] = ChunkStore(backend, Tables(merge))
        self._added: dict[int, list[pa.Table]] = {}
        self._read: dict[int, pa.Table] = {}

    def panes(self) -> list[int]:
        """The panes that hold anything, in the order of time."""
        return sorted({*self._chunks.rows(), *self._added})

    def add(self, pane: int, partials: pa.Table) -> None:
        """Add partial aggregates to a pane, one row for a key at most."""
        self._added.setdefault(pane, []).append(partials)
        self._read.pop(pane, None)

    def stored(self, pane: int) -> list[pa.Table]:
        """Return the tables that earlier micro-batches left in a pane, oldest first; a key may be in several."""
        return self._chunks.chunks(pane)

    def added(self, pane: int) -> list[pa.Table]:
        """Return the tables that this micro-batch added to a pane."""
        return self._added.get(pane, [])

    def read(self, pane: int) -> pa.Table:
        """All of a pane, one row for a key."""
        table = self._read.get(pane)
        if table is None:
            table = self._read[pane] = self._merged([*self.stored(pane), *self.added(pane)])
        return table

    def drop(self, pane: int) -> None:
        """Forget a pane."""
        self._chunks.drop(pane)
        self._added.pop(pane, None)
        self._read.pop(pane, None)

    def flush(self) -> None:
        """Store what was added; call it once at the end of a micro-batch."""
        for pane, tables in self._added.items():
            self._chunks.append(pane, self._merged(tables))
        self._chunks.flush()
        self._added.clear()
        self._read.clear()

    def _merged(self, tables: list[pa.Table]) -> pa.Table:
        return tables[0] if len(tables) == 1 else self._merge(pa.concat_tables(tables))
