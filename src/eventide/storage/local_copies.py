"""Copies of values on the disk of the machine that reads them; what they are copies of has to be elsewhere, too."""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import IO

_LOG = logging.getLogger("eventide")
_ID_BYTES = 8
_KEPT_S, _USED_S, _SWEEP_S = 3_600.0, 600.0, 600.0
"""A copy that was not read for `_KEPT_S` is deleted; that it was read is noted every `_USED_S`."""

_FREE = 10
"""One part in this many of the disk stays free."""

_NUMBER, _PAIR = struct.Struct("<q"), struct.Struct("<qq")


class LocalCopies:
    """Values in files, one for each set that was written together: the values, where each ends, and their number.

    Nothing here fails: a copy that cannot be written or read is not there. Values that are read may be damaged.

    Args:
        folder: where the files lie; it is made if it is not there.

    >>> import tempfile
    >>> copies = LocalCopies(tempfile.mkdtemp())
    >>> copy = copies.new_id()
    >>> writer = copies.write(copy)
    >>> for value in (b"a", b"bc", b""):
    ...     writer.add(value)
    >>> writer.end()
    >>> [*copies.read(copy, [1, 2], 3)]
    [b'bc', b'']
    >>> copies.delete(copy)
    >>> copies.read(copy, [1], 3) is None
    True
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._sweep_at = self._write_at = 0.0

    def new_id(self) -> str:
        """Draw the id of a copy."""
        return secrets.token_hex(_ID_BYTES)

    def write(self, copy: str) -> LocalCopy | None:
        """Begin a copy with an id; None if the disk is nearly full, or soon after an error."""
        if time.monotonic() < self._write_at:
            return None
        self._sweep()
        try:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            disk = shutil.disk_usage(self._folder)
            if disk.free * _FREE < disk.total:
                raise OSError(f"less than a tenth of its disk is free, {disk.free:,} bytes")
            return LocalCopy(self, self._path(copy), open(f"{self._path(copy)}.{os.getpid()}", "wb"))
        except OSError as error:
            self.failed(error)
            return None

    def failed(self, error: OSError) -> None:
        """Take note that a copy could not be written: for a while, no other is tried."""
        self._write_at = time.monotonic() + _SWEEP_S
        _LOG.warning("state is not copied to %s for ten minutes, and read from Spark: %s", self._folder, error)

    def read(self, copy: str, numbers: Sequence[int], count: int) -> Iterator[bytes] | None:
        """Return the values at some places of a copy of ``count`` values; None if there is none."""
        path, beginning = self._path(copy), (count + 2) * _NUMBER.size
        try:
            file = open(path, "rb", buffering=0)  # noqa: SIM115 - until all values have been read
        except OSError:
            return None
        try:
            found = os.fstat(file.fileno())
            file.seek(max(0, found.st_size - _NUMBER.size))
            is_whole = found.st_size >= beginning and file.read(_NUMBER.size) == _NUMBER.pack(count)
        except OSError:
            is_whole = False
        if not is_whole:
            file.close()
            return None
        if found.st_mtime < time.time() - _USED_S:
            with suppress(OSError):
                os.utime(path)
        return _values(file, found.st_size - beginning, numbers)

    def delete(self, copy: str) -> None:
        """Delete a copy."""
        with suppress(OSError):
            os.remove(self._path(copy))

    def _path(self, copy: str) -> str:
        return os.path.join(self._folder, copy)

    def _sweep(self) -> None:
        """Now and then delete the copies that nothing has read for long, as those of jobs that have ended."""
        if time.monotonic() < self._sweep_at:
            return
        self._sweep_at = time.monotonic() + _SWEEP_S
        oldest = time.time() - _KEPT_S
        with suppress(OSError), os.scandir(self._folder) as files:
            for file in files:
                with suppress(OSError):
                    if file.stat().st_mtime < oldest:
                        os.remove(file.path)


class LocalCopy:
    """A copy that is being written, under another name until its end.

    Args:
        copies: those that it belongs to.
        path: its name.
        file: the file under the other name.
    """

    def __init__(self, copies: LocalCopies, path: str, file: IO[bytes]) -> None:
        self._copies = copies
        self._path = path
        self._file: IO[bytes] | None = file
        self._ends = [0]

    def add(self, value: bytes) -> None:
        """Write the next value; after an error, nothing is written any more."""
        if self._file is not None:
            try:
                self._file.write(value)
            except OSError as error:
                self._fail(error)
            self._ends.append(self._ends[-1] + len(value))

    def end(self) -> None:
        """Give the copy its name."""
        if self._file is None:
            return
        try:
            self._file.write(struct.pack(f"<{len(self._ends) + 1}q", *self._ends, len(self._ends) - 1))
            self._file.close()
            os.replace(self._file.name, self._path)
        except OSError as error:
            self._fail(error)

    def drop(self) -> None:
        """Delete the file."""
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):
                file.close()
            with suppress(OSError):
                os.remove(file.name)

    def _fail(self, error: OSError) -> None:
        self.drop()
        self._copies.failed(error)


def _values(file: IO[bytes], size: int, numbers: Sequence[int]) -> Iterator[bytes]:
    """Values of a file, whose bytes lie in its first ``size`` ones; one that cannot be read is empty."""
    with file:
        for number in numbers:
            value = b""
            with suppress(OSError, struct.error):
                file.seek(size + number * _NUMBER.size)
                begin, end = _PAIR.unpack(file.read(_PAIR.size))
                if 0 <= begin <= end <= size:
                    file.seek(begin)
                    value = file.read(end - begin)
            yield value
