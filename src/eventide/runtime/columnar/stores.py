"""Tables in a state backend: partial aggregates by pane, and rows by key.

``PaneTree`` has the sums of panes that windows with many panes in common share. ``KeyedTable`` has rows by key, which
are read when their key is touched.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.common.ms import MAX_MS
from eventide.runtime.columnar.layout import key_numbers, slices_by, with_keys_of
from eventide.runtime.elements.codec import decode_table, encode_table
from eventide.runtime.elements.hashing import Hashes
from eventide.runtime.elements.keys import first_rows, hashes_of_columns
from eventide.runtime.elements.ordering import distinct, firsts
from eventide.runtime.state.backend import Backend
from eventide.runtime.state.bucket_store import BucketStore
from eventide.runtime.state.chunks import ChunkStore
from eventide.runtime.state.extents import HASH, RowStore, are_in
from eventide.runtime.state.runs import NumberArray

MergeTables: TypeAlias = Callable[[pa.Table], pa.Table]

NUMBER = "__number"
"""The column of the number of a group of nodes among those that are put together."""

_ROWS_AT_ONCE = 1 << 21
_FEW_PANES = 16
_MANY_TABLES = 256
_LEVEL_BITS = 6
_LEVELS = (1 << _LEVEL_BITS) - 1


@dataclass(frozen=True, slots=True)
class Tables:
    """Chunks are tables, and several become one by ``merge``."""

    merge: MergeTables
    patience: int = 8

    def size(self, chunk: pa.Table) -> int:
        """The number of rows of a chunk."""
        return len(chunk)

    def merged(self, chunks: list[pa.Table], *, from_base: bool) -> pa.Table:
        """Some chunks as one."""
        return self.merge(pa.concat_tables(chunks))

    def encode(self, chunk: pa.Table) -> bytes:
        """An Arrow IPC stream."""
        return encode_table(chunk)

    def decode(self, data: bytes) -> pa.Table:
        """The inverse of :meth:`encode`."""
        return decode_table(data)


class PaneStore:
    """Each pane is a row of chunks, with what this micro-batch has added to it, which may never be stored.

    Panes are known by their numbers. Several tables of one become one by ``merge``: of partial aggregates, of which
    each has one row for a key at most, or of plain rows.
    """

    def __init__(self, backend: Backend, merge: MergeTables) -> None:
        self._merge = merge
        self._chunks: ChunkStore[pa.Table] = ChunkStore(backend, Tables(merge))
        self._added: dict[int, list[pa.Table]] = {}
        self._read: dict[int, pa.Table] = {}

    def panes(self) -> list[int]:
        """The panes that hold anything, in the order of time."""
        return sorted({*self._chunks.rows(), *self._added})

    def add(self, pane: int, table: pa.Table) -> None:
        """Add a table to a pane."""
        self._added.setdefault(pane, []).append(table)
        self._read.pop(pane, None)

    def stored(self, pane: int) -> list[pa.Table]:
        """Return the tables that earlier micro-batches left in a pane, oldest first; a key may be in several."""
        return self._chunks.chunks(pane)

    def added(self, pane: int) -> list[pa.Table]:
        """Return the tables that this micro-batch added to a pane."""
        return self._added.get(pane, [])

    def read(self, pane: int) -> pa.Table:
        """All of a pane as one table."""
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
        """The two halves of the node, in the order of time."""
        return Node(self.level - 1, 2 * self.place), Node(self.level - 1, 2 * self.place + 1)

    @property
    def row(self) -> int:
        """The number of the node's row of chunks: the place, and in the lowest bits the level."""
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
            rows = with_keys_of(rows, only, keys)
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


