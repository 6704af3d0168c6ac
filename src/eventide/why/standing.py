"""The watermarks of operators and their windows, the splits that hold them, and when a window fires."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np

from eventide.common.calendar import Calendar
from eventide.common.ms import MAX_MS, MIN_MS, add_ms
from eventide.common.windows import TimeWindow
from eventide.runtime.columnar.panes import CalendarPanes, CumulatingPanes, Panes, RegularPanes, windows_in_row
from eventide.runtime.eventtime.valve import Holder
from eventide.runtime.observation.event_time_log import Lateness, SplitRecord
from eventide.runtime.window.operation import COLUMNS
from eventide.why.evidence import Evidence, Json, ValveState


class Status(StrEnum):
    """State of a split."""

    SPEAKS = "counts"
    NEVER = "has never had an element"
    IDLE = "is idle"


@dataclass(frozen=True, slots=True)
class SplitStanding:
    """A split as an operator knows it; all times are in milliseconds, ``heard`` and ``since`` by the clock."""

    source: str
    name: str
    watermark: int
    status: Status
    record: SplitRecord | None

    @property
    def newest(self) -> int | None:
        """The highest timestamp that it had; None if it had none, or that is not known."""
        return None if self.record is None or self.record.newest == MIN_MS else self.record.newest

    @property
    def heard(self) -> int | None:
        """When it last had elements; None if it never had, or that is not known."""
        return None if self.record is None else self.record.heard


@dataclass(frozen=True, slots=True)
class Hold:
    """Holder of a watermark.

    Attributes:
        splits: the splits with the lowest watermark, all of one source.
        through: the operators between them and the one that is held, nearest to the splits first.
        since: when, by the clock, the first of them became the one that holds; None if that is not known.
        without: where the watermark would be without them; None if there is no other split.
    """

    splits: tuple[SplitStanding, ...]
    through: tuple[str, ...]
    since: int | None
    without: int | None = None


@dataclass(frozen=True, slots=True)
class LateFrom:
    """Late elements of an operator that came from one split.

    Attributes:
        split: its name; None for all that have ended.
        elements: how many.
        is_exact: whether they were counted; else it is the split's share, by its elements that were late in time.
        worst: how far one was behind the watermark, in milliseconds.
    """

    split: str | None
    elements: int
    is_exact: bool
    worst: int


@dataclass(frozen=True, slots=True)
class OperatorStanding:
    """An operator.

    Attributes:
        operator: as it is described.
        watermark: in milliseconds.
        idle: whether all of its input is idle.
        newest: the newest element that any of its splits had, in milliseconds; None if there was none.
        heard: when, by the clock, an element last came; None if none did.
        splits: those that it hears itself, slowest first.
        ended: how many splits have ended.
        hold: the splits that hold it; None if none does.
        late: the elements that came too late.
        rows: how many elements its splits had, those that ended too.
        gone: the memory of the splits that ended, by edge.
        moves: the last places of the watermark: the time by the clock, the watermark, and its holder there.
        dead_letters: how many it and the operators chained to it have emitted, by name.
    """

    operator: Json
    watermark: int
    idle: bool
    newest: int | None
    heard: int | None
    splits: tuple[SplitStanding, ...]
    ended: int
    hold: Hold | None
    late: Lateness
    rows: int
    gone: tuple[SplitRecord, ...] = ()
    moves: tuple[tuple[int, int, Holder], ...] = ()
    dead_letters: Mapping[str, int] = field(default_factory=dict)

    def holder_at(self, watermark: int) -> str | None:
        """The split, or the subtask before, that held the watermark at a place; None if that is forgotten."""
        return next((holder.channel for _, at, holder in reversed(self.moves) if at == watermark), None)

    @property
    def late_from(self) -> list[LateFrom]:
        """Which splits the late elements came from, those with most first; none after other operators."""
        records = [(split.name, split.record) for split in self.splits if split.record is not None]
        known = [*records, *((None, record) for record in self.gone)]
        found, total = sum(record.late for _, record in known), self.late.behind.total
        if not found:
            return []
        late = [
            LateFrom(name, max(round(record.late * total / found), 1), found == total, record.worst)
            for name, record in known
            if record.late
        ]
        return sorted(late, key=lambda one: -one.elements)

    @property
    def name(self) -> str:
        """The name of the operator."""
        return str(self.operator["name"])


def standings(evidence: Evidence) -> list[OperatorStanding]:
    """The standing of each operator, stage by stage."""
    return [_standing(evidence, operator) for operator in evidence.operators]


def source_name(evidence: Evidence, edge: Json) -> str:
    """The name of the source of an edge; of all of them, where a generator works on the splits of several."""
    return " and ".join(source["name"] for source in evidence.sources_behind(edge))


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
        held: how many keys, or elements, its state has; None if that lies together with other windows.
        waits_for: the splits whose watermark is below ``fires_at``, slowest first; empty once the window has fired.
    """

    start: int
    end: int
    phase: Phase
    fires_at: int
    gone_at: int
    held: int | None
    waits_for: tuple[SplitStanding, ...]


def windows_at(evidence: Evidence, standing: OperatorStanding, time_ms: int) -> list[WindowStanding]:
    """The windows of an operator that an element of a time belongs to; none where its windows are not fixed."""
    panes = panes_of(standing)
    if panes is None:
        return []
    pane = panes.number_of(int(panes.start_of(np.array([time_ms]))[0]))
    rows = evidence.rows(standing.operator)
    return [standing_of(standing, panes.window(n), _held(standing, panes, n, rows)) for n in panes.windows_at(pane)]


