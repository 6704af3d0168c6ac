"""Copies of values on the disk of the machine that reads them; what they are copies of has to be elsewhere, too."""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import struct
import time
from collections.abc import Sequence
from contextlib import suppress
from itertools import accumulate, pairwise

_LOG = logging.getLogger("eventide")
_ID_BYTES = 8
_KEPT_S, _USED_S, _SWEEP_S = 3_600.0, 600.0, 600.0
"""A copy that was not read for `_KEPT_S` is deleted; that it was read is noted every `_USED_S`."""

_FREE = 10
"""One part in this many of the disk stays free."""

_COUNT = struct.Struct("<q")


class LocalCopies:
    """Values in files, one for each set that was written together.

    Nothing here fails: a copy that cannot be written or read is not there.

    Args:
        folder: where the files lie; it is made if it is not there.

    >>> import tempfile
    >>> copies = LocalCopies(tempfile.mkdtemp())
    >>> found = copies.write([b"a", b"bc", b""])
    >>> copies.read(found, [1, 2])
    [b'bc', b'']
    >>> copies.delete(found)
    >>> copies.read(found, [1]) is None
    True
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._sweep_at = self._write_at = 0.0

    def write(self, values: Sequence[bytes], copy: str | None = None) -> str:
        """Copy values, and return the id of the copy, whether it could be written or not.

        Args:
            values: the values.
            copy: the id, of values that have one already.
        """
        copy = copy or secrets.token_hex(_ID_BYTES)
        if time.monotonic() >= self._write_at:
            self._sweep()
            try:
                self._write(copy, values)
            except OSError as error:
                self._write_at = time.monotonic() + _SWEEP_S
                _LOG.warning("state is not copied to %s for ten minutes, and read from Spark: %s", self._folder, error)
        return copy

    def read(self, copy: str, numbers: Sequence[int]) -> list[bytes] | None:
        """The values at some places of a copy; None if there is none, or it is damaged."""
        path = self._path(copy)
        try:
            with open(path, "rb", buffering=0) as file:
                found = os.fstat(file.fileno())
                (count,) = _COUNT.unpack(file.read(_COUNT.size))
                if not 0 < count * _COUNT.size < found.st_size:
                    return None
                ends = struct.unpack(f"<{count + 1}q", file.read((count + 1) * _COUNT.size))
                if ends[-1] != found.st_size or any(end < begin for begin, end in pairwise(ends)):
                    return None
                values = []
                for number in numbers:
                    file.seek(ends[number])
                    values.append(file.read(ends[number + 1] - ends[number]))
        except (OSError, ValueError, struct.error, IndexError):
            return None
        if found.st_mtime < time.time() - _USED_S:
            with suppress(OSError):
                os.utime(path)
        return values

    def delete(self, copy: str) -> None:
        """Delete a copy."""
        with suppress(OSError):
            os.remove(self._path(copy))

    def _path(self, copy: str) -> str:
        return os.path.join(self._folder, copy)

    def _write(self, copy: str, values: Sequence[bytes]) -> None:
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        disk = shutil.disk_usage(self._folder)
        if disk.free * _FREE < disk.total:
            raise OSError(f"less than a tenth of its disk is free, {disk.free:,} bytes")
        begin = (len(values) + 2) * _COUNT.size
        ends = [begin, *(begin + end for end in accumulate(map(len, values)))]
        unfinished = f"{self._path(copy)}.{os.getpid()}"
        try:
            with open(unfinished, "wb") as file:
                file.write(struct.pack(f"<{len(ends) + 1}q", len(values), *ends))
                file.writelines(values)
            os.replace(unfinished, self._path(copy))
        except OSError:
            with suppress(OSError):
                os.remove(unfinished)
            raise

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
