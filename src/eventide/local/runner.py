"""Runs a plan in this process: the same tasks, frames and state as on Spark, one micro-batch after the other."""

from __future__ import annotations

import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from eventide.common.job import BatchProgress
from eventide.connectors.sink import CollectSink, PrintSink
from eventide.errors import ProgramError
from eventide.local.file_sink import LocalFiles, is_of_files
from eventide.pickling.pickles import bring
from eventide.plan.job import JobPlan, SinkSpec
from eventide.runtime.exchange.frames import ALIGNMENT, METRICS, REACHED, Frame
from eventide.runtime.invoke import calling
from eventide.runtime.metrics import JobMetrics, gathered
from eventide.runtime.pickles import Copies
from eventide.runtime.sources.alignment import Facts
from eventide.runtime.sources.offsets import (
    Offsets,
    dealt_out,
    everything,
    identities,
    next_offsets,
    ranges_between,
    source_ends,
)
from eventide.runtime.sources.reached import Reached
from eventide.runtime.sources.task import SourceSpec, SourceTask
from eventide.runtime.state.backend import Backend, MemoryBackend
from eventide.runtime.tasks.stage import Stage
from eventide.runtime.tasks.task import TaskSpec, close_all, open_all

_PATIENCE_S = 0.05


@dataclass(frozen=True, slots=True)
class PlannedBatch:
    """A micro-batch that has begun.

    ``ends`` says where it ends, by the names of sources, ``clock_ms`` its time by the clock, in milliseconds since the
    epoch, and ``run`` which run of the job planned it, or None if idle timeouts do not start again with it.
    """

    ends: dict[str, Offsets]
    clock_ms: int
    run: str | None


@dataclass
class LocalCheckpoint:
    """All that survives a restart of a local run: where each source stands, and the state of each subtask of a stage.

    ``timers`` say when, by the clock, a subtask has to run without data too. ``planned`` is the micro-batch that was
    begun last, until it is done: one that fails is repeated as it was, at the same time by the clock. ``facts`` say how
    far the sources have come that wait for each other, ``reached`` where operators stand that tell tasks of sources.
    ``restore`` gives a subtask its share of a savepoint, when it first runs.
    """

    offsets: dict[str, Offsets] = field(default_factory=dict)
    state: dict[tuple[int, int], dict[str, bytes]] = field(default_factory=dict)
    timers: dict[tuple[int, int], int] = field(default_factory=dict)
    batch: int = 0
    planned: PlannedBatch | None = None
    facts: Facts = field(default_factory=dict)
    reached: Reached | None = None
    restore: Callable[[Stage, int, Backend], None] | None = None


@dataclass
class BatchResult:
    """Results of one micro-batch: elements with their timestamps by sink, and the progress of the job with it.

    ``passed`` are the watermarks on the way to those at its end, by operator and subtask.
    """

    elements: dict[int, list[tuple[Any, int | None]]]
    progress: BatchProgress
    passed: dict[str, dict[int, list[int]]] = field(default_factory=dict)

    @property
    def batch(self) -> int:
        """The number of the micro-batch, from 0."""
        return self.progress.batch

    @property
    def watermarks(self) -> dict[str, int]:
        """The watermark of each operator at its end."""
        return self.progress.watermarks


