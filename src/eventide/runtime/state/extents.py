"""Rows by the hash of a key in a state backend: a log of extents, and an index that says where the rows of a hash are.

The changes of a micro-batch are appended as an extent, which never changes again. So the bytes written follow the
changed rows, and the bytes read follow the touched rows, however many rows there are. A row is opaque to the store but
for its hash: it is one row of an Arrow batch.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from eventide.common.ms import MAX_MS
from eventide.runtime.elements.elements import without_collection
from eventide.runtime.elements.hashing import Hashes
from eventide.runtime.elements.ordering import are_first, distinct, equal_runs, firsts, spread
from eventide.runtime.state.backend import Backend, content_of
from eventide.runtime.state.runs import NumberArray, Records, SortedRuns, compressed, decompressed, newest
from eventide.runtime.state.timers import NO_PLACE, Numbers

HASH = "__hash"
"""The first column of all rows. Rows of one hash, where there are several, are written and read together."""

NEVER = MAX_MS
"""The due time of rows that are never due."""

EXTENTS = "extents"
"""The name of the list of extents."""

NAMES = frozenset({EXTENTS, "extent", "index", "schema", "times"})
"""Beginnings of the names of a store's values, up to a slash."""

_SCHEMA = "schema"
_PAGE_BYTES = 65_536
"""The bytes of rows in one value of the backend."""

_FEW_ROWS = 4_096
"""Extents with fewer rows become one when there are `_MANY` of them."""

_MANY = 16

_MOST_HASHES = 1 << 18
"""The most hashes of an extent: it is written again as a whole."""

_GARBAGE = 3
"""At most one row in this many is garbage."""

_GONE = np.uint64((1 << 64) - 1)
_ROW_BITS = np.uint64(32)
_ROW_MASK = np.uint64((1 << 32) - 1)
_Flags: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]
_NO_HASHES: Hashes = np.zeros(0, np.uint64)


class Found(NamedTuple):
    """Rows of one schema; ``places`` says of each which of the hashes asked for it has."""

    places: NumberArray
    rows: pa.Table


