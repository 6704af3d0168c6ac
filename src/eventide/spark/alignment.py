"""How far sources have come that wait for each other, on its way from a task to the processes that plan sources."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from eventide.datastream.connectors._folder import Folder
from eventide.runtime.sources.alignment import Facts

_KEPT = 3


class AlignmentFolder:
    """A small file for each micro-batch, below the job's checkpoint, of which the last few are kept.

    A task of the query writes it before its micro-batch is over, and each source is planned with the latest when that
    has been committed. A micro-batch that is run again writes the same once more. Tasks and planners have to reach the
    checkpoint, as they do for state, and nothing else.

    Args:
        location: a local path, or a URI.
    """

    def __init__(self, location: str) -> None:
        self._folder = Folder(location)

    def write(self, content: Mapping[str, Any]) -> None:
        """Keep what the task of a micro-batch says."""
        self._folder.write(_name(content["number"]), json.dumps(content["sources"]).encode())
        oldest = _name(max(0, content["number"] - _KEPT))
        for name in self._folder.names():
            if name <= oldest:
                self._folder.delete(name)

    def latest(self) -> Facts:
        """What was written last; nothing is known before."""
        names = self._folder.names()
        facts: Facts = json.loads(self._folder.read(names[-1])) if names else {}
        return facts


def _name(number: int) -> str:
    return f"{number:020}"
