"""Splits on their way through the chain of a task: each by itself, but for what may leave together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from eventide.common.ms import MIN_MS
from eventide.runtime.chain.chain import (
    ChainNode,
    ChainRun,
    Edge,
    Router,
    arrival_frames,
    count_frames,
    packed,
    report_frames,
)
from eventide.runtime.chain.chained_operators import Moment
from eventide.runtime.chain.watermarks import ChannelWatermarks
from eventide.runtime.elements.columns import Batch
from eventide.runtime.eventtime.emitter import Emitter
from eventide.runtime.eventtime.timestamp_summary import TimestampSummary
from eventide.runtime.exchange.frames import START_OF_BATCH, Frame, WatermarkReport
from eventide.runtime.invoke import user_function_error
from eventide.runtime.metrics import Metrics, OperatorCounters, add_up, dead_letters_of

_FRAME = 65_536


class ChainedSourceOutputs:
    """The splits of one task in one micro-batch: what they send together, and what all of them report.

    ``name`` is whose task it is, ``task`` its index among its like, ``clock_ms`` the time by the clock.
    """

    def __init__(self, name: str, root: ChainNode, task: int, metrics: Metrics, clock_ms: int) -> None:
        self.moment = Moment(MIN_MS, clock_ms)
        self.name = name
        self.root = root
        self.task = task
        self.metrics = metrics
        self.edges = root.all_edges()
        self._mixed = [edge for edge in self.edges if edge.partitioner.mixes_splits]
        self.shared = {edge.address: edge.partitioner.open(edge.producer, task, edge.subtasks) for edge in self._mixed}
        self.reports: dict[tuple[int, int], list[WatermarkReport]] = {edge.address: [] for edge in self.edges}
        self.arrived: dict[int, list[tuple[str, TimestampSummary]]] = {}
        self.counted: list[OperatorCounters] = []
        """Counts of the tasks before this one."""

    def open(self, split: str, slot: int, watermarks_of: Mapping[int, ChannelWatermarks]) -> ChainedSourceOutput:
        """The way of one split; ``slot`` says which subtask gets what is not dealt out by key."""
        return ChainedSourceOutput(self, split, Router(self.root, split, self.task, slot, self.shared), watermarks_of)

    def last_frames(self) -> Iterator[Frame]:
        """Give the last frames: elements that all splits sent together, and their reports."""
        before = [dead_letters_of(self.metrics.counters()), *self.counted]
        yield from count_frames(self.edges, add_up(before))
        for edge in self._mixed:
            yield from packed(edge, self.shared[edge.address], "", START_OF_BATCH, self.task)
        for edge in self.edges:
            yield from report_frames(edge, self.reports[edge.address])
            if edge.assigner is not None:
                yield from arrival_frames(edge, self.arrived.get(edge.assigner, []))


class ChainedSourceOutput:
    """The way of one split's elements, in their order."""

    def __init__(
        self, chains: ChainedSourceOutputs, split: str, router: Router, watermarks_of: Mapping[int, ChannelWatermarks]
    ) -> None:
        self._chains = chains
        self._split = split
        self._router = router
        self._watermarks_of = watermarks_of
        self._arrivals_of = {number: TimestampSummary() for number in watermarks_of}
        self._run = ChainRun(router.send, watermarks_of, chains.metrics, chains.moment, self._arrivals_of)

    def send(self, batch: Batch, tag: str | None = None) -> Iterator[Frame]:
        """Run elements, or those of a side output, through the chain; frames come when enough is waiting."""
        try:
            self._run.push(self._chains.root, {tag: batch})
        except Exception as error:
            during = "behind the source"
            raise user_function_error(self._chains.name, error, during=during, split=self._split) from error
        if self._router.size >= _FRAME:
            yield from self.flush()

    def flush(self) -> Iterator[Frame]:
        """Give the waiting elements."""
        return self._router.element_frames()

    def finish(
        self,
        own: Emitter | None = None,
        *,
        idle: bool,
        ended: bool,
        joined: bool = False,
        rest: str | None = None,
        is_asked: bool = True,
        is_operator: bool = False,
    ) -> Iterator[Frame]:
        """Give the elements that still wait, and end the micro-batch; the split's reports are kept for each edge.

        Args:
            own: what the source itself says, which counts where no assigner is on the way.
            idle: whether the split has nothing to say for now.
            ended: whether nothing will ever follow.
            joined: whether it is new, and holds the watermark from now on.
            rest: how it is treated from now on by what plans its source; None if that has not changed.
            is_asked: whether generators are asked for a periodic watermark; that of an idle split is not.
            is_operator: whether the source speaks as an operator does, so that strategies do not hear that it is idle.
        """
        yield from self.flush()
        for watermarks in self._watermarks_of.values():
            watermarks.end_batch(is_asked=is_asked and not idle)
        if own is not None:
            own.end_batch()
        for number, arrivals in self._arrivals_of.items():
            if arrivals.rows:
                self._chains.arrived.setdefault(number, []).append((self._split, arrivals))
        for edge in self._chains.edges:
            *before, last = self._said(edge, own)
            hears = edge.assigner is None or not is_operator
            last = last._replace(idle=(idle and hears) or None, ended=ended, rest=rest)
            first = [WatermarkReport(self._split, START_OF_BATCH, joined=True)] if joined else []
            self._chains.reports[edge.address] += [*first, *before, last]

    def _said(self, edge: Edge, own: Emitter | None) -> list[WatermarkReport]:
        if edge.assigner is not None:
            return self._watermarks_of[edge.assigner].reports()
        return [WatermarkReport(self._split)] if own is None else own.reports()
