"""Savepoints: written from the state of each subtask, and read by the job and the subtasks that begin with them.

The state of a subtask is taken apart where it is; the header, which says what the savepoint is of, is written last.
"""

from __future__ import annotations

import re
import uuid
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from eventide.errors import StateError, as_state_error
from eventide.pickling.pickles import is_pickle
from eventide.runtime.columnar.layout import constant
from eventide.runtime.elements.keys import groups_of
from eventide.runtime.state.backend import Backend, MemoryBackend, PartOfState
from eventide.runtime.state.bucket_store import BucketStore, is_page
from eventide.runtime.state.chunks import CHUNKS, StoredChunks
from eventide.runtime.state.declared import DECLARED
from eventide.runtime.state.extents import EXTENTS, RowStore
from eventide.runtime.state.journal import has_base, whole
from eventide.runtime.state.operators import HEAD, OperatorStates, renumbered, small_values, stored_values
from eventide.runtime.state.rows_of_keys import has_keys
from eventide.runtime.tasks.stage import Stage
from eventide.runtime.tasks.task import TaskSpec
from eventide.savepoint import tables
from eventide.savepoint.directory import NAME, SOURCES, Directory, Header, Outline, SavedFile, SavedSource, copy_files
from eventide.savepoint.fitting import Widening
from eventide.savepoint.rows import (
    BROADCAST,
    GROUP,
    KEPT,
    KEYED,
    PART,
    READ,
    SUBTASK,
    TASKS,
    WINDOW,
    KeyRows,
    Small,
    keep_values,
    keep_windows,
    mine,
    rows_of_buckets,
    rows_of_extents,
    rows_of_windows,
    where,
)
from eventide.savepoint.tasks import SAVED, of_subtask

_ROWS = 65_536
_SUBTASK = re.compile(r"(\d+)\.parquet$")


