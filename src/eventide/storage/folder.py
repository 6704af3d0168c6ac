"""A folder of small files, on disk or wherever Arrow reaches."""

from __future__ import annotations

import os
import uuid
from contextlib import suppress

from eventide.errors import ProgramError
from eventide.storage.opening import opened

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
