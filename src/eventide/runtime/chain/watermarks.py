"""Where watermarks of a chain come from: the highest timestamp of a split, or a generator that the user wrote.

``Emitter`` is the output of a generator: its watermarks become reports, each at its point of the micro-batch.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from eventide.common.learnt import Learnt, Snapshot
from eventide.common.ms import MIN_MS
from eventide.common.timestamp_assigner import FunctionAssigner, SuppliedAssigner, TimestampAssigner
from eventide.common.watermark import Watermark
from eventide.common.watermark_generator import (
    BatchWatermarkOutput,
    VectorizedWatermarkGenerator,
    WatermarkGenerator,
    WatermarkGeneratorContext,
)
from eventide.common.watermark_generators import SuppliedGenerator
from eventide.errors import DataError, ProgramError, StateError
from eventide.pickling.pickles import dumps, loads
from eventide.runtime.chain.chained_operators import HANDLING
from eventide.runtime.chain.timestamps import AssignTimestamps, highest_timestamp
from eventide.runtime.elements.elements import Columns, Elements
from eventide.runtime.elements.ownership import only_looks, own_each
from eventide.runtime.exchange.frames import END_OF_BATCH, END_OF_INPUT, START_OF_BATCH, WatermarkReport
from eventide.runtime.invoke import calling, last_of, user_function_error
from eventide.runtime.state.backend import Backend

_STATE = "generators"

KeptGenerator: TypeAlias = tuple[Snapshot, int, bool, int]
"""Stored form of a generator: its gained state, its last watermark, whether it is idle, and when it was first made."""


class Emitter(BatchWatermarkOutput):
    """The output of the generator of one channel, for one micro-batch.

    ``point`` is where the channel stands, ``points`` where each row of a batch does. If it ``is_periodic``, nothing may
    be said before the end of the micro-batch; if it ``is_muted``, what is said is not heard. A watermark that does not
    rise is ignored, but for this: that of a split says that the split is active, and that of an operator does not (as
    in Flink's output multiplexer, and in its ``TimestampsAndWatermarksOperator``). The source, or the clock, may have
    made the channel idle since the last micro-batch: so it is said in each, once, that the channel is active.
    """

    def __init__(self, channel: str, *, is_split: bool, watermark: int = MIN_MS, idle: bool = False) -> None:
        self._channel = channel
        self._is_split = is_split
        self.watermark = watermark
        self.idle = idle
        self.is_periodic = False
        self.is_muted = False
        self.point = START_OF_BATCH
        self.points: Any = None
        self.spoke = False
        self._may_be_idle = True
        self._reports: list[WatermarkReport] = []

    def emit_watermark(self, watermark: Watermark) -> None:
        """Emit a watermark at the current point."""
        if not isinstance(watermark, Watermark):
            raise DataError(f"emit_watermark takes a Watermark, such as Watermark(timestamp - 1), not {watermark!r}")
        if not self._may_speak():
            return
        rises = watermark.timestamp > self.watermark
        if rises:
            self.watermark = watermark.timestamp
        if rises or (self._is_split and self._may_be_idle):
            self._say(self.watermark)

    def emit_watermarks(self, rows: object, timestamps: object) -> None:
        """Emit watermarks after some rows of the current batch."""
        indices, times = np.asarray(rows, np.int64), np.asarray(timestamps, np.int64)
        ascending = len(indices) == 0 or (indices[0] >= 0 and bool((np.diff(indices) >= 0).all()))
        if len(indices) != len(times) or not ascending:
            raise DataError(
                "emit_watermarks takes the numbers of rows in ascending order, and a timestamp for each; it got "
                f"{len(indices)} rows and {len(times)} timestamps"
            )
        behind_all = self.point
        for row, time_ms in zip(indices.tolist(), times.tolist(), strict=True):
            if time_ms > self.watermark or self._may_be_idle:
                self.point = int(self.points[row])
                self.emit_watermark(Watermark(time_ms))
        self.point = behind_all

    def _may_speak(self) -> bool:
        if self.is_periodic and self.point < END_OF_BATCH:
            raise DataError(
                "the generator says that it is_periodic, but it emitted a watermark in on_event or on_batch; leave "
                "is_periodic out, or call emit_watermark in on_periodic_emit only"
            )
        return not self.is_muted

    def mark_idle(self) -> None:
        """Say at the current point that the channel is idle."""
        if self._may_speak() and not self.idle:
            self.idle = self._may_be_idle = True
            self._reports.append(WatermarkReport(self._channel, self.point, idle=True, spoke=self.spoke))

    def mark_active(self) -> None:
        """Say at the current point that the channel counts again."""
        if self._may_speak() and self._may_be_idle:
            self._say(None)

    def hear(self) -> None:
        """Take note that the channel has elements."""
        self.spoke = True

    def end_batch(self) -> None:
        """Report at the end of the micro-batch whether there were elements."""
        self._reports.append(WatermarkReport(self._channel, END_OF_BATCH, spoke=self.spoke))

    def reports(self) -> list[WatermarkReport]:
        """All that was said, in the order of points."""
        return self._reports

    def _say(self, watermark: int | None) -> None:
        woken = False if self._may_be_idle else None
        self.idle = self._may_be_idle = False
        self._reports.append(WatermarkReport(self._channel, self.point, watermark, woken, self.spoke))


class ChannelWatermarks:
    """Makes the watermarks of one channel, a split or a subtask, after one assigner: as it stands, none.

    Attributes:
        operator: the assigner of timestamps, as it works for this channel.
        channel: the name of the channel.
    """

    def __init__(self, operator: AssignTimestamps, channel: str) -> None:
        self.operator = operator
        self.channel = channel

    def see(self, batch: Elements) -> None:
        """Look at elements that have their timestamps."""

    def end_batch(self, *, is_asked: bool) -> None:
        """Take note that all elements of the micro-batch have come, but for those that the end of the input brings.

        A generator that is not asked for a watermark gives none; a watermark that follows from timestamps alone is
        worked out in any case, and the receiver decides whether it counts.
        """

    def reports(self) -> list[WatermarkReport]:
        """The channel's reports of this micro-batch; the last one is about its end."""
        return [WatermarkReport(self.channel)]


class MadeElsewhere(ChannelWatermarks):
    """Stands for the generator of a split where its elements are; the generator runs in tasks of its own."""


class HighestTimestamp(ChannelWatermarks):
    """Watermarks that follow from the highest timestamp; the receiver keeps the maximum over micro-batches."""

    def __init__(self, operator: AssignTimestamps, channel: str) -> None:
        super().__init__(operator, channel)
        self._highest: int | None = None
        self._report = WatermarkReport(channel)

    def see(self, batch: Elements) -> None:
        highest = highest_timestamp(batch)
        self._highest = highest if self._highest is None else max(highest, self._highest)

    def end_batch(self, *, is_asked: bool) -> None:
        self._report = self._candidate(END_OF_BATCH)

    def reports(self) -> list[WatermarkReport]:
        """The candidate of this micro-batch; another one where the end of the input has brought higher timestamps."""
        last = self._candidate(END_OF_INPUT)
        return [self._report] if last.watermark == self._report.watermark else [self._report, last]

    def _candidate(self, point: int) -> WatermarkReport:
        generator = self.operator.strategy.generator
        if self._highest is None or isinstance(generator, SuppliedGenerator):
            return WatermarkReport(self.channel)
        return WatermarkReport(self.channel, point, generator.watermark_for(self._highest), spoke=True)


class AssignerAndGenerator:
    """The assigner and the generator that one strategy made for a split, which learn and are stored together.

    They may be one object, or the generator may have the assigner as an attribute: they still do after a restart. A
    plain function that gives timestamps learns nothing.
    """

    def __init__(self, assigner: object, generator: object) -> None:
        learns = assigner is not generator and not isinstance(assigner, FunctionAssigner)
        self._learnt = [Learnt(assigner)] if learns else []
        self._learnt.append(Learnt(generator, shares=(assigner,)))

    def snapshot_state(self) -> list[Snapshot]:
        """The learnt state of each object that learns."""
        return [learnt.snapshot() for learnt in self._learnt]

    def restore_state(self, state: list[Snapshot]) -> None:
        """Give each object its learnt state back.

        Raises:
            StateError: there is one more, or one fewer, or one is of another class.
        """
        if len(state) != len(self._learnt):
            raise StateError(
                f"the checkpoint has the state of {len(state)} object(s) of a watermark strategy (assigners and "
                f"generators), but {len(self._learnt)} object(s) in the program keep state. Undo the change of the "
                "strategy, or start with a new checkpoint location"
            )
        for learnt, snapshot in zip(self._learnt, state, strict=True):
            learnt.restore(snapshot)


class GeneratorRun(ChannelWatermarks):
    """A user-defined generator at work in one micro-batch, with the assigner of its own split if it has one."""

    def __init__(
        self,
        operator: AssignTimestamps,
        channel: str,
        assigner: TimestampAssigner | None,
        generator: WatermarkGenerator,
        learnt: Learnt,
        made_ms: int,
        emitter: Emitter,
    ) -> None:
        super().__init__(operator if assigner is None else operator.with_assigner(assigner), channel)
        supplied = operator.strategy.generator
        self._ignores_elements = isinstance(supplied, SuppliedGenerator) and supplied.ignores_elements
        self.generator = generator
        self.learnt = learnt
        self.made_ms = made_ms
        self.emitter = emitter
        # What was planned follows from what the supplier says of all that it makes.
        self.emitter.is_periodic = operator.strategy.is_periodic

    def see(self, batch: Elements) -> None:
        self.emitter.hear()
        if batch.columns is not None and isinstance(self.generator, VectorizedWatermarkGenerator):
            self._see_columns(batch.columns, self.generator)
        elif self._ignores_elements:
            self._see_timestamps(batch)
        else:
            # Objects that are made of columns here have no other owner; what follows in the chain finds columns.
            is_owner = batch.is_unread or only_looks(self.generator.on_event)
            for part in batch.pieces():
                self._see_each(part, part.values if is_owner else own_each(part.values))

    def _see_columns(self, columns: Columns, generator: VectorizedWatermarkGenerator) -> None:
        emitter = self.emitter
        emitter.points = columns.sequence.to_numpy()
        emitter.point = int(emitter.points[-1])
        with calling(self.operator.name, during="when the watermark generator looked at a batch"):
            generator.on_batch(_seen(columns.fields(), generator.columns), columns.timestamps, emitter)

    def _see_timestamps(self, elements: Elements) -> None:
        """Show timestamps to a generator that leaves the elements alone: None stands for each."""
        emitter, on_event, timestamps = self.emitter, self.generator.on_event, iter(elements.timestamps)
        try:
            if emitter.is_periodic:  # it says nothing here, so where it stands does not matter
                for timestamp in timestamps:
                    on_event(None, timestamp, emitter)  # type: ignore[arg-type]
            else:
                for timestamp, emitter.point in zip(timestamps, elements.sequence, strict=True):
                    on_event(None, timestamp, emitter)  # type: ignore[arg-type]
        except Exception as error:
            # Elements may have gone another way; then there are columns, of the timestamps.
            what, values = ("timestamp", elements.timestamps) if elements.columns else ("element", elements.values)
            of = {what: last_of(values, timestamps)}
            raise user_function_error(self.operator.name, error, during=HANDLING, **of) from error

    def _see_each(self, elements: Elements, shown: list[Any]) -> None:
        emitter, on_event, values = self.emitter, self.generator.on_event, iter(shown)
        try:
            for value, timestamp, emitter.point in zip(values, elements.timestamps, elements.sequence, strict=True):
                on_event(value, timestamp, emitter)  # type: ignore[arg-type]
        except Exception as error:
            element = last_of(elements.values, values)
            raise user_function_error(self.operator.name, error, during=HANDLING, element=element) from error

    def end_batch(self, *, is_asked: bool) -> None:
        """Ask for a periodic watermark."""
        self.emitter.point = END_OF_BATCH
        if is_asked:
            with calling(
                self.operator.name, during="when the watermark generator was asked at the end of a micro-batch"
            ):
                self.generator.on_periodic_emit(self.emitter)
        self.emitter.end_batch()

    def reports(self) -> list[WatermarkReport]:
        return self.emitter.reports()


def _seen(events: pa.RecordBatch | pa.Array, names: Sequence[str] | None) -> pa.RecordBatch | pa.Array:
    """The fields that a generator looks at."""
    if names is None or isinstance(events, pa.Array):
        return events
    missing = [name for name in names if name not in events.schema.names]
    if missing:
        raise ProgramError(
            f"its columns name {', '.join(map(repr, missing))}, and the elements have the fields "
            f"{', '.join(events.schema.names)}; name some of these"
        )
    return events.select(list(names))


class Generators:
    """The generators of one task, each under a name.

    Each is made by its supplier in every micro-batch, so that its code and its parameters are those of the program, and
    given what it has learnt, which is kept in the task's state. While it is made, the clock shows the time at which
    that happened first, so that it does not take each micro-batch for its beginning. What was learnt and the context
    are stored together, so that what holds on to the context finds it again. In batch execution the watermarks of
    generators are not heard, because no watermark comes before the end of the input.
    """

    def __init__(self, backend: Backend, clock_ms: int, *, in_batch: bool = False) -> None:
        self._backend = backend
        self._in_batch = in_batch
        self._stored = backend.get(_STATE)
        self._context, self._kept = _load(self._stored)
        self._clock_ms = clock_ms
        self._context.set_current_processing_time(clock_ms)
        self._running: dict[str, GeneratorRun] = {}

    def run(self, name: str, operator: AssignTimestamps, channel: str, *, is_split: bool) -> GeneratorRun:
        """The generator of a name at work, as it has become in the micro-batches so far."""
        with calling(operator.name, during="when its watermark generator was made"):
            snapshot, watermark, idle, made_ms = self._kept.get(name, (None, MIN_MS, False, self._clock_ms))
            assigner, generator, learnt = self._made(operator, made_ms)
            if snapshot is not None:
                learnt.restore(snapshot)
        emitter = Emitter(channel, is_split=is_split, watermark=watermark, idle=idle)
        emitter.is_muted = self._in_batch
        run = self._running[name] = GeneratorRun(operator, channel, assigner, generator, learnt, made_ms, emitter)
        return run

    def forget(self, name: str) -> None:
        """Leave out a generator whose channel has ended."""
        self._running.pop(name, None)
        self._kept.pop(name, None)

    def flush(self) -> None:
        """Store them all, if anything has changed."""
        with calling("watermarks", during="when the watermark generators were stored"):
            kept = self._kept | {
                name: (run.learnt.snapshot(), run.emitter.watermark, run.emitter.idle, run.made_ms)
                for name, run in self._running.items()
            }
            if not kept and self._stored is None:
                return
            content = dumps((self._context, kept))
        if content != self._stored:
            self._backend.put(_STATE, content)

    def _made(
        self, operator: AssignTimestamps, made_ms: int
    ) -> tuple[TimestampAssigner | None, WatermarkGenerator, Learnt]:
        supplied, assigners = operator.strategy.generator, operator.strategy.timestamp_assigner
        if not isinstance(supplied, SuppliedGenerator):
            raise ProgramError(f"the strategy of {operator.name!r} has no generator of its own")
        self._context.set_current_processing_time(made_ms)
        assigner = assigners.create(self._context) if isinstance(assigners, SuppliedAssigner) else None
        generator = supplied.create(self._context)
        self._context.set_current_processing_time(self._clock_ms)
        if assigner is not None:
            return assigner, generator, Learnt(AssignerAndGenerator(assigner, generator))
        # One that makes watermarks may give timestamps too, and know in one of both what it saw in the other.
        return generator if isinstance(generator, TimestampAssigner) else None, generator, Learnt(generator)


def gathered(
    stored: Iterable[bytes],
    choose: Callable[[str, list[KeptGenerator]], KeptGenerator | None],
    name_of: Callable[[str], str] = str,
) -> bytes | None:
    """Merge the stored generators of several tasks into those of one task.

    Args:
        stored: the stored generators of each task.
        choose: of what is kept under a name, that which counts; None if nothing does.
        name_of: the name under which it is kept from now on, given that under which it was stored.

    Returns:
        The content to store; None if nothing is left.
    """
    context = WatermarkGeneratorContext()
    by_name: dict[str, list[KeptGenerator]] = {}
    for content in stored:
        own, kept = _load(content)
        for name, one in copy.deepcopy(kept, {id(own): context}).items():  # all hold on to one context then
            by_name.setdefault(name_of(name), []).append(one)
    chosen = {name: best for name, found in by_name.items() if (best := choose(name, found)) is not None}
    return dumps((context, chosen)) if chosen else None


def lowest(kept: Sequence[KeptGenerator]) -> KeptGenerator:
    """The active channel with the lowest watermark; if all are idle, the channel that is furthest ahead."""
    active = [one for one in kept if not one[2]]
    return min(active, key=lambda one: one[1]) if active else max(kept, key=lambda one: one[1])


def _load(stored: bytes | None) -> tuple[WatermarkGeneratorContext, dict[str, KeptGenerator]]:
    if stored is None:
        return WatermarkGeneratorContext(), {}
    content: tuple[WatermarkGeneratorContext, dict[str, KeptGenerator]] = loads(stored)
    return content
