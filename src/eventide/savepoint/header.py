"""The file that makes a directory a savepoint: what was saved, of which program, and where its sources stood."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from eventide.errors import StateError
from eventide.runtime.state.operators import check_format

NAME = "savepoint.json"
VERSION = 2
_WITHOUT_FILES = 1
"""The version before, which does not list the files: a missing file stays unnoticed."""
SOURCES = "eventide-sources"
"""Where sources keep what they remember, below a checkpoint: each in a folder that is called by its number, from 1."""
_STORAGE = re.compile(rf"{SOURCES}/\d+")


@dataclass(frozen=True, slots=True)
class SavedSource:
    """A source: its name, the kind of it, the type of its elements, and where it stood, as it or Spark says that.

    ``storage`` names the folder in the savepoint with what it remembers itself; None where it needs none.
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
        checkpoint: where the checkpoint was that it was taken of; None where a program has written it.
        batch: the last micro-batch of it.
        parallelism: that of a job that begins with it and does not say its own.
        program: what the state depends on, as `eventide.plan.identity.program_identity` has it.
        description: the graph, as `eventide.plan.description.describe` has it.
        sources: the sources.
        versions: those of eventide, and of Spark if the job ran there.
        checkpoint_id: the id of that checkpoint, by which sinks know it.
        files: all files but this one, by their path from the directory on; None in a savepoint of the first version.
    """

    checkpoint: str | None
    batch: int | None
    parallelism: int | None
    program: Mapping[str, Any]
    description: Mapping[str, Any] | None
    sources: tuple[SavedSource, ...]
    versions: Mapping[str, str]
    checkpoint_id: str | None = None
    files: Mapping[str, SavedFile] | None = None

    def to_text(self) -> str:
        """JSON."""
        return json.dumps({"version": VERSION, **asdict(self)}, indent=2, sort_keys=True)

    @staticmethod
    def from_text(text: str, location: str) -> Header:
        """The inverse of :meth:`to_text`.

        Raises:
            StateError: if it is of another version, or names a folder of a source outside the savepoint.
        """
        content = json.loads(text)
        version = content.pop("version", None)
        if version not in {_WITHOUT_FILES, VERSION}:
            raise StateError(
                f"the savepoint {location} is of version {version!r}, and this version of eventide reads "
                f"{_WITHOUT_FILES} and {VERSION}"
            )
        check_format(content["program"]["format"])
        sources = tuple(SavedSource(**source) for source in content.pop("sources"))
        for source in sources:
            if source.storage is not None and not _STORAGE.fullmatch(source.storage):
                raise StateError(
                    f"the savepoint {location} says that the source {source.name!r} remembers something in "
                    f"{source.storage!r}, which is none of its folders; take a savepoint anew"
                )
        listed = content.pop("files", None) if version == VERSION else None
        if listed is None and version == VERSION:
            raise StateError(f"the savepoint {location} does not list its files; take a savepoint anew")
        files = None if listed is None else {name: SavedFile(**file) for name, file in listed.items()}
        return Header(sources=sources, files=files, **content)
