"""One micro-batch of an operator in one subtask, from the frames that come to the frames that go."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from eventide.api.functions import RuntimeContext
from eventide.common.ms import MAX_MS, MIN_MS, add_ms
from eventide.runtime.chain.chain import ChannelOutput, report_frames
from eventide.runtime.chain.chained_operators import Moment
from eventide.runtime.chain.watermarks import ChannelWatermarks, Generators, HighestTimestamp
from eventide.runtime.elements.elements import Elements
from eventide.runtime.eventtime.combiner import Progress
from eventide.runtime.eventtime.valve import WatermarkValve
from eventide.runtime.exchange.frames import (
    END_OF_BATCH,
    END_OF_INPUT,
    PIECE_BYTES,
    REACHED,
    START_OF_BATCH,
    Edge,
    Frame,
    Inbox,
    Signal,
    WatermarkReport,
)
from eventide.runtime.exchange.partitioners import Codec
from eventide.runtime.invoke import calling
from eventide.runtime.metrics import RECORDS_IN, RECORDS_OUT, TIMERS_LEFT, Metrics
from eventide.runtime.observation.observers import OperatorObserver
from eventide.runtime.state.backend import Backend
from eventide.runtime.state.journal import Journal
from eventide.runtime.tasks.operator import OpenOperator, OperatorContext, OperatorSpec
from eventide.runtime.tasks.task import Task, TaskSpec

_GATE = "gate"
_NOTHING = Progress()


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorTaskSpec(TaskSpec):
    """The tasks of an operator; ``codecs`` say how the elements of each edge travel, ``input_of`` where they lead.

    ``operator`` describes it, and ``open`` makes it of its description. Elements of the ``broadcast_input``, if there
    is one, come before those of other inputs at one point. If it ``tells_watermark``, its first subtask says where it
    stands after each micro-batch: all have the same watermark, because all hear the same sources.
    """

    operator: OperatorSpec
    open: OpenOperator
    codecs: dict[int, Codec]
    input_of: dict[int, int]
    broadcast_input: int | None = None
    tells_watermark: bool = False

    @property
    def needs_clock(self) -> bool:
        return self._watches_clock or self.operator.needs_clock

    @property
    def runs_without_data(self) -> bool:
        return self._watches_clock or self.operator.runs_without_data

    @property
    def _watches_clock(self) -> bool:
        """Whether its watermarks may follow the clock, whatever the operator does."""
        return self.has_generators or any(edge.idle_after_ms is not None for edge in self.edges)

    @property
    def first_speaks_for_all(self) -> bool:
        """Whether the first subtask reports its watermarks in place of all, which have the same ones.

        All hear the same reports. Without reports they run only for elements, which move no watermark. The clock may
        have some of them run and not the others, and generators of its output look at the elements of one subtask.
        With `n` subtasks and `m` after them, there are `m` rows of reports where there would be `n` times `m`.
        """
        return not self.needs_clock

    def task(self, subtask: int, backend: Backend, clock_ms: int, run: str | None = None) -> OperatorTask:
        return OperatorTask(self, subtask, backend, clock_ms, run)

    def runtime_context(self) -> RuntimeContext:
        """The runtime context of its operator's functions: where they work, and where their state is."""
        return replace(TaskSpec.runtime_context(self), state=self.operator.state_of_functions)

    def user_functions(self) -> list[Any]:
        return self.operator.user_functions()

    def describe(self) -> list[tuple[str, str]]:
        return self.operator.describe()


