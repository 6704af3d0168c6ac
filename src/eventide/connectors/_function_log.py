"""Write-ahead log of the emissions of a function as a source: files of items, numbered by their positions."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from eventide.errors import StateError
from eventide.pickling.pickles import dumps, plain_loads
from eventide.storage import Folder

_SEGMENT = re.compile(r"(\d{20})-(\d{20})-(\d{8})-(\w+)")
_OURS = re.compile(rf"({_SEGMENT.pattern}|(writer|begun|end)-\d{{8}}-\w+)")
"""Names of files that a writer writes; stores and desktops add others."""


@dataclass(frozen=True, slots=True, order=True)
class Writer:
    """One run of the writing process: a later one is greater; between two of the same moment, chance decides."""

    epoch: int
    id: str

    def __str__(self) -> str:
        return f"{self.epoch:08}-{self.id}"


@dataclass(frozen=True, slots=True)
class Segment:
    """One file: the items from position ``start`` up to, not including, ``end``, and its writer."""

    start: int
    end: int
    writer: Writer

    @property
    def name(self) -> str:
        """The name of the file."""
        return f"{self.start:020}-{self.end:020}-{self.writer}"


class WriteAheadLog:
    """The items of one source by their positions, which count from 0 without end, for readers.

    Each segment also has the state of the function after its last item, so that the function continues at the end of
    the log after a restart, even if Spark has not planned all of the log by then.

    The log consists of the segments of the latest writer, and of those that it found and recorded at its start. A
    segment that an earlier writer adds later is ignored.

    Args:
        location: its folder.
    """

    def __init__(self, location: str) -> None:
        self._location = location
        self._folder = Folder(location)
        self._names: list[str] = []
        self._segments: list[Segment] = []
        self._is_complete = False
        self._look()

    def _look(self) -> None:
        """Read the present log."""
        self._names = self._folder.names()
        begun = _writers("begun", self._names)
        if begun:
            last = max(begun)
            found = self._folder.read(f"begun-{last}", json.loads)
            counting = [s for s in _segments(self._names) if s.writer == last or s.name in found["segments"]]
            self._segments = sorted(counting, key=lambda segment: segment.start)
            self._is_complete = found["complete"] or f"end-{last}" in self._names

    @property
    def end(self) -> int:
        """The position after the last item."""
        return self._segments[-1].end if self._segments else 0

    @property
    def is_complete(self) -> bool:
        """Whether the log is complete: no item will follow."""
        return self._is_complete

    def state(self) -> bytes | None:
        """The state after the last item; None if there is none."""
        return self._content(self._segments[-1])[1] if self._segments else None

    def read(self, start: int, end: int) -> Iterator[bytes]:
        """The items from ``start`` up to, not including, ``end``.

        Raises:
            StateError: if the log does not have them.
        """
        position = start
        for segment in self._segments:
            if segment.start <= position < min(end, segment.end):
                items, _ = self._content(segment)
                yield from items[position - segment.start : end - segment.start]
                position = min(end, segment.end)
        if position < end:
            begins = self._segments[0].start if self._segments else position
            raise StateError(
                f"the elements from position {position} to {end}, which the job has planned to read, are not in "
                f"{self._location}; "
                + (
                    f"they were read and deleted up to position {begins}, as another run of this job goes on: let only "
                    "one run at a time use a checkpoint"
                    if begins > position
                    else "its files must stay as long as the checkpoint, or start with a new one"
                )
            )

    def _content(self, segment: Segment) -> tuple[list[bytes], bytes | None]:
        content: tuple[list[bytes], bytes | None] = self._folder.read(segment.name, plain_loads)
        return content


class LogWriter(WriteAheadLog):
    """Writes at the end of a log and deletes at its beginning. There is one at a time: the latest.

    A new writer first leaves a file with its name, and then reads the present files. After each write, a writer checks
    whether a later writer has left its name; if so, it stops, before anyone has used its last segment. In any order of
    events, one of the two sees the other: either the later one takes over the segments of the earlier one, or the
    earlier one stops. This only needs a store that shows and lists a file as soon as it is written: local disks, HDFS,
    S3, Google's and Microsoft's stores do.

    Raises:
        StateError: if another writer began at the same moment, and this one loses.
    """

    def __init__(self, location: str) -> None:
        self._location, self._folder = location, Folder(location)
        before = _writers("writer", self._folder.names())
        self._me = Writer(max((writer.epoch for writer in before), default=0) + 1, uuid.uuid4().hex)
        self._write(f"writer-{self._me}", b"")
        super().__init__(location)
        self._check()
        counting = {segment.name for segment in self._segments}
        content = {"segments": sorted(counting), "complete": self._is_complete}
        self._write(f"begun-{self._me}", json.dumps(content).encode())
        for name in set(self._names) - counting - {f"writer-{self._me}"}:
            self._folder.delete(name)
        for name in self._folder.unfinished():
            if _OURS.fullmatch(name) and _writer_of(name) < self._me:
                self._folder.delete_unfinished(name)

    def append(self, items: Sequence[bytes], state: bytes | None) -> None:
        """Write items, and the state after them; they are safe when this returns.

        Raises:
            StateError: if a later writer has taken over.
        """
        segment = Segment(self.end, self.end + len(items), self._me)
        self._write(segment.name, dumps((list(items), state)))
        self._segments.append(segment)

    def complete(self) -> None:
        """Record that no item will follow.

        Raises:
            StateError: if a later writer has taken over.
        """
        if not self._is_complete:
            self._write(f"end-{self._me}", b"")
            self._is_complete = True

    def forget(self, position: int) -> None:
        """Delete segments that end at or before a position. The last one stays, because of the state.

        Raises:
            StateError: if a later writer has taken over.
        """
        old = [segment for segment in self._segments[:-1] if segment.end <= position]
        if old:
            self._check()
        for segment in old:
            self._folder.delete(segment.name)
            self._segments.remove(segment)

    def _write(self, name: str, content: bytes) -> None:
        try:
            self._folder.write(name, content)
        except FileNotFoundError:
            self._check()  # a later one deletes the unfinished file of an earlier one
            raise
        self._check()

    def _check(self) -> None:
        if any(writer > self._me for writer in _writers("writer", self._folder.names())):
            raise StateError(
                f"another run of this job has taken over its checkpoint: it writes what the function emits into "
                f"{self._location} now, and this run stops. Let only one run at a time use a checkpoint"
            )


def _writers(kind: str, names: Sequence[str]) -> list[Writer]:
    """The writers that have left a file of a kind."""
    return [_writer_of(name) for name in names if name.startswith(f"{kind}-")]


def _writer_of(name: str) -> Writer:
    """The writer of a file."""
    _, epoch, random = name.rsplit("-", 2)
    return Writer(int(epoch), random)


def _segments(names: Sequence[str]) -> list[Segment]:
    found = [_SEGMENT.fullmatch(name) for name in names]
    return [Segment(int(m[1]), int(m[2]), Writer(int(m[3]), m[4])) for m in found if m]
