"""A keyed stage: one operator behind a shuffle, with the functions chained to it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from eventide.common._ms import MAX_MS
from eventide.errors import StateError
from eventide.runtime.chain import ChainNode, ChainRun, Edge
from eventide.runtime.columns import Batch
from eventide.runtime.events import Signal
from eventide.runtime.eventtime.combiner import Progress
from eventide.runtime.eventtime.gate import Gate, GateInput
from eventide.runtime.frames import METRICS_STAGE, Frame
from eventide.runtime.identity import differences
from eventide.runtime.invoke import calling
from eventide.runtime.metrics import RECORDS_IN, RECORDS_OUT, Metrics
from eventide.runtime.outlets import Codec
from eventide.runtime.router import Router
from eventide.runtime.state.backend import StateBackend

_GATE = "gate"


class Operator(Protocol):
    """What works in a stage: it takes elements and watermarks, and keeps its state in a backend."""

    def process(self, parts: list[Any]) -> None:
        """Handle what came on the edges, put in order, all under the current watermark."""

    def advance(self, watermark_ms: int) -> None:
        """Move the watermark, and fire all that it passes."""

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

    def user_functions(self) -> list[Any]:
        """The functions that the user wrote, to be opened and closed."""

    def describe(self) -> list[tuple[str, str]]:
        """What ``explain`` says of it: topic and text, line by line."""


@dataclass(frozen=True, slots=True)
class StageSpec:
    """All that a host must know to run a stage; picklable.

    ``number`` is where frames for it are addressed to, ``codecs`` how the elements of each incoming edge travel,
    ``identity`` what its stored state depends on, ``speed`` whether it works on columns or elements, and why.
    """

    number: int
    name: str
    operator: OperatorSpec
    inputs: tuple[GateInput, ...]
    codecs: dict[int, Codec]
    root: ChainNode
    parallelism: int
    max_parallelism: int
    identity: dict[str, str] = field(default_factory=dict)
    speed: str = ""


class StageTask:
    """One subtask of a stage during one micro-batch.

    The frames of the batch are put into one defined order, so that a batch that is run again gives the same output.
    Round by round, the elements are handled first, under the watermark as it stands; then the signals take effect
    together, the operator fires what the new watermark passes, and the results go out before the watermark.
    """

    def __init__(self, spec: StageSpec, subtask: int, backend: StateBackend, clock_ms: int) -> None:
        self._spec = spec
        self._subtask = subtask
        self._backend = backend
        self._gate = Gate(spec.inputs)
        self._stored = backend.get(_GATE)
        if self._stored is not None:
            content = json.loads(self._stored)
            changes = differences(content["identity"], spec.identity)
            if changes:
                raise StateError(
                    f"the state of operator {spec.name!r} was made by another program: {'; '.join(changes)}. "
                    "Start with a new checkpoint location, or undo these changes"
                )
            self._gate.restore(content["gate"])
        self._metrics = Metrics()
        self._operator = spec.operator.open(
            backend, spec.max_parallelism, self._metrics, self._gate.watermark, clock_ms
        )
        self._router = Router(spec.root, str(subtask), subtask)

    def run(self, frames: Iterable[Frame]) -> Iterator[Frame]:
        """Handle the frames of a micro-batch for this subtask, give those for the next stages, and store the state."""
        rounds: dict[int, list[Frame]] = {}
        for frame in frames:
            rounds.setdefault(frame.round, []).append(frame)
        for round_ in sorted(rounds):
            yield from self._run_round(round_, rounds[round_])
        with calling(self._spec.name, during="when its state was stored"):
            self._operator.flush()
        stored = json.dumps({"identity": self._spec.identity, "gate": self._gate.snapshot()}).encode()
        if stored != self._stored:
            self._backend.put(_GATE, stored)
        yield self._metrics_frame()

    def _run_round(self, round_: int, frames: list[Frame]) -> Iterator[Frame]:
        parts = [
            (frame.edge, frame.channel, self._spec.codecs[frame.edge].decode(frame.content))
            for frame in frames
            if frame.signal is Signal.ELEMENTS
        ]
        if parts:
            parts.sort(key=lambda part: (part[0], part[1], part[2].place))
            self._metrics.count(self._spec.name, RECORDS_IN, sum(len(part[2]) for part in parts))
            self._operator.process([part[2] for part in parts])
        for frame in sorted(frames, key=lambda f: (f.edge, f.channel, f.signal)):
            if frame.signal is not Signal.ELEMENTS:
                self._gate.receive(frame.signal, frame.edge, frame.channel, frame.content)
        progress = self._gate.advance()
        if progress.watermark is not None:
            self._operator.advance(progress.watermark)
        yield from self._send_outputs(round_, progress)

    def _send_outputs(self, round_: int, progress: Progress) -> Iterator[Frame]:
        run = ChainRun(self._router.send)
        outputs = self._operator.take_outputs()
        self._metrics.count(self._spec.name, RECORDS_OUT, sum(map(len, outputs.values())))
        run.push(self._spec.root, outputs)
        yield from self._router.element_frames(round_)
        for edge in self._spec.root.all_edges():
            yield from self._signals(edge, round_, progress, run)

    def _signals(self, edge: Edge, round_: int, progress: Progress, run: ChainRun) -> Iterator[Frame]:
        """The status and watermark on one edge; an assigner on the way replaces both, but for the last watermark."""
        if progress.idle is False and edge.assigner is None:
            yield from self._router.signal_frames(edge, Signal.ACTIVE, round_)
        watermark = progress.watermark
        if edge.assigner is not None and watermark != MAX_MS:
            watermark = run.watermark_of(self._spec.root, edge.assigner)
        if watermark is not None:
            yield from self._router.signal_frames(edge, Signal.WATERMARK, round_, watermark)
        if progress.idle and edge.assigner is None:
            yield from self._router.signal_frames(edge, Signal.IDLE, round_)

    def _metrics_frame(self) -> Frame:
        content: dict[str, Any] = {"operators": self._metrics.counters()}
        if self._subtask == 0:
            content["watermarks"] = {self._spec.name: self._gate.watermark}
            content["splits"] = self._gate.split_watermarks()
        return Frame(METRICS_STAGE, 0, Signal.METRICS, 0, 0, "", content)
