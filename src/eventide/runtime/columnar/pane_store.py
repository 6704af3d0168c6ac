"""Partial aggregates by pane in a state backend, and the sums of panes that windows with many panes in common share."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from eventide.runtime.columnar.layout import numbered_together, slices_by
from eventide.runtime.elements.codec import decode_table, encode_table
from eventide.runtime.state.backend import Backend
from eventide.runtime.state.chunks import ChunkStore

Merge: TypeAlias = Callable[[pa.Table], pa.Table]

NUMBER = "__number"
"""The column of the number of a group of nodes among those that are put together."""

_ROWS_AT_ONCE = 1 << 21
_FEW_PANES = 16
_MANY_TABLES = 256
_LEVEL_BITS = 6
_LEVELS = (1 << _LEVEL_BITS) - 1


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


class Node(NamedTuple):
    """The panes from ``place * 2**level`` on, ``2**level`` of them: on level 0, one pane."""

    level: int
    place: int

    @property
    def first(self) -> int:
        """The number of its first pane."""
        return self.place << self.level

    @property
    def children(self) -> tuple[Node, Node]:
        """Its two halves, in the order of time."""
        return Node(self.level - 1, 2 * self.place), Node(self.level - 1, 2 * self.place + 1)

    @property
    def row(self) -> int:
        """Its name among rows of chunks: the place, and in the lowest bits the level."""
        return self.place << _LEVEL_BITS | self.level


class PaneTree:
    """Merged panes: each node of a binary tree over the panes is made when a window first needs it, and kept.

    A window of ``n`` panes is put together from ``2 * log2(n)`` nodes at most, whatever ``n`` is, and each pane is
    merged into ``log2(n)`` nodes in its life. Windows of a few panes do without: to store nodes costs more than it
    saves. Nothing is ever subtracted, and nodes are merged in the order of time, so any aggregate will do. All nodes of
    a level, and all windows, are merged in one call of Arrow's.

    A pane that is added to takes the nodes above it away: that happens to late elements only, for nodes are made of
    panes that the watermark has passed.
    """

    def __init__(
        self, backend: Backend, panes: PaneStore, panes_of_window: int, merge: Callable[..., pa.Table]
    ) -> None:
        self._panes = panes
        self._levels = panes_of_window.bit_length() - 1 if panes_of_window > _FEW_PANES else 0
        self._merge = merge
        self._chunks: ChunkStore[pa.Table] = ChunkStore(backend, Tables(merge), "nodes")
        self._made: dict[Node, pa.Table] = {}
        self._read: dict[Node, pa.Table] = {}

    def forget_above(self, pane: int) -> None:
        """Take away the nodes that a pane is in, because it has changed."""
        for level in range(1, self._levels + 1):
            node = Node(level, pane >> level)
            self._chunks.drop(node.row)
            self._made.pop(node, None)
            self._read.pop(node, None)

    def together(
        self, ranges: Sequence[tuple[int, int]], only: pa.Table | None, keys: list[str]
    ) -> Iterator[tuple[pa.Table, int]]:
        """Merge ranges of panes, each by itself: from the first, and not including the last.

        Args:
            ranges: the ranges of numbers, in the order in which they come.
            only: if given, only keys that are in this table are wanted, though others may come too.
            keys: the columns of the key.

        Yields:
            One row for each key and range, for some ranges after the other: with the number of the range among them in
            the column NUMBER, and how many there are.
        """
        cover = _Cover(self._panes.panes(), self._levels)
        groups = [cover.of(first, end) for first, end in ranges]
        self._make({node for group in groups for node in group}, cover)
        yield from self._merged(groups, only, keys)

    def drop_before(self, pane: int) -> None:
        """Forget the nodes that begin before a pane: no window has all of such a node any more."""
        for row in self._chunks.rows():
            if row >> _LEVEL_BITS << (row & _LEVELS) < pane:
                self._chunks.drop(row)
        for tables in (self._made, self._read):
            for node in [node for node in tables if node.first < pane]:
                del tables[node]

    def flush(self) -> None:
        """Store the nodes that were made; call it once at the end of a micro-batch."""
        for node, table in self._made.items():
            self._chunks.append(node.row, table)
        self._chunks.flush()
        self._made.clear()
        self._read.clear()

    def _make(self, nodes: Iterable[Node], cover: _Cover) -> None:
        """Make the nodes that are not there yet, from the lowest level up."""
        missing: defaultdict[int, dict[Node, list[Node]]] = defaultdict(dict)
        waiting = [node for node in nodes if not self._has(node)]
        while waiting:
            node = waiting.pop()
            if node not in missing[node.level]:
                parts = [part for child in node.children if (part := cover.least(child)) is not None]
                missing[node.level][node] = parts
                waiting += [part for part in parts if not self._has(part)]
        for level in sorted(missing):
            made = list(missing[level])
            for table, count in self._merged([missing[level][node] for node in made], None, []):
                self._made.update((made[number], part) for number, part in slices_by(table, NUMBER))
                made = made[count:]

    def _has(self, node: Node) -> bool:
        return node.level == 0 or node in self._made or node.row in self._chunks

    def _table(self, node: Node) -> pa.Table:
        if node.level == 0:
            return self._panes.read(node.place)
        table = self._made.get(node)
        if table is None:
            table = self._read.get(node)
        if table is None:
            (table,) = self._chunks.chunks(node.row)
            self._read[node] = table
        return table

    def _merged(
        self, groups: list[list[Node]], only: pa.Table | None, keys: list[str]
    ) -> Iterator[tuple[pa.Table, int]]:
        """Merge the nodes of each group, for as many groups at once as makes a handy number of rows."""
        start = 0
        rows = 0
        for end, group in enumerate(groups, 1):
            rows += sum(len(self._table(node)) for node in group)
            if rows >= _ROWS_AT_ONCE or end == len(groups):
                yield self._merged_at_once(groups[start:end], only, keys), end - start
                start, rows = end, 0

    def _merged_at_once(self, groups: list[list[Node]], only: pa.Table | None, keys: list[str]) -> pa.Table:
        tables = [self._table(node) for group in groups for node in group]
        numbers = np.repeat(np.arange(len(groups)), [sum(len(self._table(node)) for node in group) for group in groups])
        rows = pa.concat_tables(tables)
        if len(tables) > _MANY_TABLES:
            rows = rows.combine_chunks()
        rows = rows.append_column(NUMBER, pa.array(numbers))
        if only is not None and keys:
            in_rows, in_only = numbered_together(rows, only, keys)
            rows = rows.filter(pa.array(np.isin(in_rows, in_only)))
        return rows if max(map(len, groups)) == 1 else self._merge(rows, NUMBER)


class _Cover:
    """Finds the nodes that make up a range of panes, of which most may hold nothing."""

    def __init__(self, panes: list[int], levels: int) -> None:
        self._panes = panes
        self._levels = levels
        self._least: dict[Node, Node | None] = {}

    def of(self, first: int, end: int) -> list[Node]:
        """The nodes of the panes from one up to another, which is not among them; in the order of time.

        >>> _Cover([1, 2, 3, 4, 6], levels=2).of(1, 7)
        [Node(level=0, place=1), Node(level=1, place=1), Node(level=0, place=4), Node(level=0, place=6)]
        """
        left: list[Node] = []
        right: list[Node] = []
        level = 0
        while first < end and level < self._levels:
            if first & 1:
                left.append(Node(level, first))
                first += 1
            if end & 1:
                end -= 1
                right.append(Node(level, end))
            first, end, level = first >> 1, end >> 1, level + 1
        middle = [Node(level, place) for place in range(first, end)]
        found = [self.least(node) for node in [*left, *middle, *reversed(right)]]
        return [node for node in found if node is not None]

    def least(self, node: Node) -> Node | None:
        """The lowest node that has the same panes with anything in them; None if there are none."""
        if node in self._least:
            return self._least[node]
        panes = self._panes
        at = bisect_left(panes, node.first)
        last = bisect_left(panes, node.first + (1 << node.level)) - 1
        found = None
        if at <= last:
            level = (panes[at] ^ panes[last]).bit_length()
            found = Node(level, panes[at] >> level)
        self._least[node] = found
        return found
