"""The progress of a job, for a person who watches it."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable
from typing import Any

from pyspark.sql.streaming.listener import StreamingQueryProgress
from rich.console import Console
from rich.status import Status

from eventide.common._words import moment
from eventide.common.job import BatchProgress
from eventide.runtime.metrics import LATE_DROPPED, LATE_TO_SIDE_OUTPUT, RECORDS_IN


def contents_of(texts: Iterable[str]) -> list[dict[str, Any]]:
    """What tasks have said in one micro-batch, in an order of its own: Spark's is another one each time."""
    return [json.loads(text) for text in sorted(texts)]


def gathered(batch: int, contents: list[dict[str, Any]], metrics: dict[str, dict[str, Any]]) -> BatchProgress:
    """What the tasks of a micro-batch said, as one; ``metrics`` are those of the job so far."""
    watermarks: dict[str, int] = {}
    splits: dict[str, int] = {}
    for content in contents:
        watermarks |= content.get("watermarks", {})
        splits |= content.get("splits", {})
    return BatchProgress(batch, metrics, watermarks, splits)


def have_ended(progress: StreamingQueryProgress) -> bool:
    """Whether all sources of a query are ours, and have ended with this micro-batch or before."""
    ends = [_offset(source.endOffset) for source in progress.sources]
    return bool(ends) and all(
        isinstance(end, dict) and end and all(isinstance(at, dict) and at.get("ended") for at in end.values())
        for end in ends
    )


def _offset(text: str | None) -> Any:
    """An offset as Spark tells it: as JSON, or, in PySpark 4.1, as Python would write it."""
    if not text:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return ast.literal_eval(text)


class NothingNew:
    """Tells, by the progress of one run of a query, whether its sources had nothing more for a micro-batch.

    Such a micro-batch ran for the clock alone. The first of a run says nothing about that: the run before may have
    planned it and not committed it, and then it has what was new at that time.
    """

    def __init__(self) -> None:
        self._first: int | None = None

    def __call__(self, progress: StreamingQueryProgress) -> bool:
        """Whether it is so in this micro-batch; to be called with the run's micro-batches in their order."""
        if self._first is None:
            self._first = progress.batchId
        return progress.batchId > self._first and all(s.startOffset == s.endOffset for s in progress.sources)


def line(progress: BatchProgress) -> str:
    """One line for a person."""
    counters = progress.counters.values()
    rows = max((c.get(RECORDS_IN, 0) for c in counters), default=0)
    late = sum(c.get(LATE_DROPPED, 0) + c.get(LATE_TO_SIDE_OUTPUT, 0) for c in counters)
    marks = ", ".join(f"{name} at {moment(ms)}" for name, ms in progress.watermarks.items())
    text = f"micro-batch {progress.batch}: {rows:,} rows in, {late:,} late"
    return f"{text}; watermark of {marks}" if marks else text


class ProgressView:
    """Shows the last micro-batch on one line of the terminal; nothing where there is none. The job gives the title."""

    def __init__(self, title: str) -> None:
        console = Console(stderr=True)
        self.title = title
        self._status: Status | None = console.status(f"{title}: starting") if console.is_terminal else None
        if self._status is not None:
            self._status.start()

    def show(self, progress: BatchProgress) -> None:
        """Show a finished micro-batch."""
        if self._status is not None:
            self._status.update(f"{self.title}: {line(progress)}")

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._status is not None:
            self._status.stop()
