"""One split in a task: what its source yields becomes batches of elements, which go through the task's chain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from eventide.api.dead_letters import advised
from eventide.api.source import IDLE, Counted, SideOutput, TimestampedBatch, Unreadable
from eventide.api.windows import TimestampedValue
from eventide.common.ms import MIN_MS
from eventide.common.typeinfo import TypeInformation
from eventide.common.watermark import Watermark
from eventide.errors import DataError
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
from eventide.runtime.chain.timestamps import checked_column, checked_timestamp
from eventide.runtime.chain.watermarks import ChannelWatermarks, HighestTimestamp
from eventide.runtime.elements.columns import Batch, Columns
from eventide.runtime.elements.elements import Elements
from eventide.runtime.elements.keys import stable_hash
from eventide.runtime.elements.ownership import all_fixed, own
from eventide.runtime.eventtime.emitter import Emitter
from eventide.runtime.eventtime.timestamp_summary import TimestampSummary
from eventide.runtime.exchange.frames import START_OF_BATCH, Frame, WatermarkReport
from eventide.runtime.invoke import user_function_error
from eventide.runtime.metrics import Metrics, OperatorCounters, add_up, dead_letters_of
from eventide.runtime.sources.offsets import SplitRange

_CHUNK = 8_192
_LIST_ITERATOR: type = type(iter([]))
_BATCHES = {pa.RecordBatch, TimestampedBatch}
_ASIDE = {Counted, SideOutput, Unreadable}
_SPECIAL = {type(IDLE), TimestampedValue, Watermark, *_BATCHES}

_FRAME = 65_536


class SourceOutput:
    """The way of one split's elements through the chain of its source, with what the source itself says."""

    def __init__(self, chains: ChainedSourceOutputs, split: str) -> None:
        watermarks_of = {step.number: HighestTimestamp(step, split) for step in chains.root.assigners()}
        # What is not dealt out by key stays together by split, so that all of it comes to one subtask.
        self._chain = chains.open(split, stable_hash(split), watermarks_of)
        self._own = Emitter(split, is_split=True)
        self.idle = False

    def say(self, item: Any, behind: int) -> None:
        """Take a report of the source itself on event time, after the element of a number."""
        if isinstance(item, Watermark):
            self._own.point = behind
            self._own.emit_watermark(item)
        self.idle = not isinstance(item, Watermark)

    def mark_active(self, behind: int) -> None:
        """Say, after the element of a place, that the split counts again."""
        self._own.point = behind
        self._own.mark_active()

    def send(self, batch: Batch, tag: str | None = None) -> Iterator[Frame]:
        """Run elements, or those of a side output, through the chain; frames come when enough is waiting."""
        self._own.hear()
        yield from self._chain.send(batch, tag)

    def flush(self) -> Iterator[Frame]:
        """Give the waiting elements."""
        return self._chain.flush()

    def finish(
        self, *, ended: bool, joined: bool = False, rest: str | None = None, is_operator: bool = False
    ) -> Iterator[Frame]:
        """Give the elements that still wait, and end the micro-batch."""
        yield from self._chain.finish(
            self._own, idle=self.idle, ended=ended, joined=joined, rest=rest, is_operator=is_operator
        )


