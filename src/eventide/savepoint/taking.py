"""A savepoint is written: the state of each subtask is taken apart where it is, and what it is of comes last."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from eventide.errors import StateError
from eventide.pickling.pickles import is_pickle
from eventide.runtime.state.backend import MemoryBackend, PartOfState
from eventide.runtime.state.bucket_store import BucketStore
from eventide.runtime.state.chunks import CHUNKS, StoredChunks
from eventide.runtime.state.extents import EXTENTS, RowStore
from eventide.runtime.state.journal import has_base, whole
from eventide.runtime.state.operators import HEAD, small_values, stored_values
from eventide.runtime.state.pages import is_page
from eventide.savepoint import tables
from eventide.savepoint.directory import NAME, Directory, Header
from eventide.savepoint.rows import BROADCAST, KEYED, PART, TASKS, KeyRows, Row, Small, rows_of_buckets, rows_of_windows
from eventide.savepoint.tasks import SAVED

_BUCKETS = "buckets"
_ROWS = 65_536
_FILE = ""
"""An id that no operator has."""


@dataclass(frozen=True)
class StateWriter:
    """Writes a savepoint into a directory that is new. It is picklable: subtasks may be written anywhere.

    Args:
        location: the directory.
        max_parallelism: the number of key groups.
    """

    location: str
    max_parallelism: int

    def begin(self) -> None:
        """See that there is nothing at the location.

        Raises:
            StateError: if there is something.
            ProgramError: if Arrow cannot open it.
        """
        if not Directory(self.location).is_empty():
            raise StateError(f"there is something at {self.location} already; write the savepoint into a new directory")

    def write(self, place: str, subtask: int, values: Mapping[str, bytes]) -> list[Small]:
        """Write what is large of a subtask of a stage, whose ``place`` no other has.

        Returns:
            The small values of it, and the names of the files, as small values of no operator.

        Raises:
            StateError: if the state is damaged, or of another format.
        """
        small = small_values(values[HEAD])
        parts = _by_operator(small, stored_values(values))
        directory = Directory(self.location)
        with ExitStack() as closing:
            keyed = _Rows(directory, f"keyed/{place}.parquet", closing)
            for operator, own in sorted(parts.items()):
                for part, store, is_keyed in _bucket_stores(own):
                    if is_keyed and not (part.startswith(BROADCAST) and subtask):  # every subtask has the same
                        keyed.write(rows_of_buckets(store, KeyRows(operator, part, self.max_parallelism)))
                    elif not is_keyed:
                        of_buckets = tables.of_buckets(store, self.max_parallelism)
                        _write_tables(directory, operator, part, place, of_buckets)
                for part in _parts(own, EXTENTS):
                    extents = RowStore(PartOfState(MemoryBackend(own), part), 1)
                    _write_tables(directory, operator, part, place, tables.of_extents(extents, self.max_parallelism))
                for part in _parts(own, CHUNKS):
                    chunks = StoredChunks(PartOfState(MemoryBackend(own), part))
                    keyed.write(rows_of_windows(chunks, KeyRows(operator, part, self.max_parallelism)))
                    _write_tables(directory, operator, part, place, tables.of_chunks(chunks, self.max_parallelism))
        return [
            *((_FILE, subtask, name, b"") for name in directory.written),
            *(
                (operator, subtask, name, whole(MemoryBackend(parts[operator]), name) if has_base(content) else content)
                for operator, of_it in sorted(small.items())
                for name, content in sorted(of_it.items())
                if name in SAVED
            ),
        ]

    def abandon(self) -> None:
        """Delete what was written: it will be no savepoint."""
        Directory(self.location).delete()

    def finish(self, header: Header, small: Collection[Small]) -> None:
        """Write what is small of all subtasks, and, when all is there, what makes it a savepoint.

        Raises:
            StateError: if a file that a worker wrote is missing.
        """
        written = {name for operator, _, name, _ in small if operator == _FILE}
        of_operators = sorted(one for one in small if one[0] != _FILE)
        columns = [list(column) for column in zip(*of_operators, strict=True)] or [[] for _ in TASKS]
        directory = Directory(self.location)
        with directory.writing("tasks.parquet") as stream:
            pq.write_table(pa.table(columns, schema=TASKS), stream)
        there = directory.names("")
        if lost := sorted(written - {*there}):
            raise StateError(
                f"{lost[0]} was written, and is not in {self.location}: all workers must write to one place; give one "
                "that all of them reach"
            )
        files = {name: directory.saved_file(name) for name in there}
        with directory.writing(NAME) as stream:
            stream.write(replace(header, files=files).to_text().encode())


class _Rows:
    """A file of rows by key, which is made when there is one."""

    def __init__(self, directory: Directory, path: str, closing: ExitStack) -> None:
        self._directory = directory
        self._path = path
        self._closing = closing
        self._writer: Any = None

    def write(self, rows: Iterator[Row]) -> None:
        while some := list(islice(rows, _ROWS)):
            if self._writer is None:
                stream = self._closing.enter_context(self._directory.writing(self._path))
                self._writer = self._closing.enter_context(pq.ParquetWriter(stream, KEYED))
            self._writer.write_table(pa.Table.from_pylist(some, schema=KEYED))


def _write_tables(directory: Directory, operator: str, part: str, place: str, found: Iterator[pa.Table]) -> None:
    first = next(found, None)
    if first is None:
        return
    schema = first.schema.with_metadata({PART: part})
    with (
        directory.writing(f"{directory.of_tables(operator)}/{part.strip('/') or 'own'}-{place}.parquet") as stream,
        pq.ParquetWriter(stream, schema, use_compliant_nested_type=False) as writer,
    ):
        writer.write_table(first.replace_schema_metadata(schema.metadata))
        for table in found:
            writer.write_table(table.replace_schema_metadata(schema.metadata))


def _by_operator(small: Mapping[str, Mapping[str, bytes]], values: Mapping[str, bytes]) -> dict[str, dict[str, bytes]]:
    """The values in the state of each operator, by name; an id may begin as another does."""
    found: defaultdict[str, dict[str, bytes]] = defaultdict(dict)
    for operator, of_it in small.items():
        found[operator].update(of_it)
    ids = sorted(small, key=len, reverse=True)
    for name, content in values.items():
        owner = next((operator for operator in ids if name.startswith(f"{operator}/")), None)
        if owner is not None:
            found[owner][name.removeprefix(f"{owner}/")] = content
    return found


def _parts(own: Mapping[str, bytes], index: str) -> list[str]:
    """The parts of an operator's state that have an index of a name."""
    return sorted(name.removesuffix(index) for name in own if name == index or name.endswith(f"/{index}"))


def _bucket_stores(own: dict[str, bytes]) -> Iterator[tuple[str, BucketStore, bool]]:
    """The buckets of each part, and whether they hold objects by key, and no tables."""
    for part in _parts(own, _BUCKETS):
        store = BucketStore(PartOfState(MemoryBackend(own), part), 1, (tables.TIMES,))
        content = next((content for content in map(store.get, range(store.count)) if content is not None), b"")
        yield part, store, is_pickle(content) or is_page(content)
