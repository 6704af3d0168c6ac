"""The reader of a split, whose items become batches of elements, and its output, through the chain of the task."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from eventide.api.source import IDLE, Counted, SideOutput, TimestampedBatch, Unreadable
from eventide.api.windows import TimestampedValue
from eventide.common.ms import MIN_MS
from eventide.common.typeinfo import TypeInformation
from eventide.common.typeinfo.base import brought_to
from eventide.common.watermark import Watermark
from eventide.errors import DataError, advised
from eventide.runtime.chain.chain import (
    ChainNode,
    ChannelOutput,
    packed,
    report_frames,
)
from eventide.runtime.chain.chained_operators import Moment
from eventide.runtime.chain.timestamps import checked_column, checked_timestamp
from eventide.runtime.chain.watermarks import ChannelWatermarks, Emitter
from eventide.runtime.elements.elements import Columns, Elements
from eventide.runtime.elements.ownership import all_fixed, own
from eventide.runtime.exchange.frames import START_OF_BATCH, Frame, WatermarkReport
from eventide.runtime.invoke import user_function_error
from eventide.runtime.metrics import Metrics
from eventide.runtime.observation.observers import ReaderObserver
from eventide.runtime.sources.offsets import SplitRange

_CHUNK = 8_192
_CHUNK_BYTES = 8 << 20
_FIRST_LOOK = 128
"""The number of elements of a chunk at which its size is looked at first, and then at twice as many each time."""
_LIST_ITERATOR: type = type(iter([]))
_BATCHES = {pa.RecordBatch, TimestampedBatch}
_ASIDE = {Counted, SideOutput, Unreadable}
_SPECIAL = {type(IDLE), TimestampedValue, Watermark, *_BATCHES}

_WAITING = 65_536
WAITING_BYTES = 64 << 20
"""How many elements and bytes of a split, or bytes of a task, wait for more before they are sent."""


class SplitReader:
    """The reader of one range of a split: items that its source yields become batches; elements are numbered through.

    Watermarks and idleness go to the output of the split, to which the task sends the batches too.

    Args:
        range: the range that is read.
        output: the output of its split.
        type_info: the declared type of the elements.
        side_types: the declared types of the source's side outputs, by tag.
        unreadable: says what becomes of what the source cannot read, None if nothing.
        count: takes what the source has counted.
        may_be_idle: whether the first item of all ends an idleness.
        sorts_out: whether elements of another type count as what cannot be read.
        as_columns: whether rows become columns at once: they lack fields, and would be taken for rows with all.
    """

    def __init__(
        self,
        range: SplitRange,
        output: SourceOutput,
        type_info: TypeInformation,
        side_types: Mapping[str, TypeInformation],
        unreadable: Callable[[Unreadable], SideOutput | None],
        count: Callable[[Counted], None],
        *,
        may_be_idle: bool,
        sorts_out: bool = False,
        as_columns: bool = False,
    ) -> None:
        self.range = range
        self.output = output
        self._type_info = type_info
        self._side_types = side_types
        self._unreadable = unreadable
        self._count = count
        self._sorts_out = sorts_out
        self._as_columns = as_columns
        self._may_be_idle = may_be_idle
        self._chunk = Elements()
        self._aside: dict[str, Elements] = {}
        self._sequence = 0

    @property
    def waiting(self) -> int:
        """How many elements wait for more of their split."""
        return len(self._chunk)

    def place(self) -> dict[str, Any]:
        """Where this is, for messages; only for one of which something is read."""
        parts = self.range.parts
        return {"split": self.range.split, "start": parts[0].start, "end": parts[-1].end}

    def batches(self, items: Iterable[Any]) -> Iterator[tuple[str | None, Elements]]:
        """The elements of a run in handy numbers, by side output (None: the main one); some may wait for the next run.

        Raises:
            DataError: if an element, a timestamp, or a batch is not what was declared for it.
        """
        output, chunk = self.output, self._chunk
        values, timestamps, numbers = chunk.values, chunk.timestamps, chunk.sequence
        # No code of a source's runs between the elements of a list: they are looked at together, which is quicker.
        items = [*items] if type(items) is _LIST_ITERATOR else items
        are_fixed = type(items) is list and all_fixed(items)
        enough = min(_CHUNK, max(_FIRST_LOOK, len(values) + 1))
        for item in items:
            kind = type(item)
            if kind in _ASIDE:
                self._put_aside(item)
                continue
            if self._may_be_idle and kind is not type(IDLE):
                output.mark_active(after=self._sequence - 1)
                self._may_be_idle = False
            if kind not in _SPECIAL:
                value, timestamp = item if are_fixed else own(item), None
            elif kind is TimestampedValue:
                timestamp = None if item.timestamp is None else checked_timestamp(item.timestamp)
                value = own(item.value)
            elif kind in _BATCHES:
                yield from self.rest()
                chunk = self._chunk
                values, timestamps, numbers = chunk.values, chunk.timestamps, chunk.sequence
                columns = self._columns(item)
                yield None, Elements(columns=columns)
                self._sequence += len(columns)
                output.idle = False
                continue
            else:
                output.say(item, after=self._sequence - 1)
                continue
            values.append(value)
            timestamps.append(timestamp)
            numbers.append(self._sequence)
            output.idle = False
            self._sequence += 1
            if len(values) >= enough:
                if len(values) < _CHUNK and chunk.nbytes < _CHUNK_BYTES:
                    enough = min(_CHUNK, len(values) * 2)
                    continue
                enough = min(_CHUNK, _FIRST_LOOK)
                yield from self.rest()
                chunk = self._chunk
                values, timestamps, numbers = chunk.values, chunk.timestamps, chunk.sequence

    def rest(self) -> Iterator[tuple[str | None, Elements]]:
        """The elements that are waiting, of the types that were declared for them.

        Raises:
            DataError: if an element is of another type.
        """
        if self._chunk:
            chunk, self._chunk = self._converted(self._chunk), Elements()
            if chunk:
                yield None, chunk
        if self._aside:
            aside, self._aside = self._aside, {}
            for tag, elements in aside.items():
                elements.values = self._side_types[tag].converted(elements.values)
                yield tag, elements

    def _put_aside(self, item: Counted | SideOutput | Unreadable) -> None:
        """Take an item that is neither an element nor about event time."""
        if isinstance(item, Counted):
            self._count(item)
            return
        put_out = self._unreadable(item) if isinstance(item, Unreadable) else item
        if put_out is None:
            return
        timestamp = None if put_out.timestamp is None else checked_timestamp(put_out.timestamp)
        self._aside.setdefault(put_out.tag_id, Elements()).append(own(put_out.value), timestamp, self._sequence)
        self._sequence += 1

    def _converted(self, chunk: Elements) -> Elements:
        """Elements with values of the declared type; with ``sorts_out``, others count as unreadable."""
        kind = self._type_info
        try:
            converted = kind.as_declared if self._sorts_out and not kind.is_pickled else kind.converted
            chunk.values = converted(chunk.values)
            if self._as_columns:
                return Elements(columns=chunk.as_columns(kind))
        except DataError as error:
            if not self._sorts_out:
                raise advised(error) from error
            return self._fitting(chunk)
        return chunk

    def _fitting(self, chunk: Elements) -> Elements:
        """The elements that are of the declared type; the others count as unreadable."""
        fitting = Elements()
        for value, timestamp, number in zip(chunk.values, chunk.timestamps, chunk.sequence, strict=True):
            try:
                fitting.append(self._type_info.as_declared([value])[0], timestamp, number)
            except DataError as error:
                bad = self._unreadable(Unreadable(error, value, self.range.split, timestamp=timestamp))
                if bad is not None:
                    self._aside.setdefault(bad.tag_id, Elements()).append(bad.value, timestamp, number)
        return fitting

    def _columns(self, item: pa.RecordBatch | TimestampedBatch) -> Columns:
        if isinstance(item, pa.RecordBatch):
            return columns_of(item, self._type_info, self._sequence)
        columns = columns_of(item.rows, self._type_info, self._sequence)
        if len(item.timestamps) != len(columns):
            raise DataError(f"the batch has {len(columns)} rows, and {len(item.timestamps)} timestamps")
        columns.timestamps = checked_column(item.timestamps)
        return columns


class ReaderOutput:
    """The outputs of all splits of one task in one micro-batch: their elements, and their reports.

    ``name`` is the name of the operator, and ``task`` the task index. Flink: ``ReaderOutput``.
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
        self.observer = ReaderObserver(self.edges)

    def last_frames(self) -> Iterator[Frame]:
        """Give the last frames: elements that all splits sent together, and their reports."""
        for edge in self._mixed:
            yield from packed(edge, self.shared[edge.address], "", START_OF_BATCH, self.task)
        for edge in self.edges:
            yield from report_frames(edge, self.reports[edge.address])
        yield from self.observer.frames(self.metrics.counters())