class OperatorTask(Task):
    """One subtask of an operator during one micro-batch.

    The frames of the batch are put into one defined order, so that a batch that is run again gives the same output.
    Point by point, the elements are handled first, under the watermark as it stands; then what was reported takes
    effect together, the operator fires what the new watermark passes, and the results go out before the watermark.
    Processing time is that of the micro-batch: what was due before it fires before the elements, what is due at it
    after them.
    """

    def __init__(
        self, spec: OperatorTaskSpec, subtask: int, backend: Backend, clock_ms: int, run: str | None = None
    ) -> None:
        self._spec = spec
        self._subtask = subtask
        self._clock_ms = clock_ms
        self._valve = WatermarkValve(spec.edges, in_batch=spec.in_batch)
        self._reports: list[WatermarkReport] = []
        self._gate = Journal(backend, _GATE)
        if not spec.in_batch:
            self._begin(self._gate.content or {})
            self._valve.begin_run(run)
        self._metrics = Metrics(clock_ms, spec.dead_letter_limits, spec.search.begin(subtask, clock_ms))
        self._operator = spec.open(
            spec.operator,
            backend,
            OperatorContext(
                spec.max_parallelism,
                self._metrics,
                self._valve.watermark,
                clock_ms,
                spec.in_batch,
                replace(spec.runtime_context(), index=subtask),
            ),
        )
        self._observer = OperatorObserver(
            spec.name, spec.edges, subtask, backend, self._metrics, clock_ms, in_batch=spec.in_batch
        )
        self._observer.begin_batch(self._valve.watermark, self._operator.late_until)
        self._channel = str(subtask)
        self._generators = Generators(backend, clock_ms, in_batch=spec.in_batch) if spec.has_generators else None
        self._watermarks_of = {s.number: self._watermarks(s) for s in spec.root.assigners()}
        self._moment = Moment(self._valve.watermark, clock_ms)
        self._output = ChannelOutput(
            spec.root, self._channel, subtask, subtask, self._watermarks_of, self._metrics, self._moment
        )
        self._edges = spec.root.all_edges()
        self.passed: list[int] = []
        self._sent = 0

    def run(self, frames: Iterable[Frame]) -> Iterator[Frame]:
        inbox = Inbox(frames, self._spec.codecs, PIECE_BYTES)
        if not self._spec.in_batch:
            self._operator.advance_clock(add_ms(self._clock_ms, -1))
        yield from self._send_outputs(START_OF_BATCH)
        for point in inbox.points():
            progress = self._progress(point, inbox)
            if self._can_wait(point, progress):
                self._report(point, progress)
            else:
                yield from self._run_to(point, inbox, progress)
        self._metrics.check_dead_letters()
        for edge in self._edges:
            yield from report_frames(edge, self._reports_on(edge))
        self._store()
        self._observer.end_batch(inbox, self._valve, self._operator.held())
        if self._spec.tells_watermark and self._subtask == 0:
            content = {"audience": self._spec.audience, "watermarks": {self._spec.id: self._valve.watermark}}
            yield Frame(REACHED, 0, Signal.METRICS, END_OF_BATCH, 0, "", content)

    @property
    def next_clock_ms(self) -> int | None:
        times = [self._valve.next_clock_ms, self._operator.next_clock_ms]
        if self._generators is not None and self._valve.watermark != MAX_MS:
            times.append(self._clock_ms + 1)
        return min((ms for ms in times if ms is not None), default=None)

    def metrics(self) -> dict[str, Any]:
        """Return the counters, and, from the first subtask, the watermarks of the operator and of the splits.

        Another subtask that holds nothing, as before, does not say so.
        """
        held = dict(self._operator.held()) if self._observer.holds_something or self._subtask == 0 else {}
        content: dict[str, Any] = {
            "operators": self._metrics.counters(),
            "functions": self._spec.function_metrics.take(self._subtask, self._clock_ms),
            "held": [[self._spec.name, self._subtask, held]] if held else [],
        }
        if self._subtask == 0:
            content["watermarks"] = {self._spec.name: self._valve.watermark}
            content["splits"] = self._valve.split_watermarks()
        return content

    def _begin(self, known: Mapping[str, Any]) -> None:
        """Go on where the micro-batch before ended; an audience that does not know where that is has to be told.

        It may have state from a savepoint, which it takes when it runs, and it runs when it hears something.
        """
        if known:
            self._valve.restore(known)
        if known.get("audience") != self._spec.audience:
            self._reports.append(
                WatermarkReport(str(self._subtask), START_OF_BATCH, self._valve.watermark, self._valve.idle or None)
            )

    def _watermarks(self, operator: Any) -> ChannelWatermarks:
        if self._generators is None or not operator.strategy.is_supplied:
            return HighestTimestamp(operator, self._channel)
        return self._generators.run(operator.id, operator, self._channel, is_split=False)

    def _progress(self, point: int, inbox: Inbox) -> Progress:
        """Let what is reported at a point through the valve."""
        reports = inbox.reports(point)
        if point == END_OF_INPUT:
            return self._valve.end_input(reports, inbox.ended_sources)
        if point == END_OF_BATCH:
            return self._valve.end_batch(reports, self._clock_ms, inbox.ended_sources)
        return self._valve.advance(reports)

    def _can_wait(self, point: int, progress: Progress) -> bool:
        """Whether elements may stay uncut here, because the results are equal.

        In batch execution all of them come before anything happens.
        """
        if self._spec.in_batch:
            return point < END_OF_INPUT
        if point >= END_OF_BATCH or progress.idle is not None:
            return False
        return progress.watermark is None or not self._operator.reacts_to(progress.watermark)

    def _report(self, point: int, progress: Progress) -> None:
        """Take note of what changed at a point, for the operators downstream."""
        if progress.watermark is not None:
            self.passed.append(progress.watermark)
            self._moment.watermark = progress.watermark
        if progress != _NOTHING:
            self._reports.append(WatermarkReport(self._channel, point, progress.watermark, progress.idle))

    def _run_to(self, point: int, inbox: Inbox, progress: Progress) -> Iterator[Frame]:
        yield from self._receive(inbox, point)
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
            for watermarks in self._watermarks_of.values():
                watermarks.end_batch(is_asked=True)
            self._sent = END_OF_BATCH + 1

    def _receive(self, inbox: Inbox, point: int) -> Iterator[Frame]:
        """Hand the elements up to a point to the operator, input by input; give the results between their pieces.

        The broadcast input comes first. In batch execution the others follow in the order of timestamps, where the
        operator has keys or windows; else those of an input come in pieces, where there are many.
        """
        inputs: dict[int, list[int]] = {number: [] for number in sorted({*self._spec.input_of.values()})}
        for edge, number in self._spec.input_of.items():
            inputs[number].append(edge)
        before = None
        for number, parts in self._in_turn(inbox, point, inputs):
            if number == before and not self._spec.in_batch:
                yield from self._send_outputs(point)
            before = number
            self._metrics.count(self._spec.name, RECORDS_IN, sum(map(len, parts)))
            self._operator.inputs[number](parts)

    def _in_turn(self, inbox: Inbox, point: int, inputs: dict[int, list[int]]) -> Iterator[tuple[int, list[Any]]]:
        """Payloads in the order in which they are handled, each with the number of its input."""
        first, sort = self._spec.broadcast_input, self._spec.operator.sort_inputs
        if first is not None:
            yield from ((first, parts) for parts in inbox.pieces_until(point, inputs.pop(first)))
        if self._spec.in_batch and sort is not None:
            payloads: dict[int, list[Any]] = {}
            for edge, payload in inbox.elements_until(point):
                payloads.setdefault(self._spec.input_of[edge], []).append(payload)
            yield from ((number, [payload]) for number, payload in sort({n: payloads[n] for n in sorted(payloads)}))
            return
        for number, edges in inputs.items():
            yield from ((number, parts) for parts in inbox.pieces_until(point, edges))

    def _send_outputs(self, point: int) -> Iterator[Frame]:
        outputs = self._operator.take_outputs()
        self._metrics.rest()
        count = sum(map(len, outputs.values()))
        if count:
            self._metrics.count(self._spec.name, RECORDS_OUT, count)
            self._output.push(self._in_sequence(outputs))
            yield from self._output.element_frames(point)

    def _in_sequence(self, outputs: Mapping[str | None, Elements]) -> Mapping[str | None, Elements]:
        """The elements of the output, numbered through over the points of the micro-batch: that is their order."""
        base, self._sent = self._sent, self._sent + max(map(len, outputs.values()))
        return outputs if base == 0 else {tag: batch.shifted(base) for tag, batch in outputs.items()}

    def _reports_on(self, edge: Edge) -> list[WatermarkReport]:
        """The reports of this subtask on an edge; an assigner on the way replaces all but the last watermark."""
        if edge.assigner is None:
            return [] if self._subtask and self._spec.first_speaks_for_all else self._reports
        first = [WatermarkReport(r.channel, r.point, MIN_MS) for r in self._reports if r.point == START_OF_BATCH]
        last = [WatermarkReport(r.channel, r.point, r.watermark) for r in self._reports if r.watermark == MAX_MS]
        return [*first, *self._watermarks_of[edge.assigner].reports(), *last]

    def _store(self) -> None:
        with calling(self._spec.name, during="when its state was stored"):
            self._operator.flush()
        if self._generators is not None:
            self._generators.flush()
        self._gate.write({**self._valve.snapshot(), "audience": self._spec.audience})
