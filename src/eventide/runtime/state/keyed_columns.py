"""One value for each key of a subtask, as rows of columns: read by page, looked up together, and written once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.common.typeinfo import CompositeTypeInfo
from eventide.errors import DataError
from eventide.pickling.pickles import loads
from eventide.runtime.elements.elements import Numbers
from eventide.runtime.elements.hashing import Hashes
from eventide.runtime.metrics import KEYS
from eventide.runtime.state.backend import Backend, without_collection
from eventide.runtime.state.bucket import MOST_BUCKETS, TIMES, Bucket, BucketStore, addresses
from eventide.runtime.state.pages import HASH, VALUE, PageTypes, is_page, read_page

PAGE_BYTES = 65_536
"""The size of a page of which many rows are touched, so that a call to the store costs less than what it carries."""

_SMALL_PAGE_BYTES = 4_096
"""The size of a page of which one row is touched: it costs less than the call, and its neighbours are written, too."""

_ROWS_AT_ONCE = 1 << 20


class NoColumns(Exception):
    """Columns cannot hold what is stored, or cannot tell its keys apart: it has to be used as objects."""


class KeyedColumns:
    """The rows of the keys whose pages were read, and what has become of them.

    Pages and buckets of objects lie in one store (:class:`~eventide.runtime.state.keyed.KeyedState` has the other
    view of it); a bucket of objects becomes a page when one of its keys is touched.

    The size of pages follows how densely they are touched (decision 49): where a micro-batch touches one row of each
    that it reads, they are split, as many at a time as it has read; where it reads most of them, they are put together.
    """

    def __init__(self, backend: Backend, types: PageTypes) -> None:
        self._store = BucketStore(backend, PAGE_BYTES, TIMES)
        self._types = types
        self._pages: dict[int, int] = {}  # the bytes of each page that was read
        self._read_rows = self._touched = 0
        self._has_changed = False
        self._rows: pa.Table = types.schema.empty_table()
        self._gone = np.zeros(0, bool)  # which rows were replaced; none, where it is empty

    def find(self, hashes: Hashes, keys: Sequence[pa.Array]) -> tuple[Numbers, pa.ChunkedArray]:
        """The places of some different keys among the rows at hand, -1 for a new key; and the values of all rows.

        Raises:
            NoColumns: if the rows of their pages are not as columns hold them, or another key has the hash of one.
        """
        store = self._store
        wanted = np.unique(addresses(hashes, store.count)).tolist()
        self._touched += len(hashes)
        store.size = PAGE_BYTES if self._touched >= 2 * len({*wanted, *self._pages}) else _SMALL_PAGE_BYTES
        is_most = 2 * len(wanted) > store.count > 2 * store.fitting
        with without_collection():
            self._have(range(store.count) if is_most else wanted)
        self._rows = self._living().combine_chunks()
        found = pc.index_in(pa.array(hashes), value_set=self._rows.column(HASH)).fill_null(-1)
        places: Numbers = found.to_numpy().astype(np.int64)
        there = np.flatnonzero(places >= 0)
        for i, key in enumerate(keys, 1):
            known = self._rows.column(i).take(pa.array(places[there])).combine_chunks()
            if not are_alike(key.take(pa.array(there)), known):
                raise NoColumns("two keys have one hash")
        return places, self._rows.column(VALUE)

    def put(self, places: Numbers, rows: pa.RecordBatch) -> None:
        """Replace the rows at some places by others, and add those of new keys."""
        gone = np.zeros(len(self._rows) + len(rows), bool)
        gone[: len(self._gone)] = self._gone
        gone[places[places >= 0]] = True
        self._rows, self._gone = pa.concat_tables([self._rows, pa.Table.from_batches([rows])]), gone
        self._has_changed = True

    def flush(self) -> None:
        """Write back the pages that were read; call it once, when nothing more will be put."""
        with without_collection():
            if self._has_changed:
                self._write()
        self._store.flush()

    def held(self) -> dict[str, int]:
        """How many keys there are; asked after :meth:`flush`."""
        return {KEYS: self._store.entries}

    def _have(self, numbers: Iterable[int]) -> None:
        """Have the rows of some pages at hand."""
        new = [number for number in numbers if number not in self._pages]
        read = self._store.get_many(new)
        found = [self._batch(content) for content in read.values() if content is not None]
        self._pages.update((number, len(content or b"")) for number, content in read.items())
        if found:
            more = pa.Table.from_batches(found)
            self._read_rows += len(more)
            self._rows = pa.concat_tables([self._living(), more])

    def _batch(self, content: bytes) -> pa.RecordBatch:
        if not is_page(content):
            return _rows_of(Bucket.from_bytes(content), self._types)
        types, rows = read_page(content)
        if types != self._types:
            raise NoColumns(f"the state was stored as {types.value} by {types.key}")
        return rows

    def _write(self) -> None:
        store, sizes = self._store, dict(self._pages)
        contents: dict[int, bytes | None] = {}
        changed: Iterable[int] = [*self._pages]
        if len(self._pages) == store.count > 2 * store.fitting:
            store.count = store.fitting
        most = store.count + (len(self._pages) if store.size < PAGE_BYTES else MOST_BUCKETS)
        while True:
            rows, encoded = self._encoded(changed)
            made = {number: encoded.get(number) for number in changed}
            contents |= made
            size = sum(len(content or b"") - sizes.get(number, 0) for number, content in made.items())
            sizes |= {number: len(content or b"") for number, content in made.items()}
            entries, self._read_rows = rows - self._read_rows, rows
            before = store.count
            moving = store.grow(entries, size, most - before)
            try:
                self._have(moving)
            except NoColumns:
                store.count = before  # what cannot move yet stays together with what could
                break
            if not moving:
                break
            sizes = self._pages | sizes
            changed = [*moving, *range(before, store.count)]
        for number in sorted(contents):
            store.put(number, contents[number])

    def _living(self) -> pa.Table:
        """The rows at hand that were not replaced."""
        if self._gone.any():
            self._rows = self._rows.filter(pa.array(~self._gone))
        self._gone = np.zeros(0, bool)
        return self._rows

    def _encoded(self, wanted: Iterable[int]) -> tuple[int, dict[int, bytes]]:
        """How many rows there are at hand, and some of their pages, by number."""
        living = np.ones(len(self._rows), bool)
        living[: len(self._gone)] = ~self._gone
        rows = int(np.count_nonzero(living))
        numbers = addresses(self._rows.column(HASH).to_numpy(), self._store.count)
        living &= np.isin(numbers, np.array([*wanted], np.int64))
        order = np.flatnonzero(living)
        order = order[np.argsort(numbers[order], kind="stable")]
        if not len(order):
            return rows, {}
        numbers, all_rows = numbers[order], self._rows.combine_chunks()
        starts = np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1]))
        ends = np.append(starts[1:], len(numbers))
        found = {}
        for some in np.split(np.arange(len(starts)), np.flatnonzero(np.diff(starts // _ROWS_AT_ONCE)) + 1):
            first = int(starts[some[0]])
            (batch,) = all_rows.take(pa.array(order[first : ends[some[-1]]])).combine_chunks().to_batches()
            for number, start, end in zip(numbers[starts[some]].tolist(), starts[some], ends[some], strict=True):
                found[number] = self._types.page(batch.slice(start - first, end - start))
        return rows, found


def are_alike(ones: pa.Array, others: pa.Array) -> bool:
    """Whether two columns are equal row by row, where None equals None.

    >>> are_alike(pa.array([1, None]), pa.array([1, None])), are_alike(pa.array([1]), pa.array([None], pa.int64()))
    (True, False)
    """
    equal = pc.fill_null(pc.equal(ones, others), False)
    if ones.null_count or others.null_count:
        equal = pc.or_(equal, pc.and_(ones.is_null(), others.is_null()))
    return bool(pc.all(equal, min_count=0).as_py())


def _rows_of(stored: Bucket, types: PageTypes) -> pa.RecordBatch:
    """The rows of a bucket of objects.

    Raises:
        NoColumns: if it has anything else, or a key or value that would come back as another one.
    """
    owners, are_pickled, values = stored.values.get(types.name, ([], False, []))
    if [*stored.values] != [types.name] or owners is not None or stored.spaces or stored.count_timers():
        raise NoColumns("there is other state beside the values, or there are timers")
    values = list(map(loads, values)) if are_pickled else values
    try:
        if None not in values and types.value.keeps(values) and types.key.keeps(stored.keys):
            keys = types.key.to_arrow(stored.keys)
            parts = keys.flatten() if isinstance(types.key, CompositeTypeInfo) else [keys]
            return types.rows(parts, np.array(stored.hashes, np.uint64), types.value.to_arrow(values))
    except (DataError, ValueError, OverflowError) as error:
        raise NoColumns(str(error)) from error
    raise NoColumns(f"what is stored is not as columns of {types.value} by {types.key} have it")
