"""Planning of the waiting files that a micro-batch reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from eventide.api.source import shared_out


class WaitingFiles(Protocol):
    """View of files that is needed to plan with them."""

    def rows_left(self, path: str) -> int:
        """How many rows are still to be read."""

    def position_after(self, path: str, rows: int) -> int | None:
        """The position `rows` rows further, fewer than are left; None where a file is read as a whole only."""

    def latest_position(self, path: str) -> int:
        """The position at its end."""


class TimedFiles(Protocol):
    """View of files that is needed to find a time in them."""

    def position_at(self, path: str, column: str, timestamp_ms: int) -> int | None:
        """The position before the first row that is later; None where that is not known."""

    def end(self, path: str) -> int:
        """The position after a file."""


def next_positions(
    queues: Sequence[Sequence[str]], files: WaitingFiles, max_rows: int | None, max_files: int | None
) -> dict[str, int]:
    """Where the next micro-batch ends, in those files that it reads something of.

    Both limits are shared among the queues, so that none starves: each is given an equal part, but at least one file
    or one row of it. What is read as a whole only is read until its queue's part of the rows is reached or exceeded.

    Args:
        queues: the paths of files, in the order in which they are to be read.
        files: what is known of them.
        max_rows: how many rows to read at most.
        max_files: how many files to read of at most.
    """
    queues = first_files(queues, max_files)
    if max_rows is None:
        return {path: files.latest_position(path) for queue in queues for path in queue}
    shares = shared_out({i: _rows_of(queue, files, max_rows) for i, queue in enumerate(queues)}, max_rows)
    planned: dict[str, int] = {}
    for i, queue in enumerate(queues):
        planned |= _first(queue, files, shares[i])
    return planned


def first_files(queues: Sequence[Sequence[str]], max_files: int | None) -> list[Sequence[str]]:
    """Each queue's part of `max_files` files, at least one."""
    if max_files is None:
        return list(queues)
    parts = shared_out({i: len(queue) for i, queue in enumerate(queues)}, max_files)
    return [queue[: parts[i]] for i, queue in enumerate(queues)]


def positions_at(
    queues: Sequence[Sequence[str]], files: TimedFiles, column: str, timestamp_ms: int
) -> dict[str, int] | None:
    """Where each queue reaches a time: in its first file that has a later row, and at the end of those before.

    Returns:
        None, if one of them cannot say.
    """
    reached: dict[str, int] = {}
    for queue in queues:
        for path in queue:
            position = files.position_at(path, column, timestamp_ms)
            if position is None:
                return None
            reached[path] = position
            if position < files.end(path):
                break
    return reached


def _rows_of(queue: Sequence[str], files: WaitingFiles, enough: int) -> int:
    """How many rows a queue has left, without a look at more files than it takes to have enough."""
    rows = 0
    for path in queue:
        rows += files.rows_left(path)
        if rows >= enough:
            break
    return rows


def _first(queue: Sequence[str], files: WaitingFiles, rows: int) -> dict[str, int]:
    planned = {}
    for path in queue:
        left = files.rows_left(path)
        if left > rows:
            cut = files.position_after(path, rows) if rows > 0 else None
            if cut is not None:
                planned[path] = cut
            elif rows > 0:
                planned[path] = files.latest_position(path)
            break
        planned[path] = files.latest_position(path)
        rows -= left
    return planned
