"""Source tasks: they read ranges of splits, run what is chained to the source, and report for each split."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from eventide.common.typeinfo import TypeInformation
from eventide.datastream.connectors.source import IDLE, Source
from eventide.errors import DataError
from eventide.runtime.chain import ChainNode, ChainRun
from eventide.runtime.columns import Batch, Columns
from eventide.runtime.events import Elements, Signal, SplitReport
from eventide.runtime.frames import METRICS_STAGE, Frame
from eventide.runtime.invoke import user_function_error
from eventide.runtime.metrics import RECORDS_OUT, Metrics
from eventide.runtime.offsets import SplitRange
from eventide.runtime.router import Router, packed

_CHUNK = 8_192
_FRAME = 65_536


@dataclass(frozen=True, slots=True)
class ChainSpec:
    """What is chained to a source: its name, the type of its elements, and what they run through; picklable."""

    name: str
    type_info: TypeInformation
    root: ChainNode


@dataclass(frozen=True, slots=True)
class SourceSpec(ChainSpec):
    """All that a host must know to run a source of splits.

    ``fields`` are those of its elements that anything uses; None if whole elements are.
    """

    source: Source
    fields: tuple[str, ...] | None = None

    def pruned(self) -> SourceSpec:
        """The same, with a source that may leave out what nobody uses."""
        if self.fields is None or self.source.get_produced_type() != self.type_info:
            return self
        source = self.source.with_columns(self.fields)
        return replace(self, source=source, type_info=source.get_produced_type())


class SourceTask:
    """One task of a source during one micro-batch."""

    def __init__(self, spec: ChainSpec, place: int = 0) -> None:
        self._name = spec.name
        self._type_info = spec.type_info
        self._root = spec.root
        self._place = place
        self._metrics = Metrics()
        self._mixed = [edge for edge in spec.root.all_edges() if edge.outlet.mixes_splits]
        self._shared = {edge.place: edge.outlet.open(edge.producer, place, edge.subtasks) for edge in self._mixed}

    def read_ranges(self, source: Source, ranges: Iterable[SplitRange], ends_source: bool) -> Iterator[Frame]:
        """Read parts of splits; ``ends_source`` is set in the one task that says that the whole source has ended."""
        for part in ranges:
            chunks = self._chunks(source, part)
            yield from self.send_split(part.split, chunks, ended=part.ended)
        if ends_source:
            router = Router(self._root, "", self._place)
            for edge in self._root.all_edges():
                yield from router.signal_frames(edge, Signal.END_OF_SOURCE, 1)
        yield from self._last_frames()

    def _chunks(self, source: Source, part: SplitRange) -> Iterator[tuple[Batch, bool]]:
        """The elements of a range in handy numbers, each with whether the split is idle behind them."""
        chunk, order, idle = Elements(), 0, False
        try:
            for item in _items(source, part):
                idle = item is IDLE
                if idle:
                    continue
                if isinstance(item, pa.RecordBatch):
                    if chunk:
                        yield chunk, False
                        chunk = Elements()
                    yield columns_of(item, self._type_info, order), False
                    order += len(item)
                    continue
                chunk.append(item, None, order)
                order += 1
                if len(chunk) >= _CHUNK:
                    yield chunk, False
                    chunk = Elements()
        except Exception as error:
            where = {"split": part.split, "start": part.parts[0].start, "end": part.parts[-1].end}
            raise user_function_error(self._name, error, during="while it read its source", **where) from error
        yield chunk, idle

    def send_split(self, split: str, chunks: Iterable[tuple[Batch, bool]], *, ended: bool) -> Iterator[Frame]:
        """Run the elements of one split through the chain, and report its watermark on each edge behind them."""
        way = self._way(split, split)
        idle = False
        for batch, idle in chunks:  # noqa: B007 - the last one's idleness is the split's
            self._metrics.count(self._name, RECORDS_OUT, len(batch))
            yield from way.send(batch)
        yield from way.report(idle=idle, ended=ended)

    def send_rows(self, parts: Iterable[tuple[str, Batch]]) -> Iterator[Frame]:
        """Run rows of a DataFrame through the chain, as (split, elements), and report each split behind them.

        Several tasks may have rows of one split: each reports the highest watermark that it saw.
        """
        ways: dict[str, _SplitWay] = {}
        for split, batch in parts:
            if split not in ways:
                # The task is part of the channel's name, so that the order of a split's rows is defined over tasks.
                ways[split] = self._way(split, f"{split} {self._place:06}")
            self._metrics.count(self._name, RECORDS_OUT, len(batch))
            yield from ways[split].send(batch)
        for way in ways.values():
            yield from way.report(idle=False, ended=False)
        yield from self._last_frames()

    def _way(self, split: str, channel: str) -> _SplitWay:
        return _SplitWay(self._name, self._root, split, Router(self._root, channel, self._place, self._shared))

    def _last_frames(self) -> Iterator[Frame]:
        """What all splits sent together, and what this task counted."""
        for edge in self._mixed:
            yield from packed(edge, self._shared[edge.place], f"{self._place:06}", 0)
        yield Frame(METRICS_STAGE, 0, Signal.METRICS, 0, 0, "", {"operators": self._metrics.counters()})


def _items(source: Source, part: SplitRange) -> Iterator[Any]:
    for way in part.parts:
        yield from source.read(way.part, way.start, way.end)


def columns_of(rows: pa.RecordBatch, type_info: TypeInformation, order: int) -> Columns:
    """Rows as elements of a declared type, numbered from ``order``.

    Raises:
        DataError: if the columns do not have, and cannot be brought to, the types that were declared.
    """
    wanted = type_info.arrow_type()
    places = pa.array(np.arange(order, order + len(rows)))
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
    """The way of one split's elements through the chain of its source, in one task."""

    def __init__(self, name: str, root: ChainNode, split: str, router: Router) -> None:
        self._name = name
        self._root = root
        self._split = split
        self._router = router
        self._run = ChainRun(router.send)

    def send(self, batch: Batch) -> Iterator[Frame]:
        """Run elements through the chain; frames come when enough is waiting."""
        try:
            self._run.push(self._root, {None: batch})
        except Exception as error:
            raise user_function_error(self._name, error, during="behind the source", split=self._split) from error
        if self._router.size >= _FRAME:
            yield from self._router.element_frames(0)

    def report(self, *, idle: bool, ended: bool) -> Iterator[Frame]:
        """What is still waiting, and behind it what the split says on each edge."""
        yield from self._router.element_frames(0)
        for edge in self._root.all_edges():
            watermark = None if edge.assigner is None else self._run.watermark_of(self._root, edge.assigner)
            report = SplitReport(watermark, idle, ended)
            yield from self._router.signal_frames(edge, Signal.SPLIT_REPORT, 0, report, channel=self._split)
