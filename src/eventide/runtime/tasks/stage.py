"""A stage: what runs behind a shuffle, with the functions chained to it, in one subtask and micro-batch."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from eventide.common._ms import MAX_MS, add_ms
from eventide.errors import StateError
from eventide.runtime.chain.chain import ChainNode, ChainRun, Edge
from eventide.runtime.elements.columns import Batch
from eventide.runtime.eventtime.combiner import Progress
from eventide.runtime.eventtime.gate import Gate, GateInput
from eventide.runtime.eventtime.generators import ChannelWatermarks, Generators, HighestTimestamp
from eventide.runtime.exchange.frames import METRICS_STAGE, Frame, Signal
from eventide.runtime.exchange.inbox import Inbox
from eventide.runtime.exchange.outlets import Codec
from eventide.runtime.exchange.reports import END_OF_BATCH, END_OF_INPUT, START_OF_BATCH, Report
from eventide.runtime.exchange.router import Router, report_frames
from eventide.runtime.identity import differences
from eventide.runtime.invoke import calling
from eventide.runtime.metrics import RECORDS_IN, RECORDS_OUT, TIMERS_LEFT, Metrics
from eventide.runtime.state.backend import StateBackend

_GATE = "gate"
_NOTHING = Progress()


class Operator(Protocol):
    """What works in a stage: it takes elements and watermarks, and keeps its state in a backend."""

    def process(self, parts: list[Any]) -> None:
        """Handle what came on the edges, put in order, all under the current watermark."""

    def reacts_to(self, watermark_ms: int) -> bool:
        """Whether it matters when exactly, between two elements, the watermark moves there: if not, it may be later."""

    def advance(self, watermark_ms: int) -> None:
        """Move the watermark, and fire all that it passes."""

    def advance_clock(self, clock_ms: int) -> None:
        """Fire what was to happen by a time of the clock: processing time."""

    @property
    def next_clock_ms(self) -> int | None:
        """The time by the clock at which it has something to do, with no data too; None if never."""

    def timers_left(self) -> int:
        """How many timers of processing time are set, which never fire when the input has ended."""

    def take_outputs(self) -> dict[str | None, Batch]:
        """Give away what came out since the last call, by side output (None: the main one)."""

    def flush(self) -> None:
        """Store the state; called once, at the end of the micro-batch."""


class OperatorSpec(Protocol):
    """Describes an operator; picklable, and opened by each task."""

    @property
    def name(self) -> str:
        """The operator's name."""

    def open(
        self, backend: StateBackend, max_parallelism: int, metrics: Metrics, watermark_ms: int, clock_ms: int
    ) -> Operator:
        """The operator on its state, under the watermark that it stands at."""

    @property
    def needs_clock(self) -> bool:
        """Whether it may have something to do when only the clock has gone on."""

    def user_functions(self) -> list[Any]:
        """The functions that the user wrote, to be opened and closed."""

    def describe(self) -> list[tuple[str, str]]:
        """What ``explain`` says of it: topic and text, line by line."""