class SplitReader:
    """One range of a split, from the runs of items that its source yields; elements are numbered through.

    What is neither an element nor a batch of them goes its own way: watermarks and idleness to ``way``, which is where
    the elements go as well. ``unreadable`` says what becomes of what the source cannot read; with ``sorts_out``, it is
    asked of elements of another type too. ``may_be_idle`` says that the first item of all ends an idleness.
    """

    def __init__(
        self,
        range: SplitRange,
        way: SourceOutput,
        type_info: TypeInformation,
        unreadable: Callable[[Unreadable], SideOutput],
        *,
        may_be_idle: bool,
        sorts_out: bool = False,
    ) -> None:
        self.range = range
        self.way = way
        self._type_info = type_info
        self._unreadable = unreadable
        self._sorts_out = sorts_out
        self._may_be_idle = may_be_idle
        self._chunk = Elements()
        self._aside: dict[str, Elements] = {}
        self._sequence = 0

    def place(self) -> dict[str, Any]:
        """Where this is, for messages; only for one of which something is read."""
        parts = self.range.parts
        return {"split": self.range.split, "start": parts[0].start, "end": parts[-1].end}

    def batches(self, items: Iterable[Any], count: Callable[[Counted], None]) -> Iterator[Batch]:
        """The elements of a run in handy numbers; some may wait for the next run. ``count`` takes what was counted."""
        chunk, way = self._chunk, self.way
        # No code of a source's runs between the elements of a list: they are looked at together, which is quicker.
        items = [*items] if type(items) is _LIST_ITERATOR else items
        are_fixed = type(items) is list and all_fixed(items)
        for item in items:
            kind = type(item)
            if kind in _ASIDE:
                self._take_aside(item, count)
                continue
            if self._may_be_idle and kind is not type(IDLE):
                way.mark_active(behind=self._sequence - 1)
                self._may_be_idle = False
            if kind not in _SPECIAL:
                chunk.values.append(item if are_fixed else own(item))
                chunk.timestamps.append(None)
                chunk.sequence.append(self._sequence)
            elif kind is TimestampedValue:
                timestamp = None if item.timestamp is None else checked_timestamp(item.timestamp)
                chunk.append(own(item.value), timestamp, self._sequence)
            elif kind in _BATCHES:
                yield from self.rest()
                chunk = self._chunk
                columns = self._columns(item)
                yield columns
                self._sequence += len(columns)
                way.idle = False
                continue
            else:
                way.say(item, behind=self._sequence - 1)
                continue
            way.idle = False
            self._sequence += 1
            if len(chunk) >= _CHUNK:
                yield from self.rest()
                chunk = self._chunk

    def _take_aside(self, item: Counted | SideOutput | Unreadable, count: Callable[[Counted], None]) -> None:
        """Take what is no element, nor says anything of event time."""
        if isinstance(item, Counted):
            count(item)
            return
        put_out = self._unreadable(item) if isinstance(item, Unreadable) else item
        timestamp = None if put_out.timestamp is None else checked_timestamp(put_out.timestamp)
        self._aside.setdefault(put_out.tag_id, Elements()).append(own(put_out.value), timestamp, self._sequence)
        self._sequence += 1

    def rest(self) -> Iterator[Batch]:
        """The elements that are waiting, of the type that was declared for them."""
        chunk = self._chunk
        if chunk:
            self._chunk = Elements()
            try:
                kind = self._type_info
                converted = kind.as_declared if self._sorts_out and not kind.is_pickled else kind.converted
                chunk.values = converted(chunk.values)
            except DataError as error:
                if not self._sorts_out:
                    raise advised(error) from error
                chunk = self._fitting(chunk)
            if chunk:
                yield chunk

    def _fitting(self, chunk: Elements) -> Elements:
        """The elements that are of the declared type; the others go aside."""
        fitting = Elements()
        for value, timestamp, number in zip(chunk.values, chunk.timestamps, chunk.sequence, strict=True):
            try:
                fitting.append(self._type_info.as_declared([value])[0], timestamp, number)
            except DataError as error:
                bad = self._unreadable(Unreadable(error, value, self.range.split, timestamp=timestamp))
                self._aside.setdefault(bad.tag_id, Elements()).append(bad.value, timestamp, number)
        return fitting

    def aside(self, types: Mapping[str, TypeInformation]) -> Iterator[tuple[str, Batch]]:
        """Give the side outputs so far, by tag, of the types that were declared for them."""
        given, self._aside = self._aside, {}
        for tag, elements in given.items():
            elements.values = types[tag].converted(elements.values)
            yield tag, elements

    def _columns(self, item: pa.RecordBatch | TimestampedBatch) -> Columns:
        if isinstance(item, pa.RecordBatch):
            return columns_of(item, self._type_info, self._sequence)
        columns = columns_of(item.rows, self._type_info, self._sequence)
        if len(item.timestamps) != len(columns):
            raise DataError(f"the batch has {len(columns)} rows, and {len(item.timestamps)} timestamps")
        columns.timestamps = checked_column(item.timestamps)
        return columns


def columns_of(rows: pa.RecordBatch, type_info: TypeInformation, sequence: int) -> Columns:
    """Rows as elements of a declared type, numbered from ``sequence``.

    Raises:
        DataError: if the columns do not have, and cannot be brought to, the types that were declared.
    """
    wanted = type_info.arrow_type()
    places = pa.array(np.arange(sequence, sequence + len(rows)))
    try:
        if pa.types.is_struct(wanted) and rows.num_columns == wanted.num_fields:
            fields = list(wanted)
            arrays = [c.cast(f.type) for c, f in zip(rows.columns, fields, strict=True)]
            return Columns(type_info, pa.StructArray.from_arrays(arrays, fields=fields), None, places)
        if rows.num_columns == 1 and not type_info.is_pickled:
            return Columns(type_info, rows.column(0).cast(wanted), None, places)
    except pa.ArrowInvalid as error:
        raise DataError(f"a column cannot be brought to its declared type in {type_info}: {error}") from error
    raise DataError(
        f"the record batch has the columns {rows.schema.names}, which are not elements of the type {type_info}"
    )


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
