"""The directory of a savepoint, on a disk or wherever Arrow reaches."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from eventide.errors import StateError
from eventide.savepoint.header import SavedFile
from eventide.storage.opening import opened

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem


_AT_ONCE = 1 << 20


class Directory:
    """The files of a savepoint.

    Args:
        location: a local path, or a URI.

    Raises:
        ProgramError: if Arrow cannot open it.
    """

    def __init__(self, location: str) -> None:
        self._store, self._root = opened(location)
        self.written: list[str] = []
        """The files that were written, in their order."""

    @property
    def store(self) -> FileSystem:
        """Where it is."""
        return self._store

    def path(self, name: str) -> str:
        """The path of a file there.

        Raises:
            StateError: if the name leads out of the directory.
        """
        if name.startswith("/") or ".." in name.split("/"):
            raise StateError(f"the path {name!r} leads out of the savepoint in {self._root}; take a savepoint anew")
        return f"{self._root}/{name}"

    def below(self, folder: str) -> Directory:
        """A folder of it."""
        found = copy(self)
        found._root, found.written = self.path(folder), []
        return found

    @staticmethod
    def of_tables(operator: str) -> str:
        """The folder of the tables of an operator."""
        return f"tables/{quote(operator, safe='')}"

    def is_empty(self) -> bool:
        """Whether there is nothing at the location."""
        return not self.names("")

    def delete(self) -> None:
        """Delete all of it, if there is anything."""
        if not self.is_empty():
            self._store.delete_dir(self._root)

    def names(self, folder: str) -> list[str]:
        """The paths of all files in a folder, and in those in it, from the folder on; in their order."""
        from pyarrow.fs import FileSelector

        root = self.path(folder).rstrip("/")
        found = self._store.get_file_info(FileSelector(root, allow_not_found=True, recursive=True))
        return sorted(info.path[len(root) :].lstrip("/") for info in found if info.is_file)

    def sizes(self) -> dict[str, int]:
        """The bytes of all files, by their path from the directory on."""
        from pyarrow.fs import FileSelector

        found = self._store.get_file_info(FileSelector(self._root, allow_not_found=True, recursive=True))
        return {info.path[len(self._root) :].lstrip("/"): info.size or 0 for info in found if info.is_file}

    def saved_file(self, name: str) -> SavedFile:
        """Read a whole file, and return its entry for the header."""
        import pyarrow.parquet as pq

        digest, size = hashlib.sha256(), 0
        with self._store.open_input_stream(self.path(name), compression=None) as stream:
            while content := stream.read(_AT_ONCE):
                digest.update(content)
                size += len(content)
        rows = pq.read_metadata(self.path(name), filesystem=self._store).num_rows if name.endswith(".parquet") else None
        return SavedFile(size, rows, digest.hexdigest())

    def text(self, name: str) -> str | None:
        """Return the text of a file; None if it is not there."""
        try:
            with self._store.open_input_stream(self.path(name)) as stream:
                return str(stream.read(), "utf-8")
        except FileNotFoundError:
            return None

    @contextmanager
    def writing(self, name: str) -> Iterator[Any]:
        """A stream into a file, which is there when it is closed."""
        path = self.path(name)
        self._store.create_dir(path.rpartition("/")[0], recursive=True)
        with self._store.open_output_stream(path, compression=None) as stream:
            yield stream
        self.written.append(name)


def copy_files(source: Directory, folder: str, names: Sequence[str], target: Directory) -> None:
    """Copy files of a folder into a directory."""
    for name in names:
        with (
            source.store.open_input_stream(source.path(f"{folder}/{name}"), compression=None) as stream,
            target.writing(name) as copy,
        ):
            while content := stream.read(_AT_ONCE):
                copy.write(content)
