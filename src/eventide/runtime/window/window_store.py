"""Contents of fixed windows, by key: appended in chunks, put together when a window fires."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np

from eventide.errors import StateError
from eventide.pickling.pickles import dumps, is_pickle, loads
from eventide.runtime.elements.elements import without_collection
from eventide.runtime.elements.ownership import own
from eventide.runtime.state.backend import Backend
from eventide.runtime.state.chunks import ChunkForm, ChunkStore
from eventide.runtime.window.contents import AtElement, Contents, TimeArray, append_each

ContentsByKey: TypeAlias = dict[Any, Any]
"""Contents of a window by key, or a list of the elements that it must still add; in the order of arrival."""

Chunk: TypeAlias = dict[int, ContentsByKey]
"""The windows of a row by their number."""

T = TypeVar("T")
Added = TypeVar("Added")

_PARTS = 8
_NO_TIMES = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class _WindowChunks:
    """Form of chunks: their contents, and how they merge.

    The oldest chunk of a row holds what windows keep. If contents are associative, so do the others, and it is merged
    in their order. If not, the others hold elements, which are added to the oldest one by one, in the order of arrival;
    to merge the others alone is to join their lists of elements. So a fold goes from left to right in any case.
    """

    contents: Contents

    @property
    def patience(self) -> int:
        """Elements are added as soon as that is cheap: there may be many of a key, and it keeps little of them."""
        return _PARTS if self.contents.is_associative else 1

    def size(self, chunk: Chunk) -> int:
        """How many entries, or elements, there are."""
        return size_of(chunk)

    def merged(self, chunks: list[Chunk], *, from_base: bool) -> Chunk:
        """All windows of the chunks."""
        base, *others = chunks
        for other in others:
            for window, by_key in other.items():
                mine = base.setdefault(window, {})
                if self.contents.is_associative or from_base:
                    self.add(mine, by_key)
                else:
                    append(mine, by_key)
        return base

    def add(self, kept: ContentsByKey, more: ContentsByKey) -> None:
        """Append what another chunk has of a window to its contents.

        Raises:
            AtElement: if the user's function raised.
        """
        contents = self.contents
        if not contents.is_associative:
            keys = [key for key, elements in more.items() for _ in elements]
            contents.add_each(kept, keys, list(chain.from_iterable(more.values())), _NO_TIMES)
            return
        get = kept.get
        for key, right in more.items():
            left = get(key)
            try:
                kept[key] = right if left is None else contents.continued(left, right)
            except Exception as error:
                raise AtElement(error, key, right) from error

    def encode(self, chunk: Chunk) -> bytes:
        """A pickle: keys and values side by side are quicker than pairs."""
        return encode_windows(chunk)

    def decode(self, data: bytes) -> Chunk:
        """The inverse of :meth:`encode`.

        Raises:
            StateError: if they are elements on columns.
        """
        if not is_pickle(data):
            raise StateError(
                "its elements were kept on columns, because their key was one of their fields, but this program's key "
                "is not a field: key_by the field again, and compute another key in a map before that"
            )
        return decode_windows(data)


def encode_windows(chunk: Chunk) -> bytes:
    """A chunk as it is stored."""
    return dumps([(window, list(by_key), list(by_key.values())) for window, by_key in chunk.items()])


def decode_windows(data: bytes, loads: Callable[[bytes], Any] = loads) -> Chunk:
    """The inverse of :func:`encode_windows`; ``loads`` unpickles."""
    return {window: dict(zip(keys, values, strict=True)) for window, keys, values in loads(data)}


def size_of(chunk: Chunk) -> int:
    """How many entries, or elements, a chunk has."""
    return sum(sum(map(len, by_key.values())) for by_key in chunk.values())


class RowsOfWindows(Generic[T, Added]):
    """Rows of chunks that hold windows, which are known by their number, and what this micro-batch adds to each.

    A row holds `in_row` windows, one after the other; one each, unless windows overlap so much that an element is in a
    great many.
    """

    def __init__(self, backend: Backend, form: ChunkForm[T], in_row: int) -> None:
        self._chunks: ChunkStore[T] = ChunkStore(backend, form)
        self._in_row = in_row
        self._added: dict[int, Added] = {}
        self._read: dict[int, list[T]] = {}

    def windows(self, first: int, last: int) -> list[int]:
        """The windows from one number to another, both inclusive, that may hold anything, in the order of time."""
        if first > last:
            return []
        first_row, last_row = first // self._in_row, last // self._in_row
        rows = sorted(row for row in {*self._chunks.rows(), *self._added} if first_row <= row <= last_row)
        numbers = chain.from_iterable(range(row * self._in_row, (row + 1) * self._in_row) for row in rows)
        return [number for number in numbers if first <= number <= last]

    def count_from(self, first: int) -> int | None:
        """How many windows hold something, from a number on; None if several are stored together."""
        return len(self.windows(first, max([first, *self._chunks.rows()]))) if self._in_row == 1 else None

    def drop_until(self, window: int) -> None:
        """Forget all windows up to a number, as far as no later ones are in their rows."""
        last_row = (window + 1) // self._in_row - 1
        for row in {*self._chunks.rows(), *self._added}:
            if row <= last_row:
                self._chunks.drop(row)
                self._added.pop(row, None)
                self._read.pop(row, None)

    def flush(self) -> None:
        """Store the index; call it once at the end of a micro-batch."""
        self._chunks.flush()
        self._read.clear()

    def _chunks_of(self, row: int) -> list[T]:
        """The stored chunks of a row, oldest first, which are read once in a micro-batch."""
        chunks = self._read.get(row)
        if chunks is None:
            chunks = self._read[row] = self._chunks.chunks(row)
        return chunks


class WindowStore(RowsOfWindows[Chunk, Chunk]):
    """The contents of fixed windows, which are known by their number: later windows have higher ones.

    What a micro-batch brings and fires is never stored.
    """

    def __init__(self, backend: Backend, contents: Contents, windows_in_row: int) -> None:
        form = _WindowChunks(contents)
        super().__init__(backend, form, windows_in_row)
        self._contents = contents
        self._form = form
        self._opened: dict[int, ContentsByKey] = {}

    def add(self, window: int, keys: Sequence[Any], values: Sequence[Any], timestamps: TimeArray) -> None:
        """Add elements to a window, in their order.

        Raises:
            AtElement: if the user's function raised.
        """
        row = window // self._in_row
        if self._opened.pop(window, None) is not None:
            self._read.pop(row, None)  # it has to be put together once more
        added = self._added.setdefault(row, {}).setdefault(window, {})
        if self._keeps(row):
            self._contents.add_each(added, keys, values, timestamps)
        else:
            append_each(added, keys, values)

    def kept(self, window: int, coming: int) -> ContentsByKey | None:
        """The content of a window by key, for the caller to add to; None if ``coming`` elements are better appended.

        Stored contents are taken out where the elements would be added to them as soon as they are stored.

        Raises:
            AtElement: if the user's function raised.
        """
        row = window // self._in_row
        is_appended = not self._keeps(row)
        if is_appended and (self._in_row > 1 or self._chunks.entries(row) > 2 * coming):
            return None
        if self._opened.pop(window, None) is not None:
            self._read.pop(row, None)
        if is_appended:
            self._added[row] = {window: self._put_together(window)}
            self._read.pop(row, None)
            self._chunks.drop(row)
        return self._added.setdefault(row, {}).setdefault(window, {})

    def add_late(self, window: int, key: object, value: object, timestamp: int) -> Any:
        """Add one element to a window that has fired already, and return what the window now keeps of its key.

        The element goes to two places, as objects of their own: one that is stored, and one that functions see.
        """
        opened = self.open(window)
        opened[key] = kept = self._contents.add(opened.get(key), own(value), timestamp)
        value = own(value)
        row = window // self._in_row
        added = self._added.setdefault(row, {}).setdefault(window, {})
        if self._keeps(row):
            added[key] = self._contents.add(added.get(key), value, timestamp)
        else:
            added.setdefault(key, []).append(value)
        return kept

    def open(self, window: int) -> ContentsByKey:
        """Return the contents of a window that will still be added to, by key in the order of first arrival.

        Raises:
            AtElement: if the user's function raised.
        """
        opened = self._opened.get(window)
        if opened is None:
            # The opened contents are other objects than the stored ones, so that changing them changes no state.
            self._store(window // self._in_row)
            opened = self._opened[window] = self._put_together(window)
        return opened

    def take(self, window: int) -> ContentsByKey:
        """Return the contents of a window for the last time, by key in the order of first arrival.

        Raises:
            AtElement: if the user's function raised.
        """
        opened = self._opened.pop(window, None)
        return self._put_together(window) if opened is None else opened

    def flush(self) -> None:
        """Store what was added; call it once at the end of a micro-batch.

        Raises:
            AtElement: if the user's function raised.
        """
        for row in list(self._added):
            self._store(row)
        super().flush()
        self._opened.clear()

    def _keeps(self, row: int) -> bool:
        """Whether a row is added to in the form that windows keep, not as elements: it has no base, or needs none."""
        return self._contents.is_associative or row not in self._chunks

    def _store(self, row: int) -> None:
        added = self._added.pop(row, None)
        if added:
            self._chunks.append(row, added)
            self._read.pop(row, None)

    def _put_together(self, window: int) -> ContentsByKey:
        row = window // self._in_row
        chunks = self._chunks_of(row)
        added = self._added.get(row, {})
        kept = chunks[0].pop(window, {}) if chunks else added.pop(window, {})
        with without_collection():
            for other in [*chunks[1:], added] if chunks else []:
                self._form.add(kept, other.pop(window, {}))
        return kept


def append(elements: ContentsByKey, more: ContentsByKey) -> None:
    """Append elements to the present ones of their keys."""
    for key, others in more.items():
        mine = elements.get(key)
        if mine is None:
            elements[key] = others
        else:
            mine += others
