"""The answer for a person: a few lines, a table of splits, a histogram of what came too late."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from eventide.common.ms import MAX_MS, MIN_MS
from eventide.common.words import in_utc, length, shortened
from eventide.runtime.observation.event_time_log import LateElement, Lateness
from eventide.why.advice import Finding
from eventide.why.keys import KeyAnswer
from eventide.why.standing import Hold, LateFrom, OperatorStanding, Phase, SplitStanding, Status, WindowStanding

_SPLITS = 12
_FROM = 5
_LAST = 3
_BARS = 8
_WIDTH = 30


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
        parts += [Text(), _window(standing, window)]
    for asked in keys:
        parts += [Text(), *_key(asked)]
    for standing, alike in _together(standings):
        parts += [Text(), *_operator(standing, asked_ms)]
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


def _operator(standing: OperatorStanding, asked_ms: int) -> Iterator[RenderableType]:
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


def _key(answer: KeyAnswer) -> Iterator[Text]:
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


def _window(standing: OperatorStanding, window: WindowStanding) -> Text:
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
