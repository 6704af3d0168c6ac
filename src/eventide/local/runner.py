"""Runs a plan in this process: the same tasks, frames and state as on Spark, one micro-batch after the other."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from eventide.datastream.connectors import CollectSink, PrintSink
from eventide.errors import ProgramError
from eventide.plan.job import JobPlan, SinkSpec
from eventide.runtime.frames import METRICS_STAGE, Frame
from eventide.runtime.lifecycle import close_all, open_all
from eventide.runtime.metrics import OperatorCounters, add_up
from eventide.runtime.offsets import Offsets, initial_offsets, next_offsets, ranges_between, source_ends
from eventide.runtime.pickles import dumps_program
from eventide.runtime.source import SourceSpec, SourceTask
from eventide.runtime.stage import StageTask
from eventide.runtime.state.backend import MemoryBackend


@dataclass
class LocalCheckpoint:
    """All that survives a restart of a local run: where each source stands, and the state of each subtask."""

    offsets: dict[str, Offsets] = field(default_factory=dict)
    state: dict[tuple[int, int], dict[str, bytes]] = field(default_factory=dict)
    batch: int = 0


@dataclass
class BatchResult:
    """What one micro-batch gave: elements with their timestamps by sink, and the watermark of each operator."""

    batch: int
    elements: dict[int, list[tuple[Any, int | None]]]
    watermarks: dict[str, int]


class LocalRunner:
    """Runs a job's micro-batches, each to its end before the next.

    With a ``checkpoint`` it goes on where that one stands; a micro-batch that fails leaves it untouched.
    """

    def __init__(
        self,
        plan: JobPlan,
        max_rows: int | None = None,
        clock: Callable[[], int] | None = None,
        checkpoint: LocalCheckpoint | None = None,
    ) -> None:
        self._plan = plan
        for part in (*plan.sources, *plan.stages):
            dumps_program(part, f"{part.name!r} or a function behind it")  # on Spark it has to travel, so it must here
        self._sources = [_own(source).pruned() for source in plan.sources]
        self._max_rows = max_rows
        self._clock = clock or (lambda: time.time_ns() // 1_000_000)
        self.checkpoint = checkpoint or LocalCheckpoint()
        self._metrics: list[OperatorCounters] = []

    def batches(self) -> Iterator[BatchResult]:
        """Run until the sources have nothing more to give."""
        open_all(self._plan.sources, self._plan.stages)
        try:
            while True:
                ends = self._next_offsets()
                if ends is None:
                    return
                yield self._run_batch(ends)
        finally:
            close_all(self._plan.sources, self._plan.stages)

    def metrics(self) -> OperatorCounters:
        """What was counted so far, by operator."""
        return add_up(self._metrics)

    def _next_offsets(self) -> dict[str, Offsets] | None:
        at = self.checkpoint.offsets
        starts = {spec.name: at.get(spec.name) or initial_offsets(spec.source) for spec in self._sources}
        ends = {spec.name: next_offsets(spec.source, starts[spec.name], self._max_rows) for spec in self._sources}
        return None if ends == starts else ends

    def _run_batch(self, ends: dict[str, Offsets]) -> BatchResult:
        waiting: dict[tuple[int, int], list[Frame]] = defaultdict(list)
        for frame in self._source_frames(ends):
            waiting[frame.stage, frame.subtask].append(frame)
        state = dict(self.checkpoint.state)
        clock_ms = self._clock()
        for stage in self._plan.stages:
            for subtask in range(stage.parallelism):
                frames = waiting.pop((stage.number, subtask), [])
                if frames:
                    values = dict(state.get((stage.number, subtask), {}))
                    task = StageTask(stage, subtask, MemoryBackend(values), clock_ms)
                    for frame in task.run(frames):
                        waiting[frame.stage, frame.subtask].append(frame)
                    state[stage.number, subtask] = values
        result = self._deliver(waiting)
        self.checkpoint.offsets, self.checkpoint.state = ends, state
        self.checkpoint.batch += 1
        return result

    def _source_frames(self, ends: dict[str, Offsets]) -> Iterator[Frame]:
        for spec in self._sources:
            start = self.checkpoint.offsets.get(spec.name, {})
            end = ends[spec.name]
            ranges = ranges_between(spec.source, start or initial_offsets(spec.source), end)
            task = SourceTask(spec)
            for frame in task.read_ranges(spec.source, ranges, source_ends(spec.source, start, end)):
                yield _through_bytes(frame)

    def _deliver(self, waiting: dict[tuple[int, int], list[Frame]]) -> BatchResult:
        watermarks: dict[str, int] = {}
        for frame in waiting.pop((METRICS_STAGE, 0), []):
            self._metrics.append(frame.content["operators"])
            watermarks |= frame.content.get("watermarks", {})
        sinks = {sink.number: sink for sink in self._plan.sinks}
        elements: dict[int, list[tuple[Any, int | None]]] = defaultdict(list)
        for (number, _), frames in sorted(waiting.items()):
            for frame in frames:
                decoded = sinks[number].codec.decode(frame.content)
                elements[number] += zip(decoded.values, decoded.timestamps, strict=True)
        for number, rows in elements.items():
            _print(sinks[number], rows)
        return BatchResult(self.checkpoint.batch, dict(elements), watermarks)


def _own(source: Any) -> SourceSpec:
    if not isinstance(source, SourceSpec):
        raise ProgramError(
            f"the source {source.name!r} is a Spark DataFrame, which the local environment cannot read; use "
            "from_collection or a ScriptedSource with the same elements in tests without Spark"
        )
    return source


def _through_bytes(frame: Frame) -> Frame:
    """Take the way that a frame takes on Spark, so that what fails there fails here."""
    return Frame.from_bytes(frame.stage, frame.subtask, frame.to_bytes())


def _print(sink: SinkSpec, rows: Iterable[tuple[Any, int | None]]) -> None:
    if isinstance(sink.sink, PrintSink):
        for value, _ in rows:
            print(sink.sink.line(value))  # noqa: T201 - its purpose
    elif not isinstance(sink.sink, CollectSink):
        raise ProgramError(
            f"the sink {sink.name!r} ({sink.sink!r}) needs Spark; in the local environment use print() or "
            "execute_and_collect()"
        )
