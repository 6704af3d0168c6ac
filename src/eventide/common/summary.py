"""How a job stands, in a few lines for a person."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from eventide.common.job import BatchProgress
from eventide.common.ms import MAX_MS, MIN_MS
from eventide.common.words import length, moment

Line: TypeAlias = tuple[str, str]
"""The subject of a line, and its text."""

_RECENT = 20
"""Number of micro-batches that the rate of rows is taken over."""


def summary(progress: Sequence[BatchProgress]) -> list[Line]:
    """Say how a job stands, given the micro-batches that are known of it, the latest last.

    >>> at = 1_700_000_000_000
    >>> late = {"sums": {"numLateRecordsDropped": 2}}
    >>> splits = {"orders": {"0": at, "1": at - 65_000}}
    >>> batch = BatchProgress(
    ...     4, late, {"sums": at - 65_000}, splits, late, rows_in=500, began_ms=at - 1_000, took_ms=1_000)
    >>> for line in summary([batch]):
    ...     print(": ".join(line))
    micro-batch: 4, 1 s
    rows: 500 in the micro-batch, 500 a second; 2 late
    watermark: 2023-11-14 22:12:15 (sums), 1 min 5 s behind the clock
    slowest split: 1 of orders at 2023-11-14 22:12:15, 1 min 5 s behind the next
    """
    if not progress:
        return [("micro-batch", "the first has not ended yet")]
    last = progress[-1]
    spent = ", ".join(f"{what} {length(ms)}" for what, ms in last.spent_ms.items() if ms)
    lines = [("micro-batch", f"{last.batch}, {length(last.took_ms)}" + (f" ({spent})" if spent else ""))]
    lines.append(("rows", f"{last.rows_in:,} in the micro-batch{_rate(progress)}; {_late(last):,} late{_dead(last)}"))
    if last.watermarks:
        name = min(last.watermarks, key=lambda one: last.watermarks[one])
        ms = last.watermarks[name]
        lag = f", {length(last.ended_ms - ms)} behind the clock" if MIN_MS < ms <= last.ended_ms else ""
        lines.append(("watermark", f"{moment(ms)} ({name}){lag}"))
    slowest = _slowest(last)
    return [*lines, ("slowest split", slowest)] if slowest else lines


def _rate(progress: Sequence[BatchProgress]) -> str:
    recent = progress[-_RECENT:]
    took_ms = recent[-1].ended_ms - recent[0].began_ms
    return f", {sum(one.rows_in for one in recent) * 1000 // took_ms:,} a second" if took_ms > 0 else ""


def _late(last: BatchProgress) -> int:
    """How many elements came too late since the start of the job."""
    late = ("numLateRecordsDropped", "numLateRecordsToSideOutput")
    return sum(counters.get(name, 0) for counters in last.counters.values() for name in late)


def _dead(last: BatchProgress) -> str:
    """How many dead letters there were since the start of the job, where there were some."""
    letters = sum(counters.get("numDeadLetters", 0) for counters in last.counters.values())
    return f", {letters:,} dead" + (" letter" if letters == 1 else " letters") if letters else ""


def _slowest(last: BatchProgress) -> str:
    """The split with the lowest watermark, where there are several that have not ended."""
    known = sorted(
        (ms, split, source) for source, splits in last.splits_of.items() for split, ms in splits.items() if ms < MAX_MS
    )
    if len(known) < 2:
        return ""
    (ms, split, source), (following, *_) = known[:2]
    silent = sum(1 for at, *_ in known if at == MIN_MS)
    if silent:
        others = f", nor {silent - 1} other(s)" if silent > 1 else ""
        return f"{split} of {source} has not spoken yet{others}"
    gap = f", {length(following - ms)} behind the next" if following > ms else ""
    return f"{split} of {source} at {moment(ms)}{gap}"