class Task(Protocol):
    """One subtask of a stage during one micro-batch; ``watermarks`` are those that its operator reached in it."""

    watermarks: list[int]

    @property
    def next_clock_ms(self) -> int | None:
        """The time by the clock at which this subtask must run again, with no data too; None if it need not."""

    def run(self, frames: Iterable[Frame]) -> Iterator[Frame]:
        """Handle the frames of a micro-batch for this subtask, give those for the next stages, and store the state.

        There are no frames where only the clock has gone on.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSpec(ABC):
    """All that a host must know to run a stage; picklable.

    ``number`` is where frames for it are addressed to, ``identity`` what its stored state depends on, ``speed`` whether
    it works on columns or elements, and why. With ``in_batch`` all input comes at once: no watermark comes before its
    end, and what waits for the clock happens then. ``job_parameters`` are what the functions may ask for.
    """

    number: int
    name: str
    inputs: tuple[GateInput, ...]
    root: ChainNode
    parallelism: int
    max_parallelism: int
    identity: dict[str, str] = field(default_factory=dict)
    speed: str = ""
    in_batch: bool = False
    job_parameters: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_generators(self) -> bool:
        """Whether watermark generators of the user's work in its tasks."""
        return any(step.strategy.is_supplied for step in self.root.assigners())

    @property
    @abstractmethod
    def needs_clock(self) -> bool:
        """Whether its tasks have to run when only the clock has gone on."""

    @abstractmethod
    def task(self, subtask: int, backend: StateBackend, clock_ms: int) -> Task:
        """One of its subtasks, on its state, in a micro-batch of a time by the clock."""

    @abstractmethod
    def user_functions(self) -> list[Any]:
        """The functions that the user wrote for its operator, to be opened and closed."""

    @abstractmethod
    def describe(self) -> list[tuple[str, str]]:
        """What ``explain`` says of it: topic and text, line by line."""

    def checked_state(self, stored: bytes) -> dict[str, Any]:
        """What a task stored of itself, if the program is still the one that stored it.

        Raises:
            StateError: if it is not, saying what differs.
        """
        content: dict[str, Any] = json.loads(stored)
        changes = differences(content["identity"], self.identity)
        if changes:
            raise StateError(
                f"the state of operator {self.name!r} was made by another program: {'; '.join(changes)}. "
                "Start with a new checkpoint location, or undo these changes"
            )
        return content


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorStage(StageSpec):
    """A stage with an operator; ``codecs`` say how the elements of each incoming edge travel."""

    operator: OperatorSpec
    codecs: dict[int, Codec]

    @property
    def needs_clock(self) -> bool:
        """Whether its tasks have to run when only the clock has gone on."""
        idleness = any(i.idle_after_ms is not None for i in self.inputs)
        return self.has_generators or idleness or self.operator.needs_clock

    def task(self, subtask: int, backend: StateBackend, clock_ms: int) -> OperatorTask:
        """One of its subtasks, on its state, in a micro-batch of a time by the clock."""
        return OperatorTask(self, subtask, backend, clock_ms)

    def user_functions(self) -> list[Any]:
        """The functions of the operator."""
        return self.operator.user_functions()

    def describe(self) -> list[tuple[str, str]]:
        """What the operator says of itself."""
        return self.operator.describe()


