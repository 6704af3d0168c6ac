"""One window: whether it has fired, what it holds, and what must happen before it fires."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from eventide.common.ms import add_ms
from eventide.common.time_window import TimeWindow
from eventide.runtime.columnar.panes import Panes
from eventide.runtime.window.fixed_operator import windows_in_row
from eventide.runtime.window.planning import COLUMNS
from eventide.why.evidence import Evidence
from eventide.why.standing import OperatorStanding, Split


class Phase(StrEnum):
    """How far a window is."""

    OPEN = "is open"
    FIRED = "has fired, and takes in late elements"
    GONE = "has fired, and its state is gone"


@dataclass(frozen=True, slots=True)
class WindowStanding:
    """A window of event time; all times are in milliseconds.

    Attributes:
        start: its first millisecond.
        end: the first millisecond after it.
        phase: how far it is.
        fires_at: the watermark with which it fires.
        gone_at: the watermark with which its state goes.
        held: how many keys, or elements, its state has; None where that lies together with other windows.
        waits_for: the splits that stand below ``fires_at``, slowest first; of a window that has fired, none.
    """

    start: int
    end: int
    phase: Phase
    fires_at: int
    gone_at: int
    held: int | None
    waits_for: tuple[Split, ...]


def windows_at(evidence: Evidence, standing: OperatorStanding, time_ms: int) -> list[WindowStanding]:
    """The windows of an operator that an element of a time belongs to; none where its windows are not fixed."""
    panes = panes_of(standing)
    if panes is None:
        return []
    pane = panes.number_of(int(panes.start_of(np.array([time_ms]))[0]))
    rows = evidence.rows(standing.operator)
    return [standing_of(standing, panes.window(n), _held(standing, panes, n, rows)) for n in panes.windows_at(pane)]


def panes_of(standing: OperatorStanding) -> Panes | None:
    """How time falls into the windows of an operator; None where they are not fixed, or do not follow event time."""
    windows = standing.operator["windows"]
    if windows is None or "size_ms" not in windows or not windows["follows_event_time"]:
        return None
    return Panes(windows["size_ms"], windows.get("slide_ms", windows["size_ms"]), windows.get("offset_ms", 0))


def is_on_columns(standing: OperatorStanding) -> bool:
    """Whether its windows are tables, pane by pane; else they are objects, window by window."""
    return str(standing.operator["speed"]).startswith(COLUMNS)


def standing_of(standing: OperatorStanding, window: TimeWindow, held: int | None) -> WindowStanding:
    """How far a window is that holds `held` keys or elements."""
    watermark = standing.watermark
    fires_at = window.max_timestamp()
    gone_at = add_ms(fires_at, standing.operator["windows"]["lateness_ms"])
    phase = Phase.OPEN if watermark < fires_at else Phase.FIRED if watermark < gone_at else Phase.GONE
    waits = tuple(split for split in standing.splits if split.watermark < fires_at) if phase is Phase.OPEN else ()
    return WindowStanding(window.start, window.end, phase, fires_at, gone_at, held, waits)


def _held(standing: OperatorStanding, panes: Panes, number: int, rows: Mapping[int, int]) -> int | None:
    if is_on_columns(standing):
        first = number * panes.per_slide
        return sum(rows.get(pane, 0) for pane in range(first, first + panes.per_window))
    return rows.get(number, 0) if windows_in_row(panes) == 1 else None