class KeyedTable:
    """One table of all rows whose keys were touched in this micro-batch; changes are written back once.

    Rows of a key keep their order. Each key has a time, so that those with something due can be found without reading
    any.
    """

    def __init__(self, backend: Backend, schema: pa.Schema, keys: list[str]) -> None:
        self._store = RowStore(backend, 1)
        self._keys = keys
        self._before = schema.insert(0, pa.field(HASH, pa.uint64())).empty_table()
        self.table = schema.empty_table()
        self._former = BucketStore(backend)
        if self._former.entries:
            self._read_former()

    @property
    def count(self) -> int:
        """Number of rows, those that were not read among them; asked after :meth:`flush`."""
        return int(self._store.user.get(_ROWS, 0))

    def read_keys_of(self, rows: pa.Table) -> None:
        """Read the rows of the keys of some rows."""
        if self._keys:
            first = first_rows(key_numbers(rows, self._keys))
            rows = rows.select(self._keys).take(pa.array(first))
        self._read(distinct(self._hashes_of(rows)))

    def read_due(self, time_ms: int) -> None:
        """Read the rows of the keys whose time has come: of all keys, at the end of time."""
        self._read(self._store.others() if time_ms == MAX_MS else self._store.due(0, time_ms))

    def adopt(self, rows: pa.Table, due_ms: int) -> None:
        """Store rows of another table, where there are none; none of them is due before a time."""
        self.table = rows
        self.flush(np.full(len(rows), due_ms))

    def flush(self, due: NumberArray) -> None:
        """Write back what was read and has changed; a key is read for its time when the first of its rows is due."""
        hashes = self._hashes_of(self.table)
        order = np.argsort(hashes, kind="stable")
        hashes, due = hashes[order], due[order]
        first = firsts(hashes)
        self._read(hashes[first])  # those that were put here without being read
        self._before = self._before.take(pa.array(np.argsort(self._before.column(HASH).to_numpy(), kind="stable")))
        now = self.table.slice(0, len(order)).take(pa.array(order))
        now = now.add_column(0, self._before.schema.field(0), pa.array(hashes))
        changed = _changed_hashes(self._before, now, hashes[first])
        is_changed = are_in(hashes, changed)
        self._store.write(now.filter(pa.array(is_changed)), [due[is_changed]])
        gone = distinct(self._before.column(HASH).to_numpy())
        self._store.delete(gone[~are_in(gone, hashes)])
        if len(first):
            stays = ~is_changed[first]
            self._store.schedule(hashes[first][stays], [np.minimum.reduceat(due, first)[stays]])
        self._store.user[_ROWS] = self.count + len(now) - len(self._before)
        self._store.flush()
        self._before, self.table = self._before.slice(0, 0), self.table.slice(0, 0)

    def _read(self, hashes: Hashes) -> None:
        """Read the rows of some hashes, which are in order, where they were not read yet."""
        found = [rows for _, rows in self._store.read(hashes)]
        if found:
            more = pa.concat_tables(found)
            self._before = pa.concat_tables([self._before, more])
            self.table = pa.concat_tables([self.table, more.drop_columns([HASH])]).combine_chunks()

    def _read_former(self) -> None:
        """Load the rows that lie in the buckets of an earlier version, and delete them there."""
        self.table = pa.concat_tables([*map(decode_table, self._former.contents())])
        self._former.delete_all()

    def _hashes_of(self, rows: pa.Table) -> Hashes:
        if not self._keys:
            return np.zeros(len(rows), np.uint64)
        return hashes_of_columns([rows.column(name) for name in self._keys])


_ROWS = "rows"


def _changed_hashes(before: pa.Table, now: pa.Table, known: Hashes) -> Hashes:
    """The known hashes that have other rows now than before, or in another order; both tables are sorted by hash."""
    hashes, hashes_before = (table.column(HASH).to_numpy() for table in (now, before))
    counts, counts_before = (
        np.searchsorted(of_table, known, "right") - np.searchsorted(of_table, known)
        for of_table in (hashes, hashes_before)
    )
    alike = known[counts == counts_before]
    rows, rows_before = (
        table.filter(pa.array(are_in(of_table, alike))) for table, of_table in ((now, hashes), (before, hashes_before))
    )
    differs = np.zeros(len(rows), bool)
    for column, column_before in zip(rows.columns, rows_before.columns, strict=True):
        differs |= ~_are_equal(column.combine_chunks(), column_before.combine_chunks())
    return distinct(np.concatenate([known[counts != counts_before], rows.column(HASH).to_numpy()[differs]]))


def _are_equal(ones: pa.Array, others: pa.Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """For each row whether two values are equal bit for bit; those of nested types count as different."""
    kind = ones.type
    if pa.types.is_nested(kind):
        return np.zeros(len(ones), bool)
    if pa.types.is_floating(kind):
        bits = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[kind.bit_width]
        ones, others = ones.view(bits), others.view(bits)
    equal = pc.fill_null(pc.equal(ones, others), False)
    if ones.null_count or others.null_count:
        equal = pc.or_(equal, pc.and_(ones.is_null(), others.is_null()))
    flags: np.ndarray[Any, np.dtype[np.bool_]] = equal.to_numpy(zero_copy_only=False)
    return flags