class Savepoint(Outline):
    """Savepoint of a stopped job.

    Args:
        location: the directory.
        verify: whether to read all files through, and compare their checksums; whether they are there, and as long as
            they were, is looked at in any case.

    Attributes:
        directory: its files.

    Raises:
        ProgramError: if Arrow cannot open it.
        StateError: if there is no savepoint, or one of another version, or without one of its files, or with one that
            is not as it was written.
    """

    def __init__(self, location: str, *, verify: bool = False) -> None:
        self.directory = Directory(location)
        text = self.directory.text(NAME)
        if text is None:
            raise StateError(
                f"there is no savepoint at {location}: it has no {NAME}, which is written last; give the directory "
                "that `eventide savepoint` has written"
            )
        super().__init__(location, text, {})
        _check(self.directory, self.header.files, location, verify=verify)

    @staticmethod
    def is_at(location: str) -> bool:
        """Whether there is one."""
        return Directory(location).text(NAME) is not None

    def restore_sources(self, names: Sequence[str], checkpoint: str) -> None:
        """Give the sources of a job, in their order, what they remember below a checkpoint, whatever is there now."""
        storage_of = {source.name: source.storage for source in self.header.sources}
        for number, name in enumerate(names, start=1):
            storage, target = storage_of.get(name), Directory(f"{checkpoint}/{SOURCES}/{number}")
            if storage is not None:
                target.delete()
                copy_files(self.directory, storage, self.files_in(storage), target)

    def restore(self, stage: Stage, subtask: int, backend: Backend) -> None:
        """Give a subtask of a stage its share, if it has no state of its own yet."""
        if backend.get(HEAD) is not None:
            return
        made = MemoryBackend()  # rows come some at a time, and a bucket that has got more of them is stored again
        states = OperatorStates(made, stage.program())
        for task in stage.tasks:
            if task.id in self.header.program["operators"] and subtask < task.parallelism:
                state = states.of(task.id)
                ids = {old: new for _, old, new in renumbered(self._identity_of(task), task.identity)}
                for name, content in of_subtask(task, self._small.get(task.id, {}), subtask, ids):
                    state.put(name, content)
                groups = groups_of(subtask, task.max_parallelism, task.parallelism)
                self._restore_keyed(task, groups, state)
                self._restore_tables(task, groups, state)
        states.flush()
        for name, value in made.values.items():
            backend.put(name, value)

    def small_rows(self) -> list[Small]:
        """Read the small values of all subtasks."""
        path = self.directory.path("tasks.parquet")
        with _reading(path), self.directory.store.open_input_file(path) as file:
            columns = pq.read_table(file).columns
            return list(zip(*(column.to_pylist() for column in columns), strict=True))

    def keyed_rows(self, operator: str, wanted: pc.Expression | None = None) -> Iterator[pa.Table]:
        """Read the keyed state of an operator, or what is wanted of it: some rows at a time, of many."""
        return _together(self._keyed_rows(operator, wanted))

    def _keyed_rows(self, operator: str, wanted: pc.Expression | None) -> Iterator[pa.Table]:
        import pyarrow.dataset as ds  # takes a while to import, and few jobs need it

        paths = [self.directory.path(f"keyed/{name}") for name in self.files_in("keyed")]
        if not paths:
            return
        of_operator = pc.field("operator") == operator
        found = of_operator if wanted is None else of_operator & wanted
        for file in ds.dataset(paths, KEPT, "parquet", self.directory.store).get_fragments():
            subtask = int(_SUBTASK.findall(file.path)[0])
            with _reading(file.path):
                row_groups = file.split_by_row_group(found, KEPT)
            for row_group in row_groups:  # a scanner of several would read all ahead
                with _reading(file.path):
                    table = row_group.to_table(KEPT, filter=found)
                yield table.append_column(SUBTASK, constant(subtask, len(table)))

    def declared(self, operator: str) -> Mapping[int, bytes]:
        """The types that an operator declared for its states, by subtask: one may have declared others than another."""
        return self._small.get(operator, {}).get(DECLARED, {})

    def files_in(self, folder: str) -> list[str]:
        """The files in a folder that belong to it, by their path from the folder on, in their order."""
        return sorted(name.removeprefix(f"{folder}/") for name in self.header.files if name.startswith(f"{folder}/"))

    @cached_property
    def _small(self) -> Mapping[str, dict[str, dict[int, bytes]]]:
        """The small values, by operator, name and subtask."""
        found: dict[str, dict[str, dict[int, bytes]]] = {}
        for operator, subtask, name, content in self.small_rows():
            found.setdefault(operator, {}).setdefault(name, {})[subtask] = content
        return found

    def _identity_of(self, task: TaskSpec) -> Mapping[str, str]:
        """The parts of an operator's identity in the program that was saved."""
        found: Mapping[str, str] = self.header.program["operators"].get(task.id, {})
        return found

    def _restore_keyed(self, task: TaskSpec, groups: range, state: Backend) -> None:
        is_mine = (pc.field("key_group") >= groups.start) & (pc.field("key_group") < groups.stop)
        may_be = is_mine | pc.field("key_group").is_null() | (pc.field("part") != "")
        widening = Widening(self._identity_of(task), task.identity, self.declared(task.id))

        rows = pa.concat_tables([READ.empty_table(), *self._keyed_rows(task.id, may_be)])
        of_broadcast = pc.not_equal(rows.column("part"), "")
        own = widening.of_rows(mine(where(rows, pc.invert(of_broadcast)), groups, task.max_parallelism))
        of_windows = pc.equal(own.column("kind"), WINDOW)
        keep_values(where(own, pc.invert(of_windows)), state)
        for part, of_part in _by_part(rows.filter(of_broadcast)):  # every subtask has all of it
            name = part.removeprefix(BROADCAST).removesuffix("/")
            keep_values(widening.of_broadcast(of_part, name), PartOfState(state, part))
        keep_windows(own.filter(of_windows), state)

    def _restore_tables(self, task: TaskSpec, groups: range, state: Backend) -> None:
        is_mine = (pc.field(GROUP) >= groups.start) & (pc.field(GROUP) < groups.stop)
        by_part: dict[str, list[pa.Table]] = {}
        for part, table in self.tables(task.id, is_mine):
            by_part.setdefault(part, []).append(table)
        for part, found in by_part.items():
            table = pa.concat_tables(found)
            if len(table):
                tables.keep(_widened(table, task, part), PartOfState(state, part))

    def schemas(self, operator: str) -> Mapping[str, pa.Schema]:
        folder, found = Directory.of_tables(operator), {}
        for name in self.files_in(folder):
            path = self.directory.path(f"{folder}/{name}")
            with _reading(path):
                schema = pq.read_schema(path, filesystem=self.directory.store)
                found[schema.metadata[PART].decode()] = schema.remove_metadata()
        return found

    def tables(self, operator: str, wanted: pc.Expression | None = None) -> Iterator[tuple[str, pa.Table]]:
        """Read the tables of an operator, or the rows of them that are wanted, each with the part of its state."""
        folder = Directory.of_tables(operator)
        for name in self.files_in(folder):
            path = self.directory.path(f"{folder}/{name}")
            with _reading(path):
                table = pq.read_table(path, filesystem=self.directory.store, filters=wanted, partitioning=None)
                part = table.schema.metadata[PART].decode()
            yield part, table.replace_schema_metadata(None)


