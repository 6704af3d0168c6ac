"""Planning of the files that a micro-batch reads: waiting files, each checked once, and files that disappeared."""

from __future__ import annotations

import json
import time
import uuid
import warnings
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from eventide._secrets import without_secrets
from eventide.api.source import shared_out
from eventide.connectors.file_system.files import FileInfo, FileTree
from eventide.connectors.file_system.format import BulkFormat, ColumnTimes, FileFormat
from eventide.errors import ProgramError, StateError
from eventide.storage import Folder

_FOLDER = "files"
_FILE = "gone"
_FINISHED = "finished"
_REMOVED = "removed"
_FEW = 1_000
"""Number of read files that stay in the offsets."""
_LOOKS = 3


def next_positions(
    queues: Sequence[Sequence[str]],
    positions: Mapping[str, int],
    files: KnownFiles,
    max_rows: int | None,
    max_files: int | None,
) -> dict[str, int]:
    """The positions where the next micro-batch ends, for the files that it reads.

    Both limits are shared among the queues, so that none starves: each gets an equal part, but at least one file or one
    row of it. Files that are only read as a whole are read until their queue's part of the rows is reached or exceeded.

    Args:
        queues: the paths of files, in the order in which they are to be read.
        positions: how far each file has been read.
        files: the known files.
        max_rows: the greatest number of rows to read.
        max_files: the greatest number of files to read from.
    """
    queues = first_files(queues, max_files)
    if max_rows is None:
        return {path: files.end(path) for queue in queues for path in queue}
    waiting = {i: _rows_of(queue, positions, files, max_rows) for i, queue in enumerate(queues)}
    shares = shared_out(waiting, max_rows)
    planned: dict[str, int] = {}
    for i, queue in enumerate(queues):
        planned |= _first(queue, positions, files, shares[i])
    return planned


def first_files(queues: Sequence[Sequence[str]], max_files: int | None) -> list[Sequence[str]]:
    """Each queue's part of `max_files` files, at least one."""
    if max_files is None:
        return list(queues)
    parts = shared_out({i: len(queue) for i, queue in enumerate(queues)}, max_files)
    return [queue[: parts[i]] for i, queue in enumerate(queues)]


def positions_at(
    queues: Sequence[Sequence[str]], files: KnownFiles, column: str, timestamp_ms: int
) -> dict[str, int] | None:
    """The positions at which each queue reaches a time: in its first file with a later row, and at earlier files' ends.

    Returns:
        None, if one of the files cannot tell.
    """
    reached: dict[str, int] = {}
    for queue in queues:
        for path in queue:
            position = files.position_at(path, column, timestamp_ms)
            if position is None:
                return None
            reached[path] = position
            if position < files.end(path):
                break
    return reached


