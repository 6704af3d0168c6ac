"""Records of numbers in a state backend, in sorted runs that are appended, merged now and then, and looked up.

Appended records are a run of their own, so nothing is read back to add to it. Runs of about one size become one, so
that a record is written again a few times only, and there are few runs to look into.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from eventide.errors import StateError
from eventide.runtime.elements.ordering import are_first
from eventide.runtime.state.backend import Backend

NumberArray: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Records: TypeAlias = tuple[NumberArray, ...]
"""Records in columns of eight bytes, of which the first is what they are sorted and looked up by."""

StoredRuns: TypeAlias = list[list[int]]
"""Each run as its user keeps it, oldest first: its number, its records, and how many of them are taken out."""


class MergeRuns(Protocol):
    """Makes one run of several, the oldest first; ``is_base`` says that the first of them is the oldest of all."""

    def __call__(self, runs: Sequence[Records], *, is_base: bool) -> Records:
        """Return that run."""


CHUNK = 1_024
"""The number of records in one value of the backend: a part of the stored form, as runs do not say it."""

_PATIENCE = 4
"""The number of runs within one chunk that are left unmerged."""

_WORD = 8
_BY_PLACE = 1 << 31
"""Flag in the size of a value that is stored by place in its words: all first bytes, then all second bytes, …"""

_LARGE, _SAMPLED, _BLOCK = 16_384, 8, 256
"""In a value of `_LARGE` bytes or more, one in `_SAMPLED` blocks of `_BLOCK` bytes is compressed in both forms."""

_SIZE = struct.Struct("<I")
_LZ4 = pa.Codec("lz4_raw")
"""Values look alike, and every byte passes a socket, two representations in the JVM and a log, on either way."""


class SortedRuns:
    """Runs of records that are sorted by their first column.

    Args:
        backend: where they lie.
        name: the beginning of their names there.
        kinds: the types of the columns.
        stored: the runs that there are.
        copies: the ids of copies of what lies in the backend, by the names of runs; they change with the runs.

    >>> from eventide.runtime.state.backend import MemoryBackend
    >>> runs = SortedRuns(MemoryBackend(), "r", ["<u8", "<i8"], [])
    >>> runs.append((np.array([3, 7], "<u8"), np.array([30, 70])), newest)
    >>> runs.append((np.array([7, 8], "<u8"), np.array([71, 80])), newest)
    >>> is_there, (_, values) = runs.find(np.array([3, 5, 7], "<u8"))
    >>> is_there.tolist(), values.tolist()
    ([True, False, True], [30, 71])
    """

    def __init__(
        self,
        backend: Backend,
        name: str,
        kinds: Sequence[str],
        stored: Iterable[Sequence[int]],
        copies: dict[str, str] | None = None,
    ) -> None:
        self._backend = backend
        self._name = name
        self._copies = {} if copies is None else copies
        self._kinds = [np.dtype(kind) for kind in kinds]
        self._runs = [_Run(*run) for run in stored]
        self._chunks: dict[tuple[int, int], Records] = {}
        self._bounds: dict[int, NumberArray] = {}

    @property
    def stored(self) -> StoredRuns:
        """The runs as they are stored, to open them with."""
        return [[run.number, run.count, run.taken] for run in self._runs]

    def find(self, keys: NumberArray) -> tuple[np.ndarray[Any, np.dtype[np.bool_]], Records]:
        """Which of some keys, in their order, have a record, and for each of these the newest one."""
        is_there = np.zeros(len(keys), bool)
        found = [np.zeros(len(keys), kind) for kind in self._kinds]
        left = np.arange(len(keys))
        for run in reversed(self._runs):
            wanted = keys[left]
            if not len(left):
                break
            chunks = np.flatnonzero(np.bincount(np.searchsorted(self._bounds_of(run), wanted, "right")))
            records = self._read(run, chunks.tolist())
            at = np.minimum(np.searchsorted(records[0], wanted), len(records[0]) - 1)
            is_hit = records[0][at] == wanted
            hits = left[is_hit]
            for column, values in zip(found, records, strict=True):
                column[hits] = values[at[is_hit]]
            is_there[hits] = True
            left = left[~is_hit]
        return is_there, tuple(column[is_there] for column in found)

    def append(self, records: Records, merge: MergeRuns) -> None:
        """Store records in the order of their first column, and make one run of those at the end that are alike."""
        begin, total = len(self._runs), len(records[0])
        if not total:
            return
        while begin and self._runs[begin - 1].count <= 2 * total:
            begin -= 1
            total += self._runs[begin].count
        older = self._runs[begin:]
        number = 1 + max((run.number for run in self._runs), default=-1)
        if older and (total > CHUNK or len(older) >= _PATIENCE):
            records = merge([*map(self._all, older), records], is_base=begin == 0)
            for run in older:
                self._delete(run)
            del self._runs[begin:]
        if len(records[0]):
            self._put(_Run(number, len(records[0]), 0), records)

    def take(self, until: int) -> Iterator[Records]:
        """Take out the records whose first number is at most another one, in parts."""
        for run in [*self._runs]:
            before = run.taken
            while run.taken < run.count:
                part = self._from_first(run)
                if not len(part[0]):
                    raise StateError(
                        f"the state {self._run_name(run)!r} has fewer records than its head says: restore a backup of "
                        "the checkpoint, or begin with a savepoint"
                    )
                end = int(np.searchsorted(part[0], until, "right"))
                run.taken += end
                if end:
                    yield tuple(column[:end] for column in part)
                if end < len(part[0]):
                    break
            if before < run.taken == run.count:
                self._delete(run)
                self._runs.remove(run)

    def first(self, is_left_out: Callable[[Records], np.ndarray[Any, np.dtype[np.bool_]]]) -> int | None:
        """The least first number of a record that is not left out; None if there is none."""
        least: int | None = None
        for run in self._runs:
            for chunk in range(run.taken // CHUNK, run.chunks):
                part = self._chunk(run, chunk)
                begin = max(0, run.taken - chunk * CHUNK)
                if least is not None and part[0][begin] >= least:
                    break
                stays = np.flatnonzero(~is_left_out(tuple(column[begin:] for column in part)))
                if len(stays):
                    found = int(part[0][begin + stays[0]])
                    least = found if least is None else min(least, found)
                    break
        return least

    def all(self) -> list[Records]:
        """The records of each run, the oldest first."""
        return list(map(self._all, self._runs))

    def delete_all(self) -> None:
        """Delete all records."""
        for run in self._runs:
            self._delete(run)
        self._runs.clear()

    def clear(self) -> None:
        """Forget what was read."""
        self._chunks.clear()
        self._bounds.clear()

    def _put(self, run: _Run, records: Records) -> None:
        self._runs.append(run)
        if copy := self._backend.put_immutable(self._contents(run, records)):
            self._copies[self._run_name(run)] = copy

    def _contents(self, run: _Run, records: Records) -> Iterator[tuple[str, bytes]]:
        """The values of a run by their names, which are remembered."""
        for chunk in range(run.chunks):
            part = tuple(column[chunk * CHUNK : (chunk + 1) * CHUNK] for column in records)
            self._chunks[run.number, chunk] = part
            yield self._value_name(run, chunk), compressed(b"".join(column.tobytes() for column in part))
        if run.chunks > 1:
            bounds = self._bounds[run.number] = records[0][CHUNK::CHUNK].copy()
            yield self._value_name(run, run.chunks), bounds.tobytes()

    def _delete(self, run: _Run) -> None:
        names = [self._value_name(run, number) for number in range(run.values)]
        self._backend.delete_immutable(names, self._copies.pop(self._run_name(run), ""))
        for chunk in range(run.chunks):
            self._chunks.pop((run.number, chunk), None)
        self._bounds.pop(run.number, None)

    def _bounds_of(self, run: _Run) -> NumberArray:
        """The first number of each chunk but the first one."""
        found = self._bounds.get(run.number)
        if found is None:
            (stored,) = self._values(run, [run.chunks]) if run.chunks > 1 else (b"",)
            found = self._bounds[run.number] = np.frombuffer(stored, self._kinds[0])
        return found

    def _all(self, run: _Run) -> Records:
        first = run.taken // CHUNK
        records = self._read(run, range(first, run.chunks))
        return tuple(column[run.taken - first * CHUNK :] for column in records)

    def _from_first(self, run: _Run) -> Records:
        """The first records that are not taken out, up to the end of their chunk."""
        chunk, begin = divmod(run.taken, CHUNK)
        return tuple(column[begin:] for column in self._chunk(run, chunk))

    def _read(self, run: _Run, chunks: Sequence[int]) -> Records:
        self._load(run, chunks)
        found = [self._chunks[run.number, chunk] for chunk in chunks]
        return found[0] if len(found) == 1 else tuple(map(np.concatenate, zip(*found, strict=True)))

    def _chunk(self, run: _Run, chunk: int) -> Records:
        self._load(run, [chunk])
        return self._chunks[run.number, chunk]

    def _load(self, run: _Run, chunks: Sequence[int]) -> None:
        new = [chunk for chunk in chunks if (run.number, chunk) not in self._chunks]
        if not new:
            return
        for chunk, stored in zip(new, self._values(run, new), strict=True):
            self._chunks[run.number, chunk] = self._records(decompressed(stored))

    def _records(self, content: bytes) -> Records:
        count = len(content) // sum(kind.itemsize for kind in self._kinds)
        columns, begin = [], 0
        for kind in self._kinds:
            columns.append(np.frombuffer(content, kind, count, begin))
            begin += count * kind.itemsize
        return tuple(columns)

    def _values(self, run: _Run, numbers: Sequence[int]) -> Iterator[bytes]:
        copy = self._copies.get(self._run_name(run), "")
        return self._backend.get_immutable(numbers, partial(self._value_name, run), copy, run.values)

    def _value_name(self, run: _Run, number: int) -> str:
        """The name of a chunk, or of the bounds, which come after the last one."""
        return f"{self._run_name(run)}/{number}" if number < run.chunks else self._run_name(run)

    def _run_name(self, run: _Run) -> str:
        return f"{self._name}/{run.number}"


class _Run:
    """A run: its number, how many records it has, and how many of them are taken out."""

    def __init__(self, number: int, count: int, taken: int) -> None:
        self.number = number
        self.count = count
        self.taken = taken

    @property
    def chunks(self) -> int:
        return -(-self.count // CHUNK)

    @property
    def values(self) -> int:
        """How many values it has in the backend: its chunks, and their bounds if there are several."""
        return self.chunks + (self.chunks > 1)


def newest(runs: Sequence[Records], *, is_base: bool) -> Records:
    """One run of several in which each key is once: its newest record stays."""
    columns = tuple(map(np.concatenate, zip(*reversed(runs), strict=True)))
    order = np.argsort(columns[0], kind="stable")
    order = order[are_first(columns[0][order])]
    return tuple(column[order] for column in columns)


def compressed(content: bytes | pa.Buffer) -> bytes:
    """The stored form of a value, the shorter one of two; of a large value, the one that is shorter for a sample.

    In one of them the first bytes of all words of eight bytes lie together, then all second bytes, and so on: of
    numbers and times of one size, most of these are alike.

    >>> numbers = np.arange(1_000_000, 1_001_000).tobytes()
    >>> len(compressed(numbers)), decompressed(compressed(numbers)) == numbers
    (330, True)
    """
    size = len(content)
    sample = content
    if size >= _LARGE:
        blocks = np.frombuffer(content, np.uint8, size // _BLOCK * _BLOCK).reshape(-1, _BLOCK)
        sample = blocks[::_SAMPLED].tobytes()
    forms = _plain(sample), _by_place(sample)
    is_by_place = len(forms[1]) < len(forms[0])
    found = forms[is_by_place] if sample is content else (_by_place if is_by_place else _plain)(content)
    return _SIZE.pack(size | _BY_PLACE if is_by_place else size) + found


def _plain(content: bytes | pa.Buffer) -> bytes:
    found: bytes = _LZ4.compress(content, asbytes=True)
    return found


def _by_place(content: bytes | pa.Buffer) -> bytes:
    words, rest = _words(content)
    return _plain(words.T.tobytes() + rest)


def decompressed(stored: bytes) -> bytes:
    """A value of what is stored of it."""
    (size,) = _SIZE.unpack_from(stored)
    content: bytes = _LZ4.decompress(memoryview(stored)[_SIZE.size :], size & ~_BY_PLACE, asbytes=True)
    if not size & _BY_PLACE:
        return content
    words, rest = _words(content)
    return words.reshape(_WORD, -1).T.tobytes() + rest


def _words(content: bytes | pa.Buffer) -> tuple[np.ndarray[Any, np.dtype[np.uint8]], memoryview]:
    """The words of a value, and the bytes after the last one."""
    end = len(content) // _WORD * _WORD
    return np.frombuffer(content, np.uint8, end).reshape(-1, _WORD), memoryview(content)[end:]