OUTLINED = (Outline, Header, SavedSource, SavedFile)
"""The classes of an outline, which may come from another process."""


def outlined(location: str, operators: Sequence[str] = (), *, verify: bool = False) -> Outline:
    """Return the outline of a savepoint, with the schemas of some operators.

    Raises what :class:`Savepoint` raises.
    """
    saved = Savepoint(location, verify=verify)
    return Outline(location, saved.text, {operator: saved.schemas(operator) for operator in operators})


def outlined_at(location: str) -> Outline | None:
    """Return the outline of the savepoint at a location; None if there is none."""
    return outlined(location) if Savepoint.is_at(location) else None


@lru_cache(maxsize=8)
def opened_savepoint(location: str, digest: str) -> Savepoint:
    """A savepoint, read once in a process; the digest tells it from another that was there before.

    Raises:
        StateError: if there is a different one now.
    """
    found = Savepoint(location)
    if found.digest != digest:
        raise StateError(f"the savepoint {location} has changed since the job was started; start the job once more")
    return found


def copy_state(savepoint: Savepoint, target: Directory, without: Collection[str]) -> list[Small]:
    """Copy what sources remember, and the state of all operators but some, into a directory.

    Returns:
        The small values of it.
    """
    for source in savepoint.header.sources:
        if source.storage is not None:
            names = savepoint.files_in(source.storage)
            copy_files(savepoint.directory, source.storage, names, target.below(source.storage))
    for operator in savepoint.header.program["operators"]:
        if operator not in without:
            folder = Directory.of_tables(operator)
            copy_files(savepoint.directory, folder, savepoint.files_in(folder), target.below(folder))
    for name in savepoint.files_in("keyed"):
        _copy_rows(savepoint.directory, target, f"keyed/{name}", without)
    return [row for row in savepoint.small_rows() if row[0] not in without]