@dataclass(slots=True)
class _Extent:
    """An extent: the number of its schema, its rows, those on a page, and how many hashes it has, and still has."""

    schema: int
    rows: int
    per_page: int
    hashes: int
    living: int

    @property
    def pages(self) -> int:
        return -(-self.rows // self.per_page)


class HashIndex:
    """Where each hash stands: sorted runs, of which two become one when they are about as large.

    >>> index = HashIndex()
    >>> index.add(np.array([7, 5], np.uint64), 0)
    >>> index.add(np.array([6], np.uint64), 2)
    >>> index.find(np.array([5, 6, 8], np.uint64)).tolist()
    [1, 2, -1]
    >>> index.has(np.array([5, 8], np.uint64)).tolist()
    [True, False]
    """

    def __init__(self) -> None:
        self._runs: list[tuple[Hashes, Numbers]] = []

    def add(self, hashes: Hashes, first: int) -> None:
        """Take in hashes, which stand one after the other."""
        if not len(hashes):
            return
        order = np.argsort(hashes)
        run = hashes[order], order + first
        while self._runs and 2 * len(run[0]) >= len(self._runs[-1][0]):
            hashes, places = (np.concatenate(columns) for columns in zip(self._runs.pop(), run, strict=True))
            order = np.argsort(hashes)
            run = hashes[order], places[order]
        self._runs.append(run)

    def find(self, hashes: Hashes) -> Numbers:
        """Where each hash stands, at one place of several; `NO_PLACE` where it does not."""
        found = np.full(len(hashes), NO_PLACE)
        order = np.argsort(hashes)  # what is looked for in its order is found five times as fast
        hashes = hashes[order]
        for known, places in self._runs:
            at = np.minimum(known.searchsorted(hashes), len(known) - 1)
            is_there = known[at] == hashes
            found[order[is_there]] = places[at[is_there]]
        return found

    def has(self, hashes: Hashes) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which of some hashes stand anywhere."""
        found: np.ndarray[Any, np.dtype[np.bool_]] = self.find(hashes) != NO_PLACE
        return found


class RowStore:
    """Rows by hash, and the times at which they are due.

    In a micro-batch a hash that has rows is read before these are written or deleted; :meth:`flush` ends it.

    Args:
        backend: where they lie.
        kinds: the number of kinds of time, where nothing is stored.

    Attributes:
        user: values of JSON by name that the user of the store keeps with the rows, while there are any.

    >>> from eventide.runtime.state.backend import MemoryBackend
    >>> schema = pa.schema([(HASH, pa.uint64()), ("n", pa.int64())])
    >>> store = RowStore(MemoryBackend(), 1)
    >>> hashes = np.array([5, 7], np.uint64)
    >>> store.read(hashes)
    []
    >>> store.write(pa.table([hashes, [50, 70]], schema=schema), [np.array([1_000, NEVER])])
    >>> store.flush()
    >>> [found] = store.read(np.array([6, 7], np.uint64))
    >>> found.places.tolist(), found.rows.column("n").to_pylist()
    ([1], [70])
    >>> store.due(0, 999).tolist(), store.due(0, 1_000).tolist()
    ([], [5])
    """

    def __init__(self, backend: Backend, kinds: int = 1) -> None:
        self._backend = backend
        self._stored = backend.get(EXTENTS)
        head: dict[str, Any] = {} if self._stored is None else json.loads(self._stored)
        self._schemas: dict[int, pa.Schema] = {}
        self._count_of_schemas: int = head.get("schemas", 0)
        self._extents = {number: _Extent(*extent) for number, *extent in head.get("extents", ())}
        self._next: int = head.get("next", 0)
        runs = head.get("times") or [()] * kinds
        self._kinds = len(runs)
        self._copies: dict[str, str] = head.get("copies", {})
        """The ids of copies of extents and runs, by their names."""
        of_index, of_times = ["<u8", "<u8", *["<i8"] * self._kinds], ["<i8", "<u8"]
        self._index = SortedRuns(backend, "index", of_index, head.get("index", ()), self._copies)
        self._times = [
            SortedRuns(backend, f"times/{kind}", of_times, run, self._copies) for kind, run in enumerate(runs)
        ]
        self.user: dict[str, Any] = head.get("user", {})
        self._begin()

    def _begin(self) -> None:
        """Forget all rows that were loaded."""
        self._pages: dict[tuple[int, int], pa.RecordBatch] = {}
        self._asked = HashIndex()
        self._known: list[Records] = [(_NO_HASHES, _NO_HASHES, *[np.zeros(0, np.int64)] * self._kinds)]
        self._due: list[Hashes] = [_NO_HASHES] * self._kinds
        self._written: list[tuple[pa.Table, Sequence[NumberArray]]] = []
        self._scheduled: list[Records] = []
        self._deleted: list[Hashes] = []

    @without_collection()
    def read(self, hashes: Hashes) -> list[Found]:
        """The rows of some sorted hashes, without the hashes that were read before."""
        new = np.flatnonzero(~self._asked.has(hashes))
        if not len(new):
            return []
        hashes = hashes[new]
        is_there, records = self._index.find(hashes)
        is_there[is_there] = lives = records[1] != _GONE
        records = tuple(column[lives] for column in records)
        self._known.append(records)
        self._asked.add(hashes, 0)
        return self._rows_at(records[1], new[is_there]) if is_there.any() else []

    def others(self) -> Hashes:
        """The hashes that have rows and were not read yet."""
        runs = self._index.all()
        if not runs:
            return _NO_HASHES
        hashes, at, *_ = newest(runs, is_base=True)
        others: Hashes = hashes[(at != _GONE) & ~self._asked.has(hashes)]
        return others

    def due(self, kind: int, until_ms: int) -> Hashes:
        """The hashes, not read yet, that may have something of a kind that is due."""
        taken = [hashes for _, hashes in self._times[kind].take(until_ms)]
        if not taken:
            return _NO_HASHES
        self._due[kind] = distinct(np.concatenate([self._due[kind], *taken]))
        others: Hashes = self._due[kind][~self._asked.has(self._due[kind])]
        return others

    def next_of_others(self, kind: int) -> int | None:
        """A lower bound, in milliseconds, of the due times of a kind among the rows that were not read; else None."""
        return self._times[kind].first(lambda records: self._asked.has(records[1]))

    def write(self, rows: pa.Table, due: Sequence[NumberArray]) -> None:
        """Replace all rows of some hashes, with the due times of each row."""
        if len(rows):
            self._written.append((rows, due))

    def schedule(self, hashes: Hashes, due: Sequence[NumberArray]) -> None:
        """Set the due times of the rows of some hashes; the rows stay."""
        if len(hashes):
            self._scheduled.append((hashes, *due))

    def delete(self, hashes: Hashes) -> None:
        """Delete the rows of some hashes."""
        if len(hashes):
            self._deleted.append(hashes)

    @without_collection()
    def flush(self) -> None:
        """Store what was written; call it once at the end of a micro-batch."""
        if self._written or self._deleted or self._scheduled:
            self._store()
        self._put_due_again()
        self._begin()
        for runs in (self._index, *self._times):
            runs.clear()
        self._put_head()

    def forget(self) -> None:
        """Drop the cached pages, after a caller has read all rows once."""
        self._pages.clear()

    @property
    def last_schema(self) -> pa.Schema | None:
        """The newest schema of rows; None if there are none."""
        return self._schema(self._count_of_schemas - 1) if self._count_of_schemas else None

    def delete_all(self) -> None:
        """Delete all rows, at once."""
        for number in [*self._extents]:
            self._delete(number)
        self._put_head()

    def _store(self) -> None:
        known = [np.concatenate(column) for column in zip(*self._known, strict=True)]
        order = np.argsort(known[0])
        known = [column[order] for column in known]
        new = [records for rows, due in self._together() for records in self._appended(rows, due)]
        deleted = np.sort(np.concatenate(self._deleted)) if self._deleted else _NO_HASHES
        deleted = deleted[are_in(deleted, known[0])]
        gone = np.full(len(deleted), _GONE), *[np.full(len(deleted), NEVER)] * self._kinds
        records = newest([*new, (deleted, *gone)], is_base=True)
        self._count_out(known[1][are_in(known[0], records[0])])
        changed = newest([self._rescheduled(known), records], is_base=True)
        self._index.append(changed, _merged)
        for moved in self._moved(self._garbage(len(records[0]))):
            self._index.append(moved, _merged)
        self._put_new_times(changed, known)  # last, as merging them asks the index what is true

    def _rescheduled(self, known: Sequence[NumberArray]) -> Records:
        """Records of the index for rows that stay, and are due at other times than before."""
        if not self._scheduled:
            return tuple(column[:0] for column in known)
        columns = [np.concatenate(column) for column in zip(*self._scheduled, strict=True)]
        order = np.argsort(columns[0])
        hashes, *due = (column[order] for column in columns)
        at = np.searchsorted(known[0], hashes)
        differs = np.zeros(len(hashes), bool)
        for before, times in zip(known[2:], due, strict=True):
            differs |= before[at] != times
        return tuple(column[differs] for column in (hashes, known[1][at], *due))

    def _together(self) -> Iterator[tuple[pa.Table, list[NumberArray]]]:
        """The written rows, each schema once, in the order of hashes."""
        left = self._written
        while left:
            schema = left[0][0].schema
            alike = [one for one in left if one[0].schema.equals(schema, check_metadata=True)]
            left = [one for one in left if not one[0].schema.equals(schema, check_metadata=True)]
            sums = np.cumsum([len(rows) for rows, _ in alike])
            fit = max(1, int(np.searchsorted(sums, _MOST_HASHES, "right")))
            alike, left = alike[:fit], alike[fit:] + left
            rows = pa.concat_tables([rows for rows, _ in alike])
            due = [np.concatenate(columns) for columns in zip(*(due for _, due in alike), strict=True)]
            hashes = _hashes_of(rows)
            if (hashes[1:] < hashes[:-1]).any():
                order = np.argsort(hashes, kind="stable")
                rows, due = rows.take(pa.array(order)), [column[order] for column in due]
            yield rows.combine_chunks(), due

    def _appended(self, rows: pa.Table, due: Sequence[NumberArray]) -> Iterator[Records]:
        """Append rows in the order of hashes as extents; and give what the index has of them."""
        hashes = _hashes_of(rows)
        bounds = [*firsts(hashes)[::_MOST_HASHES].tolist(), len(rows)]
        for begin, end in pairwise(bounds):
            yield self._extent(rows.slice(begin, end - begin), [column[begin:end] for column in due])

    def _extent(self, rows: pa.Table, due: Sequence[NumberArray]) -> Records:
        """Append rows in the order of hashes as one extent."""
        hashes = _hashes_of(rows)
        first = firsts(hashes)
        size = sum(column.nbytes for column in rows.columns if column.null_count < len(rows))
        per_page = max(1, _PAGE_BYTES * len(rows) // max(1, size))
        if len(first) < len(rows) and (hashes[per_page::per_page] == hashes[per_page - 1 : -1 : per_page]).any():
            per_page = len(rows)  # rows of one hash stay on one page
        number, self._next = self._next, self._next + 1
        extent = _Extent(self._number_of(rows.schema), len(rows), per_page, len(first), len(first))
        self._extents[number] = extent
        if copy := self._backend.put_immutable(_pages(number, rows, per_page)):
            self._copies[_extent_name(number)] = copy
        at = (np.uint64(number) << _ROW_BITS) | first.astype(np.uint64)
        return hashes[first], at, *(np.minimum.reduceat(column, first) for column in due)

    def _number_of(self, schema: pa.Schema) -> int:
        for number in range(self._count_of_schemas):
            if self._schema(number).equals(schema, check_metadata=True):
                return number
        number, self._count_of_schemas = self._count_of_schemas, self._count_of_schemas + 1
        self._schemas[number] = schema
        self._backend.put(f"{_SCHEMA}/{number}", schema.serialize().to_pybytes())
        return number

    def _schema(self, number: int) -> pa.Schema:
        if number not in self._schemas:
            content = content_of(self._backend, f"{_SCHEMA}/{number}")
            self._schemas[number] = pa.ipc.read_schema(pa.py_buffer(content))
        return self._schemas[number]

    def _count_out(self, at: NumberArray) -> None:
        """Take note that the rows at some places are garbage now."""
        numbers, counts = np.unique(at >> _ROW_BITS, return_counts=True)
        for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
            self._extents[number].living -= count

    def _garbage(self, written: int) -> list[int]:
        """The extents whose living rows are to be written again; those without any are deleted."""
        extents = self._extents
        for number in [number for number, extent in extents.items() if not extent.living]:
            self._delete(number)
        few = defaultdict[int, list[int]](list)
        for number, extent in extents.items():
            if extent.rows < _FEW_ROWS:
                few[extent.schema].append(number)
        found = [number for alike in few.values() if len(alike) >= _MANY for number in alike]
        hashes, living = (sum(getattr(extent, name) for extent in extents.values()) for name in ("hashes", "living"))
        most = max(2 * written, _FEW_ROWS)
        for number in sorted(extents, key=lambda number: extents[number].living / extents[number].hashes):
            if (hashes - living) * _GARBAGE <= hashes or most <= 0:
                break
            extent = extents[number]
            hashes, most = hashes - (extent.hashes - extent.living), most - extent.living
            found = found if number in found else [*found, number]
        return found

    def _moved(self, numbers: Sequence[int]) -> list[Records]:
        """Write the living rows of some extents again, and delete these."""
        by_schema: dict[int, list[int]] = {}
        for number in numbers:
            by_schema.setdefault(self._extents[number].schema, []).append(number)
        records: list[Records] = []
        for alike in by_schema.values():
            living = [self._living(number) for number in alike]
            rows = pa.concat_tables([rows for rows, _ in living])
            due = [np.concatenate(columns) for columns in zip(*(due for _, due in living), strict=True)]
            order = np.argsort(_hashes_of(rows), kind="stable")
            records += self._appended(rows.take(pa.array(order)), [column[order] for column in due])
            for number in alike:
                self._delete(number)
        return records

    def _living(self, number: int) -> tuple[pa.Table, list[NumberArray]]:
        """The rows of an extent that are not garbage, and when they are due."""
        rows = pa.Table.from_batches(self._pages_of(number, range(self._extents[number].pages)))
        hashes = _hashes_of(rows)
        is_first = are_first(hashes)
        first, of_row = np.flatnonzero(is_first), np.cumsum(is_first) - 1
        is_there, (_, at, *due) = self._index.find(hashes[first])
        lives = np.zeros(len(first), bool)
        lives[is_there] = at == (np.uint64(number) << _ROW_BITS) | first[is_there].astype(np.uint64)
        stays = lives[of_row]
        times = np.full((len(due), len(first)), NEVER)
        times[:, is_there] = due
        return rows.filter(pa.array(stays)), [column[of_row][stays] for column in times]

    def _put_new_times(self, records: Records, known: Sequence[NumberArray]) -> None:
        """Take note of when what was written is due, where it was not due then before."""
        hashes, _, *due = records
        places = np.searchsorted(known[0], hashes)
        places[places == len(known[0])] = 0
        was_there = known[0][places] == hashes if len(known[0]) else np.zeros(len(hashes), bool)
        for kind, times in enumerate(due):
            is_new = times != NEVER
            if len(known[0]):
                is_new &= ~(was_there & (known[2 + kind][places] == times))
            self._put_times(kind, times[is_new], hashes[is_new])

    def _put_due_again(self) -> None:
        """Add due rows that were taken out to the times again, if they are still due."""
        for kind, hashes in enumerate(self._due):
            _, (found, at, *due) = self._index.find(hashes)
            is_due = (at != _GONE) & (due[kind] != NEVER)
            self._put_times(kind, due[kind][is_due], found[is_due])

    def _put_times(self, kind: int, times: NumberArray, hashes: Hashes) -> None:
        order = np.lexsort((hashes, times))
        self._times[kind].append((times[order], hashes[order]), partial(self._merged_times, kind))

    def _merged_times(self, kind: int, runs: Sequence[Records], *, is_base: bool) -> Records:
        """One run of several, without what is no longer true."""
        times, hashes = map(np.concatenate, zip(*runs, strict=True))
        order = np.lexsort((hashes, times))
        times, hashes = times[order], hashes[order]
        asked = distinct(hashes)
        of_pair = np.searchsorted(asked, hashes)
        is_there, (_, at, *due) = self._index.find(asked)
        current = np.full(len(asked), NEVER)
        current[is_there] = np.where(at == _GONE, NEVER, due[kind])
        stays = (current[of_pair] == times) & are_first(times, hashes)
        return times[stays], hashes[stays]

    def _rows_at(self, at: NumberArray, places: NumberArray) -> list[Found]:
        """The rows at some places of extents, with the places of their hashes."""
        order = np.argsort(at)
        at, places = at[order], places[order]
        numbers, first = at >> _ROW_BITS, (at & _ROW_MASK).astype(np.int64)
        found: dict[int, tuple[list[NumberArray], list[NumberArray], list[pa.RecordBatch]]] = {}
        lengths: dict[int, int] = {}
        for begin, end in equal_runs(numbers):
            number = int(numbers[begin])
            extent = self._extents[number]
            of_page = first[begin:end] // extent.per_page
            of_hashes, of_rows, pages = found.setdefault(extent.schema, ([], [], []))
            bounds = [*equal_runs(of_page)]
            needed = self._pages_of(number, [int(of_page[page_begin]) for page_begin, _ in bounds])
            for (page_begin, page_end), page in zip(bounds, needed, strict=True):
                some = slice(begin + page_begin, begin + page_end)
                rows, of_row = _with_twins(first[some] % extent.per_page, page.column(HASH).to_numpy())
                of_hashes.append(places[some][of_row])
                of_rows.append(rows + lengths.get(extent.schema, 0))
                pages.append(page)
                lengths[extent.schema] = lengths.get(extent.schema, 0) + len(page)
        return [
            Found(np.concatenate(of_hashes), _taken(pages, np.concatenate(of_rows)))
            for of_hashes, of_rows, pages in found.values()
        ]

    def _pages_of(self, number: int, pages: Sequence[int]) -> list[pa.RecordBatch]:
        extent = self._extents[number]
        new = [page for page in pages if (number, page) not in self._pages]
        copy = self._copies.get(_extent_name(number), "")
        stored = self._backend.get_immutable(new, partial(_page_name, number), copy, extent.pages)
        for page, content in zip(new, stored, strict=True):
            rows = pa.py_buffer(decompressed(content))
            self._pages[number, page] = pa.ipc.read_record_batch(rows, self._schema(extent.schema))
        return [self._pages[number, page] for page in pages]

    def _delete(self, number: int) -> None:
        names = [_page_name(number, page) for page in range(self._extents.pop(number).pages)]
        self._backend.delete_immutable(names, self._copies.pop(_extent_name(number), ""))
        for page in range(len(names)):
            self._pages.pop((number, page), None)

    def _put_head(self) -> None:
        """Store the head, if it has changed."""
        if not self._extents:
            self._next = 0
            for runs in (self._index, *self._times):
                runs.delete_all()
            for number in range(self._count_of_schemas):
                self._backend.delete(f"{_SCHEMA}/{number}")
            self._schemas, self._count_of_schemas = {}, 0
            if self._stored is not None:
                self._backend.delete(EXTENTS)
                self._stored = None
            return
        head = {
            "schemas": self._count_of_schemas,
            "extents": [[number, *astuple(extent)] for number, extent in self._extents.items()],
            "next": self._next,
            "index": self._index.stored,
            "times": [runs.stored for runs in self._times],
            "user": self.user,
        }
        if self._copies:
            head["copies"] = self._copies
        stored = json.dumps(head, separators=(",", ":")).encode()
        if stored != self._stored:
            self._backend.put(EXTENTS, stored)
            self._stored = stored


def _hashes_of(rows: pa.Table) -> Hashes:
    hashes: Hashes = rows.column(HASH).to_numpy()
    return hashes


def _taken(pages: list[pa.RecordBatch], rows: NumberArray) -> pa.Table:
    """Some rows of pages that lie one after the other."""
    together = pa.Table.from_batches(pages)
    if len(rows) == len(together):
        return together
    return together.combine_chunks().take(pa.array(rows))


def _pages(number: int, rows: pa.Table, per_page: int) -> Iterator[tuple[str, bytes]]:
    """The values of an extent, by their names."""
    for page, begin in enumerate(range(0, len(rows), per_page)):
        (batch,) = rows.slice(begin, per_page).combine_chunks().to_batches()
        yield _page_name(number, page), compressed(batch.serialize())


def _extent_name(number: int) -> str:
    return f"extent/{number}"


def _page_name(number: int, page: int) -> str:
    return f"{_extent_name(number)}/{page}"


def are_in(hashes: Hashes, others: Hashes) -> _Flags:
    """For each of some hashes whether it is among others, which are in order."""
    if not len(others):
        return np.zeros(len(hashes), bool)
    found: _Flags = others[np.minimum(np.searchsorted(others, hashes), len(others) - 1)] == hashes
    return found


def _with_twins(rows: NumberArray, hashes: Hashes) -> tuple[NumberArray, NumberArray]:
    """The rows of a page that have the hashes of some of its rows, and for each of them the number of that row."""
    following = np.minimum(rows + 1, len(hashes) - 1)
    if not ((following != rows) & (hashes[following] == hashes[rows])).any():
        return rows, np.arange(len(rows))
    of_rows, twins = spread(np.searchsorted(hashes, hashes[rows], "right") - rows)
    return rows[of_rows] + twins, of_rows


def _merged(runs: Sequence[Records], *, is_base: bool) -> Records:
    """One run of the index of several; of what is gone nothing is left in the oldest one."""
    records = newest(runs, is_base=is_base)
    if not is_base:
        return records
    stays = records[1] != _GONE
    return tuple(column[stays] for column in records)
