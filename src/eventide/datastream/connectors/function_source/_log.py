"""What a function emitted, written ahead of its being read: files of items, numbered by their positions."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from eventide.datastream.connectors.function_source._folder import Folder
from eventide.errors import StateError

_SEGMENT = re.compile(r"(\d{20})-(\d{20})")
_END = "end"


@dataclass(frozen=True, slots=True)
class Segment:
    """One file: the items from position ``start`` up to, not including, ``end``."""

    start: int
    end: int

    @property
    def name(self) -> str:
        """The name of the file."""
        return f"{self.start:020}-{self.end:020}"


class WriteAheadLog:
    """The items of one source by their positions, which count from 0 and go on for ever.

    One process writes at its end and deletes at its beginning, others read. Each segment also has the state of the
    function behind its last item, so that the end of the log is where the function goes on after a restart: whether
    Spark has planned all of the log by then does not matter.

    Args:
        location: its folder.
    """

    def __init__(self, location: str) -> None:
        self._location = location
        self._folder = Folder(location)
        names = self._folder.names()
        self._segments = _segments(names)
        self._is_complete = _END in names

    @property
    def end(self) -> int:
        """The position behind the last item."""
        return self._segments[-1].end if self._segments else 0

    @property
    def is_complete(self) -> bool:
        """Whether nothing will ever come behind its end."""
        return self._is_complete

    def append(self, items: Sequence[bytes], state: bytes | None) -> None:
        """Write items, and the state behind them; they are safe when this returns."""
        segment = Segment(self.end, self.end + len(items))
        self._folder.write(segment.name, pickle.dumps((list(items), state), protocol=5))
        self._segments.append(segment)

    def complete(self) -> None:
        """Write down that nothing will come behind the end."""
        if not self._is_complete:
            self._folder.write(_END, b"")
            self._is_complete = True

    def state(self) -> bytes | None:
        """The state behind the last item; None if there is none."""
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
            raise StateError(
                f"the elements from position {position} to {end}, which the job has planned to read, are not in "
                f"{self._location}; what lies there must stay as long as the checkpoint, or start with a new one"
            )

    def forget(self, position: int) -> None:
        """Delete segments that end at or before a position. The last one stays, because of the state."""
        for segment in self._segments[:-1]:
            if segment.end > position:
                break
            self._folder.delete(segment.name)
            self._segments.remove(segment)

    def _content(self, segment: Segment) -> tuple[list[bytes], bytes | None]:
        content: tuple[list[bytes], bytes | None] = pickle.loads(self._folder.read(segment.name))
        return content


def _segments(names: Sequence[str]) -> list[Segment]:
    found = [_SEGMENT.fullmatch(name) for name in names]
    return [Segment(int(match[1]), int(match[2])) for match in found if match]
