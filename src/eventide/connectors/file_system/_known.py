"""Knowledge of the files of a source while they are planned: each is looked at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from eventide._secrets import without_secrets
from eventide.connectors.file_system._gone import GoneFiles
from eventide.connectors.file_system.files import FileInfo, FileTree
from eventide.connectors.file_system.format import BulkFormat, FileFormat
from eventide.connectors.file_system.times import ColumnTimes


class KnownFiles:
    """The listing of a source's paths, and how long the files are that somebody asked about.

    Args:
        tree: where the files are.
        format: what they contain.
        gone: the files that were read and are gone.
        interval_s: after how many seconds a listing is too old; None for never.
        forget_s: how many seconds a file that was read stays known after it is gone.
        may_lose_most: whether a path may lose most of its files from one listing to the next.
        clock: the seconds since the epoch.
    """

    def __init__(
        self,
        tree: FileTree,
        format: FileFormat,
        gone: GoneFiles,
        interval_s: float | None,
        forget_s: float,
        may_lose_most: bool,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._tree = tree
        self._format = format
        self._gone = gone
        self._interval_s = interval_s
        self._forget_s = forget_s
        self._may_lose_most = may_lose_most
        self._clock = clock
        self._files: dict[str, FileInfo] = {}
        self._listed_at: float | None = None
        self._rows: dict[str, int] = {}
        self._ends: dict[str, int] = {}
        self._times: dict[tuple[str, str], ColumnTimes | None] = {}

    def look(self, known: Iterable[str] = ()) -> dict[str, FileInfo]:
        """All files that are there: a new listing, if the last one is too old.

        Args:
            known: the files that the job has heard of, which is what the first listing of a run is compared with.

        Raises:
            ProgramError: if one of the paths is not there.
            DataError: if one of them has lost most of its files since the last listing, and that is not allowed.
        """
        now = self._clock()
        if self._is_too_old(now):
            files = self._tree.list()
            if not self._may_lose_most:
                self._tree.check_loss(self._before(known), files)
            self._files, self._listed_at = files, now
            self._rows = {path: rows for path, rows in self._rows.items() if path in self._files}
            self._ends = {path: end for path, end in self._ends.items() if path in self._files}
            self._times = {key: times for key, times in self._times.items() if key[0] in self._files}
        return self._files

    def _is_too_old(self, now: float) -> bool:
        """Whether the last listing is: also where the clock has been set back since."""
        if self._listed_at is None:
            return True
        return self._interval_s is not None and not 0 <= now - self._listed_at < self._interval_s

    def _before(self, known: Iterable[str]) -> Collection[str]:
        """Return the files that there were at the last look: in another run, if this one has not looked yet."""
        if self._listed_at is not None:
            return self._files
        return [path for path in map(without_secrets, known) if path not in self._gone] if self._gone.is_known else []

    def still_known(self, gone: Iterable[str]) -> list[str]:
        """Return the files that were read, are gone, and must be remembered for longer.

        Args:
            gone: the files that the last listing does not have.
        """
        now = self._clock() if self._listed_at is None else self._listed_at
        return [path for path, since in self._gone.are(gone, now).items() if now - since < self._forget_s]

    def listing(self) -> dict[str, FileInfo]:
        """All files that were there at the last look."""
        return self.look() if self._listed_at is None else self._files

    def rows(self, path: str) -> int:
        """How many rows a file has.

        Raises:
            DataError: if it is gone or cannot be read.
        """
        if path not in self._rows:
            self._rows[path] = self._format.rows(self._tree.at(path))
        return self._rows[path]

    def end(self, path: str) -> int:
        """The position after a file.

        Raises:
            DataError: if it is gone or cannot be read.
        """
        if path not in self._ends:
            info = self.listing().get(path)
            size = self._tree.at(path).size() if info is None else info.size
            self._ends[path] = self._format.end(size, lambda: self.rows(path))
        return self._ends[path]

    def position_at(self, path: str, column: str, timestamp_ms: int) -> int | None:
        """The position before the first row that is later than a time by a column; None where that is not known.

        Raises:
            DataError: if the file is gone or cannot be read.
        """
        if not isinstance(self._format, BulkFormat):
            return None
        if (path, column) not in self._times:
            self._times[path, column] = self._format.times(self._tree.at(path), column)
        times = self._times[path, column]
        if times is None:
            return None
        row = times.rows_until(timestamp_ms)
        return self.end(path) if row == self.rows(path) else self._format.position(row)


@dataclass(frozen=True, slots=True)
class Unread:
    """The files that are not read to their end, with the positions that were reached: what is planned with."""

    files: KnownFiles
    format: FileFormat
    positions: Mapping[str, int]

    def rows_left(self, path: str) -> int:
        """How many rows are still to be read."""
        done = self.format.row(self.positions[path]) if isinstance(self.format, BulkFormat) else 0
        return self.files.rows(path) - done

    def position_after(self, path: str, rows: int) -> int | None:
        """The position `rows` rows further, fewer than are left; None where a file is read as a whole only."""
        if not isinstance(self.format, BulkFormat):
            return None
        return self.format.position(self.format.row(self.positions[path]) + rows)

    def latest_position(self, path: str) -> int:
        """The position at its end."""
        return self.files.end(path)
