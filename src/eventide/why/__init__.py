"""Explanations from the state of operators: why a watermark is where it is, and why a window does not fire.

It sees no Spark: hosts bring the evidence, and tests make it without Spark. An answer is JSON for programs, and text
for people: a few lines, a table of splits, a histogram of what came too late.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from eventide.common.ms import MAX_MS, MIN_MS
from eventide.common.words import in_utc, length, ms_of_text, shortened
from eventide.runtime.observation.event_time_log import LateElement, Lateness
from eventide.why.advice import Finding, advice_on, notes_on
from eventide.why.evidence import Evidence
from eventide.why.keys import KeyAnswer, KeyStanding, answer_of_key
from eventide.why.standing import (
    Hold,
    LateFrom,
    OperatorStanding,
    Phase,
    SplitStanding,
    Status,
    WindowStanding,
    panes_of,
    standings,
    windows_at,
)

__all__ = [
    "Finding",
    "Evidence",
    "Hold",
    "KeyAnswer",
    "KeyStanding",
    "SplitStanding",
    "OperatorStanding",
    "Why",
    "WindowStanding",
    "why",
]

_UNWRAPPED = 10_000
_SPLITS = 12
_FROM = 5
_LAST = 3
_BARS = 8
_WIDTH = 30


@dataclass(frozen=True)
class Why:
    """An answer to why watermarks are where they are; its text is for people.

    Attributes:
        answer: the cause in one sentence, or that nothing is wrong.
        standings: the watermark of each operator, and the splits that hold it.
        windows: the windows that were asked for, each with its operator.
        keys: the state of each operator for the key that was asked for.
        advice: certain faults, the most important ones first.
        notes: facts that are good to know, and not faults.
        asked_ms: when it was asked for, by the clock, in milliseconds.
    """

    answer: str
    standings: tuple[OperatorStanding, ...]
    windows: tuple[tuple[OperatorStanding, WindowStanding], ...]
    keys: tuple[KeyAnswer, ...]
    advice: tuple[Finding, ...]
    notes: tuple[str, ...]
    asked_ms: int

    def __rich__(self) -> Any:
        return view(self.answer, self.standings, self.windows, self.keys, self.advice, self.notes, self.asked_ms)

    def __str__(self) -> str:
        out = io.StringIO()
        Console(file=out, width=_UNWRAPPED, markup=False, highlight=False, emoji=False, no_color=True).print(self)
        return "\n".join(line.rstrip() for line in out.getvalue().splitlines())

    def to_json(self) -> dict[str, Any]:
        """The answer as JSON values; times are milliseconds."""
        return {
            "answer": self.answer,
            "asked_ms": self.asked_ms,
            "advice": [asdict(one) for one in self.advice],
            "notes": list(self.notes),
            "windows": [_window(standing, window) for standing, window in self.windows],
            "keys": [_key(one) for one in self.keys],
            "operators": [_operator(standing) for standing in self.standings],
        }


def why(evidence: Evidence, operator: str | None = None, at: int | str | None = None, key: str | None = None) -> Why:
    """Say why the watermarks of a job are where they are.

    Args:
        evidence: The facts that are known of the job.
        operator: The name, or the id, of the one that is asked about; all of them without.
        at: A time of events, whose windows are looked at: ISO 8601, in UTC without a zone, or milliseconds.
        key: A key as text; of several columns, with commas between: the windows in which it has something, and its
            state.

    Raises:
        ProgramError: ``at`` is not a time.
        StateError: There is no such operator; or something is kept that cannot be shown without the program.
    """
    at_ms = None if at is None else ms_of_text(str(at))
    wanted = None if operator is None else evidence.operator(operator)["name"]
    found = [one for one in standings(evidence) if wanted in {None, one.name}]
    advice = _ranked([advice for standing in found for advice in advice_on(evidence, standing)])
    notes = notes_on(evidence)
    if at_ms is not None:
        notes += [
            f"the windows of {one.name!r} are not fixed windows of event time, so they cannot be looked up by a time"
            for one in found
            if _varies(one)
        ]
    windows = [] if at_ms is None else [(one, window) for one in found for window in windows_at(evidence, one, at_ms)]
    keys = [] if key is None else [answer_of_key(evidence, one, key) for one in found]
    return Why(
        _answer(found, advice),
        tuple(found),
        tuple(windows),
        tuple(keys),
        tuple(advice),
        tuple(notes),
        evidence.asked_ms,
    )


def _varies(standing: OperatorStanding) -> bool:
    return standing.operator["windows"] is not None and panes_of(standing) is None


_ORDER = (
    "unit",
    "generator",
    "no watermarks",
    "silent split",
    "split behind",
    "late elements",
    "time zone",
    "split ahead",
    "nothing new",
    "wide bound",
)


def _ranked(advice: list[Finding]) -> list[Finding]:
    """Order advice by weight; keep advice that several operators share once."""
    once: dict[tuple[str, str], Finding] = {}
    for one in advice:
        once.setdefault((one.kind, one.remedy), one)
    return sorted(once.values(), key=lambda one: _ORDER.index(one.kind))


def _answer(found: list[OperatorStanding], advice: list[Finding]) -> str:
    if advice:
        cause = advice[0].cause
        return f"{cause[0].upper()}{cause[1:]}."
    if not found:
        return "No operator of this job waits for a watermark."
    held = [one for one in found if one.hold is not None]
    if not held:
        return "Nothing holds a watermark back."
    one = held[0]
    split = one.hold.splits[0]  # type: ignore[union-attr]
    return (
        f"Nothing is certain to be wrong: the watermark of {one.name!r} is {in_utc(one.watermark)}, that of "
        f"{split.name!r} of {split.source!r}"
        + ("." if one.newest is None else f", {length(one.newest - one.watermark)} behind the newest element.")
    )


def _operator(standing: OperatorStanding) -> dict[str, Any]:
    hold = standing.hold
    late = standing.late.behind
    return {
        "name": standing.name,
        "id": standing.operator["id"],
        "watermark_ms": standing.watermark,
        "idle": standing.idle,
        "newest_ms": standing.newest,
        "heard_ms": standing.heard,
        "elements": standing.rows,
        "splits_ended": standing.ended,
        "held_by": None
        if hold is None
        else {
            "source": hold.splits[0].source,
            "splits": [split.name for split in hold.splits],
            "through": list(hold.through),
            "since_ms": hold.since,
            "without_ms": hold.without,
        },
        "splits": [_split(split) for split in standing.splits],
        "dead_letters": dict(standing.dead_letters),
        "late": None
        if not standing.late
        else {
            "elements": late.total,
            "behind_ms": {"half": late.within(0.5), "99%": late.within(0.01), "most": late.longest_ms},
            "steps": [[until, count] for until, count in late.steps()],
            "by_split": [
                {"split": one.split, "elements": one.elements, "is_exact": one.is_exact, "most_behind_ms": one.worst}
                for one in standing.late_from
            ],
            "last": [one._asdict() for one in standing.late.last],
        },
    }


def _split(split: SplitStanding) -> dict[str, Any]:
    record = split.record
    behind = None if record is None or not record.behind.total else record.behind
    return {
        "source": split.source,
        "name": split.name,
        "watermark_ms": split.watermark,
        "status": str(split.status),
        "newest_ms": split.newest,
        "heard_ms": split.heard,
        "elements": None if record is None else record.rows,
        "behind_watermark_ms": None if record is None else record.worst,
        "out_of_order_ms": None
        if behind is None
        else {"half": behind.within(0.5), "99%": behind.within(0.01), "most": behind.longest_ms},
    }


def _key(answer: KeyAnswer) -> dict[str, Any]:
    return {
        "operator": answer.standing.name,
        "key": answer.key,
        "windows": [
            {**_window(answer.standing, one.window), "holds": one.elements, "kept": one.kept or None}
            for one in answer.windows
        ],
        "kept": [{"what": what, "value": text} for what, text in answer.kept],
    }


def _window(standing: OperatorStanding, window: WindowStanding) -> dict[str, Any]:
    return {
        "operator": standing.name,
        "start_ms": window.start,
        "end_ms": window.end,
        "phase": window.phase.name.lower(),
        "fires_at_ms": window.fires_at,
        "gone_at_ms": window.gone_at,
        "holds": window.held,
        "waits_for": [{"source": split.source, "split": split.name} for split in window.waits_for],
    }


def view(
    answer: str,
    standings: Sequence[OperatorStanding],
    windows: Sequence[tuple[OperatorStanding, WindowStanding]],
    keys: Sequence[KeyAnswer],
    advice: Sequence[Finding],
    notes: Sequence[str],
    asked_ms: int,
) -> RenderableType:
    """All of an answer."""
    parts: list[RenderableType] = [Text(answer, "bold")]
    if advice:
        parts.append(Text.assemble(("What to do: ", "bold green"), advice[0].remedy))
    for standing, window in windows:
        parts += [Text(), _line_of_window(standing, window)]
    for asked in keys:
        parts += [Text(), *_lines_of_key(asked)]
    for standing, alike in _together(standings):
        parts += [Text(), *_lines_of_operator(standing, asked_ms)]
        if alike:
            parts.append(Text(f"  so stand   {shortened(map(repr, alike), _SPLITS)}, held by the same"))
    for number, one in enumerate(advice[1:]):
        parts += [Text(), Text(f"{'Also: ' if number == 0 else ''}{one.cause}."), Text(f"What to do: {one.remedy}")]
    for note in notes:
        parts += [Text(), Text(f"Note: {note}")]
    return Group(*parts)


def _together(standings: Sequence[OperatorStanding]) -> list[tuple[OperatorStanding, list[str]]]:
    """Operators, each with the names of operators downstream that have nothing else to say."""
    together: list[tuple[OperatorStanding, list[str]]] = []
    first: dict[Any, list[str]] = {}
    for standing in standings:
        says_more = standing.hold is None or standing.splits or standing.late or standing.dead_letters
        held = () if standing.hold is None else [(split.source, split.name) for split in standing.hold.splits]
        where = (standing.watermark, standing.idle, *held)
        if says_more or where not in first:
            together.append((standing, []))
        else:
            first[where].append(standing.name)
        if not says_more:
            first.setdefault(where, together[-1][1])
    return together


def _lines_of_operator(standing: OperatorStanding, asked_ms: int) -> Iterator[RenderableType]:
    windows = standing.operator["windows"]
    yield Text.assemble((standing.name, "bold cyan"), f"  {windows['text'] if windows else standing.operator['speed']}")
    facts = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    facts.add_row("  watermark", Text(_watermark(standing, asked_ms)))
    if standing.hold is not None:
        facts.add_row("  held by", Text(_held(standing, standing.hold, asked_ms)))
    if standing.idle:
        facts.add_row("  idle", Text("all of its input is idle"))
    if standing.ended:
        facts.add_row("  ended", Text(f"{standing.ended:,} split(s)"))
    if standing.late:
        facts.add_row("  too late", Text(_late(standing)))
        facts.add_row("  the last", _last(standing))
        if late_from := standing.late_from:
            facts.add_row("  from", Text(_from(late_from)))
    if standing.dead_letters:
        letters = ", ".join(f"{number:,} of {name!r}" for name, number in standing.dead_letters.items())
        facts.add_row("  dead letters", Text(letters))
    yield facts
    if standing.late:
        yield Padding(histogram(standing.late), (0, 0, 0, 4), expand=False)
    if standing.splits:
        yield Padding(_splits(standing.splits, asked_ms), (0, 0, 0, 4), expand=False)


def _watermark(standing: OperatorStanding, asked_ms: int) -> str:
    said = in_utc(standing.watermark)
    if standing.watermark == MAX_MS:
        return f"{said}: all of the input has ended"
    if standing.watermark == MIN_MS:
        return f"{said}: none has come yet"
    if standing.newest is not None:
        said += f", {length(standing.newest - standing.watermark)} behind the newest element"
    clock = asked_ms - standing.watermark
    return f"{said}, {length(abs(clock))} {'behind' if clock >= 0 else 'ahead of'} the clock"


def _held(standing: OperatorStanding, hold: Hold, asked_ms: int) -> str:
    parts = [f"{shortened(repr(split.name) for split in hold.splits)} of {hold.splits[0].source!r}"]
    if hold.through:
        parts.append(f"through {', '.join(map(repr, hold.through))}")
    if hold.since is not None:
        parts.append(f"since {in_utc(hold.since)} ({length(asked_ms - hold.since)})")
    if hold.without is not None and hold.without > standing.watermark:
        gain = "" if standing.watermark == MIN_MS else f", {length(hold.without - standing.watermark)} further"
        parts.append(f"without {'it' if len(hold.splits) == 1 else 'them'}: {in_utc(hold.without)}{gain}")
    return "; ".join(parts)


def _late(standing: OperatorStanding) -> str:
    behind = standing.late.behind
    share = f" of {standing.rows:,}" if standing.rows >= behind.total else ""
    half, most = behind.within(0.5), behind.within(0.01)
    since = ", from the end of their windows," if standing.late.from_panes else ""
    said = (
        f"{behind.total:,}{share} elements; behind the watermark{since} by {length(half)} (half), {length(most)} (99%)"
    )
    return f"{said}, {length(behind.longest_ms)} (all)"


def _last(standing: OperatorStanding) -> Text:
    """The late elements that came last, the newest first."""
    return Text("\n".join(_late_one(standing, one) for one in list(standing.late.last)[: -_LAST - 1 : -1]))


def _late_one(standing: OperatorStanding, one: LateElement) -> str:
    count = f"{one.elements:,} elements of up to" if one.elements > 1 else "one of"
    holder = standing.holder_at(one.watermark)
    by = "" if holder is None else f", where {holder!r} held it"
    return f"{count} {in_utc(one.timestamp)}, when the watermark was {in_utc(one.watermark)}{by}"


def _from(late: Sequence[LateFrom]) -> str:
    """Which splits the late elements came from, and how far behind the watermark these had some."""
    said = [
        f"{'splits that ended' if one.split is None else repr(one.split)}: {'' if one.is_exact else 'about '}"
        f"{one.elements:,}, by up to {length(one.worst)}"
        for one in late[:_FROM]
    ]
    more = [f"{sum(one.elements for one in late[_FROM:]):,} from {len(late) - _FROM:,} more"] if late[_FROM:] else []
    return "; ".join([*said, *more])


def histogram(late: Lateness) -> RenderableType:
    """How late elements were, in bars."""
    steps = late.behind.steps()
    per_bar = -(-len(steps) // _BARS)
    bars: dict[str, int] = {}
    for i in range(0, len(steps), per_bar):
        bar = steps[i : i + per_bar]
        until = length(min(bar[-1][0], late.behind.longest_ms))  # of two that are told alike, one is made
        bars[until] = bars.get(until, 0) + sum(count for _, count in bar)
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1, 0, 0))
    for until, count in bars.items():
        filled = max(round(_WIDTH * count / max(bars.values())), 1)
        table.add_row(Text(f"up to {until}"), Text("█" * filled, "yellow"), f"{count:,}")
    return table


def _splits(splits: Sequence[SplitStanding], asked_ms: int) -> RenderableType:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for title in ("split", "watermark, UTC", "newest element", "last heard", "elements", "disorder: half, 99%, most"):
        table.add_column(title, no_wrap=True)
    for split in splits[:_SPLITS]:
        record = split.record
        heard = "never" if split.heard is None else f"{length(asked_ms - split.heard)} ago"
        heard += " (idle)" if split.status is Status.IDLE else ""
        behind = "" if record is None or not record.rows else length(record.behind.longest_ms)
        if record is not None and record.behind.total:
            behind = ", ".join([*(length(record.behind.within(share)) for share in (0.5, 0.01)), behind])
        newest = "" if split.newest is None else _cell(split.newest)
        table.add_row(
            Text(split.name), _cell(split.watermark), newest, heard, f"{record.rows:,}" if record else "", behind
        )
    if len(splits) > _SPLITS:
        table.add_row(f"… {len(splits) - _SPLITS:,} more")
    return table


def _lines_of_key(answer: KeyAnswer) -> Iterator[Text]:
    name = answer.standing.name
    if not answer.windows and not answer.kept:
        gone = ": its windows have fired and are gone, or nothing came" if answer.standing.operator["windows"] else ""
        yield Text(f"key {answer.key!r} has nothing in {name!r}{gone}")
    for one in answer.windows[:_SPLITS]:
        count = "" if one.elements is None else f", with {one.elements:,} elements so far"
        kept = f"; it keeps {one.kept}" if one.kept else ""
        yield Text(
            f"key {answer.key!r} is in the window {in_utc(one.window.start)} to {in_utc(one.window.end)} of "
            f"{name!r}{count}, which {_phase(one.window)}{kept}"
        )
    for what, text in answer.kept[:_SPLITS]:
        yield Text(f"key {answer.key!r} has in {name!r}: {what}: {text}")
    more = sum(max(len(found) - _SPLITS, 0) for found in (answer.windows, answer.kept))
    if more:
        yield Text(f"… and {more:,} more")


def _phase(window: WindowStanding) -> str:
    if window.phase is Phase.OPEN:
        return f"{window.phase}: it fires when the watermark reaches {in_utc(window.fires_at)}{_waits(window)}"
    return f"{window.phase} until the watermark reaches {in_utc(window.gone_at)}"


def _cell(ms: int) -> str:
    return in_utc(ms).removesuffix(" UTC")


def _line_of_window(standing: OperatorStanding, window: WindowStanding) -> Text:
    said = f"window {in_utc(window.start)} to {in_utc(window.end)} of {standing.name!r} {window.phase}"
    holds = "" if window.held is None else f"; it holds {window.held:,}"
    if window.phase is Phase.GONE:
        return Text(f"{said} since the watermark reached {in_utc(window.gone_at)}")
    if window.phase is Phase.FIRED:
        return Text(f"{said} until the watermark reaches {in_utc(window.gone_at)}{holds}")
    return Text(f"{said}: it fires when the watermark reaches {in_utc(window.fires_at)}{_waits(window)}{holds}")


def _waits(window: WindowStanding) -> str:
    """The splits that a window waits for."""
    waits = shortened(f"{split.name!r} (at {in_utc(split.watermark)})" for split in window.waits_for)
    return f", for which it waits for {waits}" if waits else ""
