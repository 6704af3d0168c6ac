"""The stage in front of all others where generators of the user's make the watermarks of splits."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from eventide.runtime.chain.chain import ChainRun, Edge
from eventide.runtime.elements.codec import ElementCodec
from eventide.runtime.elements.columns import Batch, Columns, as_elements
from eventide.runtime.elements.elements import Elements, interleave
from eventide.runtime.elements.keys import stable_hash
from eventide.runtime.eventtime.generators import ChannelWatermarks, Generators, HighestTimestamp
from eventide.runtime.exchange.frames import METRICS_STAGE, Frame, Signal
from eventide.runtime.exchange.reports import START_OF_BATCH, Report
from eventide.runtime.exchange.router import Router, end_frames, packed, report_frames
from eventide.runtime.metrics import RECORDS_IN, RECORDS_OUT, Metrics
from eventide.runtime.state.backend import StateBackend
from eventide.runtime.tasks.stage import StageSpec

_STATE = "splits"
_FRAME = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitStage(StageSpec):
    """A stage whose channels are the splits of sources: each has generators of its own, in one subtask for ever."""

    codec: ElementCodec

    @property
    def needs_clock(self) -> bool:
        """True: generators are asked with the clock."""
        return True

    def task(self, subtask: int, backend: StateBackend, clock_ms: int) -> SplitTask:
        """One of its subtasks, on its state, in a micro-batch of a time by the clock."""
        return SplitTask(self, subtask, backend, clock_ms)

    def user_functions(self) -> list[Any]:
        """None: generators are not opened."""
        return []

    def describe(self) -> list[tuple[str, str]]:
        """What ``explain`` says of it."""
        return [("state", "the generator of each split")]

    def channel(self, edge: int, split: str) -> str:
        """The name of a split behind this stage; of several sources, each has its number before it."""
        return split if len(self.inputs) == 1 else f"{edge}/{split}"

    def channels(self) -> tuple[str, ...]:
        """The names of the splits that are expected."""
        return tuple(self.channel(i.edge, split) for i in self.inputs for split in i.channels)


@dataclass(slots=True)
class _Split:
    """One split in one micro-batch: its elements by task and place, and what its source said."""

    edge: int
    name: str
    parts: list[tuple[int, int, Batch]] = field(default_factory=list)
    idle: bool = False
    ended: bool = False

    def batches(self) -> list[Batch]:
        """Its elements in their order."""
        self.parts.sort(key=lambda part: part[:2])
        batches = [batch for _, _, batch in self.parts]
        if len({task for task, _, _ in self.parts}) <= 1:
            return batches
        return [_numbered_through(batches)]


class SplitTask:
    """One subtask of a split stage during one micro-batch.

    Each of its splits goes through the chain by itself, in order. What its generators say behind an element takes
    effect there, what they say when they are asked at the end of the micro-batch takes effect then. A split whose
    source says that it is idle is not asked until it has elements again.
    """

    def __init__(self, spec: SplitStage, subtask: int, backend: StateBackend, clock_ms: int) -> None:
        self._spec = spec
        self._subtask = subtask
        self._backend = backend
        self._clock_ms = clock_ms
        self._edges = spec.root.all_edges()
        self.watermarks: list[int] = []
        self._generators = Generators(backend, clock_ms, in_batch=spec.in_batch)
        self._metrics = Metrics()
        self._stored = backend.get(_STATE)
        state = {} if self._stored is None else spec.checked_state(self._stored)
        self._open = {(edge, split): idle for edge, split, idle in state.get("open", ())}
        self._ended = {(edge, split) for edge, split in state.get("ended", ())}
        self._ended_sources = set(state.get("ended sources", ()))
        self._mixed = [edge for edge in self._edges if edge.outlet.mixes_splits]
        self._shared = {edge.address: edge.outlet.open(edge.producer, subtask, edge.subtasks) for edge in self._mixed}
        self._reports: dict[tuple[int, int], list[Report]] = {edge.address: [] for edge in self._edges}
        for i in spec.inputs:
            for split in filter(self._is_mine, i.channels):
                if (i.edge, split) not in self._ended:
                    self._open.setdefault((i.edge, split), False)

    @property
    def next_clock_ms(self) -> int | None:
        """The next millisecond, while there are splits to ask."""
        return self._clock_ms + 1 if self._open else None

    def run(self, frames: Iterable[Frame]) -> Iterator[Frame]:
        """Handle the frames of a micro-batch for this subtask, give those for the next stages, and store the state.

        There are none where only the clock has gone on.
        """
        before = set(self._ended_sources)
        for split in self._splits(frames):
            yield from self._run_split(split)
        for edge in self._mixed:
            yield from packed(edge, self._shared[edge.address], "", START_OF_BATCH, self._subtask)
        for edge in self._edges:
            yield from report_frames(edge, self._reports[edge.address])
            if len(before) < len(self._spec.inputs) == len(self._ended_sources):
                yield from end_frames(edge)
        self._store()
        yield Frame(METRICS_STAGE, 0, Signal.METRICS, 0, 0, "", {"operators": self._metrics.counters()})

    def _splits(self, frames: Iterable[Frame]) -> list[_Split]:
        """What there is of each split, by edge and name: also of those without frames."""
        splits = {(edge, name): _Split(edge, name) for edge, name in self._open}
        for frame in frames:
            if frame.signal is Signal.ELEMENTS:
                batch = self._spec.codec.decode_batch(frame.content)
                split = splits.setdefault((frame.edge, frame.channel), _Split(frame.edge, frame.channel))
                split.parts.append((frame.task, batch.first, batch))
            elif frame.signal is Signal.END_OF_SOURCE:
                self._ended_sources.add(frame.edge)
            else:
                for report in frame.content:
                    if self._is_mine(report.channel):
                        at = (frame.edge, report.channel)
                        split = splits.setdefault(at, _Split(*at))
                        split.idle = split.idle or bool(report.idle)
                        split.ended = split.ended or report.ended
        return [splits[at] for at in sorted(splits)]

    def _is_mine(self, split: str) -> bool:
        return stable_hash(split) % self._spec.parallelism == self._subtask

    def _run_split(self, split: _Split) -> Iterator[Frame]:
        at, channel = (split.edge, split.name), self._spec.channel(split.edge, split.name)
        steps = {f"{split.edge}/{n}/{split.name}": step for n, step in enumerate(self._spec.root.assigners())}
        watermarks_of = {step.number: self._marker(name, step, channel) for name, step in steps.items()}
        router = Router(self._spec.root, channel, self._subtask, self._subtask, self._shared)
        run = ChainRun(router.send, watermarks_of)
        for batch in split.batches():
            self._metrics.count(self._spec.name, RECORDS_IN, len(batch))
            self._metrics.count(self._spec.name, RECORDS_OUT, len(batch))
            run.push(self._spec.root, {None: batch})
            if router.size >= _FRAME:
                yield from router.element_frames()
        yield from router.element_frames()
        is_asked = split.parts or not self._open.get(at, False)
        if is_asked:
            for marker in watermarks_of.values():
                marker.end_batch()
        for edge in self._edges:
            self._reports[edge.address] += self._reports_on(edge, watermarks_of, split, channel)
        self._open[at] = split.idle or not is_asked
        if split.ended:
            self._end(at, steps)

    def _marker(self, name: str, step: Any, channel: str) -> ChannelWatermarks:
        if not step.strategy.is_supplied:
            return HighestTimestamp(step, channel)
        return self._generators.run(name, step, channel, is_split=True)

    def _reports_on(
        self, edge: Edge, watermarks_of: dict[int, ChannelWatermarks], split: _Split, channel: str
    ) -> list[Report]:
        said = [] if edge.assigner is None else watermarks_of[edge.assigner].reports()
        at_end = Report(channel, idle=split.idle or None, ended=split.ended)
        return [*said, at_end]

    def _end(self, at: tuple[int, str], generators: Iterable[str]) -> None:
        """Forget a split that has ended, but for the fact, if it was expected."""
        del self._open[at]
        if any(at[0] == i.edge and at[1] in i.channels for i in self._spec.inputs):
            self._ended.add(at)
        for name in generators:
            self._generators.forget(name)

    def _store(self) -> None:
        self._generators.flush()
        state = {
            "identity": self._spec.identity,
            "open": [[*at, idle] for at, idle in sorted(self._open.items())],
            "ended": sorted(self._ended),
            "ended sources": sorted(self._ended_sources),
        }
        stored = json.dumps(state).encode()
        if stored != self._stored:
            self._backend.put(_STATE, stored)


def _numbered_through(batches: list[Batch]) -> Batch:
    """Elements of one split that several tasks had, interleaved by their places, and numbered anew."""
    columns = [batch for batch in batches if isinstance(batch, Columns)]
    if len(columns) == len(batches):
        together = Columns.joined(columns)
        together = together.at(pa.array(np.argsort(together.sequence.to_numpy(), kind="stable")))
        together.sequence = pa.array(np.arange(len(together)))
        return together
    elements: Elements = interleave([as_elements(batch) for batch in batches])
    elements.sequence = list(range(len(elements)))
    return elements
