"""Finding and opening files: paths and URIs through Arrow's file systems, and the filter of their names."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from eventide._secrets import without_secrets
from eventide.errors import DataError, ProgramError, StateError
from eventide.storage import absolute, opened

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.fs import FileSystem

_MANY = 10
"""The number of files from which a path must not lose most of them."""
_SEVERAL = 2
"""The number of files from which a path must not lose all of them."""

_OF_FLINK = {"gzip": "gzip", "deflate": "gzip"}
"""Suffixes that Flink knows and Arrow does not, with Arrow's codec, which detects which of the two it is."""

_NOT_KNOWN = frozenset({"7z", "br", "lzma", "lzo", "snappy", "xz", "z", "zip"})
"""Suffixes of compressed files that Arrow does not read as a stream."""


class FileProcessingMode(Enum):
    """Whether a file source ends with the files that exist at the start. Flink: ``FileProcessingMode``."""

    PROCESS_ONCE = "once"
    """Read the files that exist when the job starts, and end with the last of them."""

    PROCESS_CONTINUOUSLY = "continuously"
    """Run for ever, and look for new files."""


class FilePathFilter(ABC):
    """Says which files a source ignores. It is pickled and sent to the workers. Flink: ``FilePathFilter``.

    >>> class NoReports(FilePathFilter):
    ...     def filter_path(self, file_path):
    ...         return file_path.endswith(".report")
    >>> NoReports().filter_path("/in/a.report")
    True
    """

    @abstractmethod
    def filter_path(self, file_path: str) -> bool:
        """Return True for a file to ignore."""

    @staticmethod
    def create_default_filter() -> FilePathFilter:
        """Return the filter that ignores names that begin with ``.`` or ``_``, or contain ``_COPYING_``.

        >>> default = FilePathFilter.create_default_filter()
        >>> [default.filter_path(path) for path in ("/in/a", "/in/_a", "/in/a._COPYING_")]
        [False, True, True]
        """
        return _DefaultFilter()


@dataclass(frozen=True, slots=True)
class FileInfo:
    """A file in a listing: its size in bytes, and when it was changed, in nanoseconds since the epoch."""

    size: int
    modified_ns: int


