"""The unfinished micro-batch of a checkpoint: deferred if it is too large, and searched if it ends Python processes.

Spark writes down where a micro-batch ends before it runs, and repeats it at each start until it is committed. So one
that no memory is large enough for would fail at each start, whatever limit the program has meanwhile (decision 63). A
deferred micro-batch reads nothing, and those after it read what it would have read.

Elements that have ended processes are in a small file below the checkpoint. A run that fails so writes it, and the next
run reads it when it begins. It counts until the micro-batch is committed.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from eventide.connectors.file_system.sink import PartFiles
from eventide.errors import StateError
from eventide.runtime.invoke import CallMark
from eventide.runtime.sources.offsets import clock_of, deferred, packed, unpacked
from eventide.spark.checkpoint.files import PLACE, CheckpointFiles, in_order
from eventide.spark.checkpoint.inspection import Inspection, inspect, is_ours
from eventide.spark.checkpoint.owner import Ownership
from eventide.storage import Folder

_PARTITIONS = "spark.sql.shuffle.partitions"
_LAST_STAGE = "state/0/"
_EARLY = frozenset({"FormatSink", "KafkaSink"})
"""The kinds of sinks that, where they are alone, may get rows of some tasks before others have ended."""


@dataclass(frozen=True, slots=True)
class Deferred:
    """A micro-batch that reads nothing from now on, by its number, and how many parts of sources it would have read."""

    number: int
    parts: int


def defer(location: str) -> Deferred:
    """Let the unfinished micro-batch of a checkpoint read nothing. Its job must have ended.

    Where sources stood, and all that was found out when it was planned, stays known, so nothing is lost and nothing
    comes twice. State that its tasks have stored is deleted, since the tasks will store something else under its name.

    Raises:
        ProgramError: if Arrow cannot open a location.
        StateError: if it is not an eventide checkpoint, if no micro-batch is unfinished, if it reads nothing already,
            if sinks may have some of it, or if a source of Spark's own cannot be deferred.
    """
    found, files = inspect(location), CheckpointFiles(location)
    if found.unfinished is None:
        raise StateError(f"the checkpoint {location} has no unfinished micro-batch, so its job starts with a new one")
    number = found.unfinished.number
    began = [one["savepoint"] for one in in_order(files.records(PLACE)) if "savepoint" in one]
    if found.committed is None and began:
        raise StateError(
            f"the job in {location} begins with the savepoint {began[-1]}, and has committed nothing: start it with a "
            "new checkpoint location, from the same savepoint, and a lower set_max_rows_per_batch(...)"
        )
    head, *planned = files.lines_of_plan(number)
    before = files.lines_of_plan(found.committed.number)[1:] if found.committed is not None else []
    before += ["-"] * (len(planned) - len(before))
    lines = [_line(found, *line) for line in zip(before, planned, strict=True)]
    parts = sum(count for _, count in lines)
    if not parts:
        raise StateError(
            f"micro-batch {number} of the job in {location} reads nothing, so that it is not too large; start the job, "
            "which finishes it"
        )
    stored = files.state_of(number)
    partitions = int(json.loads(head).get("conf", {}).get(_PARTITIONS, 0))
    why = _why_in_sinks(found, stored, partitions)
    if why is not None:
        raise StateError(
            f"micro-batch {number} of the job in {location} cannot be deferred: {why}, and its results would come "
            "twice. Give the job more memory, and start it again; or take a savepoint with --repeat, begin with that, "
            "and accept it"
        )
    # A driver that was thought dead would go on with the micro-batch as it was; now it finds another owner.
    Ownership(location, f"defer {uuid.uuid4().hex}").claim()
    files.delete(path for of_folder in stored.values() for path in of_folder)
    files.replace_plan(number, [head, *(line for line, _ in lines)])
    return Deferred(number, parts)


def _line(found: Inspection, before: str, planned: str) -> tuple[str, int]:
    """The line of one source in the log when nothing is read, and the number of parts that would have been read.

    Raises:
        StateError: if it is a source of Spark's own whose plan cannot be taken back.
    """
    if planned in (before, "-"):
        return planned, 0
    start: Any = None if before == "-" else json.loads(before)
    end: Any = json.loads(planned)
    if is_ours((_offsets(start), _offsets(end))):
        old, new = _offsets(start) or {}, _offsets(end)
        nothing = deferred(old, new)
        return json.dumps(packed(nothing, clock_of(end))), sum(nothing[part] != at for part, at in new.items())
    if _is_of_kafka(start) and _is_of_kafka(end):
        return before, sum(start.get(topic) != parts for topic, parts in end.items())
    raise StateError(
        f"the unfinished micro-batch in {found.location} reads a DataFrame whose positions are Spark's own "
        f"({planned[:80]}), and the micro-batch cannot be undone, because Spark keeps a list beside these positions, "
        "or has no earlier ones. Give the job more memory, or run fewer tasks at once, and start it again"
    )


def _offsets(logged: object) -> Any:
    return unpacked(logged) if isinstance(logged, dict) else logged


def _is_of_kafka(offset: object) -> bool:
    """Whether an offset has positions of Spark's source for Kafka, which asks for the latest ones at each start."""
    return (
        isinstance(offset, dict)
        and bool(offset)
        and all(isinstance(parts, dict) and all(map(str.isdigit, parts)) for parts in offset.values())
    )


def _why_in_sinks(found: Inspection, stored: Mapping[str, list[str]], partitions: int) -> str | None:
    """Say why sinks may have something of the unfinished micro-batch; None if they have nothing of it.

    Sinks get a micro-batch when all of its tasks have ended and stored their state, but for those that are written to
    in the tasks themselves.
    """
    if found.unfinished is None:
        return None
    if found.has_newer_program:
        return "another program was started on it since the last one that is committed, and its sinks may be others"
    for path in found.directories:
        if PartFiles.at(path).names_of(found.counted + found.unfinished.number):
            return f"there are files of it in {path}"
    if len(found.directories) == len(found.sinks):
        return None
    last = {folder: files for folder, files in stored.items() if folder.startswith(_LAST_STAGE)}
    if not found.operators or (partitions <= len({folder.split("/")[2] for folder in last}) and all(last.values())):
        return "all of its tasks may have ended, so that sinks may have it"
    [sink, *others] = found.description["sinks"]
    if not others and sink["kind"] in _EARLY and not sink.get("is_exactly_once"):
        return f"its tasks write to the sink {found.sinks[0]!r} before others have ended"
    return None


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
    """Facts for the next attempt of a micro-batch: see `eventide.runtime.invoke.Search`."""

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
    """Let the job go on without the elements at which the unfinished micro-batch has ended processes.

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
        offset: object = None if line == "-" else json.loads(line)
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