def panes_of(standing: OperatorStanding) -> Panes | None:
    """How time falls into the windows of an operator; None if they are not fixed, or do not follow event time."""
    windows = standing.operator["windows"]
    if windows is None or not windows["follows_event_time"]:
        return None
    match windows:
        case {"calendar": calendar}:
            return CalendarPanes(Calendar(**calendar))
        case {"size_ms": size_ms, "step_ms": step_ms, "offset_ms": offset_ms}:
            return CumulatingPanes(size_ms, step_ms, offset_ms)
        case {"size_ms": size_ms}:
            return RegularPanes(size_ms, windows.get("slide_ms", size_ms), windows.get("offset_ms", 0))
    return None


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


def _standing(evidence: Evidence, operator: Json) -> OperatorStanding:
    valve, log = evidence.valve(operator), evidence.log(operator)
    splits = sorted(_splits(evidence, operator), key=lambda split: (split.watermark, split.source, split.name))
    behind = [*splits, *_splits_before(evidence, valve)]
    gone = list(log.ended.values())
    newest = [split.newest for split in behind if split.newest is not None]
    newest += [record.newest for record in gone if record.newest != MIN_MS]
    heard = [ms for ms in (*(split.heard for split in behind), *(record.heard for record in gone)) if ms is not None]
    passed = sum(log.ended_count.values())
    return OperatorStanding(
        operator,
        valve.watermark,
        valve.idle,
        max(newest, default=None),
        max(heard, default=None),
        tuple(splits),
        max(passed, sum(valve.ended(edge) for edge in valve.splits)),
        _hold(evidence, operator, valve),
        evidence.lateness(operator),
        sum(split.record.rows for split in splits if split.record is not None) + sum(record.rows for record in gone),
        tuple(gone),
        tuple(log.moves),
        evidence.dead_letters(operator),
    )


def _splits(evidence: Evidence, operator: Json) -> Iterator[SplitStanding]:
    valve, records = evidence.valve(operator), evidence.log(operator).splits
    for edge, combiner in valve.splits.items():
        source = source_name(evidence, valve.edges[edge])
        idle = combiner.idle_members()
        for name, watermark in combiner.watermarks().items():
            record = records.get((edge, name))
            status = Status.IDLE if name in idle else Status.SPEAKS
            if status is Status.SPEAKS and watermark == MIN_MS and record is not None and record.heard is None:
                status = Status.NEVER
            yield SplitStanding(source, name, watermark, status, record)


def _splits_before(evidence: Evidence, valve: ValveState) -> Iterator[SplitStanding]:
    """The splits that operators before this one hear."""
    for before in filter(None, map(evidence.operator_before, valve.edges.values())):
        yield from _splits(evidence, before)
        yield from _splits_before(evidence, evidence.valve(before))


def _hold(evidence: Evidence, operator: Json, valve: ValveState) -> Hold | None:
    if valve.idle or valve.watermark == MAX_MS:
        return None
    for number in valve.inputs.holding():
        for channel in valve.channels[number].holding():
            edge, subtask = valve.edge_of(channel)
            held = _hold_before(evidence, edge) if subtask else _hold_of_splits(evidence, operator, valve, edge)
            if held is not None:
                left_out = {(split.source, split.name) for split in held.splits}
                return replace(held, without=_without(evidence, operator, left_out))
    return None


def _hold_of_splits(evidence: Evidence, operator: Json, valve: ValveState, edge: Json) -> Hold | None:
    names = valve.splits[edge["name"]].holding()
    source = source_name(evidence, edge)
    splits = tuple(one for one in _splits(evidence, operator) if one.name in names and one.source == source)
    if not splits:
        return None
    noted = evidence.log(operator).holder
    since = noted[1] if noted is not None and noted[0][:2] == (edge["name"], names[0]) else None
    return Hold(splits, (), since)


def _hold_before(evidence: Evidence, edge: Json) -> Hold | None:
    before = evidence.operator_before(edge)
    held = None if before is None else _hold(evidence, before, evidence.valve(before))
    return None if held is None else replace(held, through=(*held.through, edge["from"]))


def _without(evidence: Evidence, operator: Json, left_out: set[tuple[str, str]]) -> int | None:
    """Where an operator's watermark would be without some splits, by source and name; None if no split is left."""
    valve = evidence.valve(operator)
    inputs = []
    for channels in valve.channels.values():
        found: dict[str, int | None] = {}
        idle = channels.idle_members()
        for channel, watermark in channels.watermarks().items():
            edge, subtask = valve.edge_of(channel)
            if channel in idle or edge["name"] in found:  # subtasks of an operator all hear the same
                continue
            before = evidence.operator_before(edge)
            if not subtask:
                found[channel] = _lowest_split(evidence, valve, edge, left_out)
            elif before is not None and edge["strategy"] is None:
                found[edge["name"]] = _without(evidence, before, left_out)
            else:
                found[channel] = watermark
        there = [ms for ms in found.values() if ms is not None]
        if there:
            inputs.append(min(there))
    return max(min(inputs), valve.watermark) if inputs else None


def _lowest_split(evidence: Evidence, valve: ValveState, edge: Json, left_out: set[tuple[str, str]]) -> int | None:
    combiner = valve.splits[edge["name"]]
    source = source_name(evidence, edge)
    idle = combiner.idle_members()
    watermarks = combiner.watermarks().items()
    return min((ms for name, ms in watermarks if name not in idle and (source, name) not in left_out), default=None)


def _held(standing: OperatorStanding, panes: Panes, number: int, rows: Mapping[int, int]) -> int | None:
    if is_on_columns(standing):
        return sum(rows.get(pane, 0) for pane in panes.panes_in(number))
    return rows.get(number, 0) if windows_in_row(panes) == 1 else None
