"""How far sources have come that wait for each other, on its way from a task to the processes that plan sources."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from eventide.runtime.sources.alignment import Facts
from eventide.storage.folder import Folder

_KEPT = 3
_LOOKS_AFTER = 100
"""The number of micro-batches between two searches for files of attempts that died while they wrote."""


class AlignmentFolder:
    """A small file for each micro-batch, below the job's checkpoint, of which the last few are kept.

    A task of the query writes it before its micro-batch is over, and each source is planned with the latest when that
    has been committed. A micro-batch that is run again writes the same once more, perhaps while a first attempt, which
    was thought dead, does so too: each writes a file of its own out of sight, and the last one that is done counts.
    Tasks and planners have to reach the checkpoint, as they do for state, and nothing else.

    Args:
        location: a local path, or a URI.
    """

    def __init__(self, location: str) -> None:
        self._folder = Folder(location)

    def write(self, content: Mapping[str, Any]) -> None:
        """Keep what the task of a micro-batch says."""
        self._folder.write(_name(content["number"]), json.dumps(content["sources"]).encode(), is_shared=True)
        oldest = _name(max(0, content["number"] - _KEPT))
        for name in self._folder.names():
            if name <= oldest:
                self._folder.delete(name)
        if content["number"] % _LOOKS_AFTER == 0:
            for name in self._folder.unfinished():
                if name <= oldest:
                    self._folder.delete_unfinished(name)

    def latest(self) -> Facts:
        """Return the facts that were written last; before that, there are none."""
        names = self._folder.names()
        facts: Facts = json.loads(self._folder.read(names[-1])) if names else {}
        return facts


def _name(number: int) -> str:
    return f"{number:020}"
