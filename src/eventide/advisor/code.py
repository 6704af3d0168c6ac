"""The line to paste."""

from __future__ import annotations

from eventide.advisor.arrivals import ColumnRoles

_UNITS = ((86_400_000, "days"), (3_600_000, "hours"), (60_000, "minutes"), (1_000, "seconds"), (1, "millis"))
_TO_MS = {"s": "* 1_000", "us": "// 1_000", "ns": "// 1_000_000"}
_LONGEST = 105  # so that it stays in one piece on a terminal


def strategy_code(columns: ColumnRoles, bound_ms: int, idleness_ms: int | None, drift_ms: int | None) -> str:
    """A watermark strategy as a program makes it; in several lines where it is long.

    >>> print(strategy_code(ColumnRoles("ts"), 0, None, None))
    WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("ts")
    """
    bounded = f"for_bounded_out_of_orderness({duration_code(bound_ms)})" if bound_ms else "for_monotonous_timestamps()"
    calls = [f"WatermarkStrategy.{bounded}"]
    if columns.time:
        calls.append(f".with_timestamp_assigner({_assigner(columns)})")
    if idleness_ms is not None:
        calls.append(f".with_idleness({duration_code(idleness_ms)})")
    if drift_ms is not None:
        calls.append(f'.with_watermark_alignment("a group", {duration_code(drift_ms)})')
    line = "".join(calls)
    return line if len(line) <= _LONGEST else "(\n    " + "\n    ".join(calls) + "\n)"


def duration_code(ms: int) -> str:
    """A duration as a program makes it.

    >>> duration_code(90_000), duration_code(1_500)
    ('Duration.of_seconds(90)', 'Duration.of_millis(1500)')
    """
    size, name = next((size, name) for size, name in _UNITS if ms % size == 0)
    return f"Duration.of_{name}({ms // size})"


def _assigner(columns: ColumnRoles) -> str:
    name = f'"{columns.time}"'
    conversion = _TO_MS.get(columns.unit or "ms")
    return name if conversion is None else f"lambda row, _: row[{name}] {conversion}"
