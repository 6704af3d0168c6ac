"""Where files lie: local paths and URIs, in Arrow's spelling or in Hadoop's, and their file systems.

``Folder`` is a folder of small files that are written whole or not at all.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote

from eventide.common.checksum import has_checksum, with_checksum, without_checksum
from eventide.errors import ProgramError, StateError, StorageError, needing

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

T = TypeVar("T")

_SCHEMES = {"s3a": "s3", "s3n": "s3"}
"""Hadoop's names for settings that Arrow calls otherwise."""
_ARROWS_OWN = "s3"
_OF_HADOOP_ALONE = re.compile(r"(?!file:)[A-Za-z][\w+.-]+:/")


def absolute(location: str) -> str:
    """A location as it is understood in any process: a URI stays as it is, but for one of a local file.

    In Hadoop's spelling, as in Flink's, each character of a path stands for itself.

    >>> absolute("s3://bucket/in"), absolute("file:///in//a%20b/")
    ('s3://bucket/in', '/in/a%20b')
    """
    if location.startswith("file:"):
        location = "/" + location.removeprefix("file:").lstrip("/")
    return location if "://" in location else os.path.abspath(location)


def opened(location: str) -> tuple[FileSystem, str]:
    """The file system of a location, and the location's path in it, without a slash at its end.

    Raises:
        ProgramError: if Arrow cannot open it.

    >>> opened("file:///in/")[1]
    '/in'
    """
    from pyarrow.fs import LocalFileSystem

    place = absolute(location)
    if "://" in place:
        return opened_store(place)
    if _OF_HADOOP_ALONE.match(location):
        raise ProgramError(
            f"Arrow cannot open {location!r}: it is a place that only Hadoop knows; give a path, such as that of "
            "a mounted folder, or a URI of a store"
        )
    return LocalFileSystem(), place.rstrip("/")


@lru_cache(maxsize=64)
def opened_store(uri: str) -> tuple[FileSystem, str]:
    """Open a store by its URI; a connection to it is kept, until ``cache_clear`` is called."""
    from pyarrow.fs import FileSystem

    scheme, _, rest = uri.partition("://")
    try:
        if scheme == "hdfs":
            with needing("hdfs-native", "HDFS", "hdfs"):
                from eventide.storage.hdfs import opened_hdfs
            file_system, path = opened_hdfs(rest)
        else:
            file_system, path = FileSystem.from_uri(_uri_for_arrow(scheme, rest))
    except (ValueError, OSError, NotImplementedError) as error:
        raise ProgramError(f"Arrow cannot open {uri!r}: {error}") from error
    return file_system, path.rstrip("/")


def _uri_for_arrow(scheme: str, rest: str) -> str:
    """A location as Arrow wants it, whose spelling is that of URIs; Hadoop's path stands for itself.

    >>> _uri_for_arrow("s3a", "bucket/50% of [all]"), _uri_for_arrow("s3", "bucket/50%25")
    ('s3://bucket/50%25%20of%20%5Ball%5D', 's3://bucket/50%25')
    """
    if scheme == _ARROWS_OWN:
        return f"{scheme}://{rest}"
    path, mark, options = rest.partition("?")
    return f"{_SCHEMES.get(scheme, scheme)}://{quote(path, safe='/@:')}{mark}{options}"


@contextmanager
def writing(path: str) -> Iterator[None]:
    """Say which file cannot be written, in an error of ours; that a file is gone stays a ``FileNotFoundError``.

    Raises:
        StorageError: in place of the error of a store.
    """
    try:
        yield
    except (FileNotFoundError, StorageError):
        raise
    except OSError as error:
        raise StorageError(
            f"{path} cannot be written: {error}; when there is room for it, and it may be written, start the job "
            "again: it goes on from its checkpoint"
        ) from error


_HIDDEN, _OF_ONE_WRITER = ".", "~"


