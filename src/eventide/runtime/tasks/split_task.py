"""Tasks that keep a user-defined watermark generator for each split of a source."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from eventide.runtime.chain.chain import end_frames
from eventide.runtime.chain.timestamps import AssignTimestamps
from eventide.runtime.chain.watermarks import ChannelWatermarks, Generators, HighestTimestamp
from eventide.runtime.elements.codec import ElementCodec
from eventide.runtime.elements.elements import Elements, interleave, interleaved_columns
from eventide.runtime.elements.keys import stable_hash
from eventide.runtime.exchange.frames import Frame, Signal
from eventide.runtime.metrics import RECORDS_IN, RECORDS_OUT, Metrics
from eventide.runtime.sources.splits import ReaderOutput, SourceOutput
from eventide.runtime.state.backend import Backend
from eventide.runtime.tasks.task import Task, TaskSpec

_STATE = "splits"


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitTaskSpec(TaskSpec):
    """Tasks whose channels are the splits of sources: each has generators of its own, in one subtask for ever.

    ``of_source`` says that the generators are part of the source, as those of ingestion time are.
    """

    codec: ElementCodec
    of_source: bool = False

    @property
    def needs_clock(self) -> bool:
        return True

    def task(self, subtask: int, backend: Backend, clock_ms: int, run: str | None = None) -> SplitTask:
        return SplitTask(self, subtask, backend, clock_ms)

    def user_functions(self) -> list[Any]:
        """Empty, because generators are not opened."""
        return []

    def describe(self) -> list[tuple[str, str]]:
        return [("state", "the generator of each split")]

    def channel(self, edge: str, split: str) -> str:
        """The name of a split downstream of these tasks; of several sources, it begins with the name of its edge."""
        return split if len(self.edges) == 1 else f"{edge}/{split}"

    def channels(self) -> tuple[str, ...]:
        """The names of the splits that are expected."""
        return tuple(self.channel(edge.name, split) for edge in self.edges for split in edge.channels)


@dataclass(slots=True)
class _SplitBatch:
    """One split in one micro-batch: its elements by task and number, and what its source said."""

    edge: str
    name: str
    parts: list[tuple[int, int, Elements]] = field(default_factory=list)
    idle: bool = False
    ended: bool = False
    joined: bool = False
    rest: str | None = None
    source_idle: bool = False

    def batches(self) -> list[Elements]:
        """The elements of the split, in their order."""
        self.parts.sort(key=lambda part: part[:2])
        batches = [batch for _, _, batch in self.parts]
        if len({task for task, _, _ in self.parts}) <= 1:
            return batches
        return [_numbered_through(batches)]


class SplitTask(Task):
    """One subtask of the generators of splits during one micro-batch.

    Each of its splits goes through the chain by itself, in order. What its generators say after an element takes effect
    there, what they say when they are asked at the end of the micro-batch takes effect then. A split whose source says
    that it is idle is not asked until it has elements again. A source that speaks as an operator does is not heard in
    this, unless the generators are its own: they take the place of all that it says.

    Splits that the program expects are remembered when they end. All others that end, or that the program does not
    expect any more, are forgotten with their generators.
    """

    def __init__(self, spec: SplitTaskSpec, subtask: int, backend: Backend, clock_ms: int) -> None:
        self._spec = spec
        self._subtask = subtask
        self._backend = backend
        self._clock_ms = clock_ms
        self.passed: list[int] = []
        self._name_of = {edge.edge: edge.name for edge in spec.edges}
        self._unheard = {edge.name for edge in spec.edges if edge.active_by_elements and not spec.of_source}
        self._generators = Generators(backend, clock_ms, in_batch=spec.in_batch)
        self._metrics = Metrics(limits=spec.dead_letter_limits, search=spec.search.begin(subtask, clock_ms))
        self._output = ReaderOutput(spec.name, spec.root, subtask, self._metrics, clock_ms)
        self._expected = {(edge.name, split) for edge in spec.edges for split in edge.channels if self._is_mine(split)}
        stored = backend.get(_STATE)
        state = {} if stored is None else json.loads(stored)
        self._open = {(edge, split): idle for edge, split, idle in state.get("open", ())}
        self._ended = {(edge, split) for edge, split in state.get("ended", ())} & self._expected
        self._ended_sources = set(state.get("ended sources", ()))
        self._hears_of_an_end = False
        for at in {(edge, split) for edge, split in state.get("expected", ())} - self._expected:
            self._forget(at)
        for at in self._expected - self._ended:
            self._open.setdefault(at, False)

    @property
    def next_clock_ms(self) -> int | None:
        """The next millisecond, while there are splits to ask."""
        return self._clock_ms + 1 if self._open else None

    def run(self, frames: Iterable[Frame]) -> Iterator[Frame]:
        for split in self._splits(frames):
            yield from self._run_split(split)
        yield from self._output.last_frames()
        if self._hears_of_an_end and len(self._ended_sources) == len(self._spec.edges):
            for edge in self._output.edges:
                yield from end_frames(edge)
        self._store()

    def metrics(self) -> dict[str, Any]:
        return {
            "operators": self._metrics.counters(),
            "functions": self._spec.function_metrics.take(self._subtask, self._clock_ms),
        }

    def _splits(self, frames: Iterable[Frame]) -> list[_SplitBatch]:
        """Return the frames of each split, by edge and name: also of splits without any."""
        splits = {at: _SplitBatch(*at) for at in self._open}
        for frame in frames:
            edge = self._name_of[frame.edge]
            if frame.signal is Signal.ELEMENTS:
                batch = self._spec.codec.decode(frame.content)
                split = splits.setdefault((edge, frame.channel), _SplitBatch(edge, frame.channel))
                split.parts.append((frame.task, batch.first, batch))
            elif frame.signal is Signal.OBSERVED:
                self._output.observer.hear(frame)
            elif frame.signal is Signal.END_OF_SOURCE:
                self._ended_sources.add(edge)
                self._hears_of_an_end = True
            elif frame.signal is Signal.REPORTS:
                for report in frame.content:
                    if self._is_mine(report.channel):
                        split = splits.setdefault((edge, report.channel), _SplitBatch(edge, report.channel))
                        split.idle = split.idle or (bool(report.idle) and edge not in self._unheard)
                        split.ended = split.ended or report.ended
                        split.joined = split.joined or report.joined
                        split.rest = report.rest or split.rest
                        split.source_idle = split.source_idle or report.source_idle
        return [splits[at] for at in sorted(splits)]

    def _is_mine(self, split: str) -> bool:
        return subtask_of_split(split, self._spec.parallelism) == self._subtask

    def _run_split(self, split: _SplitBatch) -> Iterator[Frame]:
        at, channel = (split.edge, split.name), self._spec.channel(split.edge, split.name)
        operators = self._spec.root.assigners()
        watermarks_of = {
            operator.number: self._watermarks(at, number, channel) for number, operator in enumerate(operators)
        }
        output = SourceOutput(self._output, channel, self._subtask, watermarks_of)
        for batch in split.batches():
            self._metrics.count(self._spec.name, RECORDS_IN, len(batch))
            self._metrics.count(self._spec.name, RECORDS_OUT, len(batch))
            yield from output.send(batch)
        # A split that ended before, and whose end is reported only now, is not asked again.
        is_asked = bool(split.parts) or not self._open.get(at, split.ended)
        output.idle = split.idle
        yield from output.finish(
            ended=split.ended,
            joined=split.joined,
            rest=split.rest,
            is_asked=is_asked,
            source_idle=split.source_idle,
        )
        self._open[at] = split.idle or not is_asked
        if split.ended:
            self._forget(at)
            self._ended |= {at} & self._expected

    def _watermarks(self, at: tuple[str, str], number: int, channel: str) -> ChannelWatermarks:
        operator = self._spec.root.assigners()[number]
        if not operator.strategy.is_supplied:
            return HighestTimestamp(operator, channel)
        return self._generators.run(_generator(at, operator), operator, channel, is_split=True)

    def _forget(self, at: tuple[str, str]) -> None:
        """Forget a split, with its generators."""
        self._open.pop(at, None)
        for operator in self._spec.root.assigners():
            self._generators.forget(_generator(at, operator))

    def _store(self) -> None:
        self._generators.flush()
        state = {
            "open": [[*at, idle] for at, idle in sorted(self._open.items())],
            "ended": sorted(self._ended),
            "ended sources": sorted(self._ended_sources),
            "expected": sorted(self._expected),
        }
        self._backend.put(_STATE, json.dumps(state).encode())


def subtask_of_split(split: str, parallelism: int) -> int:
    """The subtask that has the generators of a split."""
    return stable_hash(split) % parallelism


def _generator(at: tuple[str, str], operator: AssignTimestamps) -> str:
    """The key that the generator of a split is kept under."""
    return json.dumps([*at, operator.id])


def _numbered_through(batches: list[Elements]) -> Elements:
    """Elements of one split that several tasks had, interleaved by their numbers, and then renumbered."""
    columns = [batch.columns for batch in batches if batch.columns is not None]
    if len(columns) == len(batches) and len({each.type_info for each in columns}) == 1:
        together = interleaved_columns(batches, columns[0].type_info)
        together.sequence = pa.array(np.arange(len(together)))
        return Elements(columns=together)
    elements = interleave(batches)
    return Elements(elements.values, elements.timestamps, list(range(len(elements))))
