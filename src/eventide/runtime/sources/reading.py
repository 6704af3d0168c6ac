"""One split while it is read: what its source yields becomes batches of elements, and what it says of event time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from eventide.api.dead_letters import advised
from eventide.api.source import IDLE, Counted, SideOutput, TimestampedBatch, Unreadable
from eventide.api.windows import TimestampedValue
from eventide.common.typeinfo import TypeInformation
from eventide.common.watermark import Watermark
from eventide.errors import DataError
from eventide.runtime.chain.timestamps import checked_column, checked_timestamp
from eventide.runtime.chain.watermarks import HighestTimestamp
from eventide.runtime.elements.columns import Batch, Columns
from eventide.runtime.elements.elements import Elements
from eventide.runtime.elements.keys import stable_hash
from eventide.runtime.elements.ownership import all_fixed, own
from eventide.runtime.eventtime.emitter import Emitter
from eventide.runtime.exchange.frames import Frame
from eventide.runtime.sources.offsets import SplitRange
from eventide.runtime.sources.splits import ChainedSourceOutputs

_CHUNK = 8_192
_LIST_ITERATOR: type = type(iter([]))
_BATCHES = {pa.RecordBatch, TimestampedBatch}
_ASIDE = {Counted, SideOutput, Unreadable}
_SPECIAL = {type(IDLE), TimestampedValue, Watermark, *_BATCHES}


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
