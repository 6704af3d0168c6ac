"""Observers of tasks: they remember what was counted, what splits brought and what held the watermark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from eventide.runtime.eventtime.valve import ValveEdge, WatermarkValve
from eventide.runtime.exchange.frames import END_OF_BATCH, Edge, Frame, Inbox, Signal
from eventide.runtime.exchange.partitioners import ReportsOnlyPartitioner
from eventide.runtime.metrics import Metrics, OperatorCounters, add_up, dead_letters_of
from eventide.runtime.observation.event_time_log import (
    EVENT_TIME,
    LATE,
    NUMBERS,
    EventTimeLog,
    Lateness,
    formed,
    in_form,
    remembered,
    stored,
)
from eventide.runtime.observation.histograms import TimestampSummary
from eventide.runtime.state.backend import Backend
from eventide.runtime.state.journal import Journal

_TIMESTAMPS, _COUNTS = "timestamps", "counts"

_MANY = 100
"""Number of splits of one task above which the usual disorder of each split is not reported."""


class SplitObserver:
    """Observer of one split in one micro-batch: it sums up timestamps, by the number of their assigner."""

    def __init__(self, split: str, assigners: Iterable[int]) -> None:
        self.split = split
        self.summaries = {assigner: TimestampSummary() for assigner in assigners}

    def see(self, assigner: int, timestamps: object) -> None:
        """Take timestamps that an assigner gave, an array of milliseconds."""
        if assigner in self.summaries:
            self.summaries[assigner].see(timestamps)


class ReaderObserver:
    """Observer of a task that reads splits, in one micro-batch: the task has no state, so operators remember for it.

    It sees the elements that leave the task. Where they go past the tasks of their generator, those leave no element.
    """

    def __init__(self, edges: Sequence[Edge]) -> None:
        self._edges = [edge for edge in edges if edge.has_watermarks and edge.takes_elements]
        leaving = [edge for edge in self._edges if not isinstance(edge.partitioner, ReportsOnlyPartitioner)]
        self._assigners = {edge.assigner for edge in leaving if edge.assigner is not None}
        self._splits: list[SplitObserver] = []
        self._counted: list[OperatorCounters] = []

    def of_split(self, split: str) -> SplitObserver:
        """Make the observer of one of its splits."""
        self._splits.append(SplitObserver(split, self._assigners))
        return self._splits[-1]

    def hear(self, frame: Frame) -> None:
        """Take the counts of a task before this one."""
        self._counted.append(frame.content.get(_COUNTS, {}))

    def frames(self, counters: OperatorCounters) -> Iterator[Frame]:
        """Tell the first subtask after each edge what was observed; the counts go to one of them."""
        counted = add_up([dead_letters_of(counters), *self._counted])
        for edge in self._edges:
            content: dict[str, Any] = {}
            if arrived := self._arrived(edge.assigner):
                brief = len(arrived) > _MANY
                content[_TIMESTAMPS] = [[split, summary.snapshot(brief=brief)] for split, summary in arrived]
            if counted:
                content[_COUNTS], counted = counted, {}
            if content:
                yield Frame(edge.target, 0, Signal.OBSERVED, END_OF_BATCH, edge.number, "", content)

    def _arrived(self, assigner: int | None) -> list[tuple[str, TimestampSummary]]:
        if assigner is None:
            return []
        of_splits = ((split.split, split.summaries.get(assigner)) for split in self._splits)
        return [(split, summary) for split, summary in of_splits if summary is not None and summary.rows]


class OperatorObserver:
    """Observer of one subtask of an operator: it writes down, in the operator's state, what can be asked for later.

    Every subtask has its late elements and what was counted; the first one has the log of splits and of the watermark
    for all. Batch execution keeps late elements alone: no state goes on from there.

    ``metrics`` is what the subtask counts in this micro-batch, whose time by the clock is ``clock_ms``.
    """

    def __init__(
        self,
        name: str,
        edges: Iterable[ValveEdge],
        subtask: int,
        backend: Backend,
        metrics: Metrics,
        clock_ms: int,
        *,
        in_batch: bool,
    ) -> None:
        self._name = name
        self._sources = {edge.edge: edge.name for edge in edges if edge.is_source}
        self._subtask = subtask
        self._backend = backend
        self._metrics = metrics
        self._clock_ms = clock_ms
        self._in_batch = in_batch
        self._watermark_before = 0
        self._late_until = 0
        self.holds_something = True
        """Whether the operator holds anything after the micro-batch, or held something before it."""

    def begin_batch(self, watermark: int, late_until: int) -> None:
        """Take note of the operator's watermark before the first element, and of its ``late_until``."""
        self._watermark_before = watermark
        self._late_until = late_until

    def end_batch(self, inbox: Inbox, valve: WatermarkValve, held: Mapping[str, int]) -> None:
        """Write down what the micro-batch has brought, and what the operator holds after it."""
        self._keep_late()
        if not self._in_batch:
            self._keep_numbers(inbox.observed, held)
            if self._subtask == 0:
                self._keep_log(inbox, valve)

    def _keep_log(self, inbox: Inbox, valve: WatermarkValve) -> None:
        journal = Journal(self._backend, EVENT_TIME)
        before = in_form(journal.content)
        log = EventTimeLog() if before is None else EventTimeLog.of(before)
        arrived = [
            (self._sources[frame.edge], split, TimestampSummary.of(snapshot))
            for frame in inbox.observed
            for split, snapshot in frame.content.get(_TIMESTAMPS, ())
        ]
        said = ((self._sources[edge], report) for edge, report in inbox.all_reports() if edge in self._sources)
        spoke = [(name, report.channel) for name, report in said if report.spoke]
        known = valve.known_splits()
        log.end_batch(known, spoke, arrived, self._clock_ms, self._watermark_before, self._late_until)
        log.stand(self._clock_ms, valve.watermark, valve.holder())
        journal.write(formed(log.snapshot()))

    def _keep_late(self) -> None:
        if self._metrics.lateness:
            before = remembered(self._backend.get(LATE))
            late = Lateness() if before is None else Lateness.of(before)
            late.take(self._metrics.lateness)
            self._backend.put(LATE, stored(late.snapshot()))

    def _keep_numbers(self, observed: Iterable[Frame], held: Mapping[str, int]) -> None:
        before = OperatorCounters()
        self.holds_something = any(held.values())
        if (last := remembered(self._backend.get(NUMBERS))) is not None:
            self.holds_something = self.holds_something or any(last["held"].values())
            before = last["counters"]
            if last["name"] != self._name and last["name"] in before:  # it has another one in the program of today
                before[self._name] = before.pop(last["name"])
        upstream = [frame.content.get(_COUNTS, {}) for frame in observed]
        counters = add_up([before, self._metrics.counters(), *upstream])
        numbers = {"name": self._name, "counters": counters, "held": dict(held)}
        self._backend.put(NUMBERS, stored(numbers))
