"""The memory of a file source for files that were read and have disappeared. It outlives a restart."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from eventide.connectors.folder import Folder
from eventide.errors import ProgramError

_FOLDER = "files"
_FILE = "gone"


class GoneFiles:
    """The time at which each file disappeared, in seconds since the epoch, by the path of the file.

    The memory outlives a run of the job. So a job that runs for a minute every hour forgets files in time, and a run
    that finds a directory empty at its start knows which files the run before saw. A source with other paths starts
    with an empty memory.

    Args:
        location: a folder below the job's checkpoint; None if it is not known, and the memory ends with the process.
        paths: those of the source.
    """

    def __init__(self, location: str | None, paths: Sequence[str]) -> None:
        self._paths = list(paths)
        self._folder: Folder | None = None
        self._since: dict[str, float] = {}
        self._is_known = False
        if location is not None:
            with self._or_not_at_all():
                self._folder = Folder(f"{location}/{_FOLDER}")
                self._load(self._folder)

    def _load(self, folder: Folder) -> None:
        if _FILE in folder.names():
            kept = json.loads(folder.read(_FILE))
            if kept["paths"] == self._paths:
                self._since, self._is_known = kept["since"], True

    @contextmanager
    def _or_not_at_all(self) -> Iterator[None]:
        """Let the memory end with the process, with a warning, where it cannot be read or written."""
        try:
            yield
        except (ProgramError, OSError, ValueError) as error:
            self._folder = None
            warnings.warn(f"which files of a source are gone is not remembered after a restart: {error}", stacklevel=2)

    @property
    def is_known(self) -> bool:
        """Whether all files that have been missed in the looks of this source so far are known."""
        return self._is_known

    def __contains__(self, path: object) -> bool:
        return path in self._since

    def are(self, paths: Iterable[str], now: float) -> dict[str, float]:
        """Take note of the files that are gone now, and of no others; return since when each is.

        Args:
            paths: theirs.
            now: the seconds since the epoch.
        """
        since = {path: min(now, self._since.get(path, now)) for path in paths}
        if since.keys() != self._since.keys() or not self._is_known:
            self._since, self._is_known = since, True
            if self._folder is not None:
                with self._or_not_at_all():
                    self._folder.write(_FILE, json.dumps({"paths": self._paths, "since": since}).encode())
        return since