class OperatorTask:
    """One subtask of an operator's stage during one micro-batch.

    The frames of the batch are put into one defined order, so that a batch that is run again gives the same output.
    Point by point, the elements are handled first, under the watermark as it stands; then what was reported takes
    effect together, the operator fires what the new watermark passes, and the results go out before the watermark.
    Processing time is that of the micro-batch: what was due before it fires before the elements, what is due at it
    behind them.
    """

    def __init__(self, spec: OperatorStage, subtask: int, backend: StateBackend, clock_ms: int) -> None:
        self._spec = spec
        self._subtask = subtask
        self._backend = backend
        self._clock_ms = clock_ms
        self._gate = Gate(spec.inputs)
        self._stored = backend.get(_GATE)
        if self._stored is not None:
            self._gate.restore(spec.checked_state(self._stored)["gate"])
        self._metrics = Metrics()
        self._operator = spec.operator.open(
            backend, spec.max_parallelism, self._metrics, self._gate.watermark, clock_ms
        )
        self._channel = str(subtask)
        self._generators = Generators(backend, clock_ms, in_batch=spec.in_batch) if spec.has_generators else None
        self._markers = {s.number: self._marker(place, s) for place, s in enumerate(spec.root.assigners())}
        self._router = Router(spec.root, self._channel, subtask, subtask)
        self._run = ChainRun(self._router.send, self._markers)
        self._edges = spec.root.all_edges()
        self._reports: list[Report] = []
        self.watermarks: list[int] = []
        self._sent = 0

    def run(self, frames: Iterable[Frame]) -> Iterator[Frame]:
        """Handle the frames of a micro-batch for this subtask, give those for the next stages, and store the state.

        There are none where only the clock has gone on.
        """
        inbox = Inbox(frames, self._spec.codecs)
        self._operator.advance_clock(add_ms(self._clock_ms, -1))
        yield from self._send_outputs(START_OF_BATCH)
        for point in inbox.points():
            progress = self._progress(point, inbox)
            if self._can_wait(point, progress):
                self._report(point, progress)
            else:
                yield from self._run_to(point, inbox, progress)
        for edge in self._edges:
            yield from report_frames(edge, self._reports_on(edge))
        self._store()
        yield self._metrics_frame()

    @property
    def next_clock_ms(self) -> int | None:
        """The time by the clock at which this subtask must run again, with no data too; None if it need not."""
        times = [self._gate.next_clock_ms, self._operator.next_clock_ms]
        if self._generators is not None and self._gate.watermark != MAX_MS:
            times.append(self._clock_ms + 1)
        return min((ms for ms in times if ms is not None), default=None)

    def _marker(self, place: int, step: Any) -> ChannelWatermarks:
        if self._generators is None or not step.strategy.is_supplied:
            return HighestTimestamp(step, self._channel)
        return self._generators.run(str(place), step, self._channel, is_split=False)

    def _progress(self, point: int, inbox: Inbox) -> Progress:
        reports = inbox.reports(point)
        if point == END_OF_BATCH:
            return self._gate.end_batch(reports, self._clock_ms)
        if point == END_OF_INPUT:
            return self._gate.end_input(reports, inbox.ended_sources)
        return self._gate.advance(reports)

    def _can_wait(self, point: int, progress: Progress) -> bool:
        """Whether elements need not be cut here, because it makes no difference to them or to what comes out."""
        if point >= END_OF_BATCH or progress.idle is not None:
            return False
        return progress.watermark is None or not self._operator.reacts_to(progress.watermark)

    def _report(self, point: int, progress: Progress) -> None:
        """Take note of what changed at a point, for the stages behind."""
        if progress.watermark is not None:
            self.watermarks.append(progress.watermark)
        if progress != _NOTHING:
            self._reports.append(Report(self._channel, point, progress.watermark, progress.idle))

    def _run_to(self, point: int, inbox: Inbox, progress: Progress) -> Iterator[Frame]:
        parts = inbox.elements_until(point)
        if parts:
            self._metrics.count(self._spec.name, RECORDS_IN, sum(map(len, parts)))
            self._operator.process(parts)
        if progress.watermark is not None:
            self._operator.advance(progress.watermark)
        if point == END_OF_BATCH:
            self._operator.advance_clock(self._clock_ms)
        elif point == END_OF_INPUT and self._spec.in_batch:
            self._operator.advance_clock(MAX_MS)
        if point == END_OF_INPUT and progress.watermark == MAX_MS:
            self._metrics.count(self._spec.name, TIMERS_LEFT, self._operator.timers_left())
        yield from self._send_outputs(point)
        self._report(point, progress)
        if point == END_OF_BATCH:
            for marker in self._markers.values():
                marker.end_batch()
            self._sent = END_OF_BATCH + 1

    def _send_outputs(self, point: int) -> Iterator[Frame]:
        outputs = self._operator.take_outputs()
        count = sum(map(len, outputs.values()))
        if count:
            self._metrics.count(self._spec.name, RECORDS_OUT, count)
            self._run.push(self._spec.root, self._in_sequence(outputs))
            yield from self._router.element_frames(point)

    def _in_sequence(self, outputs: dict[str | None, Batch]) -> dict[str | None, Batch]:
        """Where a generator looks at the output, its elements are numbered through over the points of the batch."""
        if self._generators is None:
            return outputs
        base, self._sent = self._sent, self._sent + max(map(len, outputs.values()))
        return outputs if base == 0 else {tag: batch.shifted(base) for tag, batch in outputs.items()}

    def _reports_on(self, edge: Edge) -> list[Report]:
        """What this subtask says on an edge; an assigner on the way replaces all but the last watermark."""
        if edge.assigner is None:
            return self._reports
        last = [Report(r.channel, r.point, r.watermark) for r in self._reports if r.watermark == MAX_MS]
        return [*self._markers[edge.assigner].reports(), *last]

    def _store(self) -> None:
        with calling(self._spec.name, during="when its state was stored"):
            self._operator.flush()
        if self._generators is not None:
            self._generators.flush()
        stored = json.dumps({"identity": self._spec.identity, "gate": self._gate.snapshot()}).encode()
        if stored != self._stored:
            self._backend.put(_GATE, stored)

    def _metrics_frame(self) -> Frame:
        content: dict[str, Any] = {"operators": self._metrics.counters()}
        if self._subtask == 0:
            content["watermarks"] = {self._spec.name: self._gate.watermark}
            content["splits"] = self._gate.split_watermarks()
        return Frame(METRICS_STAGE, 0, Signal.METRICS, 0, 0, "", content)
