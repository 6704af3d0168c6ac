"""The inputs of one subtask: splits through a multiplexer each, all channels through one valve."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from eventide.common._ms import MAX_MS
from eventide.runtime.eventtime.combiner import Combiner, Progress, Rejoin
from eventide.runtime.eventtime.idleness import Idleness
from eventide.runtime.exchange.reports import Report

Reports: TypeAlias = Sequence[tuple[int, Report]]
"""What channels say at one point, each with the number of the edge that it came on."""


@dataclass(frozen=True, slots=True)
class GateInput:
    """One edge into an operator: the splits of a source, or the subtasks of a stage.

    ``channels`` are those that are expected: they hold the watermark until they speak. Splits that are not among them
    join with their first watermark, and leave no trace when they end. A channel that is silent for ``idle_after_ms``
    counts as idle (None: none does by itself). A source that is ``active_by_elements`` is one operator, not several
    splits: it counts again as soon as it is active.
    """

    edge: int
    channels: tuple[str, ...]
    is_source: bool
    idle_after_ms: int | None = None
    active_by_elements: bool = False


class Gate:
    """Keeps the watermark of one subtask.

    The splits of each source combine first, as in Flink's source operator; what comes out of that is one channel of
    the valve, beside each subtask of the stages before. What was reported at one point takes effect together.
    """

    def __init__(self, inputs: Sequence[GateInput]) -> None:
        self._inputs = inputs
        self._sources = {i.edge: Combiner(_rejoin(i), i.channels) for i in inputs if i.is_source}
        subtasks = [_name(i.edge, channel) for i in inputs if not i.is_source for channel in i.channels]
        self._valve = Combiner(Rejoin.WHEN_CAUGHT_UP, [*map(str, self._sources), *subtasks])
        self._idleness = {i.edge: Idleness(i.idle_after_ms) for i in inputs if i.idle_after_ms is not None}

    @property
    def watermark(self) -> int:
        """The watermark of this subtask, in milliseconds."""
        return self._valve.watermark

    @property
    def idle(self) -> bool:
        """Whether every input is idle."""
        return self._valve.idle

    @property
    def next_clock_ms(self) -> int | None:
        """The time by the clock at which it has to be asked again, with no data too; None if never."""
        if self.watermark == MAX_MS:
            return None
        deadlines = [watched.next_deadline_ms for watched in self._idleness.values()]
        return min((ms for ms in deadlines if ms is not None), default=None)

    def split_watermarks(self) -> dict[str, int]:
        """The watermark of each split of each source, in milliseconds."""
        return {split: ms for source in self._sources.values() for split, ms in source.channel_watermarks().items()}

    def advance(self, reports: Reports) -> Progress:
        """Take what was reported at a point in the middle of a micro-batch, and say what changed."""
        self._listen(reports)
        self._receive(reports)
        for edge, source in self._sources.items():
            self._pass_on(edge, source.advance())
        return self._valve.advance()

    def end_batch(self, reports: Reports, clock_ms: int) -> Progress:
        """Take what was reported at the end of a micro-batch, look at the clock, and say what changed.

        A split that ends gives its last watermark first, and then holds nobody. Those that were expected end together.
        Those that come and go, such as files, end as if they had been read in turn: the one that is furthest ahead
        comes last.
        """
        self._listen(reports)
        for edge, watched in self._idleness.items():
            watched.end_batch(self._channels(edge), clock_ms)
        self._receive(reports)
        for edge, watched in self._idleness.items():
            # A split that ends is not judged any more: a source that is idle sends no final watermark.
            ended = {r.channel for at, r in reports if at == edge and r.ended}
            for channel in sorted(watched.silent - ended):
                self._mark_idle(edge, channel)
        for edge, source in self._sources.items():
            self._pass_on(edge, source.advance())
            self._end_splits(edge, source, [r.channel for at, r in reports if at == edge and r.ended])
        return self._valve.advance()

    def end_input(self, reports: Reports, sources: Iterable[int]) -> Progress:
        """Take the end of whole sources, and what the stages before said at the end of theirs, and say what changed.

        A source that ends while it is idle as a whole stays so: Flink sends no final watermark then.
        """
        self._receive(reports)
        for edge in sources:
            if not self._sources[edge].idle:
                self._valve.update(str(edge), MAX_MS)
        return self._valve.advance()

    def _listen(self, reports: Reports) -> None:
        for edge, report in reports:
            if report.spoke and edge in self._idleness:
                self._idleness[edge].hear(report.channel)

    def _receive(self, reports: Reports) -> None:
        for edge, report in reports:
            combiner, name = self._combiner(edge, report.channel)
            if report.idle is False:
                combiner.mark_active(name)
            is_last = report.watermark == MAX_MS
            if report.watermark is not None and (is_last or not self._is_silent(edge, report.channel)):
                combiner.update(name, report.watermark)
            if report.idle:
                combiner.mark_idle(name)

    def _is_silent(self, edge: int, channel: str) -> bool:
        """Whether a channel has been silent for too long, so that what its generator says by the clock is not asked."""
        return edge in self._idleness and channel in self._idleness[edge].silent

    def _mark_idle(self, edge: int, channel: str) -> None:
        combiner, name = self._combiner(edge, channel)
        combiner.mark_idle(name)

    def _combiner(self, edge: int, channel: str) -> tuple[Combiner, str]:
        source = self._sources.get(edge)
        return (self._valve, _name(edge, channel)) if source is None else (source, channel)

    def _channels(self, edge: int) -> list[str]:
        if edge in self._sources:
            return [*self._sources[edge].channel_watermarks()]
        return [channel for i in self._inputs if i.edge == edge for channel in i.channels]

    def _end_splits(self, edge: int, source: Combiner, ended: list[str]) -> None:
        if not ended:
            return
        last = source.furthest(ended)
        for split in ended:
            if split != last:
                source.remove(split)
        self._pass_on(edge, source.advance())
        if last is not None:
            source.remove(last)
            self._pass_on(edge, source.advance())

    def _pass_on(self, edge: int, progress: Progress) -> None:
        if progress.watermark is not None:
            self._valve.update(str(edge), progress.watermark)
        if progress.idle:
            self._valve.mark_idle(str(edge))
        elif progress.idle is False:
            self._valve.mark_active(str(edge))

    def snapshot(self) -> dict[str, Any]:
        """All that must survive a restart, as JSON values."""
        sources = {str(edge): source.snapshot() for edge, source in self._sources.items()}
        idleness = {str(edge): watched.snapshot() for edge, watched in self._idleness.items()}
        return {"valve": self._valve.snapshot(), "sources": sources, "idleness": idleness}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Become what :meth:`snapshot` saw; the timeouts of the program count, whatever they were before."""
        self._valve.restore(snapshot["valve"])
        for edge, source in self._sources.items():
            source.restore(snapshot["sources"][str(edge)])
        for edge, watched in self._idleness.items():
            if str(edge) in snapshot["idleness"]:
                watched.restore(snapshot["idleness"][str(edge)])


def _rejoin(source: GateInput) -> Rejoin:
    return Rejoin.WHEN_CAUGHT_UP if source.active_by_elements else Rejoin.AT_ONCE


def _name(edge: int, channel: str) -> str:
    return f"{edge}/{channel}"
