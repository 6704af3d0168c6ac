"""Where files lie: local paths and URIs, in Arrow's spelling or in Hadoop's, and their file systems.

``Folder`` is a folder of small files that are written whole or not at all.
"""

from __future__ import annotations

import os
import uuid
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import quote

from eventide._distribution import getting
from eventide.errors import ProgramError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyarrow.fs import FileSystem

_SCHEMES = {"s3a": "s3", "s3n": "s3"}
"""Names that Hadoop has for what Arrow knows by another."""
_ARROWS_OWN = "s3"


def absolute(location: str) -> str:
    """A location as it is understood in any process: a URI stays as it is, but for one of a local file.

    In Hadoop's spelling, as in Flink's, each character of a path stands for itself.

    >>> absolute("s3://bucket/in"), absolute("file:///in//a%20b/")
    ('s3://bucket/in', '/in/a%20b')
    """
    if location.startswith("file:"):
        location = "/" + location.removeprefix("file:").lstrip("/")
    return location if "://" in location else os.path.abspath(location)


@lru_cache(maxsize=64)
def opened(location: str) -> tuple[FileSystem, str]:
    """The file system of a location, and the location's path in it, without a slash at its end.

    Raises:
        ProgramError: if Arrow cannot open it.

    >>> opened("file:///in/")[1]
    '/in'
    """
    from pyarrow.fs import FileSystem, LocalFileSystem

    uri = absolute(location)
    scheme, separator, rest = uri.partition("://")
    if not separator:
        return LocalFileSystem(), uri.rstrip("/")
    try:
        if scheme == "hdfs":
            file_system, path = _opening_hdfs()(rest)
        else:
            file_system, path = FileSystem.from_uri(_uri_for_arrow(scheme, rest))
    except (ValueError, OSError, NotImplementedError) as error:
        raise ProgramError(f"Arrow cannot open {location!r}: {error}") from error
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


def _opening_hdfs() -> Callable[[str], tuple[FileSystem, str]]:
    """Return the function that opens HDFS.

    Raises:
        ProgramError: if the library for it is not installed where this runs.
    """
    try:
        from eventide.storage.hdfs import opened_hdfs
    except ImportError as error:
        raise ProgramError(
            f"HDFS needs the library hdfs-native, which is not installed here: {getting('hdfs')}, also where "
            "Spark's workers run"
        ) from error
    return opened_hdfs


_HIDDEN = "."


class Folder:
    """A folder of files that are written whole or not at all. It is made when the first is written.

    Args:
        location: a local path, or a URI, in Hadoop's or in Arrow's spelling.

    Raises:
        ProgramError: if Arrow cannot open it.
    """

    def __init__(self, location: str) -> None:
        try:
            self._file_system, self._path = opened(location)
        except ProgramError as error:
            raise ProgramError(f"what sources remember is kept below the job's checkpoint: {error}") from error
        self._is_there = False

    def names(self) -> list[str]:
        """The names of the files, in their order."""
        return sorted(name for name in self._files() if not name.startswith(_HIDDEN))

    def read(self, name: str) -> bytes:
        """Return the content of a file."""
        with self._file_system.open_input_stream(f"{self._path}/{name}", compression=None) as stream:
            return bytes(stream.read())

    def write(self, name: str, content: bytes, *, is_shared: bool = False) -> None:
        """Write a file; it is on disk, and seen by others, when this returns, and not before.

        ``is_shared`` says that others may write it at the same moment: one of them is last then.
        """
        if not self._is_there:
            self._file_system.create_dir(self._path, recursive=True)
            self._is_there = True
        mine = f"-{uuid.uuid4().hex}" if is_shared else ""
        path, hidden = f"{self._path}/{name}", f"{self._path}/{_HIDDEN}{name}{mine}"
        with self._file_system.open_output_stream(hidden, compression=None) as stream:
            stream.write(content)
        self._sync(hidden)
        self._file_system.move(hidden, path)
        self._sync(self._path)

    def delete(self, name: str) -> None:
        """Delete a file, if it is still there."""
        with suppress(FileNotFoundError):
            self._file_system.delete_file(f"{self._path}/{name}")

    def unfinished(self) -> list[str]:
        """The names of files that are being written, or were when their writer died."""
        return [name.removeprefix(_HIDDEN) for name in self._files() if name.startswith(_HIDDEN)]

    def delete_unfinished(self, name: str) -> None:
        """Delete a file that was being written; its writer, if there still is one, finds out at its end."""
        self.delete(f"{_HIDDEN}{name}")

    def _files(self) -> list[str]:
        from pyarrow.fs import FileSelector

        infos = self._file_system.get_file_info(FileSelector(self._path, allow_not_found=True))
        return [info.base_name for info in infos if info.is_file]

    def _sync(self, path: str) -> None:
        """Bring it to the disk, if it lies on one: other stores do so when a file is closed."""
        if self._file_system.type_name != "local":
            return
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