@dataclass(frozen=True, slots=True)
class File:
    """One file: ``path`` for users, and ``inner`` for its file system; ``root`` is the path of the source."""

    path: str
    file_system: FileSystem
    inner: str
    root: str

    def info(self) -> FileInfo | None:
        """The present size and time of the file; None if it does not exist."""
        info = self.file_system.get_file_info(self.inner)
        return FileInfo(info.size, info.mtime_ns or 0) if info.is_file else None

    def size(self) -> int:
        """The size of the file in bytes.

        Raises:
            DataError: if it is gone.
        """
        info = self.file_system.get_file_info(self.inner)
        if not info.is_file:
            raise _gone(self.path)
        return int(info.size)

    def stream(self) -> pa.NativeFile:
        """The bytes of the file from its beginning, compressed as its name says (``.gz``, ``.zst``, …).

        Raises:
            DataError: if its compression is not supported.
        """
        ending = self.path.rpartition(".")[2].lower()
        if ending in _NOT_KNOWN:
            raise DataError(
                f"the file {self.path} is compressed as .{ending}, which cannot be read; use .gz, .bz2, .zst or .lz4"
            )
        return self.file_system.open_input_stream(self.inner, compression=_OF_FLINK.get(ending, "detect"))

    def random(self) -> pa.NativeFile:
        """The bytes of the file, in any order."""
        return self.file_system.open_input_file(self.inner)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Turn any error with the file into a DataError that names it."""
        try:
            yield
        except DataError:
            raise
        except FileNotFoundError as error:
            raise _gone(self.path) from error
        except (OSError, ValueError, TypeError, NotImplementedError, KeyError) as error:
            raise DataError(f"the file {self.path} cannot be read: {error}") from error


def check_size(file: File, planned: int) -> None:
    """Check that a file has not changed since it was planned.

    Raises:
        DataError: if its size has changed.
    """
    size = file.size()
    if size != planned:
        raise _changed(file.path, f"it had {planned} bytes and has {size}")


def check_rows(file: File, planned: int, rows: int) -> None:
    """Check that a file has as many rows as it had when it was planned.

    Raises:
        DataError: if it has not.
    """
    if rows != planned:
        raise _changed(file.path, f"it had {planned} rows and has {rows}")


class FileTree:
    """The files below some paths, and the paths that are files themselves.

    Args:
        paths: local paths, or URIs that Arrow knows, such as ``s3://bucket/in``.
        path_filter: says which files below a folder to ignore; None to ignore hidden files only.
        nested: whether files in folders below those of the paths count.
    """

    def __init__(self, paths: Sequence[str], path_filter: FilePathFilter | None = None, *, nested: bool = True) -> None:
        self._path_filter = path_filter
        self._nested = nested
        self._roots: dict[str, str] = {}
        for path in map(absolute, paths):
            other = self._roots.setdefault(_shown(path), path)
            if other != path:
                raise ProgramError(
                    f"the paths {without_secrets(other)} and {without_secrets(path)} name the same place, so their "
                    "files could not be told apart: make a source for each"
                )

    def list(self) -> dict[str, FileInfo]:
        """All files by their path, in its order, without hidden files and those in hidden folders.

        Raises:
            ProgramError: if one of the paths is not there.
        """
        found: dict[str, FileInfo] = {}
        for shown, uri in self._roots.items():
            found |= _listed(shown, uri, nested=self._nested)
        return {path: info for path, info in sorted(found.items()) if not self._ignores(path)}

    def _ignores(self, path: str) -> bool:
        return self._path_filter is not None and self._path_filter.filter_path(path)

    def check_loss(self, before: Collection[str], now: Collection[str]) -> None:
        """Refuse a listing in which a path has lost most of its files: the store may be unavailable.

        That is more than half of ten or more files, or all of two or more files.

        Args:
            before: the earlier files; those outside the paths, or ignored by now, do not count.
            now: the present files.

        Raises:
            DataError: if a path has lost most of its files.
        """
        gone = {path for path in before if path not in now}
        if len(gone) < _SEVERAL:
            return
        had = Counter(self._root_of(path) for path in before if not self._ignores(path))
        for root, lost in Counter(self._root_of(path) for path in gone if not self._ignores(path)).items():
            most = had[root] // 2 if had[root] >= _MANY else max(had[root], _SEVERAL) - 1
            if root is not None and lost > most:
                raise DataError(
                    f"{lost} of {had[root]} files below {root} are gone since the last look, as if a store were not "
                    "mounted or not listed in full; check it, and start the job again. If files are deleted there on "
                    "purpose, most of them at once, say so with set_may_lose_most(True) on the builder of the source"
                )

    def _root_of(self, path: str) -> str | None:
        """The path of the source that contains a file."""
        return max((shown for shown in self._roots if f"{path}/".startswith(f"{shown}/")), key=len, default=None)

    def below(self, path: str) -> str:
        """The path of a file below the path of the source, or its name, if it is that path."""
        return path.removeprefix(self._root_of(path) or "").lstrip("/") or path.rpartition("/")[2]

    def at(self, path: str) -> File:
        """One of the files, even if it does not exist."""
        path = without_secrets(path)  # a checkpoint of an earlier version may have names with passwords
        root = self._root_of(path)
        if root is None:
            raise StateError(
                f"the checkpoint names the file {path}, which is under none of the paths of the source "
                f"({', '.join(self._roots)}); start with a new checkpoint location, or with a path that contains it"
            )
        if ".." in path[len(root) :].split("/"):
            raise StateError(f"the checkpoint names the file {path}, which is outside {root}; start with a new one")
        file_system, inner = opened(self._roots[root])
        return File(path, file_system, inner + path[len(root) :], root)


@dataclass(frozen=True, slots=True)
class FileRemoval:
    """The removal of a read file: into a directory, or without one by deletion.

    A moved file is never replaced: another file that would get its name gets eight characters before it.
    """

    directory: str | None = None

    def check(self, paths: Sequence[str]) -> None:
        """Check that the directory is not below a path of the source.

        Raises:
            ProgramError: if it is.
        """
        roots = [path for path in map(absolute, paths) if f"{self.directory}/".startswith(f"{path.rstrip('/')}/")]
        if roots:
            raise ProgramError(
                f"files that were read cannot be moved to {self.directory}: it is below {roots[0]}, where they would "
                "be found again; give a directory beside it"
            )

    def remove(self, tree: FileTree, path: str) -> None:
        """Move or delete a file; no effect if it is gone.

        Raises:
            DataError: if it cannot be moved or deleted.
        """
        file = tree.at(path)
        try:
            if self.directory is None:
                file.file_system.delete_file(file.inner)
            else:
                _, directory = opened(self.directory)
                folder, _, name = f"{directory}/{tree.below(path)}".rpartition("/")
                file.file_system.create_dir(folder, recursive=True)
                is_taken = file.file_system.get_file_info(f"{folder}/{name}").is_file
                target = f"{uuid.uuid4().hex[:8]}-{name}" if is_taken else name
                file.file_system.move(file.inner, f"{folder}/{target}")
        except FileNotFoundError:
            return
        except OSError as error:
            wanted = "deleted" if self.directory is None else f"moved to {self.directory}"
            raise DataError(f"the file {path} has been read and cannot be {wanted}: {error}") from error


def _gone(path: str) -> DataError:
    return DataError(
        f"the file {path} is gone, and it is still to be read; put it back, or start with a new checkpoint. Files must "
        "stay until the job has read them"
    )


def _changed(path: str, how: str) -> DataError:
    return DataError(
        f"the file {path} has changed since it was found: {how}. A file must be complete when it appears: write it "
        "under a name that begins with '.' or '_', or elsewhere, and move it in"
    )


def _shown(path: str) -> str:
    """A path as in the names of its files: without the parameters that only say how to open it."""
    return without_secrets((path.partition("?")[0] if "://" in path else path).rstrip("/"))


def _listed(shown: str, uri: str, *, nested: bool) -> dict[str, FileInfo]:
    from pyarrow.fs import FileSelector, FileType

    file_system, inner = opened(uri)
    root = file_system.get_file_info(inner or "/")
    if root.type is FileType.NotFound:
        raise ProgramError(
            f"there is nothing at {shown or '/'}; create the directory, or correct the path of the source"
        )
    if root.is_file:
        return {shown: FileInfo(root.size, root.mtime_ns or 0)}
    found = {}
    for info in file_system.get_file_info(FileSelector(inner or "/", recursive=nested)):
        relative = info.path.removeprefix(inner)
        if info.is_file and not _is_hidden(relative):
            found[shown + relative] = FileInfo(info.size, info.mtime_ns or 0)
    return found


def _is_hidden(relative: str) -> bool:
    """Whether a part of a path is hidden, by the rules of Spark and Flink."""
    return "/." in relative or "/_" in relative


class _DefaultFilter(FilePathFilter):
    """Files that are hidden, or that Hadoop is still copying."""

    def filter_path(self, file_path: str) -> bool:
        name = file_path.rpartition("/")[2]
        return name.startswith((".", "_")) or "_COPYING_" in name
