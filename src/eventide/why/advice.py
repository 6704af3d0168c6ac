"""Findings: certain faults of a job, and what to do about them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median_high, median_low

from eventide.common.ms import MAX_MS, MIN_MS
from eventide.common.words import PER_S, UNIT_NAMES, in_utc, length, other_unit_of, shortened
from eventide.runtime.observation.histograms import BLOCK
from eventide.why.evidence import Evidence, Json
from eventide.why.standing import OperatorStanding, SplitStanding, Status, panes_of, source_name

_LONG_MS = 60_000
"""Silence that is not a pause, where others speak."""

_FAR_MS = 3_600_000
_ZONE_STEP_MS = 900_000
_ZONE_SLACK_MS = 180_000
_LARGEST_ZONE_MS = 14 * 3_600_000
_ENOUGH = 1_000
"""Elements from which on the disorder that was seen says something about what is to come."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong for certain.

    Attributes:
        kind: the kind of fault, for programs.
        cause: one sentence.
        remedy: what to do.
        operator: the owner of the watermark or windows it is about.
    """

    kind: str
    cause: str
    remedy: str
    operator: str


def advice_on(evidence: Evidence, standing: OperatorStanding) -> list[Finding]:
    """Give the advice on one operator, what matters most first."""
    rules = (_unit, _generator, _without_strategy, _silent, _behind, _late, _zone, _ahead, _nothing_new, _wide)
    return [one for rule in rules for one in rule(evidence, standing)]


def notes_on(evidence: Evidence) -> list[str]:
    """Give notes: facts that are no faults, and good to know."""
    parallelism = evidence.description["parallelism"]
    few = [one for one in evidence.description["sources"] if 0 < len(one["splits"]) < parallelism]
    return [
        f"{one['name']!r} has {len(one['splits'])} split(s), so no more than that of {parallelism} subtasks read it; "
        "operators after a key_by run in all"
        for one in few
    ]


def _unit(evidence: Evidence, standing: OperatorStanding) -> Iterator[Finding]:
    """Timestamps in seconds, or in parts of a millisecond."""
    for source, splits in _by_source(standing):
        newest = max((split.newest for split in splits if split.newest is not None), default=None)
        if newest is None:
            continue
        unit = other_unit_of(newest)
        if unit is not None:
            change = "multiply them by 1000" if unit == "s" else f"divide them by {PER_S[unit] // PER_S['ms']}"
            yield Finding(
                "unit",
                f"the timestamps of {source!r} look like {UNIT_NAMES[unit]}: taken for milliseconds, its newest "
                f"element is of {in_utc(newest)}",
                f"timestamps are milliseconds since the epoch; {change} in the timestamp assigner. Taken for "
                f"{UNIT_NAMES[unit]}, the newest is of {in_utc(newest * PER_S['ms'] // PER_S[unit])}",
                standing.name,
            )


def _generator(evidence: Evidence, standing: OperatorStanding) -> Iterator[Finding]:
    """A user-defined generator that has seen elements and never given a watermark."""
    for source, splits in _by_source(standing):
        if (_strategy(evidence, standing, source) or {}).get("generator") != "own":
            continue
        mute = [split for split in splits if split.watermark == MIN_MS and split.heard is not None]
        if mute:
            yield Finding(
                "generator",
                f"the watermark generator of {_named(mute)} of {source!r} has never emitted a watermark, though there "
                "were elements",
                "see that on_event or on_periodic_emit calls output.emit_watermark(Watermark(...)) with milliseconds",
                standing.name,
            )


def _without_strategy(evidence: Evidence, standing: OperatorStanding) -> Iterator[Finding]:
    """Windows of event time after a source without watermarks."""
    windows = standing.operator["windows"]
    if windows is None or not windows["follows_event_time"] or standing.watermark == MAX_MS:
        return
    for source, _ in _by_source(standing):
        if (_strategy(evidence, standing, source) or {}).get("generator") == "none":
            bounded = all(s["is_bounded"] for s in evidence.description["sources"] if s["name"] == source)
            then = "the windows wait for the end of the input" if bounded else "no window will ever fire"
            yield Finding(
                "no watermarks",
                f"{source!r} gives no watermarks (WatermarkStrategy.no_watermarks()), so {then}",
                "give it WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(...))",
                standing.name,
            )


def _silent(evidence: Evidence, standing: OperatorStanding) -> Iterator[Finding]:
    """Splits that hold the watermark and say nothing, while others speak."""
    hold = standing.hold
    if hold is None or standing.heard is None:
        return
    silent = [split for split in hold.splits if _is_silent(split, standing.heard)]
    if not silent:
        return
    first = silent[0]
    since = (
        "has never had an element"
        if first.heard is None
        else f"has had no element since {in_utc(first.heard)}, {length(standing.heard - first.heard)} before the others"
    )
    many = _named(silent) + (
        f" of {first.source!r}, each of which {since}" if len(silent) > 1 else f" of {first.source!r}, which {since}"
    )
    through = f" through {', '.join(map(repr, hold.through))}" if hold.through else ""
    gain = _gain(standing, "them" if len(silent) > 1 else "it")
    yield Finding(
        "silent split",
        f"{standing.name!r} waits{through} for {many}{gain}",
        "if it may be silent for longer, add .with_idleness(Duration.of_minutes(...)) to the strategy: after that "
        "time it is left out. If not, see why nothing comes: a producer that is down, or keys that never go there",
        standing.name,
    )


def _gain(standing: OperatorStanding, whom: str) -> str:
    """Where the watermark would be without the splits that hold it."""
    hold = standing.hold
    if hold is None or hold.without is None or hold.without == standing.watermark:
        return ""
    return f"; without {whom} the watermark would be {in_utc(hold.without)}"


def _is_silent(split: SplitStanding, heard_others: int) -> bool:
    if split.status is Status.IDLE or split.record is None:
        return False
    if split.heard is None:
        return heard_others >= split.record.since
    return heard_others - split.heard >= _LONG_MS


def _behind(evidence: Evidence, standing: OperatorStanding) -> Iterator[Finding]:
    """A split that speaks, and for which the windows of all others stay open for hours."""
    for source, splits in _by_source(standing):
        known = _by_newest(splits)
        if len(known) < 2 or standing.hold is None or _aligned(evidence, source):
            continue
        slow, others = known[0], known[1:]
        if (source, slow.name) not in {(split.source, split.name) for split in standing.hold.splits}:
            continue
        if _is_silent(slow, standing.heard or 0) or (len(others) == 1 and _is_ahead_of_the_clock(others[0])):
            continue
        behind = median_low(map(_newest, others)) - _newest(slow)
        if behind >= _FAR_MS:
            gain = _gain(standing, "it")
            yield Finding(
                "split behind",
                f"{standing.name!r} waits for {slow.name!r} of {source!r}, which is {length(behind)} behind the other "
                f"splits{gain}",
                "see why it is slow. Meanwhile, the elements of the others wait in state; "
                ".with_watermark_alignment(group, Duration.of_minutes(...)) lets it wait in the source. Results that "
                "need not wait belong on a stream without that split",
                standing.name,
            )


def _late(evidence: Evidence, standing: OperatorStanding) -> Iterator[Finding]:
    """Late elements of splits of which it is known how far they are out of order."""
    count = standing.late.behind.total
    if not count:
        return
    share = f" of {standing.rows:,} ({count / standing.rows:.2%})" if standing.rows >= count else ""
    since = ", from the end of their windows" if standing.late.from_panes else ""
    cause = (
        f"{count:,}{share} elements came too late for {standing.name!r}, up to "
        f"{length(standing.late.behind.longest_ms)} behind its watermark{since}"
    )
    for source, splits in _by_source(standing):
        strategy = _strategy(evidence, standing, source) or {}
        bound, largest = strategy.get("bound_ms"), _largest(splits)
        if bound is not None and largest > bound:
            worst = max(splits, key=lambda split: 0 if split.record is None else split.record.behind.longest_ms)
            is_exact = worst.record is None or worst.record.rows <= BLOCK
            enough = _whole_seconds(largest if is_exact else largest + largest // 8)  # and some room
            yield Finding(
                "late elements",
                f"{cause}: the bound of {source!r} is {length(bound)}, and {worst.name!r} has had elements "
                f"{length(largest)} out of order",
                f"a bound of Duration.of_seconds({enough}) would have lost none of them; allowed_lateness(...) takes "
                "them in later without delaying the first result; a side output for late data keeps them",
                standing.name,
            )
            return
    yield Finding(
        "late elements",
        cause,
        "none of the splits that are there now is further out of order than its bound, so they came from a split that "
        "was idle, new or has ended: see its idleness, or keep late elements with side_output_late_data(...)",
        standing.name,
    )


def _zone(evidence: Evidence, standing: OperatorStanding) -> Iterator[Finding]:
    """Elements of the future, by about as much as a zone of time."""
    for split in standing.splits:
        if split.newest is None or split.heard is None:
            continue
        ahead = split.newest - split.heard
        steps = round(ahead / _ZONE_STEP_MS)
        is_zone = steps > 0 and abs(ahead - steps * _ZONE_STEP_MS) <= _ZONE_SLACK_MS and ahead <= _LARGEST_ZONE_MS
        if is_zone:
            away = length(steps * _ZONE_STEP_MS)
            yield Finding(
                "time zone",
                f"the newest element of {split.name!r} of {split.source!r} is about {away} ahead of the clock: its "
                "timestamps look like local time taken for UTC",
                "attach the zone before they become milliseconds, such as datetime(..., tzinfo=ZoneInfo(...))",
                standing.name,
            )
            return


def _ahead(evidence: Evidence, standing: OperatorStanding) -> Iterator[Finding]:
    """A split hours ahead of the others, whose elements wait in state."""
    for source, splits in _by_source(standing):
        known = _by_newest(splits)
        if len(known) < 2 or _aligned(evidence, source):
            continue
        first, others = known[-1], known[:-1]
        ahead = _newest(first) - median_high(map(_newest, others))
        if len(others) == 1 and not _is_ahead_of_the_clock(first):
            continue  # it is the other one that lags
        if ahead >= _FAR_MS:
            yield Finding(
                "split ahead",
                f"{first.name!r} of {source!r} is {length(ahead)} ahead of the other splits: its elements wait in "
                f"{standing.name!r} until they come there",
                "add .with_watermark_alignment(group, Duration.of_minutes(...)) to the strategy, so that it waits in "
                "the source; or see whether its clock, or its zone, is wrong",
                standing.name,
            )


def _nothing_new(evidence: Evidence, standing: OperatorStanding) -> Iterator[Finding]:
    """No split says anything, so the last windows stay open."""
    if standing.heard is None or standing.watermark == MAX_MS or standing.newest is None:
        return
    silent = evidence.asked_ms - standing.heard
    if silent >= _LONG_MS and standing.newest > standing.watermark > MIN_MS:
        open_until = _first_open(standing)
        waits = "" if open_until is None else f"; the next window fires when the watermark reaches {in_utc(open_until)}"
        yield Finding(
            "nothing new",
            f"no split of {_sources(standing)} has had an element since {in_utc(standing.heard)} ({length(silent)} "
            f"ago), and only newer elements move the watermark of {standing.name!r} on from "
            f"{in_utc(standing.watermark)}{waits}",
            "windows that must close without new data need a watermark by the clock (TimeLagWatermarks), a source that "
            "sends heartbeats, or processing time",
            standing.name,
        )


def _wide(evidence: Evidence, standing: OperatorStanding) -> Iterator[Finding]:
    """A bound far larger than the disorder that was seen."""
    for source, splits in _by_source(standing):
        bound = (_strategy(evidence, standing, source) or {}).get("bound_ms")
        rows = sum(split.record.rows for split in splits if split.record is not None)
        largest = _largest(splits)
        if bound and rows >= _ENOUGH and bound >= 60_000 and bound > 10 * max(largest, 1):
            yield Finding(
                "wide bound",
                f"the bound of {source!r} is {length(bound)}, and none of {rows:,} elements was more than "
                f"{length(largest)} out of order: results come that much later than they could",
                f"a bound of Duration.of_seconds({_whole_seconds(2 * largest)}) has room for twice that",
                standing.name,
            )


def _by_newest(splits: list[SplitStanding]) -> list[SplitStanding]:
    """The splits that have had elements, the slowest first."""
    return sorted((split for split in splits if split.newest is not None), key=_newest)


def _newest(split: SplitStanding) -> int:
    return split.newest or 0


def _is_ahead_of_the_clock(split: SplitStanding) -> bool:
    return split.heard is not None and _newest(split) > split.heard


def _by_source(standing: OperatorStanding) -> list[tuple[str, list[SplitStanding]]]:
    names = dict.fromkeys(split.source for split in standing.splits)
    return [(name, [split for split in standing.splits if split.source == name]) for name in names]


def _strategy(evidence: Evidence, standing: OperatorStanding, source: str) -> Json | None:
    """The last strategy on the way from a source to an operator."""
    for edge in evidence.description["edges"]:
        if edge["to"] == standing.name and source_name(evidence, edge) == source:
            strategy: Json | None = edge["strategy"]
            return strategy
    return None


def _aligned(evidence: Evidence, source: str) -> bool:
    return any(one["alignment"] is not None for one in evidence.description["sources"] if one["name"] == source)


def _first_open(standing: OperatorStanding) -> int | None:
    """The watermark with which the next window fires; None if windows are not fixed."""
    panes = panes_of(standing)
    if panes is None or standing.watermark == MIN_MS:
        return None
    return panes.window(panes.last_fired(standing.watermark) + 1).max_timestamp()


def _largest(splits: list[SplitStanding]) -> int:
    return max((split.record.behind.longest_ms for split in splits if split.record is not None), default=0)


def _whole_seconds(ms: int) -> int:
    return max(math.ceil(ms / 1_000), 1)


def _named(splits: list[SplitStanding]) -> str:
    return f"split{'s' if len(splits) > 1 else ''} {shortened(repr(split.name) for split in splits)}"


def _sources(standing: OperatorStanding) -> str:
    """The sources that an operator hears itself, or the one upstream that holds it."""
    own = [repr(name) for name, _ in _by_source(standing)]
    held_by = [] if standing.hold is None else [repr(standing.hold.splits[0].source)]
    return " and ".join(own or held_by) or "its sources"
