"""Elements that have ended Python processes in the unfinished micro-batch: a small file below the checkpoint.

A run that fails so writes it, and the next run reads it when it begins. It counts until the micro-batch is committed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from eventide.errors import StateError
from eventide.runtime.search import CallMark
from eventide.runtime.sources.offsets import clock_of
from eventide.spark.checkpoint.files import CheckpointFiles
from eventide.storage import Folder

_FOLDER = "eventide-search"
_FILE = "search"
_CERTAIN = 2
"""The number of ends at one element that prove it lethal: a system without memory ends a process at any element."""


@dataclass(frozen=True, slots=True)
class LethalElements:
    """A micro-batch that has ended processes.

    Attributes:
        number: its number.
        ends: the element of each end, as far as it is known, in their order.
        set_aside: how many of these ends are of elements without which the job goes on.
    """

    number: int
    ends: tuple[CallMark, ...] = ()
    set_aside: int = 0

    @property
    def elements(self) -> list[CallMark]:
        """The elements, each once."""
        return [*dict.fromkeys(self.ends)]


@dataclass(frozen=True, slots=True)
class Searched:
    """Facts for the next attempt of a micro-batch: see `eventide.runtime.search.Search`."""

    clocks_ms: tuple[int, ...]
    found: tuple[str, ...]
    set_aside: tuple[str, ...]


def note_end(location: str, said: str) -> None:
    """Take note that a micro-batch has ended a process, given the report of its failure.

    Raises:
        ProgramError: if Arrow cannot open the location.
        StateError, StorageError: if a file cannot be read or written.
    """
    number = _unfinished(location)
    if number is not None:
        known = _known(location)
        known = known if known is not None and known.number == number else LethalElements(number)
        mark = CallMark.found_in(said)
        _write(location, known if mark is None else replace(known, ends=(*known.ends, mark)))


def searched(location: str) -> Searched | None:
    """Return the facts for a search in the unfinished micro-batch; None if it has not ended a process.

    Raises:
        ProgramError: if Arrow cannot open the location.
        StateError: if a file is damaged.
    """
    known = _known(location)
    if known is None or known.number != _unfinished(location):
        return None
    ends = Counter(mark.id for mark in known.ends)
    aside = dict.fromkeys(mark.id for mark in known.ends[: known.set_aside])
    found = tuple(mark for mark, times in ends.items() if times >= _CERTAIN or mark in aside)
    return Searched(tuple(_clocks(location, known.number)), found, tuple(aside))


def set_aside(location: str) -> LethalElements:
    """Have the job go on without the elements at which the unfinished micro-batch has ended processes.

    Raises:
        ProgramError: if Arrow cannot open the location.
        StateError: if there are none, or a file is damaged.
    """
    known = _known(location)
    if known is None or not known.ends or known.number != _unfinished(location):
        raise StateError(
            f"no element is known in {location} that has ended a Python process. When a micro-batch has ended one, "
            "start the job again: the next attempt finds the element, if there is one"
        )
    known = replace(known, set_aside=len(known.ends))
    _write(location, known)
    return known


def _unfinished(location: str) -> int | None:
    files = CheckpointFiles(location)
    committed = max(files.committed(), default=-1)
    planned = max(files.planned(), default=-1)
    return planned if planned > committed else None


def _clocks(location: str, number: int) -> Iterator[int]:
    """The times of a micro-batch: the one that Spark has given it, and that of each source of eventide's."""
    head, *lines = CheckpointFiles(location).lines_of_plan(number)
    yield int(json.loads(head)["batchTimestampMs"])
    for line in lines:
        offset: Any = None if line == "-" else json.loads(line)
        clock_ms = clock_of(offset) if isinstance(offset, dict) else None
        if clock_ms is not None:
            yield clock_ms


def _known(location: str) -> LethalElements | None:
    folder = _folder(location)
    return folder.read(_FILE, _lethal) if _FILE in folder.names() else None


def _lethal(content: bytes) -> LethalElements:
    stored = json.loads(content)
    return LethalElements(stored["number"], tuple(CallMark(**mark) for mark in stored["ends"]), stored["set_aside"])


def _write(location: str, known: LethalElements) -> None:
    _folder(location).write(_FILE, json.dumps(asdict(known)).encode())


def _folder(location: str) -> Folder:
    return Folder(f"{location.rstrip('/')}/{_FOLDER}", "delete it: the next attempt searches again")
