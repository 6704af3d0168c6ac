"""Progress of the micro-batches of a query, from what Spark tells; and how a terminal shows it."""

from __future__ import annotations

import ast
import datetime
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from sys import intern
from typing import Any

from pyspark.sql.streaming.listener import StateOperatorProgress, StreamingQueryProgress
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from eventide.common.job import BatchProgress
from eventide.common.words import summary
from eventide.runtime.sources.offsets import furthest_behind, unpacked
from eventide.spark.query.data_source import PENDING

OBSERVATION = "eventide"
"""Spark's name for the reports of tasks in a micro-batch, among all that is observed of a query."""
COUNTERS = "counters"
"""The one column of it."""

_SPENT = {
    "planning": ("latestOffset", "getOffset", "getBatch", "queryPlanning"),
    "running": ("addBatch",),
    "committing": ("walCommit", "commitOffsets", "commitBatch"),
}
"""Durations of Spark, by the words that users know."""

_STAGES = ("transformWithStateInPySparkExec", "transformWithStateInPandasExec")
"""Spark's name for a stage; a DataFrame that is a source may have operators with state of its own."""


def contents_of(texts: Iterable[str]) -> list[dict[str, Any]]:
    """Return the reports of tasks in one micro-batch, in a fixed order: Spark's order varies."""
    return [json.loads(text) for text in sorted(texts)]


def said_in(progress: StreamingQueryProgress) -> list[dict[str, Any]] | None:
    """Read the reports of tasks from the progress of a micro-batch; None if tasks were not asked."""
    if OBSERVATION not in progress.observedMetrics:
        return None
    observed = progress.observedMetrics[OBSERVATION].asDict()
    if COUNTERS not in observed:  # over Spark Connect a row comes as its values, with its schema beside them
        names = [field["name"] for field in observed["schema"]["fields"]]
        observed = dict(zip(names, observed["values"], strict=True))
    return contents_of(observed[COUNTERS])


def about(progress: StreamingQueryProgress, sink_ms: Mapping[str, int]) -> dict[str, Any]:
    """The times of a micro-batch, and the size of its state: attributes of a ``BatchProgress``.

    Args:
        progress: Spark's report.
        sink_ms: how long each sink took, by its name.
    """
    took = dict(progress.durationMs)
    total = took.get("triggerExecution", 0)
    spent = {what: sum(took.get(name, 0) for name in names) for what, names in _SPENT.items()}
    if sink_ms:
        spent["sinks"] = min(spent["running"], sum(sink_ms.values()))
        spent["running"] -= spent["sinks"]
    began = datetime.datetime.fromisoformat(progress.timestamp)
    return {
        "began_ms": round(began.timestamp() * 1000),
        "took_ms": total,
        "spent_ms": spent | {"other": max(0, total - sum(spent.values()))},
        "sink_ms": dict(sink_ms),
        **_pending(progress),
        # Spark tells of the last stage first.
        "state_bytes": tuple(_bytes_of(s) for s in reversed(progress.stateOperators) if s.operatorName in _STAGES),
    }


def _bytes_of(state: StateOperatorProgress) -> int:
    """Return the bytes in files; Spark's figure for memory is mostly buffers, however little is in them."""
    return max(0, int(state.customMetrics.get("rocksdbSstFileSize", 0)))


def _pending(progress: StreamingQueryProgress) -> dict[str, Any]:
    """How many elements each source had beyond the end of the micro-batch when it was planned, if that is known."""
    pending: dict[str, int] = {}
    pending_of: dict[str, dict[str, int]] = {}
    for source in progress.sources:
        latest = _offset(source.latestOffset)
        if isinstance(latest, dict) and PENDING in latest:
            told = latest[PENDING]
            name, records, splits = told["source"], told["records"], told["splits"]
        elif latest and (behind := _offsets_behind(_offset(source.endOffset), latest)) is not None:
            name, records, splits = source.description, sum(behind.values()), furthest_behind(behind)
        else:
            continue
        pending[name] = pending.get(name, 0) + records
        # One text for the name of a split in all progress that is kept.
        pending_of.setdefault(name, {}).update({intern(split): records for split, records in splits.items()})
    return {"pending": pending, "pending_of": pending_of}


def _offsets_behind(end: Any, latest: Any) -> dict[str, int] | None:
    """The number of offsets between two of Spark's Kafka source, by partition; None for offsets of another kind.

    >>> _offsets_behind({"orders": {"0": 5, "1": 7}}, {"orders": {"0": 9, "1": 7, "2": 1}})
    {'orders-0': 4, 'orders-1': 0, 'orders-2': 1}
    """
    try:
        before = {f"{topic}-{partition}": at for topic, of in end.items() for partition, at in of.items()}
        after = {f"{topic}-{partition}": at for topic, of in latest.items() for partition, at in of.items()}
        return {place: max(0, at - before.get(place, 0)) for place, at in after.items()}
    except (AttributeError, TypeError):
        return None


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
        offset = json.loads(text)
    except ValueError:
        offset = ast.literal_eval(text)
    return unpacked(offset) if isinstance(offset, dict) else offset


class ProgressView:
    """Shows how a job stands in a few lines that change in place; nothing where standard error is not a terminal.

    Args:
        title: the name of the job.
        address: where its dashboard is, if it has one.
    """

    def __init__(self, title: str, address: str | None = None) -> None:
        self.title = title
        self._address = address
        console = Console(stderr=True)
        self._live: Live | None = None
        if console.is_terminal:
            # What goes to a file or another program is not to be mixed with this.
            aside = sys.stdout.isatty()
            self._live = Live(
                self._lines([]), console=console, auto_refresh=False, transient=True, redirect_stdout=aside
            )
            self._live.start(refresh=True)

    def show(self, progress: Sequence[BatchProgress]) -> None:
        """Show where the job stands with the last of some micro-batches."""
        if self._live is not None:
            with suppress(OSError, ValueError):  # that the terminal is gone is nothing to the job
                self._live.update(self._lines(progress), refresh=True)

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._live is not None:
            self._live.stop()

    def _lines(self, progress: Sequence[BatchProgress]) -> Table:
        table = Table.grid(padding=(0, 2))
        table.add_row(Text(self.title, "bold"), Text(self._address or "", "dim"))
        for what, text in summary(progress):
            table.add_row(Text(f"  {what}", "dim"), Text(text))
        return table