class LocalRunner:
    """Runs a job's micro-batches, each to its end before the next.

    With a ``checkpoint`` it goes on where that one stands; a micro-batch that fails leaves only its plan there. With
    ``available_now`` it ends with what the sources have when it starts, and timeouts of idleness go on from those of
    the run before. A plan ``in_batch`` is one micro-batch. The ``run`` is its name among the runs of the job; by
    default, none has had it before.
    """

    def __init__(
        self,
        plan: JobPlan,
        max_rows: int | None = None,
        clock: Callable[[], int] | None = None,
        checkpoint: LocalCheckpoint | None = None,
        available_now: bool = False,
        run: str | None = None,
    ) -> None:
        self._plan = plan
        self._sources = [_own(source).pruned() for source in plan.sources]
        self._opened = OpenedParts(self._sources, self._plan.stages, self._plan.registered_types)
        self._max_rows = max_rows
        self._clock = clock or (lambda: time.time_ns() // 1_000_000)
        self.checkpoint = checkpoint or LocalCheckpoint()
        begun = None if self.checkpoint.planned is None else self.checkpoint.batch
        self._files = {sink.number: LocalFiles(sink, begun) for sink in plan.sinks if is_of_files(sink)}
        self._available_now = available_now
        self._run = None if available_now else run or uuid.uuid4().hex
        self._targets: dict[str, dict[str, int]] = {}
        self._metrics = JobMetrics()

    def batches(self) -> Generator[BatchResult, None, None]:
        """Run until the sources have nothing more to give; meanwhile, those that wait for more let the clock go on."""
        try:
            self._resume()
            while True:
                bring(self._opened.classes)
                planned = self._next_batch()
                if planned is not None:
                    yield self._run_batch(planned)
                elif not self._wait():
                    return
                elif (ticked := self.tick()) is not None:
                    yield ticked
        finally:
            for spec in self._sources:
                spec.source.stop()
            self._opened.close()

    def tick(self) -> BatchResult | None:
        """Run a micro-batch for the clock alone; None if no operator has anything to do by it."""
        clock_ms, planned = self._clock(), self.checkpoint.planned
        if planned is None and min(self.checkpoint.timers.values(), default=clock_ms + 1) <= clock_ms:
            planned = self._plan_batch(self.checkpoint.offsets, clock_ms)
        return None if planned is None else self._run_batch(planned)

    def metrics(self) -> dict[str, dict[str, Any]]:
        """Return the metrics so far, by operator."""
        return self._metrics.values()

    def _resume(self) -> None:
        planned = self.checkpoint.planned
        offsets = self.checkpoint.offsets if planned is None else planned.ends
        for spec in self._sources:
            with calling(spec.name, during="while its source was planned"):
                spec.source.resume(identities(offsets.get(spec.name, {})))

    def _next_batch(self) -> PlannedBatch | None:
        """Return the micro-batch that was begun, or plan the next one; None if the sources have nothing new."""
        if self.checkpoint.planned is not None:
            return self.checkpoint.planned
        at = self.checkpoint.offsets
        if self._plan.in_batch:
            ends = {} if at else {spec.name: everything(spec.source) for spec in self._sources}
            return self._plan_batch(ends, self._clock()) if ends else None
        starts = {spec.name: at.get(spec.name, {}) for spec in self._sources}
        ends = {}
        for spec in self._sources:
            with calling(spec.name, during="while its source was planned"):
                if self._available_now and spec.name not in self._targets:
                    self._targets[spec.name] = spec.source.latest_positions()
                ends[spec.name] = next_offsets(
                    spec.source,
                    starts[spec.name],
                    self._max_rows,
                    self._targets.get(spec.name),
                    spec.audience,
                    spec.planned.standing(self.checkpoint.facts),
                )
        return None if ends == starts else self._plan_batch(ends, self._clock())

    def _plan_batch(self, ends: dict[str, Offsets], clock_ms: int) -> PlannedBatch:
        self.checkpoint.planned = PlannedBatch(ends, clock_ms, self._run)
        return self.checkpoint.planned

    def _wait(self) -> bool:
        """Wait a moment for sources that bring more by themselves; False where there are none."""
        return not self._available_now and any(spec.source.wait(_PATIENCE_S) for spec in self._sources)

    def _run_batch(self, planned: PlannedBatch) -> BatchResult:
        waiting: dict[tuple[int, int], list[Frame]] = defaultdict(list)
        ends, clock_ms, began = planned.ends, planned.clock_ms, time.monotonic()
        for frame in self._source_frames(ends, clock_ms):
            waiting[frame.target, frame.subtask].append(frame)
        state, timers = dict(self.checkpoint.state), dict(self.checkpoint.timers)
        passed: dict[str, dict[int, list[int]]] = {}
        for stage in self._plan.stages:
            for subtask in range(self._plan.parallelism):
                at = stage.number, subtask
                frames = [frame for target in sorted(stage.targets) for frame in waiting.pop((target, subtask), ())]
                if frames or timers.get(at, clock_ms + 1) <= clock_ms:
                    state[at] = dict(state.get(at, {}))
                    backend, opened = MemoryBackend(state[at]), self._opened.stage(stage.number, subtask)
                    if self.checkpoint.restore is not None:
                        self.checkpoint.restore(opened, subtask, backend)
                    run = opened.run(subtask, backend, clock_ms, planned.run)
                    for frame in run.run(frames):
                        waiting[frame.target, frame.subtask].append(_through_bytes(frame))
                    for operator, watermarks in run.passed.items():
                        passed.setdefault(operator, {})[subtask] = watermarks
                    timers.pop(at, None)
                    if run.next_clock_ms is not None:
                        timers[at] = run.next_clock_ms
        facts = self.checkpoint.facts
        for frame in waiting.pop((ALIGNMENT, 0), []):
            facts = frame.content["sources"]
        reached = Reached.told(self.checkpoint.batch, (frame.content for frame in waiting.pop((REACHED, 0), [])))
        said = [frame.content for frame in waiting.pop((METRICS, 0), [])]
        elements = self._deliver(waiting)
        batch = self.checkpoint.batch
        self.checkpoint.offsets, self.checkpoint.state, self.checkpoint.timers = ends, state, timers
        self.checkpoint.batch, self.checkpoint.planned = batch + 1, None
        self.checkpoint.facts, self.checkpoint.reached = facts, reached
        for spec in self._sources:
            spec.source.commit({part: at["position"] for part, at in ends.get(spec.name, {}).items()})
        took_ms = round((time.monotonic() - began) * 1000)
        progress = gathered(batch, said, self._metrics, began_ms=clock_ms, took_ms=took_ms)
        return BatchResult(elements, progress, passed)

    def _source_frames(self, ends: dict[str, Offsets], clock_ms: int) -> Iterator[Frame]:
        """Give the frames of all sources' tasks; as on Spark, no more tasks than subtasks, with whole splits."""
        for place, spec in enumerate(self._sources):
            start, end = self.checkpoint.offsets.get(spec.name, {}), ends.get(spec.name, {})
            ranges = ranges_between(spec.source, start, end)
            is_over = source_ends(spec.source, start, end)
            count = max(1 if is_over else 0, min(len(ranges), self._plan.parallelism))
            for number, dealt in enumerate(dealt_out(ranges, count)):
                own = self._opened.source(place, number)
                watermarks = own.watermarks_before(self.checkpoint.batch, self.checkpoint.reached)
                task = SourceTask(own, number, clock_ms, watermarks)
                for frame in task.read_ranges(own.source, dealt, is_over and number == 0):
                    yield _through_bytes(frame)

    def _deliver(self, waiting: dict[tuple[int, int], list[Frame]]) -> dict[int, list[tuple[Any, int | None]]]:
        """Give the sinks what came for them; return it by the number of the sink."""
        sinks = {sink.number: sink for sink in self._plan.sinks}
        elements: dict[int, list[tuple[Any, int | None]]] = defaultdict(list)
        for (number, _), frames in sorted(waiting.items()):
            for frame in frames:
                decoded = sinks[number].codec.decode(frame.content)
                elements[number] += zip(decoded.values, decoded.timestamps, strict=True)
        for number, rows in elements.items():
            if number in self._files:
                self._files[number].write([value for value, _ in rows], self.checkpoint.batch)
            else:
                _print(sinks[number], rows)
        return dict(elements)


class OpenedParts:
    """The sources and stages of a job, copied and opened for each of their subtasks that runs.

    ``classes`` are what is known of their classes, as on Spark.

    Raises:
        ProgramError: for what could not travel on Spark.
    """

    def __init__(
        self, sources: Sequence[SourceSpec], stages: Sequence[Stage], registered_types: Sequence[Any] = ()
    ) -> None:
        self._stages_at = {stage.number: len(sources) + place for place, stage in enumerate(stages)}
        self._copies = Copies(
            [(source, f"the source {source.name!r} or a function after it") for source in sources]
            + [(stage, f"an operator ({stage.name}) or a function after it") for stage in stages],
            registered_types,
        )
        self.classes = self._copies.classes
        self._opened: dict[tuple[int, int], Any] = {}

    def source(self, place: int, task: int) -> SourceSpec:
        """The source of a place, with the functions after it, as one of its tasks has them."""
        source: SourceSpec = self._part(place, task)
        return source

    def stage(self, number: int, subtask: int) -> Stage:
        """The stage of a number as one of its subtasks has it."""
        stage: Stage = self._part(self._stages_at[number], subtask)
        return stage

    def close(self) -> None:
        """Close the functions of all that were opened; another run gets others."""
        while self._opened:
            _, part = self._opened.popitem()
            close_all(*_functions_in(part))

    def _part(self, number: int, subtask: int) -> Any:
        at = number, subtask
        if at not in self._opened:
            part = self._copies.copy(number)
            open_all(*_functions_in(part), subtask)
            self._opened[at] = part
        return self._opened[at]


def _own(source: Any) -> SourceSpec:
    if not isinstance(source, SourceSpec):
        raise ProgramError(
            f"the source {source.name!r} is a Spark DataFrame, which the local environment cannot read; use "
            "from_collection or a ScriptedSource with the same elements in tests without Spark"
        )
    return source


def _through_bytes(frame: Frame) -> Frame:
    """Take the way that a frame takes on Spark, so that what fails there fails here."""
    return Frame.from_bytes(frame.target, frame.subtask, frame.to_bytes())


def _print(sink: SinkSpec, rows: Iterable[tuple[Any, int | None]]) -> None:
    if isinstance(sink.sink, PrintSink):
        for value, _ in rows:
            print(sink.sink.line(value))  # noqa: T201 - its purpose
    elif not isinstance(sink.sink, CollectSink):
        raise ProgramError(
            f"the sink {sink.name!r} ({sink.sink!r}) needs Spark; in the local environment use print(), a FileSink or "
            "execute_and_collect()"
        )


def _functions_in(part: SourceSpec | Stage) -> tuple[tuple[SourceSpec, ...], tuple[TaskSpec, ...]]:
    return ((), part.tasks) if isinstance(part, Stage) else ((part,), ())
