"""A running job in a cell of a notebook: one picture that stands alone, as SVG, and is there when the job is gone."""

from __future__ import annotations

import datetime
import heapq
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import wait
from html import escape
from typing import Any, TypeAlias

from eventide._secrets import without_secrets
from eventide.common.job import JobClient
from eventide.common.ms import MAX_MS, MIN_MS
from eventide.common.words import count, moment
from eventide.dashboard.watched import Json, WatchedJob, watermark
from eventide.errors import ProgramError

_BATCHES = 200
"""Number of micro-batches in the picture: the last ones."""
_SPLITS = 6
"""Number of the slowest splits that have a line of their own."""
_OPERATORS = 4
_NAME = 20
"""Length of a name in characters, from which on it is cut off."""

_WIDTH, _HEIGHT = 760, 376
_INK, _SOFT, _LINE, _BAD, _ASIDE = "#1c1b22", "#6b6a75", "#e4e3ea", "#b3261e", "#d9730d"
_OF_SPLITS = ("#5b4bc4", "#d9730d", "#0f8b8d", "#c2376e", "#8a6d3b", "#3b78c9")
_OF_HELD = ("#0f8b8d", "#8a6d3b", "#3b78c9", "#6a8d1f", "#6b6a75")
_OF_OPERATORS = ("#1a7f4e", "#6a8d1f", "#3b78c9", "#6b6a75")
_STATUS = {"running": "#1a7f4e", "failed": _BAD, "restarting": _BAD}

_S, _MIN, _H, _D = 1_000, 60_000, 3_600_000, 86_400_000
_STEPS_MS = (
    *(factor * power for power in (1, 10, 100) for factor in (1, 2, 5)),
    *(factor * unit for unit in (_S, _MIN) for factor in (1, 2, 5, 10, 15, 30)),
    *(factor * _H for factor in (1, 2, 3, 6, 12)),
    *(factor * _D for factor in (1, 2, 7, 14, 28, 91, 182, 364, 3640)),
)
_HELD = {
    "numOpenWindows": "window",
    "numOpenSessions": "session",
    "numTimers": "timer",
    "numKeys": "key",
    "numElements": "kept element",
}

WatermarkLine: TypeAlias = tuple[str, str, bool, list[int | None]]
"""A watermark in a chart: its name, its color, whether it is an operator's, and its value after each micro-batch."""


def picture(job: WatchedJob) -> str:
    """Draw where a job stands and how it came there."""
    batches = job.batches()[-_BATCHES:]
    failure = job.failure
    status = job.status.value
    parts = [_text(16, 26, status, _STATUS.get(status, _INK), bold=True, size=14)]
    if failure is not None:
        parts.append(_text(16, 46, _cut(failure, 118), _BAD))
    if batches:
        parts += [_text(744, 26, _heading(batches), _SOFT, "end"), *_watermarks(job, batches), *_counts(batches)]
    else:
        parts.append(_text(380, 190, "The first micro-batch has not ended yet.", _SOFT, "middle"))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" '
        f'font-family="system-ui, sans-serif" font-size="11"><rect x="0.5" y="0.5" width="{_WIDTH - 1}" '
        f'height="{_HEIGHT - 1}" rx="8" fill="#fff" stroke="{_LINE}"/>{"".join(parts)}</svg>'
    )


def _heading(batches: Sequence[Json]) -> str:
    rows = sum(batch["rows_in"] for batch in batches)
    of = f"the last {len(batches)} micro-batches" if batches[0]["batch"] else f"micro-batches 0 to {len(batches) - 1}"
    return f"{count(rows, 'row')} in {of}"


# --- watermarks -------------------------------------------------------------------------------------------------

_LEFT, _RIGHT, _TOP, _BOTTOM = 92, 520, 72, 226


