"""Runs a plan in this process: the same tasks, frames and state as on Spark, one micro-batch after the other."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from eventide.common._pickles import bring
from eventide.datastream.connectors import CollectSink, PrintSink
from eventide.errors import ProgramError
from eventide.plan.job import JobPlan, SinkSpec
from eventide.runtime.exchange.frames import METRICS_STAGE, Frame
from eventide.runtime.invoke import calling
from eventide.runtime.metrics import OperatorCounters, add_up
from eventide.runtime.pickles import classes_of
from eventide.runtime.sources.offsets import Offsets, initial_offsets, next_offsets, ranges_between, source_ends
from eventide.runtime.sources.task import SourceSpec, SourceTask
from eventide.runtime.state.backend import MemoryBackend
from eventide.runtime.tasks.lifecycle import close_all, open_all

_PATIENCE_S = 0.05


@dataclass
class LocalCheckpoint:
    """All that survives a restart of a local run: where each source stands, and the state of each subtask.

    ``timers`` say when, by the clock, a subtask has to run without data too.
    """

    offsets: dict[str, Offsets] = field(default_factory=dict)
    state: dict[tuple[int, int], dict[str, bytes]] = field(default_factory=dict)
    timers: dict[tuple[int, int], int] = field(default_factory=dict)
    batch: int = 0


@dataclass
class BatchResult:
    """What one micro-batch gave: elements with their timestamps by sink, and the watermarks of each operator.

    ``watermarks`` are those at its end, ``passed`` all those on the way there.
    """

    batch: int
    elements: dict[int, list[tuple[Any, int | None]]]
    watermarks: dict[str, int]
    passed: dict[str, list[int]] = field(default_factory=dict)


class LocalRunner:
    """Runs a job's micro-batches, each to its end before the next.

    With a ``checkpoint`` it goes on where that one stands; a micro-batch that fails leaves it untouched. With
    ``available_now`` it ends with what the sources have when it starts.
    """

    def __init__(
        self,
        plan: JobPlan,
        max_rows: int | None = None,
        clock: Callable[[], int] | None = None,
        checkpoint: LocalCheckpoint | None = None,
        available_now: bool = False,
    ) -> None:
        self._plan = plan
        # On Spark it has to travel, so it must here.
        parts = [(part, f"{part.name!r} or a function behind it") for part in (*plan.sources, *plan.stages)]
        self._classes = classes_of(parts)
        self._sources = [_own(source).pruned() for source in plan.sources]
        self._max_rows = max_rows
        self._clock = clock or (lambda: time.time_ns() // 1_000_000)
        self.checkpoint = checkpoint or LocalCheckpoint()
        self._available_now = available_now
        self._targets: dict[str, dict[str, int]] = {}
        self._metrics: list[OperatorCounters] = []

    def batches(self) -> Iterator[BatchResult]:
        """Run until the sources have nothing more to give."""
        open_all(self._plan.sources, self._plan.stages)
        try:
            while True:
                bring(self._classes)
                ends = self._next_offsets()
                if ends is not None:
                    yield self._run_batch(ends)
                elif not self._wait():
                    return
        finally:
            for spec in self._sources:
                spec.source.stop()
            close_all(self._plan.sources, self._plan.stages)

    def metrics(self) -> OperatorCounters:
        """What was counted so far, by operator."""
        return add_up(self._metrics)

    def _next_offsets(self) -> dict[str, Offsets] | None:
        at = self.checkpoint.offsets
        starts = {spec.name: at.get(spec.name) or initial_offsets(spec.source) for spec in self._sources}
        ends = {}
        for spec in self._sources:
            with calling(spec.name, during="while its source was planned"):
                if self._available_now and spec.name not in self._targets:
                    self._targets[spec.name] = spec.source.latest_positions()
                target = self._targets.get(spec.name)
                ends[spec.name] = next_offsets(spec.source, starts[spec.name], self._max_rows, target)
        return None if ends == starts else ends

    def _wait(self) -> bool:
        """Wait a moment for sources that bring more by themselves; False where there are none."""
        return not self._available_now and any(spec.source.wait(_PATIENCE_S) for spec in self._sources)

    def _run_batch(self, ends: dict[str, Offsets]) -> BatchResult:
        waiting: dict[tuple[int, int], list[Frame]] = defaultdict(list)
        for frame in self._source_frames(ends):
            waiting[frame.stage, frame.subtask].append(frame)
        state, timers = dict(self.checkpoint.state), dict(self.checkpoint.timers)
        passed: dict[str, list[int]] = {}
        clock_ms = self._clock()
        for stage in self._plan.stages:
            for subtask in range(stage.parallelism):
                at = stage.number, subtask
                frames = waiting.pop(at, [])
                if frames or timers.get(at, clock_ms + 1) <= clock_ms:
                    state[at] = dict(state.get(at, {}))
                    task = stage.task(subtask, MemoryBackend(state[at]), clock_ms)
                    for frame in task.run(frames):
                        waiting[frame.stage, frame.subtask].append(_through_bytes(frame))
                    passed[stage.name] = task.watermarks
                    timers.pop(at, None)
                    if task.next_clock_ms is not None:
                        timers[at] = task.next_clock_ms
        result = self._deliver(waiting, passed)
        self.checkpoint.offsets, self.checkpoint.state, self.checkpoint.timers = ends, state, timers
        self.checkpoint.batch += 1
        for spec in self._sources:
            spec.source.commit({part: at["position"] for part, at in ends[spec.name].items()})
        return result

    def _source_frames(self, ends: dict[str, Offsets]) -> Iterator[Frame]:
        for spec in self._sources:
            start = self.checkpoint.offsets.get(spec.name, {})
            end = ends[spec.name]
            ranges = ranges_between(spec.source, start or initial_offsets(spec.source), end)
            task = SourceTask(spec)
            for frame in task.read_ranges(spec.source, ranges, source_ends(spec.source, start, end)):
                yield _through_bytes(frame)

    def _deliver(self, waiting: dict[tuple[int, int], list[Frame]], passed: dict[str, list[int]]) -> BatchResult:
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
        return BatchResult(self.checkpoint.batch, dict(elements), watermarks, passed)


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
