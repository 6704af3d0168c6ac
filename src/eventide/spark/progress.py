"""The progress of a job, for a person who watches it."""

from __future__ import annotations

import datetime
from typing import Any

from rich.console import Console
from rich.status import Status

from eventide.common._ms import MAX_MS, MIN_MS
from eventide.common.job import BatchProgress
from eventide.runtime.metrics import LATE_DROPPED, LATE_TO_SIDE_OUTPUT, RECORDS_IN, OperatorCounters


def gathered(batch: int, contents: list[dict[str, Any]], counters: OperatorCounters) -> BatchProgress:
    """What the tasks of a micro-batch said, as one."""
    watermarks: dict[str, int] = {}
    splits: dict[str, int] = {}
    for content in contents:
        watermarks |= content.get("watermarks", {})
        splits |= content.get("splits", {})
    return BatchProgress(batch, counters, watermarks, splits)


def line(progress: BatchProgress) -> str:
    """One line for a person."""
    counters = progress.counters.values()
    rows = max((c.get(RECORDS_IN, 0) for c in counters), default=0)
    late = sum(c.get(LATE_DROPPED, 0) + c.get(LATE_TO_SIDE_OUTPUT, 0) for c in counters)
    marks = ", ".join(f"{name} at {moment(ms)}" for name, ms in progress.watermarks.items())
    text = f"micro-batch {progress.batch}: {rows:,} rows in, {late:,} late"
    return f"{text}; watermark of {marks}" if marks else text


def moment(ms: int) -> str:
    """A watermark for a person.

    >>> moment(1357000000000)
    '2013-01-01 00:26:40'
    """
    if ms == MIN_MS:
        return "the beginning"
    if ms == MAX_MS:
        return "the end"
    try:
        return f"{datetime.datetime.fromtimestamp(ms / 1000, datetime.UTC):%Y-%m-%d %H:%M:%S}"
    except (ValueError, OverflowError, OSError):
        return f"{ms} ms"


class ProgressView:
    """Shows the last micro-batch on one line of the terminal; nothing where there is no terminal."""

    def __init__(self, title: str) -> None:
        console = Console(stderr=True)
        self._title = title
        self._status: Status | None = console.status(f"{title}: starting") if console.is_terminal else None
        if self._status is not None:
            self._status.start()

    def show(self, progress: BatchProgress) -> None:
        """Show a finished micro-batch."""
        if self._status is not None:
            self._status.update(f"{self._title}: {line(progress)}")

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._status is not None:
            self._status.stop()