def _watermarks(job: WatchedJob, batches: Sequence[Json]) -> list[str]:
    lines = [*_of_splits(job, batches), *_of_operators(batches)]
    title = _text(16, 60, "watermarks (event time, UTC)", _INK, bold=True)
    band = [batch["splits"]["at"] for batch in batches if batch["splits"]["count"] > _SPLITS]
    known = [ms for *_, values in lines for ms in values if ms is not None]
    known += [ms for at in band if at for ms in at]
    if not known:
        return [title, _text(306, 150, "No split has had a watermark yet.", _SOFT, "middle"), *_legend(lines, batches)]
    low, high = min(known), max(known)
    step = next((one for one in _STEPS_MS if (high - low) / one <= 4.5), _STEPS_MS[-1])
    low, high = (low + 1) // step * step, -(-high // step) * step  # a watermark is a millisecond below a time
    high += step * (high == low)

    def y(ms: int) -> float:
        return _BOTTOM - (ms - low) / (high - low) * (_BOTTOM - _TOP)

    ticks = range(low, high + 1, max(step, (high - low) // 8 // step * step))
    marks = [_rule(y(ms)) + _text(_LEFT - 8, y(ms) + 4, _clock(ms, step, high - low), _SOFT, "end") for ms in ticks]
    xs = _xs(len(batches), _LEFT + 8, _RIGHT - 8)
    if len(band) == len(batches) and all(band):
        up = [f"{x:.1f},{y(at[3]):.1f}" for x, at in zip(xs, band, strict=True)]
        down = [f"{x:.1f},{y(at[1]):.1f}" for x, at in zip(xs, band, strict=True)]
        marks.append(f'<polygon points="{" ".join([*up, *reversed(down)])}" fill="#5b4bc4" opacity="0.12"/>')
    for _, color, is_operator, values in sorted(lines, key=lambda line: not line[2]):
        points = [(x, y(ms)) for x, ms in zip(xs, values, strict=True) if ms is not None]
        marks.append(_path(points, color, 6 if is_operator else 1.6, 0.35 if is_operator else 1))
        if not is_operator and len(batches) <= 60:
            marks += [f'<circle cx="{x:.1f}" cy="{at:.1f}" r="2.4" fill="{color}"/>' for x, at in points]
    return [title, *marks, *_numbers(batches, xs, _BOTTOM + 16), *_legend(lines, batches)]


def _of_splits(job: WatchedJob, batches: Sequence[Json]) -> list[WatermarkLine]:
    """The splits that are furthest behind, and then those that have ended."""
    standing: dict[str, dict[str, int]] = {}
    each: list[dict[str, dict[str, int]]] = []
    for progress in job.client.get_progress():
        standing = standing | progress.splits_of
        if progress.batch <= batches[-1]["batch"]:
            each.append(standing)
    each = each[-len(batches) :]
    now = heapq.nsmallest(_SPLITS, ((ms, source, split) for source, of in each[-1].items() for split, ms in of.items()))
    chosen = {(source, split) for _, source, split in now}
    if len(now) < _SPLITS:
        ended = {(source, split) for then in each for source, of in then.items() for split in of} - chosen
        chosen |= {*sorted(ended)[: _SPLITS - len(now)]}
    several = len({source for source, _ in chosen}) > 1
    return [
        (
            without_secrets(f"{source}/{split}" if several else split),
            _OF_SPLITS[place],
            False,
            [_known(watermark(then.get(source, {}).get(split, MIN_MS))) for then in each],
        )
        for place, (source, split) in enumerate(sorted(chosen))
    ]


def _of_operators(batches: Sequence[Json]) -> list[WatermarkLine]:
    """The operators that are furthest behind."""
    now = batches[-1]["operators"]
    names = [name for name, of in now.items() if of["watermark"] is not None]
    names.sort(key=lambda name: MAX_MS if now[name]["watermark"] == "end" else now[name]["watermark"])
    return [
        (name, _OF_OPERATORS[place], True, [_known(_watermark_of(batch, name)) for batch in batches])
        for place, name in enumerate(names[:_OPERATORS])
    ]


def _watermark_of(batch: Json, name: str) -> int | str | None:
    found: int | str | None = batch["operators"].get(name, {}).get("watermark")
    return found


def _known(found: int | str | None) -> int | None:
    """A watermark that is a time."""
    return found if isinstance(found, int) else None


def _legend(lines: Sequence[WatermarkLine], batches: Sequence[Json]) -> list[str]:
    parts, y = [], _TOP + 6
    for is_operator, of in ((False, "splits"), (True, "operators")):
        those = [line for line in lines if line[2] is is_operator]
        if not those:
            continue
        more = batches[-1]["splits"]["count"] - len(those) if not is_operator else 0
        parts.append(_text(544, y, of + (f", and {more:,} further ahead" if more > 0 else ""), _SOFT))
        for name, color, _, values in those:
            y += 16
            width, opacity = (6, 0.35) if is_operator else (2, 1)
            parts.append(_path([(544, y - 4), (558, y - 4)], color, width, opacity))
            parts.append(_text(565, y, _cut(name, _NAME), _INK, bold=is_operator))
            parts.append(_text(744, y, _at(name, is_operator, values, batches), _INK, "end"))
        y += 22
    return parts


def _at(name: str, is_operator: bool, values: Sequence[int | None], batches: Sequence[Json]) -> str:
    """Return where a watermark is now."""
    if values[-1] is not None:
        return moment(values[-1])[-8:]
    has_begun = any(value is not None for value in values)
    has_ended = _watermark_of(batches[-1], name) == "end" if is_operator else has_begun
    return "the end" if has_ended else "none yet"


# --- counts -----------------------------------------------------------------------------------------------------

_UNDER, _FLOOR, _SMALL = 284, 350, 226


def _counts(batches: Sequence[Json]) -> list[str]:
    """Elements in, elements that came too late, and what operators hold: three small charts."""
    sums = {what: [_sum(batch, what) for batch in batches] for what in ("dropped", "aside")}
    late = sum(map(sum, sums.values()))
    named = {name for of in batches[-1]["operators"].values() for name in of["held"]}
    kinds = [name for name in _HELD if name in named]
    held = {
        name: [sum(of["held"].get(name, 0) for of in batch["operators"].values()) for batch in batches]
        for name in (kinds if kinds == ["numKeys"] else [one for one in kinds if one != "numKeys"])
    }
    waiting = ", ".join(count(values[-1], _HELD[name]) for name, values in held.items() if any(values))
    dropped, aside = (sum(sums[what]) for what in ("dropped", "aside"))
    said = ", ".join([*([f"{dropped:,} dropped"] * bool(dropped)), *([f"{aside:,} to a side output"] * bool(aside))])
    return [
        *_bars(16, "rows in", "", [([batch["rows_in"] for batch in batches], "#5b4bc4")], batches),
        *_bars(267, "too late", said if late else "none", [(sums["dropped"], _BAD), (sums["aside"], _ASIDE)], batches),
        *_bars(518, "waiting", waiting or "nothing now", [*zip(held.values(), _OF_HELD, strict=False)], batches),
    ]


def _sum(batch: Json, what: str) -> int:
    return sum(of[what] for of in batch["operators"].values())


def _bars(
    left: int, title: str, said: str, series: Sequence[tuple[list[int], str]], batches: Sequence[Json]
) -> list[str]:
    """Draw a small chart with a bar for each micro-batch; of several series, one stands on the other."""
    most = max([*map(sum, zip(*(values for values, _ in series), strict=True)), 1])
    first, last = left + 30, left + _SMALL
    width = (last - first) / len(batches)
    parts = [
        _text(left, _UNDER - 18, title, _INK, bold=True),
        _text(last, _UNDER - 18, _cut(said, 30), _SOFT, "end"),
        *(_rule(y, first, last) for y in (_UNDER, _FLOOR)),
        _text(first - 6, _UNDER + 4, _short(most), _SOFT, "end"),
        _text(first - 6, _FLOOR + 4, "0", _SOFT, "end"),
    ]
    below = [0] * len(batches)
    for values, color in series:
        path = ""
        for place, value in enumerate(values):
            if value:
                x, foot = first + width * (place + 0.12), _FLOOR - below[place] / most * (_FLOOR - _UNDER)
                path += f"M{x:.1f} {foot:.1f}v{-value / most * (_FLOOR - _UNDER):.1f}h{width * 0.76:.1f}V{foot:.1f}z"
                below[place] += value
        if path:
            parts.append(f'<path d="{path}" fill="{color}" opacity="0.85"/>')
    middles = [first + width * (place + 0.5) for place in range(len(batches))]
    return [*parts, *_numbers(batches, middles, _FLOOR + 15)]


# --- marks ------------------------------------------------------------------------------------------------------


def _text(x: float, y: float, text: str, color: str, anchor: str = "start", bold: bool = False, size: int = 11) -> str:
    weight = ' font-weight="600"' if bold else ""
    larger = f' font-size="{size}"' if size != 11 else ""
    place = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return f'<text x="{x:.0f}" y="{y:.0f}" fill="{color}"{place}{weight}{larger}>{escape(text)}</text>'


def _rule(y: float, first: float = _LEFT, last: float = _RIGHT) -> str:
    return f'<path d="M{first} {y:.1f}H{last}" stroke="{_LINE}"/>'


def _path(points: Sequence[tuple[float, float]], color: str, width: float, opacity: float = 1) -> str:
    if len(points) == 1:
        points = [points[0], (points[0][0] + 0.1, points[0][1])]
    at = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return (
        f'<polyline points="{at}" fill="none" stroke="{color}" stroke-width="{width}" stroke-opacity="{opacity}" '
        'stroke-linejoin="round" stroke-linecap="round"/>'
    )


def _xs(number: int, first: float, last: float) -> list[float]:
    """Spread some places evenly."""
    return [first + (last - first) * (place / (number - 1) if number > 1 else 0.5) for place in range(number)]


def _numbers(batches: Sequence[Json], xs: Sequence[float], y: float) -> list[str]:
    """Write the numbers of the first and the last micro-batch under a chart."""
    ends = [(0, "middle"), (len(batches) - 1, "middle")][: len(batches)]
    caption = _text((xs[0] + xs[-1]) / 2, y, "micro-batch", _SOFT, "middle") if len(batches) > 1 else ""
    return [caption, *(_text(xs[place], y, str(batches[place]["batch"]), _SOFT, anchor) for place, anchor in ends)]


def _clock(ms: int, step: int, span: int) -> str:
    """Write a tick as exactly as the step between two of them asks for, with the day where there are several.

    >>> _clock(1_700_000_000_000, 1_000, 9_000), _clock(1_700_000_000_000, 3_600_000, 200_000_000)
    ('22:13:20', '11-14 22:13')
    """
    if not MIN_MS < ms < MAX_MS:
        return ""
    try:
        at = datetime.datetime.fromtimestamp(ms / 1000, datetime.UTC)
    except (ValueError, OverflowError, OSError):
        return f"{ms} ms"
    if step >= 28 * _D:
        return f"{at:%Y-%m-%d}"
    if step >= _D:
        return f"{at:%m-%d}"
    day = "%m-%d " if span >= _D else ""
    text = at.strftime(day + ("%H:%M" if step >= _MIN else "%H:%M:%S"))
    return f"{text}.{ms % _S:03}" if step < _S else text


def _short(number: int) -> str:
    """Write a number in few characters.

    >>> _short(950), _short(12_300), _short(4_000_000)
    ('950', '12k', '4M')
    """
    for unit, size in (("M", 10**6), ("k", 10**3)):
        if number >= size:
            return f"{number // size}{unit}"
    return str(number)


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


_EVERY_S = 0.5


def watch(client: JobClient, seconds: float | None = None) -> None:
    """Show a job in the cell of a notebook that calls this, and draw it again after each micro-batch.

    The picture has the watermarks of the slowest splits and of operators, elements in and too late, and how much
    operators hold, for the last 200 micro-batches. It stays in the cell when the call returns: when the job has ended,
    failed or been cancelled, after `seconds`, or when the cell is interrupted. The job is not touched by any of that.
    That it has failed is in the picture; ``client.get_job_execution_result().result()`` raises the error.

    Flink has nothing like it. On a terminal, ``execute()`` shows where a job stands.

    Args:
        client: The job, from ``env.execute_async(...)``.
        seconds: How long to watch at most, by the clock; without it, until the job ends.

    Raises:
        ProgramError: if this is not a notebook.

    >>> from eventide.testing import local_environment
    >>> env = local_environment()
    >>> letters = env.from_collection(["a", "b"]).print()
    >>> watch(env.execute_async("letters"))
    Traceback (most recent call last):
    ...
    eventide.errors.ProgramError: watch(...) draws in the cell of a notebook, and this is not a notebook; ...
    """
    display = _display_of_the_notebook()
    until = float("inf") if seconds is None else time.monotonic() + seconds
    result = client.get_job_execution_result()
    job = WatchedJob(0, "", client, {})
    drawn = _as_drawn(job)
    shown = display(drawn, raw=True, display_id=True)
    is_over = False
    try:
        while not is_over:
            wait([result], max(0.0, min(_EVERY_S, until - time.monotonic())))
            is_over = result.done() or time.monotonic() >= until  # before the last look, which sees the end then
            if drawn != (drawn := _as_drawn(job)):
                shown.update(drawn, raw=True)
    except KeyboardInterrupt:
        return


def _as_drawn(job: WatchedJob) -> dict[str, str]:
    """Return the job in the forms of which a notebook chooses one."""
    lines = [("job", job.status.value), *job.summary()]
    return {"image/svg+xml": picture(job), "text/plain": "\n".join(f"{what}: {text}" for what, text in lines)}


def _display_of_the_notebook() -> Callable[..., Any]:
    if "IPython" in sys.modules:
        from IPython import get_ipython
        from IPython.display import display

        shows: Callable[..., Any] = display
        if hasattr(get_ipython(), "kernel"):
            return shows
    raise ProgramError(
        "watch(...) draws in the cell of a notebook, and this is not a notebook; use client.get_progress() for the "
        "figures, env.set_dashboard(...) for a page, or env.execute(), which shows on a terminal where the job stands"
    )