def _together(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Put small tables together, so that all but the last have many rows."""
    some: list[pa.Table] = []
    for table in tables:
        some.append(table)
        if sum(map(len, some)) >= _ROWS:
            yield pa.concat_tables(some)
            some = []
    if sum(map(len, some)):
        yield pa.concat_tables(some)


def _reading(path: str) -> AbstractContextManager[None]:
    """Say which file of a savepoint cannot be read, in place of what Arrow raises."""
    remedy = "put a copy of it back, or take a savepoint anew"
    return as_state_error(lambda error: f"{path}, of a savepoint, cannot be read: {error}; {remedy}")


def _by_part(rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each part of an operator's state."""
    for part in pc.unique(rows.column("part")).to_pylist():
        yield part, rows.filter(pc.equal(rows.column("part"), part))


def _widened(table: pa.Table, task: TaskSpec, part: str) -> pa.Table:
    """Rows with the columns that an operator keeps in a part of its state."""
    form = tables.form_of(task)
    return table if form is None else tables.widened(table, form.stored_schema(part))


def _check(directory: Directory, files: Mapping[str, SavedFile], location: str, *, verify: bool) -> None:
    sizes = directory.sizes()
    for name, saved in files.items():
        found = sizes.get(name)
        if found is None:
            raise StateError(f"{name} is missing in the savepoint {location}, and state with it; take a savepoint anew")
        if found != saved.bytes or (verify and directory.digest(name)[1] != saved.sha256):
            raise StateError(
                f"{name} in the savepoint {location} is not as it was written: it had {saved.bytes} bytes and has "
                f"{found}, or has others; take a savepoint anew"
            )


def _copy_rows(directory: Directory, target: Directory, name: str, without: Collection[str]) -> None:
    """Copy a file of rows by key, if anything is left of it."""
    with ExitStack() as closing:
        file = closing.enter_context(directory.store.open_input_file(directory.path(name)))
        found, writer = pq.ParquetFile(file), None
        for batch in found.iter_batches(_ROWS):
            gone = pc.is_in(batch.column("operator"), pa.array([*without], pa.string()))
            kept = batch.filter(pc.invert(gone))
            if len(kept):
                if writer is None:
                    stream = closing.enter_context(target.writing(name))
                    writer = closing.enter_context(pq.ParquetWriter(stream, found.schema_arrow))
                writer.write_batch(kept)


_BUCKETS = "buckets"
_FILE = ""
"""An id that no operator has."""
_WRITER = ".writer"
"""A hidden file with the id of the writer of the savepoint: of two at once, the first one stops."""


@dataclass(frozen=True)
class StateWriter:
    """Writes a savepoint into a directory that is new. It is picklable: subtasks may be written anywhere.

    Args:
        location: the directory.
        max_parallelism: the number of key groups.
        id: a name that no other writer has.
    """

    location: str
    max_parallelism: int
    id: str = field(default_factory=lambda: uuid.uuid4().hex)

    def begin(self) -> None:
        """See that there is nothing at the location, and take it.

        Raises:
            StateError: if there is something.
            ProgramError: if Arrow cannot open it.
        """
        directory = Directory(self.location)
        if not directory.is_empty():
            raise StateError(f"there is something at {self.location} already; write the savepoint into a new directory")
        with directory.writing(_WRITER) as stream:
            stream.write(self.id.encode())

    def write(self, place: str, subtask: int, values: Mapping[str, bytes]) -> list[Small]:
        """Write what is large of a subtask of a stage, whose ``place`` no other stage has.

        Returns:
            The small values of it, and the names of the files, as small values of no operator.

        Raises:
            StateError: if the state is damaged, or of another format.
        """
        place = f"{place}-{subtask}"
        small = small_values(values[HEAD])
        parts = _by_operator(small, stored_values(values))
        directory = Directory(self.location)
        with ExitStack() as closing:
            keyed = _RowFile(directory, f"keyed/{place}.parquet", closing)
            for operator, own in sorted(parts.items()):
                for part, store, is_keyed in _bucket_stores(own):
                    if is_keyed and not (part.startswith(BROADCAST) and subtask):
                        keyed.write(rows_of_buckets(store, KeyRows(operator, part, self.max_parallelism)))
                    elif not is_keyed:
                        of_buckets = tables.of_buckets(store, self.max_parallelism)
                        _write_tables(directory, operator, part, place, of_buckets)
                for part in _parts(own, EXTENTS):
                    extents = PartOfState(MemoryBackend(own), part)
                    if part.startswith(BROADCAST) and subtask:  # every subtask has the same
                        continue
                    if has_keys(extents):
                        keyed.write(rows_of_extents(extents, KeyRows(operator, part, self.max_parallelism)))
                    else:
                        of_extents = tables.of_extents(RowStore(extents), self.max_parallelism)
                        _write_tables(directory, operator, part, place, of_extents)
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
        """Delete what was written, unless another writer has taken the location: it will be no savepoint."""
        directory = Directory(self.location)
        if directory.text(_WRITER) == self.id:
            directory.delete()

    def finish(self, header: Header, small: Collection[Small]) -> None:
        """Write what is small of all subtasks, and, when all is there, what makes it a savepoint.

        Raises:
            StateError: if a file that a worker wrote is missing, or another writer has taken the location.
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
        if directory.text(_WRITER) != self.id:
            raise StateError(
                f"another savepoint is being written to {self.location}; write each into its own directory"
            )
        files = {name: directory.saved_file(name) for name in there}
        with directory.writing(NAME) as stream:
            stream.write(replace(header, files=files).to_text().encode())
        directory.store.delete_file(directory.path(_WRITER))


class _RowFile:
    """A file of rows by key, which is made when there is one."""

    def __init__(self, directory: Directory, path: str, closing: ExitStack) -> None:
        self._directory = directory
        self._path = path
        self._closing = closing
        self._writer: Any = None

    def write(self, tables: Iterator[pa.Table]) -> None:
        for rows in _together(tables):
            if self._writer is None:
                stream = self._closing.enter_context(self._directory.writing(self._path))
                self._writer = self._closing.enter_context(pq.ParquetWriter(stream, KEYED))
            self._writer.write_table(rows)


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
        store = BucketStore(PartOfState(MemoryBackend(own), part))
        content = next(store.contents(), b"")
        yield part, store, is_pickle(content) or is_page(content)
