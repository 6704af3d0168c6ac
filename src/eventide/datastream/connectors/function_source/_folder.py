"""A folder of small files, on disk or wherever Arrow reaches."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from urllib.parse import unquote

from eventide.errors import ProgramError

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

_HIDDEN = "."
_SCHEMES = {"s3a": "s3", "s3n": "s3"}
"""Names that Hadoop has for what Arrow knows by another."""


class Folder:
    """A folder of files that are written whole or not at all. It is made when the first is written.

    Args:
        location: a local path, or a URI, in Hadoop's or in Arrow's spelling.

    Raises:
        ProgramError: if Arrow cannot open it.
    """

    def __init__(self, location: str) -> None:
        self._file_system, self._path = _opened(location)
        self._is_there = False

    def names(self) -> list[str]:
        """The names of the files, in their order."""
        from pyarrow.fs import FileSelector

        infos = self._file_system.get_file_info(FileSelector(self._path, allow_not_found=True))
        return sorted(info.base_name for info in infos if info.is_file and not info.base_name.startswith(_HIDDEN))

    def read(self, name: str) -> bytes:
        """What a file contains."""
        with self._file_system.open_input_stream(f"{self._path}/{name}", compression=None) as stream:
            return bytes(stream.read())

    def write(self, name: str, content: bytes) -> None:
        """Write a file; it is on disk, and seen by others, when this returns, and not before."""
        if not self._is_there:
            self._file_system.create_dir(self._path, recursive=True)
            self._is_there = True
        path, hidden = f"{self._path}/{name}", f"{self._path}/{_HIDDEN}{name}"
        with self._file_system.open_output_stream(hidden, compression=None) as stream:
            stream.write(content)
        self._sync(hidden)
        self._file_system.move(hidden, path)
        self._sync(self._path)

    def delete(self, name: str) -> None:
        """Delete a file."""
        self._file_system.delete_file(f"{self._path}/{name}")

    def _sync(self, path: str) -> None:
        """Bring it to the disk, if it lies on one: other stores do so when a file is closed."""
        if self._file_system.type_name != "local":
            return
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def absolute(location: str) -> str:
    """A location as it is understood in any process: a URI stays as it is.

    >>> absolute("s3://bucket/checkpoint"), absolute("file:///checkpoint/")
    ('s3://bucket/checkpoint', '/checkpoint')
    """
    if location.startswith("file:"):
        location = "/" + unquote(location.removeprefix("file:")).lstrip("/")
    return location if "://" in location else os.path.abspath(location)


def _opened(location: str) -> tuple[FileSystem, str]:
    from pyarrow.fs import FileSystem, LocalFileSystem

    scheme, separator, rest = absolute(location).partition("://")
    if not separator:
        return LocalFileSystem(), scheme
    try:
        file_system, path = FileSystem.from_uri(f"{_SCHEMES.get(scheme, scheme)}://{rest}")
    except (ValueError, OSError, NotImplementedError) as error:
        raise ProgramError(
            f"what a SourceFunction emits is kept below the job's checkpoint, and Arrow cannot open {location!r}: "
            f"{error}"
        ) from error
    return file_system, path.rstrip("/")
