"""The task that sees how far the splits of all sources that wait for each other have come."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from eventide.common.ms import MIN_MS
from eventide.runtime.eventtime.valve import Idleness, WatermarkValve
from eventide.runtime.exchange.frames import (
    ALIGNMENT,
    END_OF_BATCH,
    END_OF_INPUT,
    Frame,
    Inbox,
    Signal,
    WatermarkReport,
)
from eventide.runtime.exchange.rest import Rest
from eventide.runtime.metrics import ALIGNMENT_DRIFT, HELD_BY, SPLITS_HELD
from eventide.runtime.sources.alignment import Facts, lowest
from eventide.runtime.state.backend import Backend
from eventide.runtime.state.journal import Journal
from eventide.runtime.tasks.task import Task, TaskSpec

_GATE = "gate"
_KNOWN = "alignment"
_WHOLE = ""


@dataclass(frozen=True, slots=True)
class AlignedSource:
    """A source as it appears on an edge to the task, where the names of its splits begin with ``prefix``.

    Where ``splits_pass``, splits come and go, as files do: a new one stands where the source as a whole does.
    """

    source: str
    prefix: str = ""
    splits_pass: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignmentTaskSpec(TaskSpec):
    """The one task of a job with watermark alignment; it hears watermarks, and no elements.

    ``sources`` are those that each edge brings, by its number, ``groups`` the names of the sources that wait for each
    other, ``storage`` where a host keeps what it says.
    """

    sources: Mapping[int, tuple[AlignedSource, ...]]
    groups: Mapping[str, tuple[str, ...]]
    storage: str | None = None

    @property
    def needs_clock(self) -> bool:
        """Whether a split may become idle by the clock."""
        return any(edge.idle_after_ms is not None for edge in self.edges)

    def task(self, subtask: int, backend: Backend, clock_ms: int, run: str | None = None) -> AlignmentTask:
        return AlignmentTask(self, backend, clock_ms, run)

    def user_functions(self) -> list[Any]:
        return []

    def describe(self) -> list[tuple[str, str]]:
        return [("waiting", f"in {group!r}: {', '.join(names)}") for group, names in self.groups.items()]


class AlignmentTask(Task):
    """Combines what the splits of each source say, as operators do, and tells the host where all of them stand.

    It works in the same micro-batches as the elements, and its state lies with that of operators: so what it says is
    never older than the last micro-batch, comes back with the checkpoint, and is the same if a micro-batch is repeated.
    """

    def __init__(self, spec: AlignmentTaskSpec, backend: Backend, clock_ms: int, run: str | None = None) -> None:
        self._spec = spec
        self._backend = backend
        self._clock_ms = clock_ms
        self._valve = WatermarkValve(spec.edges, in_batch=spec.in_batch)
        # A source whose splits pass is silent also when it has none.
        self._passing = {
            edge.name: Idleness(edge.idle_after_ms)
            for edge in spec.edges
            if edge.idle_after_ms is not None and any(s.splits_pass for s in spec.sources.get(edge.edge, ()))
        }
        self._gate = Journal(backend, _GATE)
        if self._gate.content is not None:
            self._valve.restore(self._gate.content)
        known = json.loads(backend.get(_KNOWN) or b"{}")
        self._number: int = known.get("number", 0)
        self._rests: dict[str, dict[str, str]] = known.get("rests", {})
        self._ended = set(known.get("ended", ()))
        self._over = set(known.get("over", ()))
        for name, idleness in self._passing.items():
            if name in known.get("passing", {}):
                idleness.restore(known["passing"][name])
        if self._valve.begin_run(run):
            for idleness in self._passing.values():
                idleness.begin_anew()
        self.passed: list[int] = []

    @property
    def next_clock_ms(self) -> int | None:
        times = [self._valve.next_clock_ms, *(idleness.next_deadline_ms for idleness in self._passing.values())]
        return min((ms for ms in times if ms is not None), default=None)

    def run(self, frames: Iterable[Frame]) -> Iterator[Frame]:
        """Hear what splits report, and say where all of them stand; there are no elements."""
        inbox = Inbox(frames, {})
        for point in inbox.points():
            reports = inbox.reports(point)
            self._take_note(reports)
            if point == END_OF_INPUT:
                self._valve.end_input(reports, inbox.ended_sources)
            elif point == END_OF_BATCH:
                self._valve.end_batch(reports, self._clock_ms, inbox.ended_sources)
            else:
                self._valve.advance(reports)
        for idleness in self._passing.values():
            idleness.end_batch([_WHOLE], self._clock_ms)
        self._ended.update(self._name(edge) for edge in inbox.ended_sources)
        self._number += 1
        self._store()
        if not self._spec.in_batch:
            content = {"number": self._number, "sources": self._facts()}
            yield Frame(ALIGNMENT, 0, Signal.METRICS, END_OF_BATCH, 0, "", content)

    def _name(self, edge: int) -> str:
        return next(one.name for one in self._spec.edges if one.edge == edge)

    def _take_note(self, reports: Iterable[tuple[int, WatermarkReport]]) -> None:
        """Remember the splits that rest; a source whose last split is done with its end is done, until one speaks."""
        for edge, report in reports:
            name = self._name(edge)
            rests = self._rests.setdefault(name, {})
            if report.ended or report.rest == Rest.NONE:
                rests.pop(report.channel, None)
            elif report.rest is not None:
                rests[report.channel] = report.rest
            if report.ended and report.rest == Rest.DONE:
                self._over.add(name)
            elif report.spoke or report.watermark is not None:
                self._over.discard(name)
            if report.spoke and name in self._passing:
                self._passing[name].hear(_WHOLE)

    def _facts(self) -> Facts:
        facts: dict[str, dict[str, Any]] = {}
        for edge in self._spec.edges:
            if edge.edge not in self._spec.sources:
                continue
            splits = self._valve.splits_of(edge.edge)
            idle, rests = splits.idle_members(), self._rests.get(edge.name, {})
            for source in self._spec.sources[edge.edge]:
                own = {
                    name.removeprefix(source.prefix): ms
                    for name, ms in splits.watermarks().items()
                    if name.startswith(source.prefix)
                }
                of = {name: source.prefix + name for name in own}
                reached = splits.watermark if source.splits_pass and splits.watermark != MIN_MS else None
                facts[source.source] = {
                    "splits": {name: ms for name, ms in own.items() if ms != MIN_MS and of[name] not in idle},
                    "idle": sorted(name for name in own if of[name] in idle),
                    "done": sorted(name for name in own if rests.get(of[name]) == Rest.DONE),
                    "held": sum(rests.get(of[name]) == Rest.HELD for name in own),
                    "reached": None if splits.idle or self._is_out(edge.name) else reached,
                    "ended": edge.name in self._ended,
                }
        return facts

    def _is_out(self, edge: str) -> bool:
        """Whether no other waits for a whole source: it has nothing more in this run, or was silent for too long."""
        return edge in self._over or (edge in self._passing and bool(self._passing[edge].silent))

    def metrics(self) -> dict[str, Any]:
        """How far each source is ahead of its group, how many of its splits wait, and for which split."""
        facts, shown = self._facts(), {}
        for names in self._spec.groups.values():
            known = [(ms, name) for name in names if (ms := lowest(facts[name])) is not None]
            low, holder = min(known, default=(None, ""))
            for name in names:
                highest = max(facts[name]["splits"].values(), default=low)
                readings = {
                    ALIGNMENT_DRIFT: 0 if highest is None or low is None else highest - low,
                    SPLITS_HELD: facts[name]["held"],
                    HELD_BY: _slowest(holder, facts) if facts[name]["held"] and holder else "",
                }
                shown[name] = {what: ["shown", [[0, value]]] for what, value in readings.items()}
        return {"operators": {}, "functions": [shown]}

    def _store(self) -> None:
        self._gate.write(self._valve.snapshot())
        known = {
            "number": self._number,
            "rests": {name: rests for name, rests in sorted(self._rests.items()) if rests},
            "ended": sorted(self._ended),
            "over": sorted(self._over),
            "passing": {name: idleness.snapshot() for name, idleness in self._passing.items()},
        }
        self._backend.put(_KNOWN, json.dumps(known).encode())


def _slowest(source: str, facts: Facts) -> str:
    """The split that holds a group, as source and split."""
    counting = {name: ms for name, ms in facts[source]["splits"].items() if name not in facts[source]["done"]}
    split = min(counting, key=lambda name: (counting[name], name), default="")
    return f"{source}/{split}" if split else source