class SourceOutput(ChannelOutput):
    """The output of one split: its elements go through the chain of the task, and what it says is reported.

    Flink: ``SourceOutput``.
    """

    def __init__(
        self, task_output: ReaderOutput, split: str, slot: int, watermarks_of: Mapping[int, ChannelWatermarks]
    ) -> None:
        super().__init__(
            task_output.root,
            split,
            task_output.task,
            slot,
            watermarks_of,
            task_output.metrics,
            task_output.moment,
            observer=task_output.observer.of_split(split),
            shared=task_output.shared,
        )
        self._task_output = task_output
        self._split = split
        self._said_by_source = Emitter(split, is_split=True)
        self.idle = False
        """Whether the split has nothing to say for now."""

    def say(self, item: object, after: int) -> None:
        """Take what the source itself says of event time, after the element of a number."""
        if isinstance(item, Watermark):
            self._said_by_source.point = after
            self._said_by_source.emit_watermark(item)
        self.idle = not isinstance(item, Watermark)

    def mark_active(self, after: int) -> None:
        """Say, after the element of a number, that the split counts again."""
        self._said_by_source.point = after
        self._said_by_source.mark_active()

    def send(self, batch: Elements, tag: str | None = None) -> Iterator[Frame]:
        """Run elements, or those of a side output, through the chain; frames come when enough is waiting.

        Raises:
            UserFunctionError: if a chained function or a key selector raised.
        """
        self._said_by_source.hear()
        try:
            self.push({tag: batch})
        except Exception as error:
            during = "after the source"
            raise user_function_error(self._task_output.name, error, during=during, split=self._split) from error
        if self.waiting >= _WAITING or self.waiting_bytes >= WAITING_BYTES:
            yield from self.element_frames()

    def finish(
        self,
        *,
        ended: bool,
        joined: bool = False,
        rest: str | None = None,
        is_asked: bool = True,
        is_operator: bool = False,
        source_idle: bool = False,
    ) -> Iterator[Frame]:
        """Give the elements that still wait, and end the micro-batch; the split's reports are kept for each edge.

        Args:
            ended: whether nothing will ever follow.
            joined: whether it is new, and holds the watermark from now on.
            rest: how it is treated from now on by what plans its source; None if that has not changed.
            is_asked: whether generators are asked for a periodic watermark; that of an idle split is not.
            is_operator: whether the source speaks as an operator does, so that strategies do not hear that it is idle.
            source_idle: whether the source itself is idle, also if this output is not.
        """
        yield from self.element_frames()
        for watermarks in self._watermarks_of.values():
            watermarks.end_batch(is_asked=is_asked and not self.idle)
        self._said_by_source.end_batch()
        first = [WatermarkReport(self._split, START_OF_BATCH, joined=True)] if joined else []
        for edge in self._task_output.edges:
            said = self._said_by_source if edge.assigner is None else self._watermarks_of[edge.assigner]
            *before, last = said.reports()
            hears = edge.assigner is None or not is_operator
            by_source = self.idle or source_idle
            last = last._replace(idle=(self.idle and hears) or None, ended=ended, rest=rest, source_idle=by_source)
            self._task_output.reports[edge.address] += [*first, *before, last]


