"""The directory of a savepoint, and the header in it, with the identity of the program and the positions of sources."""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import asdict, dataclass, field
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import FileSelector, FileType

from eventide.common.checksum import json_with_checksum, json_without_checksum
from eventide.errors import StateError
from eventide.runtime.state.operators import check_format
from eventide.storage import opened, writing

NAME = "savepoint.json"
VERSION = 3

_WITHOUT_CHECKSUM = 2
"""The version before, whose header has no checksum of its own."""

SOURCES = "eventide-sources"
"""Where sources keep what they remember, below a checkpoint: each in a folder that is called by its number, from 1."""

_STORAGE = re.compile(rf"{SOURCES}/\d+")
_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True)
class SavedSource:
    """A source: its name, the kind of it, the type of its elements, and where it stood, as it or Spark says that.

    ``storage`` names the folder in the savepoint with what it remembers itself; None if it needs none.
    """

    name: str
    kind: str
    element_type: str
    offsets: Any
    storage: str | None = None


@dataclass(frozen=True, slots=True)
class SavedFile:
    """A file of a savepoint: its bytes, the rows of it if it is Parquet, and the SHA-256 of what it contains."""

    bytes: int
    rows: int | None
    sha256: str


@dataclass(frozen=True, slots=True)
class Header:
    """Description of a savepoint without its state.

    Attributes:
        checkpoint: where the checkpoint was that it was taken of; None if a program has written it.
        batch: the last micro-batch of it.
        parallelism: that of a job that begins with it and does not say its own.
        program: the identity of the program, of `eventide.plan.identity.program_identity`.
        description: the graph, as `eventide.plan.description.describe` has it.
        sources: the sources.
        versions: those of eventide, and of Spark if the job ran there.
        checkpoint_id: the id of that checkpoint, by which sinks know it.
        files: all files but this one, by their path from the directory on.
    """

    checkpoint: str | None
    batch: int | None
    parallelism: int | None
    program: Mapping[str, Any]
    description: Mapping[str, Any] | None
    sources: tuple[SavedSource, ...]
    versions: Mapping[str, str]
    checkpoint_id: str | None = None
    files: Mapping[str, SavedFile] = field(default_factory=dict)

    def to_text(self) -> str:
        """JSON, with a checksum."""
        return json_with_checksum({"version": VERSION, **asdict(self)}, indent=2)

    @staticmethod
    def from_text(text: str, location: str) -> Header:
        """The inverse of :meth:`to_text`.

        Raises:
            StateError: if it is damaged, of another version, or names a folder of a source outside the savepoint.
        """
        try:
            content = json_without_checksum(text, may_lack=True)
            version = content.pop("version", None)
            if version not in (_WITHOUT_CHECKSUM, VERSION):
                raise StateError(
                    f"the savepoint {location} is of version {version!r}, and this version of eventide reads those "
                    f"from {_WITHOUT_CHECKSUM} to {VERSION}; take it anew"
                )
            if version != _WITHOUT_CHECKSUM:
                json_without_checksum(text)
            return Header._of(content, location)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise StateError(
                f"{NAME} in the savepoint {location} is not as it was written: {error}; put a copy of it back, or take "
                "a savepoint anew"
            ) from error

    @staticmethod
    def _of(content: dict[str, Any], location: str) -> Header:
        check_format(content["program"]["format"])
        sources = tuple(SavedSource(**source) for source in content.pop("sources"))
        for source in sources:
            if source.storage is not None and not _STORAGE.fullmatch(source.storage):
                raise StateError(
                    f"the savepoint {location} says that the source {source.name!r} has state in {source.storage!r}, "
                    "which is not one of its folders; take a savepoint anew"
                )
        files = {name: SavedFile(**file) for name, file in content.pop("files").items()}
        return Header(sources=sources, files=files, **content)


class Outline:
    """A savepoint as the starter of a job sees it, perhaps from a machine that cannot open it.

    Args:
        location: the directory.
        text: the content of the file that makes it a savepoint.
        schemas: the columns of its tables, as far as they are asked for: by operator, and by the part of its state.

    Attributes:
        header: its description, without its state.
        digest: tells it from any other.

    Raises:
        StateError: if it is of another version.
    """

    def __init__(self, location: str, text: str, schemas: Mapping[str, Mapping[str, pa.Schema]]) -> None:
        self.location = location
        self.text = text
        self.header = Header.from_text(text, location)
        self.digest = hashlib.sha256(text.encode()).hexdigest()
        self._schemas = schemas

    def schemas(self, operator: str) -> Mapping[str, pa.Schema]:
        """The columns of the tables of an operator, by the part of its state."""
        return self._schemas.get(operator, {})

    def offsets_of(self, source: str) -> Any:
        """Where a source stood; None if the savepoint has none of that name."""
        return next((one.offsets for one in self.header.sources if one.name == source), None)


