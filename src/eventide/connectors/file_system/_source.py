"""The file source: each file is a split, or a function of the path assigns several files to a split."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Generic, Self, overload

from eventide._absent import says_what_is_absent
from eventide._secrets import shown_without_secrets, without_secrets
from eventide.api.source import Source, Unreadable
from eventide.common.time import Duration
from eventide.common.type_variables import T, T_co
from eventide.common.typeinfo import TypeInformation
from eventide.common.types import Row
from eventide.connectors.file_system._planning import (
    FinishedFiles,
    GoneFiles,
    KnownFiles,
    RemovedFiles,
    first_files,
    next_positions,
    positions_at,
)
from eventide.connectors.file_system.files import FilePathFilter, FileRemoval, FileTree
from eventide.connectors.file_system.format import BulkFormat, FileFormat, StreamFormat, check_columns, narrowed
from eventide.errors import ProgramError, check_is
from eventide.storage import absolute

if TYPE_CHECKING:
    import pyarrow as pa

_NO_FILE = ""
_FEW_FILES = 100
_KNOWN_FOR = Duration.of_hours(1)


@says_what_is_absent
@shown_without_secrets
@dataclass
class FileSourceBuilder(Generic[T_co]):
    """Builds a :class:`FileSource`; each step changes the builder and returns it. Flink: ``FileSourceBuilder``.

    >>> import tempfile
    >>> builder = FileSource.text(tempfile.mkdtemp()).monitor_continuously(Duration.of_seconds(10))
    >>> builder.set_max_files_per_batch(100).build().is_bounded()
    False
    """

    format: FileFormat[T_co]
    paths: tuple[str, ...]
    discovery_interval: Duration | None = None
    split_by: Callable[[str], str] | None = None
    max_files: int | None = None
    known_for: Duration = _KNOWN_FOR
    may_lose_most: bool = False
    removal: FileRemoval | None = None
    path_filter: FilePathFilter | None = None
    nested: bool = True

    def monitor_continuously(self, discovery_interval: Duration) -> Self:
        """Run for ever, and look for new files at most once in an interval.

        Raises:
            ProgramError: The interval is not a duration, or below zero.
        """
        self.discovery_interval = _duration("monitor_continuously", discovery_interval)
        return self

    def process_static_file_set(self) -> Self:
        """Read the files that exist when the job starts, and end with the last of them: the default."""
        self.discovery_interval = None
        return self

    def set_split_by(self, split_by: Callable[[str], str] | None) -> Self:
        """Combine several files into one split with one watermark: those whose paths give the same name.

        They are read one after the other, in the order of their paths. The splits that exist at the start hold the
        watermark until they have one. Not in PyFlink, where each file is a split, as it is here by default.

        Args:
            split_by: A function of the path of a file, such as ``lambda path: path.split("/")[-2]``.
        """
        self.split_by = split_by
        return self

    def set_max_files_per_batch(self, max_files: int | None) -> Self:
        """Limit how many files a micro-batch reads, beside the environment's limit of rows. Not in PyFlink.

        Raises:
            ProgramError: It is not a positive number.
        """
        if max_files is not None and (not isinstance(max_files, int) or isinstance(max_files, bool) or max_files < 1):
            raise ProgramError(f"the limit of files per micro-batch must be 1 or more, not {max_files!r}")
        self.max_files = max_files
        return self

    def set_known_for(self, duration: Duration) -> Self:
        """Set how long a read file stays known after it disappears: if it returns in this time, it is not read again.

        An hour by default. A listing may miss a file for a while, as when a store is briefly unavailable. Known files
        are in the checkpoint of every micro-batch, so a source with thousands of deleted files should remember them for
        a short time. Only a source with `monitor_continuously` uses it. Not in PyFlink.

        Raises:
            ProgramError: It is not a duration, or below zero.
        """
        self.known_for = _duration("set_known_for", duration)
        return self

    def set_may_lose_most(self, may_lose_most: bool) -> Self:
        """Set whether a path may lose most of its files between two listings, as when a program deletes old files.

        By default, a path that had ten files or more and lost more than half of them ends the job with a `DataError`,
        and so does one that had two files or more and lost all of them: the store may be unavailable, and files that
        return after `set_known_for` would be read again. Not in PyFlink.
        """
        self.may_lose_most = may_lose_most
        return self

    def delete_when_read(self) -> Self:
        """Delete each file when a micro-batch is committed that has read it to its end. Not in PyFlink.

        So the directory and the checkpoint stay small, however long the job runs. The source then expects that most
        files of a path disappear at once, as with `set_may_lose_most`. If two jobs read a directory, neither may delete
        files.
        """
        self.removal = FileRemoval()
        return self

    def move_when_read(self, directory: str) -> Self:
        """Move each file into a directory when a micro-batch is committed that has read it to its end. Not in PyFlink.

        It keeps its path below the path of the source; if that is taken already, it gets eight characters before its
        name. See `delete_when_read`.

        Args:
            directory: On the file system of the files, and not below a path of the source.

        Raises:
            ProgramError: The directory is below a path of the source.
        """
        self.removal = FileRemoval(absolute(str(directory)))
        self.removal.check(self.paths)
        return self

    def build(self) -> FileSource[T_co]:
        """The source. An undeclared type is taken from the first file that is not empty.

        Raises:
            ProgramError: There are no paths, one of them does not exist, or no file shows the type yet.
            DataError: The first file cannot be read.
        """
        if not self.paths:
            raise ProgramError("a file source needs at least one path")
        tree = FileTree(self.paths, self.path_filter, nested=self.nested)
        first = next((path for path, info in tree.list().items() if info.size), None)
        resolved = self.format.resolved(None if first is None else tree.at(first))
        return FileSource(replace(self, format=resolved, paths=tuple(map(absolute, self.paths))))


class FileSource(Source[T_co]):
    r"""Reads the files below some paths: Parquet, ORC, CSV, JSON lines, or text.

    Files are read by Arrow in Spark's Python workers; their rows never enter the JVM. They are started in the order of
    their last change, then of their path. Each is a split, as in Flink: it counts from when it is started until it has
    been read, and a waiting file does not hold the watermark back. :meth:`FileSourceBuilder.set_split_by` combines
    several files into one split.

    A file must be complete when it appears, and must not change. Files and folders whose names begin with ``.`` or
    ``_`` are ignored.

    Flink: ``FileSource``.

    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "visits.csv").write_text("user,ms\nwren,10\nrobin,20\n")
    >>> source = FileSource.csv(folder).build()
    >>> source.get_produced_type()
    ROW(user: STRING, ms: LONG)
    """

    def __init__(self, settings: FileSourceBuilder[T_co], clock: Callable[[], float] = time.time) -> None:
        if settings.format.type_info is None:
            raise ProgramError("the columns of the files are not known; make the source with build()")
        self._settings = settings
        self._clock = clock
        self._type_info = settings.format.type_info
        self._tree = FileTree(settings.paths, settings.path_filter, nested=settings.nested)
        self._known: KnownFiles | None = None
        self._storage: str | None = None
        self._finished: FinishedFiles | None = None
        self._removed: RemovedFiles | None = None
        self._committed: Collection[str] = ()
        self._looked: object = None
        self._unread: list[str] = []
        self._gone: list[str] = []
        self._sorts_out = False

    @staticmethod
    def for_bulk_file_format(bulk_format: BulkFormat[T], *paths: str) -> FileSourceBuilder[T]:
        """Start a source of files in a columnar format, such as ``ParquetColumnarRowInputFormat``."""
        return _builder(BulkFormat, bulk_format, paths)

    @staticmethod
    def for_record_stream_format(stream_format: StreamFormat[T], *paths: str) -> FileSourceBuilder[T]:
        """Start a source of files in a format of lines, such as ``StreamFormat.text_line_format()``."""
        return _builder(StreamFormat, stream_format, paths)

    @overload
    @staticmethod
    def parquet(*paths: str, type_info: None = None) -> FileSourceBuilder[Row]: ...

    @overload
    @staticmethod
    def parquet(*paths: str, type_info: TypeInformation[T]) -> FileSourceBuilder[T]: ...

    @overload
    @staticmethod
    def parquet(*paths: str, type_info: TypeInformation[T] | None) -> FileSourceBuilder[T]: ...

    @staticmethod
    def parquet(*paths: str, type_info: TypeInformation[Any] | None = None) -> FileSourceBuilder[Any]:
        """Start a source of Parquet files; see ``ParquetColumnarRowInputFormat``. Not in PyFlink.

        Args:
            paths: Files and directories: local paths, or URIs that Arrow knows.
            type_info: A row type with names, or a tuple type by the position of the columns. Without it, the type is
                that of the first file.
        """
        from eventide.connectors.formats.parquet import ParquetColumnarRowInputFormat

        return FileSource.for_bulk_file_format(ParquetColumnarRowInputFormat(type_info), *paths)

    @overload
    @staticmethod
    def orc(*paths: str, type_info: None = None) -> FileSourceBuilder[Row]: ...

    @overload
    @staticmethod
    def orc(*paths: str, type_info: TypeInformation[T]) -> FileSourceBuilder[T]: ...

    @overload
    @staticmethod
    def orc(*paths: str, type_info: TypeInformation[T] | None) -> FileSourceBuilder[T]: ...

    @staticmethod
    def orc(*paths: str, type_info: TypeInformation[Any] | None = None) -> FileSourceBuilder[Any]:
        """Start a source of ORC files; see ``OrcColumnarRowInputFormat``. Not in PyFlink.

        Args:
            paths: Files and directories: local paths, or URIs that Arrow knows.
            type_info: A row type with names, or a tuple type by the position of the columns. Without it, the type is
                that of the first file.
        """
        from eventide.connectors.formats.orc import OrcColumnarRowInputFormat

        return FileSource.for_bulk_file_format(OrcColumnarRowInputFormat(type_info), *paths)

    @overload
    @staticmethod
    def csv(*paths: str, type_info: None = None, header: bool = True) -> FileSourceBuilder[Row]: ...

    @overload
    @staticmethod
    def csv(*paths: str, type_info: TypeInformation[T], header: bool = True) -> FileSourceBuilder[T]: ...

    @overload
    @staticmethod
    def csv(*paths: str, type_info: TypeInformation[T] | None, header: bool = True) -> FileSourceBuilder[T]: ...

    @staticmethod
    def csv(*paths: str, type_info: TypeInformation[Any] | None = None, header: bool = True) -> FileSourceBuilder[Any]:
        """Start a source of CSV files with commas and double quotes; see ``CsvSchema`` for others. Not in PyFlink.

        Args:
            paths: Files and directories: local paths, or URIs that Arrow knows.
            type_info: A row type with names, or a tuple type by the position of the columns. Without it, the type is
                what the beginning of the first file suggests.
            header: Whether the first line has the names of the columns, by which they are found.
        """
        from eventide.connectors.formats.csv import CsvReaderFormat, CsvSchema

        row_type = None if type_info is None else check_columns("CSV", type_info)
        return FileSource.for_record_stream_format(
            CsvReaderFormat.for_schema(CsvSchema(row_type, use_header=header, reorder_columns=True)), *paths
        )

    @staticmethod
    def json_lines(*paths: str, type_info: TypeInformation[Row] | None = None) -> FileSourceBuilder[Row]:
        """Start a source of files with a JSON object in each line; see ``JsonReaderFormat``. Not in PyFlink.

        Args:
            paths: Files and directories: local paths, or URIs that Arrow knows.
            type_info: A row type with names. Without it, the type is inferred from the beginning of the first file.
        """
        from eventide.connectors.formats.json import JsonReaderFormat

        return FileSource.for_record_stream_format(JsonReaderFormat(type_info), *paths)

    @staticmethod
    def text(*paths: str, charset_name: str = "UTF-8") -> FileSourceBuilder[str]:
        """Start a source of lines of text. Not in PyFlink."""
        return FileSource.for_record_stream_format(StreamFormat.text_line_format(charset_name), *paths)

    def splits(self) -> list[str]:
        """The splits that the function of paths names; without one, none, because files may wait."""
        split_by = self._settings.split_by
        return [] if split_by is None else sorted({self.split_of(path) for path in self._files().listing()})

    def parts(self, known: Mapping[str, int | None]) -> list[str]:
        """The files at the start, or the present files. A directory without files is one empty part."""
        if self.is_bounded():
            return list(known) or list(self._files().look()) or [_NO_FILE]
        files, finished = self._files(), self._finished_files()
        looked = files.look(chain(known, finished))
        there = self._as_known(looked, known)
        if looked is not self._looked:
            self._looked = looked
            # An empty file was just created, or will have no rows: it is read when it has some bytes.
            empty = {path for path, info in looked.items() if not info.size and path not in known}
            self._unread = [path for path in there if path not in finished and path not in empty]
            self._gone = [path for path in finished if path not in there]
        begun = (path for path, position in known.items() if position)
        gone = [path for path, position in known.items() if position is None and path not in there]
        kept = files.still_known(chain(gone, self._gone))
        finished.take(path for path, position in known.items() if position is None and path in self._committed)
        if forgotten := {*self._gone} - {*kept}:
            finished.forget(forgotten)
            self._gone = [path for path in self._gone if path not in forgotten]
        named = chain(begun, kept, (path for path in self._unread if path in there))
        removed = self._removed_files().free(files.listing())
        free = {path for path in removed if known.get(path, 0) is None or path in finished}
        finished.forget({path for path in free if path in finished})
        for path in free:
            files.begin_anew(path)
        if not free.isdisjoint(there):  # another file has the name: it begins when the one before is out of the offsets
            named = chain([_NO_FILE], named)
            self._looked = None
        return list(dict.fromkeys(path for path in named if path not in finished and path not in free))

    def _as_known(self, found: Collection[str], known: Iterable[str]) -> Collection[str]:
        """Files by their names in a checkpoint: names of an earlier version contained the passwords of paths."""
        if all(without_secrets(path) == path for path in self._settings.paths):
            return found
        before = {without_secrets(name): name for name in known}
        return dict.fromkeys(before.get(path, path) for path in found)

    def split_of(self, part: str) -> str:
        """The split that the function of the path names; by default, each file is a split.

        Raises:
            ProgramError: if the function does not return text.
        """
        split_by = self._settings.split_by
        if split_by is None or part == _NO_FILE:
            return part
        split = split_by(part)
        if not isinstance(split, str):
            raise ProgramError(f"the function of set_split_by must give a str, and gave {split!r} for {part!r}")
        return split

    def latest_position(self, split: str) -> int:
        return 0 if split == _NO_FILE else self._files().end(split)

    def latest_positions(self) -> dict[str, int]:
        """Files never grow, so only their list matters."""
        return dict.fromkeys(self.parts({}) if self.is_bounded() else self._files().see(), sys.maxsize)

    def has_ended(self, split: str, position: int) -> bool:
        return position >= self.latest_position(split)

    def commit(self, positions: Mapping[str, int]) -> None:
        """Take note of the commit; delete or move the files that have been read to their end, if configured."""
        self._committed = positions.keys()
        removal = self._settings.removal
        if removal is None:
            return
        files, removed = self._files(), self._removed_files()
        begun = [path for path in positions if path in files.listing() and files.has_begun(path, positions[path])]
        removed.take({path: files.listing()[path] for path in begun if positions[path] >= files.end(path)}, positions)
        for path in begun:
            if path in removed and self._tree.at(path).info() == files.listing()[path]:
                removal.remove(self._tree, path)
                files.forget(path)

    def next_positions(self, positions: Mapping[str, int], max_rows: int | None) -> dict[str, int]:
        """Files in the order of their last change, but within a named split in the order of their path.

        Started files are finished first. The limits are shared among the named splits.
        """
        settings, waiting = self._settings, {path: at for path, at in positions.items() if path != _NO_FILE}
        planned = next_positions(self._queues(waiting), waiting, self._files(), max_rows, settings.max_files)
        return planned | {path: 0 for path in positions if path == _NO_FILE}

    def positions_at(
        self, timestamp_ms: int, positions: Mapping[str, int], column: str | None = None
    ) -> dict[str, int] | None:
        """The positions at which each split reaches a time; None if the format cannot tell, or without a column."""
        if column is None:
            return None
        waiting = {path: at for path, at in positions.items() if path != _NO_FILE}
        queues = first_files(self._queues(waiting), self._settings.max_files)
        return positions_at(queues, self._files(), column, timestamp_ms)

    def rows_between(self, part: str, start: int, end: int) -> int:
        """The number of rows; of bytes for formats that are read as a whole."""
        known = self._settings.format
        return known.row(end) - known.row(start) if isinstance(known, BulkFormat) else end - start

    def pending_records(self, positions: Mapping[str, int], is_limited: bool) -> Mapping[str, int] | None:
        """The number of rows in each file that waits.

        None if more than 100 wait, which are not opened for it, and for text, of which only the bytes are known.
        """
        waiting = {path: at for path, at in positions.items() if path != _NO_FILE}
        if len(waiting) > _FEW_FILES or not isinstance(self._settings.format, BulkFormat):
            return None
        return super().pending_records(waiting, bool(waiting))

    def _queues(self, positions: Mapping[str, int]) -> list[list[str]]:
        """The files in the order in which they are read, for each named split; started files come first."""
        if self._settings.split_by is None:
            listing = self._files().listing()
            changed = {path: listing[path].modified_ns for path in positions if path in listing}
            return [sorted(positions, key=lambda path: (not positions[path], changed.get(path, 0), path))]
        queues: dict[str, list[str]] = {}
        for path in sorted(positions, key=lambda path: (not positions[path], path)):
            queues.setdefault(self.split_of(path), []).append(path)
        return list(queues.values())

    def read(self, split: str, start: int, end: int) -> Iterator[pa.RecordBatch | Unreadable]:
        if split != _NO_FILE:
            known = self._settings.format
            read = known.sorted_out if self._sorts_out else known.read
            yield from read(self._tree.at(split), start, end, self._type_info)

    def sorting_out(self) -> FileSource[T_co]:
        """Return a copy of the source in which rows of text that cannot be read do not stop the job."""
        source = copy(self)
        source._sorts_out = True
        return source

    def for_job(
        self, operator: str, storage: str | None, job_parameters: Mapping[str, str] | None = None
    ) -> FileSource[T_co]:
        """Return a copy of this source that keeps its memory of files that disappeared in ``storage``."""
        source = copy(self)
        source._storage, source._known, source._finished, source._looked = storage, None, None, None
        source._removed = None
        return source

    def holds_when_new(self) -> bool:
        """False, because a file, or a split of files, counts only once reading has begun."""
        return False

    def with_columns(self, columns: Collection[str]) -> FileSource[T_co]:
        """Return a copy of the source that reads only these columns of rows with names; at least one."""
        source = copy(self)
        source._type_info = narrowed(self._type_info, set(columns))
        return source

    def is_bounded(self) -> bool:
        return self._settings.discovery_interval is None

    def get_produced_type(self) -> TypeInformation[T_co]:
        return self._type_info

    def _removed_files(self) -> RemovedFiles:
        if self._removed is None:
            self._removed = RemovedFiles(self._storage if self._settings.removal is not None else None)
        return self._removed

    def _files(self) -> KnownFiles:
        if self._known is None:
            interval = self._settings.discovery_interval
            seconds = None if interval is None else interval.nanos / 1e9
            self._known = KnownFiles(
                self._tree,
                self._settings.format,
                GoneFiles(self._storage, list(map(without_secrets, self._settings.paths))),
                seconds,
                self._settings.known_for.nanos / 1e9,
                self._settings.may_lose_most or self._settings.removal is not None,
                self._clock,
            )
        return self._known

    def _finished_files(self) -> FinishedFiles:
        """The files that offsets no longer have. A split of several files ends with the last that offsets have."""
        if self._finished is None:
            self._finished = FinishedFiles(self._storage, takes=self._settings.split_by is None)
        return self._finished

    def __getstate__(self) -> dict[str, Any]:
        passing: dict[str, Any] = {"_known": None, "_finished": None, "_looked": None}
        return {**vars(self), **passing, "_committed": (), "_unread": [], "_gone": []}

    def __repr__(self) -> str:
        return f"FileSource({', '.join(map(without_secrets, self._settings.paths))})"


def _duration(where: str, duration: Duration) -> Duration:
    if not isinstance(duration, Duration) or duration < Duration(0):
        raise ProgramError(f"{where} needs a Duration, such as Duration.of_seconds(10), not {duration!r}")
    return duration


def _builder(kind: type, format: FileFormat[T], paths: tuple[str, ...]) -> FileSourceBuilder[T]:
    check_is(format, kind, f"a file source needs a {kind.__name__} of eventide.connectors.formats here")
    return FileSourceBuilder(format, tuple(map(str, paths)))
