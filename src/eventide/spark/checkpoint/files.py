"""The files of a checkpoint: Spark's logs, eventide's records, and how large all of it is.

There is a record for each program that was started on it; the first micro-batch that the program commits makes the
record count. Records can be read by Spark or from the files themselves.
"""

from __future__ import annotations

import json
import re
import struct
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from pyarrow.fs import FileSelector, FileType

from eventide.common.checksum import json_without_checksum
from eventide.errors import StateError
from eventide.runtime.sources.offsets import unpacked
from eventide.runtime.state.operators import check_format
from eventide.storage import Folder, opened

_PLANNED = "offsets"
_COMMITTED = "commits"
_METADATA = "metadata"
_KNOWN_LOG = "v1"
_STATE_FILE = re.compile(r"\.?(\d+)(?:_[^.]*)?\.(?:changelog|zip|delta|snapshot)(?:\.crc)?")
"""A file of the state after a micro-batch, whose version is the number of the micro-batch after it; or its checksum."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A micro-batch as Spark planned it: its time by the clock, and where each source is after it."""

    at_ms: int
    offsets: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Listing:
    """How much there is in a checkpoint: the number of files, and bytes by the folder that they are in."""

    files: int
    folders: dict[str, int]


class CheckpointFiles:
    """The files of one checkpoint, on any store that Arrow can open.

    Raises:
        ProgramError: if Arrow cannot open it.
    """

    def __init__(self, location: str) -> None:
        self.location = location
        self._store, self._root = opened(location)

    def folders(self, below: str = "") -> list[str]:
        """The names of the folders in it, or in one of its folders; nothing if that is not there."""
        return sorted(entry.base_name for entry in self._entries(below) if entry.type == FileType.Directory)

    def exists(self) -> bool:
        """Whether there is anything at the location."""
        return bool(self._store.get_file_info(self._root).type != FileType.NotFound)

    def committed(self) -> dict[int, int]:
        """The micro-batches in Spark's log of what is committed, each with the time at which it was, by the store."""
        return self.numbered(_COMMITTED)

    def planned(self) -> dict[int, int]:
        """The micro-batches in Spark's log of what is planned, each with the time at which it was, by the store."""
        return self.numbered(_PLANNED)

    def numbered(self, log: str) -> dict[int, int]:
        """The micro-batches in a log of Spark's, each with the time at which it was written, by the store."""
        return {int(entry.base_name): _time_ms(entry) for entry in self._entries(log) if entry.base_name.isdigit()}

    def plan_bytes(self) -> int:
        """The size of the log of the micro-batch that was planned last; 0 if there is none."""
        plans = (entry for entry in self._entries(_PLANNED) if entry.base_name.isdigit())
        last = max(plans, key=lambda entry: int(entry.base_name), default=None)
        return 0 if last is None else int(last.size or 0)

    def plan_of(self, number: int) -> Planned:
        """Read a planned micro-batch from the log.

        Raises:
            StateError: if it is damaged, or in a form that is not known here.
        """
        head, *lines = self.lines_of_plan(number)
        with self._parsing(f"{_PLANNED}/{number}", "the plan of a micro-batch in "):
            return Planned(_at_ms(head), tuple(map(_offset, lines)))

    def planned_at_ms(self, number: int) -> int:
        """When a micro-batch was planned, in milliseconds since the epoch; what it reads is not looked at.

        Raises:
            StateError: if the plan is damaged, or in a form that is not known here.
        """
        head = self.lines_of_plan(number)[0]
        with self._parsing(f"{_PLANNED}/{number}", "the plan of a micro-batch in "):
            return _at_ms(head)

    def check_commit(self, number: int) -> None:
        """Compare the record of a committed micro-batch with the sums beside it; its content is Spark's.

        Raises:
            StateError: if it is damaged.
        """
        self._text(f"{_COMMITTED}/{number}")

    def lines_of_plan(self, number: int) -> list[str]:
        """Read the lines of a planned micro-batch in the log: its common settings, and one line for each source.

        Raises:
            StateError: if it is in a form that is not known here.
        """
        version, _, content = self._text(f"{_PLANNED}/{number}").partition("\n")
        lines = content.splitlines()
        if not lines:
            raise StateError(
                f"the plan of a micro-batch in {self.location}/{_PLANNED}/{number} is incomplete: restore a backup of "
                "the checkpoint, or begin with a savepoint"
            )
        if version != _KNOWN_LOG:
            raise StateError(
                f"Spark's log in {self.location}/{_PLANNED}/{number} has the form {version!r}, and {_KNOWN_LOG!r} is "
                "read here; use the version of eventide that goes with the job's version of Spark"
            )
        return lines

    def replace_plan(self, number: int, lines: Sequence[str]) -> None:
        """Write a planned micro-batch into the log in place of what is there. Its job must not be running."""
        log = Folder(f"{self.location.rstrip('/')}/{_PLANNED}", has_checksums=False)
        log.delete(f".{number}.crc")  # Spark's sum of the bytes that were there; it does without one
        log.write(str(number), "\n".join([_KNOWN_LOG, *lines]).encode())

    def state_of(self, number: int) -> dict[str, list[str]]:
        """The files that tasks have stored of a micro-batch, by the folder of their operator and partition."""
        found: dict[str, list[str]] = {}
        for entry in self._entries("state", recursive=True):
            version = _STATE_FILE.fullmatch(entry.base_name)
            if entry.is_file and version is not None:
                of_folder = found.setdefault(entry.path.rpartition("/")[0][len(self._root) + 1 :], [])
                if int(version[1]) == number + 1:
                    of_folder.append(entry.path)
        return found

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files of the store, as :meth:`state_of` names them."""
        for path in paths:
            self._store.delete_file(path)

    def query(self) -> tuple[str, int] | None:
        """The id that Spark has given the query, and when; None if it has not started yet.

        Raises:
            StateError: if the file with the id is damaged.
        """
        there = [entry for entry in self._entries("") if entry.base_name == _METADATA]
        if not there:
            return None
        content = self._text(_METADATA)
        with self._parsing(_METADATA):
            return str(json.loads(content)["id"]), _time_ms(there[0])

    def records(self, folder: str) -> list[Record]:
        """Read the records of eventide in a folder of its own, each a line of JSON.

        Raises:
            StateError: if one is damaged, naming its file.
        """
        names = (entry.base_name for entry in self._entries(folder) if entry.base_name.startswith("part-"))
        lines_of = {path: self._lines(path) for path in sorted(f"{folder}/{name}" for name in names)}
        for path in (path for path, lines in lines_of.items() if not lines):
            raise StateError(
                f"{self.location}/{path} is empty, as a machine leaves a file when it loses its power. If the job has "
                "started again since then, delete it; else put a copy of it back, or start with a new checkpoint "
                "location, from a savepoint if there is one"
            )
        return [record_of(line, f"{self.location}/{path}") for path, lines in lines_of.items() for line in lines]

    def listing(self) -> Listing:
        """How much there is in it. A running job adds and deletes files meanwhile."""
        files = [entry for entry in self._entries("", recursive=True) if entry.is_file]
        folders: Counter[str] = Counter()
        for entry in files:
            folder, separator, _ = entry.path[len(self._root) :].lstrip("/").partition("/")
            folders[folder if separator else ""] += entry.size or 0
        return Listing(len(files), dict(sorted(folders.items())))

    @contextmanager
    def _parsing(self, path: str, what: str = "") -> Iterator[None]:
        """Name the file whose text cannot be parsed: where there are no sums, that alone shows the damage.

        Raises:
            StateError: in place of the error of a parser.
        """
        try:
            yield
        except (ValueError, LookupError, TypeError, AttributeError, zlib.error, StateError) as error:
            raise StateError(
                f"{what}{self.location}/{path} cannot be read: {error!r}. Put a copy of it back, or start the job "
                "with a new checkpoint location, from a savepoint if there is one"
            ) from error

    def _entries(self, below: str, *, recursive: bool = False) -> list[Any]:
        selector = FileSelector(f"{self._root}/{below}".rstrip("/"), allow_not_found=True, recursive=recursive)
        try:
            return list(self._store.get_file_info(selector))
        except NotADirectoryError:  # in HDFS, of a folder that is made between two of Arrow's calls
            return []

    def _lines(self, path: str) -> list[str]:
        """The lines of a file that have anything in them."""
        return [line for line in self._text(path).splitlines() if line.strip()]

    def _text(self, path: str) -> str:
        """Read a file, and look at the sums that Hadoop leaves beside what it writes to a disk, as it does itself.

        Raises:
            StateError: if the file does not have them, or is no text.
        """
        folder, _, name = f"{self._root}/{path}".rpartition("/")
        content = self._content(f"{folder}/{name}")
        try:
            sums = self._content(f"{folder}/.{name}.crc") if self._store.type_name == "local" else b""
        except FileNotFoundError:
            sums = b""
        try:
            if not _has_sums(content, sums):
                raise ValueError(f"it does not have the sums in .{name}.crc beside it")
            return content.decode()
        except ValueError as error:
            raise StateError(
                f"{self.location}/{path} is not as it was written: {error}. Put a copy of it back, or start the job "
                "with a new checkpoint location, from a savepoint if there is one"
            ) from error

    def _content(self, path: str) -> bytes:
        with self._store.open_input_stream(path, compression=None) as stream:
            return bytes(stream.read())


_SUMS = struct.Struct(">4si")
"""Beginning of a file of sums: its mark, and how many bytes each sum is of."""


def _has_sums(content: bytes, sums: bytes) -> bool:
    """Whether the content of a file has the sums that Hadoop has left; without any, it is taken as it is."""
    if len(sums) < _SUMS.size or not sums.startswith(b"crc\0"):
        return True
    _, length = _SUMS.unpack_from(sums)
    parts = (content[at : at + length] for at in range(0, len(content), max(1, length)))
    return sums[_SUMS.size :] == b"".join(zlib.crc32(part).to_bytes(4, "big") for part in parts)


def _time_ms(entry: Any) -> int:
    return (entry.mtime_ns or 0) // 1_000_000


def _at_ms(head: str) -> int:
    return int(json.loads(head)["batchTimestampMs"])


def _offset(line: str) -> Any:
    """A line of the log: JSON, or nothing where a source has had nothing yet."""
    offset = None if line == "-" else json.loads(line)
    return unpacked(offset) if isinstance(offset, dict) else offset


PLACE = "eventide"
"""The folder of the records, below the checkpoint."""

KAFKA_PLACE = "eventide-sinks"
"""The folder that names the groups of transactions that sinks have begun in Kafka."""

Record: TypeAlias = dict[str, Any]
"""``start``, the number of the start; ``after``, the last micro-batch committed before; ``program``, its identity;
``description`` of its graph; ``job``, its name; ``directories`` of its file sinks; the checkpoint's ``id``; and, where
the job began with one, the location of its ``savepoint``. The constants below are what `eventide rescale` adds.
"""

BEGINS_WITH = "begins with parallelism"
"""In the first record of a checkpoint that continues another: that of a job whose program says none."""

COUNTED = "counted before"
"""How many micro-batches sinks have had of the checkpoints that this one continues."""

KNOWN_AS = "known as"
"""The id of the first of the checkpoints that this one continues, by which directories of files know the job."""

RESCALED = "eventide-savepoint"
"""The folder of the savepoint that a checkpoint of another parallelism begins with, below that checkpoint."""

CONTINUED_IN = "continued in"
"""In the last record: where the checkpoint goes on."""

_WRITTEN = {"start", "after", "program", "description", "job", "directories", "id"}


def record_of(text: str, where: str) -> Record:
    """The record of a text that `eventide.common.checksum.json_with_checksum` has written, or an earlier version.

    Raises:
        StateError: if it is damaged, saying where it is.
    """
    try:
        return json_without_checksum(text, may_lack=True)
    except ValueError as error:
        raise StateError(
            f"{where} is not as it was written: {error}: {text[:80]!r}. Put a copy of it back, or start with a new "
            "checkpoint location, from a savepoint if there is one"
        ) from error


def in_order(found: Iterable[Record]) -> list[Record]:
    """The records of programs in the order of the starts.

    Raises:
        StateError: if one is in the form of an earlier version.
    """
    found = [*found]
    if any(_WRITTEN - one.keys() for one in found):
        check_format("of an earlier version")
    return sorted(found, key=lambda one: (int(one["start"]), one["id"]))  # two first starts at once write two ids


def in_force(started: Sequence[Record], committed: int) -> Record | None:
    """The record of the last program that was started and committed a micro-batch; None if there is none."""
    counting = [one for one in started if one["after"] < committed]
    return counting[-1] if counting else None
