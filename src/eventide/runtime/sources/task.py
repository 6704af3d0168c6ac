"""Source tasks: they read ranges of splits, run what is chained to the source, and report for each split."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from eventide.common._ms import MIN_MS
from eventide.common.typeinfo import TypeInformation
from eventide.common.watermark import Watermark
from eventide.datastream.connectors.source import IDLE, Counted, Source
from eventide.datastream.window import TimestampedValue
from eventide.errors import DataError
from eventide.runtime.chain.chain import ChainNode
from eventide.runtime.chain.router import end_frames
from eventide.runtime.chain.timestamps import checked_timestamp
from eventide.runtime.chain.watermarks import HighestTimestamp
from eventide.runtime.elements.columns import Batch, Columns
from eventide.runtime.elements.elements import Elements
from eventide.runtime.elements.keys import stable_hash
from eventide.runtime.eventtime.emitter import Emitter
from eventide.runtime.exchange.frames import Frame, metrics_frame
from eventide.runtime.function_metrics import FunctionMetrics
from eventide.runtime.invoke import user_function_error
from eventide.runtime.metrics import PARTS_LOST, RECORDS_OUT, Metrics
from eventide.runtime.sources.offsets import SplitRange
from eventide.runtime.sources.splits import SplitChains

_CHUNK = 8_192
_SPECIAL = {type(IDLE), Counted, pa.RecordBatch, TimestampedValue, Watermark}


@dataclass(frozen=True, slots=True)
class ChainSpec:
    """What is chained to a source: its name, the type of its elements, and what they run through; picklable.

    ``parallelism``, ``max_parallelism`` and ``job_parameters`` are what the functions may ask for: a source has as many
    tasks at most, a DataFrame as many as Spark says. ``function_metrics`` is what they count with, where they are open.
    """

    name: str
    type_info: TypeInformation
    root: ChainNode
    parallelism: int = field(default=1, kw_only=True)
    max_parallelism: int = field(default=1, kw_only=True)
    job_parameters: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    function_metrics: FunctionMetrics = field(default_factory=FunctionMetrics, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class SourceSpec(ChainSpec):
    """All that a host must know to run a source of splits.

    ``fields`` are those of its elements that anything uses; None if whole elements are. ``audience`` is a name for the
    operators that wait for what sources say: another one for others, or where they expect other splits.
    """

    source: Source
    fields: tuple[str, ...] | None = None
    audience: str = ""

    def pruned(self) -> SourceSpec:
        """The same, with a source that may leave out what nobody uses."""
        if self.fields is None or self.source.get_produced_type() != self.type_info:
            return self
        source = self.source.with_columns(self.fields)
        return replace(self, source=source, type_info=source.get_produced_type())


class SourceTask:
    """One task of a source during one micro-batch, at a time by the clock; ``task`` is its index among its like."""

    def __init__(self, spec: ChainSpec, task: int = 0, clock_ms: int = MIN_MS) -> None:
        self._name = spec.name
        self._type_info = spec.type_info
        self._metrics = Metrics()
        self._function_metrics = spec.function_metrics
        self._counted: list[dict[str, Any]] = []
        self._task = task
        self._clock_ms = clock_ms
        self._chains = SplitChains(spec.name, spec.root, task, self._metrics, clock_ms)

    def read_ranges(self, source: Source, ranges: Iterable[SplitRange], ends_source: bool) -> Iterator[Frame]:
        """Read parts of splits; ``ends_source`` is set in the one task that says that the whole source has ended."""
        for part in ranges:
            way = self._way(part.split)
            for batch in self._read(source, part, way):
                yield from self._send(way, batch)
            yield from way.finish(ended=part.ended, is_operator=source.active_by_elements())
            self._metrics.count(self._name, PARTS_LOST, part.lost)
        yield from self._last_frames()
        if ends_source:
            for edge in self._chains.edges:
                yield from end_frames(edge)

    def send_rows(self, parts: Iterable[tuple[str, Batch]]) -> Iterator[Frame]:
        """Run rows of a DataFrame through the chain, as (split, elements), and report each split behind them.

        Several tasks may have rows of one split: each reports the highest watermark that it saw.
        """
        ways: dict[str, _SplitWay] = {}
        for split, batch in parts:
            if split not in ways:
                ways[split] = self._way(split)
            yield from self._send(ways[split], batch)
        for way in ways.values():
            yield from way.finish(ended=False)
        yield from self._last_frames()

    def _way(self, split: str) -> _SplitWay:
        return _SplitWay(self._chains, split)

    def _read(self, source: Source, part: SplitRange, way: _SplitWay) -> Iterator[Batch]:
        """The elements of a range in handy numbers; what else its split says goes to its own output."""
        chunk, sequence = Elements(), 0
        may_be_idle = source.active_by_elements()
        try:
            for item in _items(source, part):
                kind = type(item)
                if kind is Counted:
                    self._counted.append({self._name: item.by_name})
                    continue
                if may_be_idle and kind is not type(IDLE):
                    way.mark_active(behind=sequence - 1)
                    may_be_idle = False
                if kind not in _SPECIAL:
                    chunk.append(item, None, sequence)
                elif kind is TimestampedValue:
                    timestamp = None if item.timestamp is None else checked_timestamp(item.timestamp)
                    chunk.append(item.value, timestamp, sequence)
                elif kind is pa.RecordBatch:
                    if chunk:
                        yield self._declared(chunk)
                        chunk = Elements()
                    yield columns_of(item, self._type_info, sequence)
                    sequence += len(item)
                    way.idle = False
                    continue
                else:
                    way.say(item, behind=sequence - 1)
                    continue
                way.idle = False
                sequence += 1
                if len(chunk) >= _CHUNK:
                    yield self._declared(chunk)
                    chunk = Elements()
            chunk = self._declared(chunk)
        except Exception as error:  # while it read, so that there are parts
            where = {"split": part.split, "start": part.parts[0].start, "end": part.parts[-1].end}
            raise user_function_error(self._name, error, during="while it read its source", **where) from error
        if chunk:
            yield chunk

    def _declared(self, chunk: Elements) -> Elements:
        """The same, of the type that was declared for the elements of the source."""
        chunk.values = self._type_info.converted(chunk.values)
        return chunk

    def _send(self, way: _SplitWay, batch: Batch) -> Iterator[Frame]:
        self._metrics.count(self._name, RECORDS_OUT, len(batch))
        yield from way.send(batch)

    def _last_frames(self) -> Iterator[Frame]:
        """What all splits sent together, what they reported, and what this task counted."""
        yield from self._chains.last_frames()
        functions = [*self._counted, *self._function_metrics.take(self._task, self._clock_ms)]
        yield metrics_frame({"operators": self._metrics.counters(), "functions": functions})


def _items(source: Source, part: SplitRange) -> Iterator[Any]:
    for way in part.parts:
        if way.start != way.end:
            yield from source.read(way.part, way.start, way.end)


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


class _SplitWay:
    """The way of one split's elements through the chain of its source, with what the source itself says."""

    def __init__(self, chains: SplitChains, split: str) -> None:
        watermarks_of = {step.number: HighestTimestamp(step, split) for step in chains.root.assigners()}
        # What is not dealt out by key stays together by split, so that all of it comes to one subtask.
        self._chain = chains.open(split, stable_hash(split), watermarks_of)
        self._own = Emitter(split, is_split=True)
        self.idle = False

    def say(self, item: Any, behind: int) -> None:
        """Take what the source itself says of event time, behind the element of a number."""
        if isinstance(item, Watermark):
            self._own.point = behind
            self._own.emit_watermark(item)
        self.idle = not isinstance(item, Watermark)

    def mark_active(self, behind: int) -> None:
        """Say, behind the element of a place, that the split counts again."""
        self._own.point = behind
        self._own.mark_active()

    def send(self, batch: Batch) -> Iterator[Frame]:
        """Run elements through the chain; frames come when enough is waiting."""
        self._own.hear()
        yield from self._chain.send(batch)

    def finish(self, *, ended: bool, is_operator: bool = False) -> Iterator[Frame]:
        """What is still waiting, and nothing more in this micro-batch."""
        yield from self._chain.finish(self._own, idle=self.idle, ended=ended, is_operator=is_operator)
