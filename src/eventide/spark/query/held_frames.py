"""Frames of a task until all have come: in memory, and in a file on this machine's disk where there are many."""

from __future__ import annotations

import mmap
import os
import tempfile
from typing import IO, Any

from eventide.runtime.exchange.frames import Frame
from eventide.storage import writing

_HELD_BYTES = 256 << 20
_ALIGNED = 64


class HeldFrames:
    """The frames that a task holds until all have come; of many bytes, most lie in a file, mapped into memory.

    The file is on the disk that Spark shuffles by, has no name, and is gone when nothing refers to a frame any more.

    Args:
        most_bytes: how many bytes are kept as they come.
    """

    def __init__(self, most_bytes: int = _HELD_BYTES) -> None:
        self._most_bytes = most_bytes
        self._size = 0
        self._kept: list[tuple[int, int, bytes | int, int]] = []
        self._file: IO[bytes] | None = None

    def add(self, row: Any) -> None:
        """Take a row with the columns of ``FRAME_SCHEMA``; its subtask stays Spark's id."""
        content, length = row.frame, len(row.frame)
        self._size += length
        if self._size <= self._most_bytes:
            self._kept.append((row.target, row.subtask, bytes(content), length))
            return
        with writing(f"a file of frames in {_folder()}"):
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=_folder())  # noqa: SIM115 - open until all have come
            begin = self._file.tell()
            self._file.write(content)
            self._file.write(bytes(-length % _ALIGNED))
        self._kept.append((row.target, row.subtask, begin, length))

    def all(self) -> list[Frame]:
        """All frames, in the order in which they came."""
        mapped = memoryview(b"")
        if self._file is not None:
            with writing(f"a file of frames in {_folder()}"):
                self._file.flush()
            mapped = memoryview(mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ))
            self._file.close()
        return [
            Frame.from_bytes(target, subtask, mapped[at : at + length] if isinstance(at, int) else at)
            for target, subtask, at, length in self._kept
        ]


def _folder() -> str:
    return os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0] or tempfile.gettempdir()
