"""Partial aggregates by pane, in a state backend: appended batch by batch, merged when they are read."""

from __future__ import annotations

import json
from collections.abc import Callable

import pyarrow as pa

from eventide.runtime.elements.codec import decode_table, encode_table
from eventide.runtime.state.backend import StateBackend

_INDEX = "panes"
_MANY_CHUNKS = 8

Merge = Callable[[pa.Table], pa.Table]


class PaneStore:
    """Each pane is a row of chunks, each with at most one row for a key; a small index names them all.

    What a micro-batch adds to a pane is appended as one chunk, so nothing is read back to add to it. When there are
    many chunks, the newest are merged, as long as the next older one is no more than twice as large: a row is merged
    again only a logarithmic number of times.
    """

    def __init__(self, backend: StateBackend, merge: Merge) -> None:
        self._backend = backend
        self._merge = merge
        stored = backend.get(_INDEX)
        content = {} if stored is None else json.loads(stored)
        self._sizes: dict[int, list[int]] = {int(pane): sizes for pane, sizes in content.items()}
        self._changed = False
        self._added: dict[int, list[pa.Table]] = {}
        self._unmerged: set[int] = set()
        self._read: dict[int, pa.Table] = {}

    def panes(self) -> list[int]:
        """Where the panes start that hold anything, in milliseconds, in the order of time."""
        return sorted({*self._sizes, *self._added})

    def add(self, pane: int, partials: pa.Table, *, merged: bool) -> None:
        """Add partial aggregates to a pane; ``merged`` says that there is one row for a key at most."""
        self._added.setdefault(pane, []).append(partials)
        self._read.pop(pane, None)
        if not merged:
            self._unmerged.add(pane)

    def stored(self, pane: int) -> list[pa.Table]:
        """What earlier micro-batches left in a pane, oldest first; a key may be in several."""
        return [self._chunk(pane, i) for i in range(len(self._sizes.get(pane, ())))]

    def added(self, pane: int) -> list[pa.Table]:
        """What this micro-batch added to a pane."""
        return self._added.get(pane, [])

    def read(self, pane: int) -> pa.Table:
        """All of a pane, one row for a key."""
        table = self._read.get(pane)
        if table is None:
            table = self._read[pane] = self._merged(pane, [*self.stored(pane), *self.added(pane)])
        return table

    def drop(self, pane: int) -> None:
        """Forget a pane."""
        for i in range(len(self._sizes.pop(pane, ()))):
            self._backend.delete(_name(pane, i))
            self._changed = True
        self._added.pop(pane, None)
        self._unmerged.discard(pane)
        self._read.pop(pane, None)

    def flush(self) -> None:
        """Store what was added; call it once at the end of a micro-batch."""
        for pane, tables in self._added.items():
            self._append(pane, self._merged(pane, tables))
        if self._changed:
            self._backend.put(_INDEX, json.dumps(self._sizes).encode())
        self._added.clear()
        self._unmerged.clear()
        self._read.clear()
        self._changed = False

    def _append(self, pane: int, table: pa.Table) -> None:
        sizes = self._sizes.setdefault(pane, [])
        at = len(sizes)
        if at >= _MANY_CHUNKS:
            rows = len(table)
            while at and sizes[at - 1] <= 2 * rows:
                at -= 1
                rows += sizes[at]
            table = self._merge(pa.concat_tables([*(self._chunk(pane, i) for i in range(at, len(sizes))), table]))
        for i in range(at + 1, len(sizes)):
            self._backend.delete(_name(pane, i))
        self._backend.put(_name(pane, at), encode_table(table))
        sizes[at:] = [len(table)]
        self._changed = True

    def _chunk(self, pane: int, i: int) -> pa.Table:
        content = self._backend.get(_name(pane, i))
        if content is None:
            raise KeyError(f"chunk {i} of pane {pane} is in the index but not in the state")
        return decode_table(content)

    def _merged(self, pane: int, tables: list[pa.Table]) -> pa.Table:
        if len(tables) == 1 and pane not in self._unmerged:
            return tables[0]
        return self._merge(pa.concat_tables(tables))


def _name(pane: int, chunk: int) -> str:
    return f"pane/{pane}/{chunk}"