class Folder:
    """A folder of files that are written whole or not at all, with checksums. It is made when the first is written.

    Args:
        location: a local path, or a URI, in Hadoop's or in Arrow's spelling.
        advice: what to do about a damaged file of which there is no copy.
        has_checksums: whether they are written; Spark's own files have none.

    Raises:
        ProgramError: if Arrow cannot open it.
    """

    def __init__(
        self,
        location: str,
        advice: str = "start the job with a new checkpoint location, from a savepoint if there is one",
        *,
        has_checksums: bool = True,
    ) -> None:
        try:
            self._file_system, self._path = opened(location)
        except ProgramError as error:
            raise ProgramError(f"the state of sources is kept below the job's checkpoint: {error}") from error
        self._advice = advice
        self._has_checksums = has_checksums
        self._is_there = False

    def names(self) -> list[str]:
        """The names of the files, in their order."""
        return sorted(name for name in self._files() if not name.startswith(_HIDDEN))

    def read(self, name: str, parse: Callable[[bytes], T]) -> T:
        """Return what a function makes of the content of a file.

        Raises:
            StateError: if the file is not as it was written, or if the function raises: of files of an earlier version,
                which have no checksum, that alone tells.
        """
        with self._file_system.open_input_stream(f"{self._path}/{name}", compression=None) as stream:
            stored = bytes(stream.read())
        content = without_checksum(stored) if has_checksum(stored) else stored
        try:
            if content is None:
                raise ValueError("its content does not have the checksum that it was written with")
            return parse(content)
        except Exception as error:  # of whatever kind: the content may be anything
            raise StateError(
                f"the file {self._path}/{name} is not as it was written: {error}. Put a copy of it back, or "
                f"{self._advice}"
            ) from error

    def write(self, name: str, content: bytes) -> None:
        """Write a file; it is on disk, and seen by others, when this returns, and not before.

        Others may write it at the same moment, such as a run that was thought dead: the last one that is done counts.

        Raises:
            StorageError: if it cannot be written; a file that was there before stays.
        """
        path, hidden = f"{self._path}/{name}", f"{self._path}/{_HIDDEN}{name}{_OF_ONE_WRITER}{uuid.uuid4().hex}"
        stored = with_checksum(content) if self._has_checksums else content
        with writing(path):
            if not self._is_there:
                self._file_system.create_dir(self._path, recursive=True)
                self._is_there = True
            try:
                with self._file_system.open_output_stream(hidden, compression=None) as stream:
                    stream.write(stored)
                self._sync(hidden)
                self._file_system.move(hidden, path)
            except OSError:
                with suppress(OSError):
                    self._file_system.delete_file(hidden)  # on a disk that is full, it takes the last room
                raise
            self._sync(self._path)

    def delete(self, name: str) -> None:
        """Delete a file, if it is still there."""
        with suppress(FileNotFoundError):
            self._file_system.delete_file(f"{self._path}/{name}")

    def unfinished(self) -> list[str]:
        """The names of files that are being written, or were when their writer died."""
        return sorted({_name_of(name) for name in self._files() if name.startswith(_HIDDEN)})

    def delete_unfinished(self, name: str) -> None:
        """Delete a file that was being written; its writers, if there still are any, find out at their end."""
        for hidden in self._files():
            if hidden.startswith(_HIDDEN) and _name_of(hidden) == name:
                self.delete(hidden)

    def _files(self) -> list[str]:
        from pyarrow.fs import FileSelector

        infos = self._file_system.get_file_info(FileSelector(self._path, allow_not_found=True))
        return [info.base_name for info in infos if info.is_file]

    def _sync(self, path: str) -> None:
        synced(self._file_system, path)


def synced(file_system: FileSystem, path: str) -> None:
    """Bring a file, or a folder, to the disk, if it lies on one: other stores do so when a file is closed."""
    if file_system.type_name != "local":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _name_of(hidden: str) -> str:
    """The name that a file gets when it is written to its end."""
    return hidden.removeprefix(_HIDDEN).partition(_OF_ONE_WRITER)[0]