_HIDDEN = "."
_WHOLE = {"s3", "gcs", "abfs"}
"""The stores in which a file is seen when it is closed, and not before."""


class Directory:
    """The files of a savepoint.

    Args:
        location: a local path, or a URI.

    Attributes:
        store: the file system that it is on.
        written: the files that were written, in their order.

    Raises:
        ProgramError: if Arrow cannot open it.
    """

    def __init__(self, location: str) -> None:
        self.store, self._root = opened(location)
        self.written: list[str] = []

    def path(self, name: str) -> str:
        """The path of a file there.

        Raises:
            StateError: if the name leads out of the directory.
        """
        if name.startswith("/") or ".." in name.split("/"):
            raise StateError(f"the path {name!r} is outside the savepoint in {self._root}; take a savepoint anew")
        return f"{self._root}/{name}"

    def below(self, folder: str) -> Directory:
        """A folder of it."""
        found = copy(self)
        found._root, found.written = self.path(folder), []
        return found

    @staticmethod
    def of_tables(operator: str) -> str:
        """The folder of the tables of an operator."""
        return f"tables/{folder_of(operator)}"

    def is_empty(self) -> bool:
        """Whether there is nothing at the location, or an empty directory."""
        return not self.store.get_file_info(self._root).is_file and not self.names("")

    def delete(self) -> None:
        """Delete the directory, if it exists."""
        if self.store.get_file_info(self._root).type == FileType.Directory:
            self.store.delete_dir(self._root)

    def names(self, folder: str) -> list[str]:
        """The paths of all files in a folder, and in those in it, from the folder on; in their order."""
        return sorted(self.sizes(folder))

    def sizes(self, folder: str = "") -> dict[str, int]:
        """The bytes of all files in a folder, and in those in it, by their path from the folder on."""
        root = self.path(folder).rstrip("/")
        found = self.store.get_file_info(FileSelector(root, allow_not_found=True, recursive=True))
        files = [info for info in found if info.is_file and not info.base_name.startswith(_HIDDEN)]
        return {info.path[len(root) :].lstrip("/"): info.size or 0 for info in files}

    def saved_file(self, name: str) -> SavedFile:
        """Read a whole file, and return its entry for the header."""
        size, digest = self.digest(name)
        rows = pq.read_metadata(self.path(name), filesystem=self.store).num_rows if name.endswith(".parquet") else None
        return SavedFile(size, rows, digest)

    def digest(self, name: str) -> tuple[int, str]:
        """Read a whole file, and return how many bytes it has, and their SHA-256."""
        digest, size = hashlib.sha256(), 0
        with self.store.open_input_stream(self.path(name), compression=None) as stream:
            while content := stream.read(_AT_ONCE):
                digest.update(content)
                size += len(content)
        return size, digest.hexdigest()

    def text(self, name: str) -> str | None:
        """Return the text of a file; None if it is not there, or the location is that of a file."""
        try:
            with self.store.open_input_stream(self.path(name)) as stream:
                return str(stream.read(), "utf-8", "replace")
        except (FileNotFoundError, NotADirectoryError):
            return None

    @contextmanager
    def writing(self, name: str) -> Iterator[Any]:
        """A stream into a file, which is there, as a whole, when it is closed: several attempts may write it at once.

        Raises:
            StorageError: if it cannot be written.
        """
        path = self.path(name)
        folder, _, base = path.rpartition("/")
        is_whole = self.store.type_name in _WHOLE
        hidden = path if is_whole else f"{folder}/{_HIDDEN}{base}~{uuid.uuid4().hex}"
        with writing(path):
            self.store.create_dir(folder, recursive=True)
            with self.store.open_output_stream(hidden, compression=None) as stream:
                yield stream
            if not is_whole:
                self.store.move(hidden, path)
        self.written.append(name)


def folder_of(operator: str) -> str:
    """Return the name of an operator's folder, which leads nowhere else.

    >>> folder_of("sums/all"), folder_of("v1.2"), folder_of("..")
    ('sums%2Fall', 'v1.2', '%2E%2E')
    """
    quoted = quote(operator, safe="")
    return quoted.replace(".", "%2E") if quoted in {".", ".."} else quoted


def copy_files(source: Directory, folder: str, names: Sequence[str], target: Directory) -> None:
    """Copy files of a folder into a directory."""
    for name in names:
        with (
            source.store.open_input_stream(source.path(f"{folder}/{name}"), compression=None) as stream,
            target.writing(name) as copy,
        ):
            while content := stream.read(_AT_ONCE):
                copy.write(content)