def columns_of(rows: pa.RecordBatch, type_info: TypeInformation, sequence: int) -> Columns:
    """Rows as elements of a declared type, numbered from ``sequence``.

    Columns are found by the names of the type's fields, or by their places if they have none of these names.

    Raises:
        DataError: if the columns do not have, and cannot be brought to, the types that were declared.
    """
    wanted = type_info.arrow_type()
    places = pa.array(np.arange(sequence, sequence + len(rows)))
    try:
        if pa.types.is_struct(wanted) and (columns := _columns_of_fields(rows, list(wanted))) is not None:
            fields = list(wanted)
            arrays = [brought_to(c, f.type) for c, f in zip(columns, fields, strict=True)]
            return Columns(type_info, pa.StructArray.from_arrays(arrays, fields=fields), None, places)
        if rows.num_columns == 1 and not type_info.is_pickled:
            return Columns(type_info, brought_to(rows.column(0), wanted), None, places)
    except pa.ArrowInvalid as error:
        raise DataError(f"a column cannot be converted to its declared type in {type_info}: {error}") from error
    raise DataError(
        f"the record batch has the columns {rows.schema.names}, which are not elements of the type {type_info}"
    )


def _columns_of_fields(rows: pa.RecordBatch, fields: Sequence[pa.Field]) -> Sequence[pa.Array] | None:
    """The columns of some fields; None if they are not those."""
    names, found = [field.name for field in fields], rows.schema.names
    if sorted(names) == sorted(found):
        return [rows.column(name) for name in names]
    return rows.columns if len(names) == len(found) and not {*names} & {*found} else None
