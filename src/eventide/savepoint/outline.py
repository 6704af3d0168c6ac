"""Outline of a savepoint for a job that begins with it: all but the state, which each subtask reads for itself."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from eventide.savepoint.header import Header

if TYPE_CHECKING:
    import pyarrow as pa


class Outline:
    """A savepoint as the starter of a job sees it, perhaps from a machine that cannot open it.

    Args:
        location: the directory.
        text: what the file says that makes it a savepoint.
        schemas: the columns of its tables, as far as they are asked for: by operator, and by the part of its state.

    Attributes:
        header: what is known of it without its state.
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