class KnownFiles:
    """The listing of a source's paths, and the known numbers of rows of its files.

    Args:
        tree: where the files are.
        format: the format of the files.
        gone: the files that were read and have disappeared.
        interval_s: the seconds after which a listing is too old; None for never.
        forget_s: how many seconds a file that was read stays known after it is gone.
        may_lose_most: whether a path may lose most of its files from one listing to the next.
        clock: the seconds since the epoch.
    """

    def __init__(
        self,
        tree: FileTree,
        format: FileFormat,
        gone: GoneFiles,
        interval_s: float | None,
        forget_s: float,
        may_lose_most: bool,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._tree = tree
        self._format = format
        self._gone = gone
        self._interval_s = interval_s
        self._forget_s = forget_s
        self._may_lose_most = may_lose_most
        self._clock = clock
        self._files: dict[str, FileInfo] = {}
        self._seen: dict[str, FileInfo] | None = None
        self._listed_at: float | None = None
        self._rows: dict[str, int] = {}
        self._ends: dict[str, int] = {}
        self._times: dict[tuple[str, str], ColumnTimes | None] = {}

    def see(self) -> dict[str, FileInfo]:
        """All present files, before the files known to the job are available: the next look compares them."""
        self._seen = self._tree.list()
        return self._seen

    def look(self, known: Iterable[str] = ()) -> dict[str, FileInfo]:
        """All present files: a new listing, if the last one is too old.

        Args:
            known: the files that the job knows, which the first listing of a run is compared with.

        Raises:
            ProgramError: if one of the paths is not there.
            DataError: if one of them has lost most of its files since the last listing, and that is not allowed.
        """
        now = self._clock()
        if self._is_too_old(now):
            files, self._seen = self._tree.list() if self._seen is None else self._seen, None
            if not self._may_lose_most:
                self._tree.check_loss(self._before(known), files)
            self._files, self._listed_at = files, now
            self._rows = {path: rows for path, rows in self._rows.items() if path in self._files}
            self._ends = {path: end for path, end in self._ends.items() if path in self._files}
            self._times = {key: times for key, times in self._times.items() if key[0] in self._files}
        return self._files

    def _is_too_old(self, now: float) -> bool:
        """Whether the last listing is too old; also if the clock has been set back since."""
        if self._listed_at is None:
            return True
        return self._interval_s is not None and not 0 <= now - self._listed_at < self._interval_s

    def _before(self, known: Iterable[str]) -> Collection[str]:
        """Return the files of the last look, which may have been in an earlier run."""
        if self._listed_at is not None:
            return self._files
        return [path for path in map(without_secrets, known) if path not in self._gone] if self._gone.is_known else []

    def still_known(self, gone: Iterable[str]) -> list[str]:
        """Return the read files that have disappeared and must still be remembered.

        Args:
            gone: the files that the last listing does not have.
        """
        now = self._clock() if self._listed_at is None else self._listed_at
        return [path for path, since in self._gone.are(gone, now).items() if now - since < self._forget_s]

    def listing(self) -> dict[str, FileInfo]:
        """All files of the last look."""
        return self.look() if self._listed_at is None else self._files

    def forget(self, path: str) -> None:
        """Take note that a file has disappeared."""
        del self._files[path]

    def begin_anew(self, path: str) -> None:
        """Take note that a new file has the name of a removed one."""
        self._rows.pop(path, None)
        self._ends.pop(path, None)
        self._times = {key: times for key, times in self._times.items() if key[0] != path}

    def rows(self, path: str) -> int:
        """How many rows a file has.

        Raises:
            DataError: if it is gone or cannot be read.
        """
        if path not in self._rows:
            self._rows[path] = self._format.rows(self._tree.at(path))
        return self._rows[path]

    def rows_after(self, path: str, position: int) -> int:
        """How many rows are still to be read."""
        return self.rows(path) - (self._format.row(position) if isinstance(self._format, BulkFormat) else 0)

    def position_after(self, path: str, position: int, rows: int) -> int:
        """The position `rows` rows further, fewer than are left; the end, if files are only read as a whole."""
        if not isinstance(self._format, BulkFormat):
            return self.end(path)
        return self._format.position(self._format.row(position) + rows)

    def has_begun(self, path: str, position: int) -> bool:
        """Whether a part of a file was read, or the file was found to be empty."""
        return position > 0 or path in self._ends

    def end(self, path: str) -> int:
        """The position after a file.

        Raises:
            DataError: if it is gone or cannot be read.
        """
        if path not in self._ends:
            info = self.listing().get(path)
            size = self._tree.at(path).size() if info is None else info.size
            self._ends[path] = self._format.end(size, lambda: self.rows(path))
        return self._ends[path]

    def position_at(self, path: str, column: str, timestamp_ms: int) -> int | None:
        """The position before the first row that is later than a time by a column; None if that is not known.

        Raises:
            DataError: if the file is gone or cannot be read.
        """
        if not isinstance(self._format, BulkFormat):
            return None
        if (path, column) not in self._times:
            self._times[path, column] = self._format.times(self._tree.at(path), column)
        times = self._times[path, column]
        if times is None:
            return None
        row = times.rows_until(timestamp_ms)
        return self.end(path) if row == self.rows(path) else self._format.position(row)


class GoneFiles:
    """The time at which each file disappeared, in seconds since the epoch, by the path of the file.

    The record outlives a run of the job. So a job that runs for a minute every hour forgets files in time, and a run
    that finds an empty directory at its start knows which files the previous run saw. A source with other paths starts
    with an empty record.

    Args:
        location: a folder below the job's checkpoint; None if it is not known, to keep the record in the process only.
        paths: the paths of the source.
    """

    def __init__(self, location: str | None, paths: Sequence[str]) -> None:
        self._paths = list(paths)
        self._folder: Folder | None = None
        self._since: dict[str, float] = {}
        self._is_known = False
        if location is not None:
            with self._or_not_at_all():
                self._folder = Folder(f"{location}/{_FOLDER}")
                self._load(self._folder)

    def _load(self, folder: Folder) -> None:
        if _FILE in folder.names():
            kept = folder.read(_FILE, json.loads)
            if kept["paths"] == self._paths:
                self._since, self._is_known = kept["since"], True

    @contextmanager
    def _or_not_at_all(self) -> Iterator[None]:
        """Keep the record in the process only, with a warning, if it cannot be read or written."""
        try:
            yield
        except (ProgramError, StateError, OSError) as error:
            self._folder = None
            warnings.warn(
                f"after a restart, the job does not know which files of a source are gone: {error}", stacklevel=2
            )

    @property
    def is_known(self) -> bool:
        """Whether all files that this source has missed so far are known."""
        return self._is_known

    def __contains__(self, path: object) -> bool:
        return path in self._since

    def are(self, paths: Iterable[str], now: float) -> dict[str, float]:
        """Take note of the files that are missing now, and only of those; return since when each is missing.

        Args:
            paths: the paths of these files.
            now: the seconds since the epoch.
        """
        since = {path: min(now, self._since.get(path, now)) for path in paths}
        if since.keys() != self._since.keys() or not self._is_known:
            self._since, self._is_known = since, True
            if self._folder is not None:
                with self._or_not_at_all():
                    self._folder.write(_FILE, json.dumps({"paths": self._paths, "since": since}).encode())
        return since


class RemovedFiles:
    """Read files that a source removes, with their sizes and times: a new file may get the name of one.

    They are recorded before they are removed, so that the next run knows them, too.

    Args:
        location: a folder below the job's checkpoint; None if it is not known, to keep the record in the process only.
    """

    def __init__(self, location: str | None) -> None:
        self._folder: Folder | None = None
        self._files: dict[str, FileInfo] = {}
        if location is not None:
            with suppress(ProgramError):  # Arrow cannot access the checkpoint
                self._folder = Folder(
                    f"{location}/{_FOLDER}", "delete it: names of files that were removed then stay reserved"
                )
        if self._folder is not None and _REMOVED in self._folder.names():
            kept = self._folder.read(_REMOVED, json.loads)
            self._files = {path: FileInfo(*info) for path, info in kept.items()}

    def __contains__(self, path: object) -> bool:
        return path in self._files

    def take(self, files: Mapping[str, FileInfo], known: Collection[str]) -> None:
        """Take note of files that are removed now, and forget those that the job no longer knows."""
        if not files.items() <= self._files.items():
            self._files = {path: info for path, info in self._files.items() if path in known} | {**files}
            if self._folder is not None:
                kept = {path: (info.size, info.modified_ns) for path, info in self._files.items()}
                self._folder.write(_REMOVED, json.dumps(kept).encode())

    def free(self, there: Mapping[str, FileInfo]) -> set[str]:
        """The files that were removed: a listing has no file, or another file, with their names."""
        return {path for path, info in self._files.items() if there.get(path) != info}


class FinishedFiles:
    """The names of the many files that a source has read and committed, and that offsets no longer contain.

    They are stored below the job's checkpoint in segments. The newest segments are merged as long as the one before
    them is no more than twice as large: so a name is rewritten a logarithmic number of times. Forgotten names are
    removed when they are half of all.

    Args:
        location: a folder below the job's checkpoint; None if it is not known, and no file is accepted.
        takes: whether more files may be added.

    Raises:
        StateError: if the segments cannot be read.
    """

    def __init__(self, location: str | None, *, takes: bool = True) -> None:
        self._folder: Folder | None = None
        self._takes = takes
        self._names: set[str] = set()
        self._segments: list[tuple[str, int]] = []
        self._forgotten = 0
        if location is not None:
            with suppress(ProgramError):  # Arrow cannot access the checkpoint, and nothing was ever taken
                self._folder = Folder(
                    f"{location}/{_FINISHED}", "start with a new checkpoint location, which reads all files again"
                )
        if self._folder is not None:
            for segment, names in self._all(self._folder):
                self._names.update(names)
                self._segments.append((segment, len(names)))

    def _all(self, folder: Folder) -> list[tuple[str, list[str]]]:
        """All segments with their names; an earlier run that is still alive may have merged some since the listing."""
        for _ in range(_LOOKS):
            with suppress(FileNotFoundError):
                return [(segment, self._read(segment)) for segment in folder.names()]
        return [(segment, self._read(segment)) for segment in folder.names()]

    def __contains__(self, path: object) -> bool:
        return path in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def take(self, paths: Iterable[str]) -> None:
        """Remember files that have been read in micro-batches that are committed, if there are many of them."""
        new = [path for path in paths if path not in self._names]
        if self._folder is None or not self._takes or len(new) <= _FEW:
            return
        merged: list[str] = []
        names = new
        try:
            while self._segments and self._segments[-1][1] <= 2 * len(names):
                segment, _ = self._segments.pop()
                merged.append(segment)
                names = [*self._read(segment), *names]
        except FileNotFoundError:  # a run that was thought dead has merged it, perhaps without all that is known here
            merged += [segment for segment, _ in self._segments]
            self._segments.clear()
            names = sorted({*self._names, *new})
        self._write(names, merged)
        self._names.update(new)

    def forget(self, paths: Collection[str]) -> None:
        """Forget files that have been gone for long enough."""
        self._names.difference_update(paths)
        self._forgotten += len(paths)
        if paths and self._forgotten >= len(self._names):
            merged, self._segments = [segment for segment, _ in self._segments], []
            self._forgotten = 0
            self._write(sorted(self._names), merged)

    def _write(self, names: Sequence[str], merged: Iterable[str]) -> None:
        """Write names, and then delete the segments that they were merged from."""
        if self._folder is None:
            return
        there = [*merged, *(segment for segment, _ in self._segments[-1:])]
        number = 1 + max((int(segment.partition("-")[0]) for segment in there), default=0)
        segment = f"{number:010}-{uuid.uuid4().hex[:8]}"  # a run that was thought dead may be at work, too
        self._folder.write(segment, zlib.compress(json.dumps(names).encode(), 1))
        self._segments.append((segment, len(names)))
        for old in merged:
            self._folder.delete(old)

    def _read(self, segment: str) -> list[str]:
        names: list[str] = [] if self._folder is None else self._folder.read(segment, _names)
        return names


def _names(content: bytes) -> list[str]:
    names: list[str] = json.loads(zlib.decompress(content))
    return names


def _rows_of(queue: Sequence[str], positions: Mapping[str, int], files: KnownFiles, enough: int) -> int:
    """How many rows a queue has left, reading only as many files as are needed to have enough."""
    rows = 0
    for path in queue:
        rows += files.rows_after(path, positions[path])
        if rows >= enough:
            break
    return rows


def _first(queue: Sequence[str], positions: Mapping[str, int], files: KnownFiles, rows: int) -> dict[str, int]:
    planned = {}
    for path in queue:
        left = files.rows_after(path, positions[path])
        if left > rows:
            if rows > 0:
                planned[path] = files.position_after(path, positions[path], rows)
            break
        planned[path] = files.end(path)
        rows -= left
    return planned
