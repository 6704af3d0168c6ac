"""Source tasks: they read ranges of splits, run what is chained to the source, and report for each split."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from eventide.common.typeinfo import TypeInformation
from eventide.datastream.connectors.source import IDLE, Source
from eventide.runtime.chain import ChainNode, ChainRun
from eventide.runtime.events import Elements, Signal, SplitReport
from eventide.runtime.frames import METRICS_STAGE, Frame
from eventide.runtime.invoke import user_function_error
from eventide.runtime.metrics import RECORDS_OUT, Metrics
from eventide.runtime.offsets import SplitRange
from eventide.runtime.router import Router

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
    """All that a host must know to run a source of splits."""

    source: Source


class SourceTask:
    """One task of a source during one micro-batch."""

    def __init__(self, spec: ChainSpec, place: int = 0) -> None:
        self._name = spec.name
        self._type_info = spec.type_info
        self._root = spec.root
        self._place = place
        self._metrics = Metrics()

    def read_ranges(self, source: Source, ranges: Iterable[SplitRange], ends_source: bool) -> Iterator[Frame]:
        """Read parts of splits; ``ends_source`` is set in the one task that says that the whole source has ended."""
        for part in ranges:
            chunks = self._chunks(source, part)
            yield from self.send_split(part.split, chunks, ended=part.ended)
        if ends_source:
            router = Router(self._root, "", self._place)
            for edge in self._root.all_edges():
                yield from router.signal_frames(edge, Signal.END_OF_SOURCE, 1)
        yield self.metrics_frame()

    def _chunks(self, source: Source, part: SplitRange) -> Iterator[tuple[Elements, bool]]:
        """The elements of a range in handy numbers, each with whether the split is idle behind them."""
        chunk, order, idle = Elements(), 0, False
        try:
            for item in source.read(part.split, part.start, part.end):
                values = [item]
                if item is IDLE:
                    idle = True
                    continue
                if isinstance(item, pa.RecordBatch):
                    values = self._type_info.from_arrow(item.to_struct_array())
                idle = False
                for value in values:
                    chunk.append(value, None, order)
                    order += 1
                if len(chunk) >= _CHUNK:
                    yield chunk, False
                    chunk = Elements()
        except Exception as error:
            raise user_function_error(
                self._name, error, during="while it read its source", split=part.split, start=part.start, end=part.end
            ) from error
        yield chunk, idle

    def send_split(self, split: str, chunks: Iterable[tuple[Elements, bool]], *, ended: bool) -> Iterator[Frame]:
        """Run the elements of one split through the chain, and report its watermark on each edge behind them."""
        way = _SplitWay(self._name, self._root, split, split, self._place)
        idle = False
        for elements, idle in chunks:  # noqa: B007 - the last one's idleness is the split's
            self._metrics.count(self._name, RECORDS_OUT, len(elements))
            yield from way.send(elements)
        yield from way.report(idle=idle, ended=ended)

    def send_rows(self, parts: Iterable[tuple[str, Elements]]) -> Iterator[Frame]:
        """Run rows of a DataFrame through the chain, as (split, elements), and report each split behind them.

        Several tasks may have rows of one split: each reports the highest watermark that it saw.
        """
        ways: dict[str, _SplitWay] = {}
        for split, elements in parts:
            if split not in ways:
                # The task is part of the channel's name, so that the order of a split's rows is defined over tasks.
                ways[split] = _SplitWay(self._name, self._root, split, f"{split} {self._place:06}", self._place)
            self._metrics.count(self._name, RECORDS_OUT, len(elements))
            yield from ways[split].send(elements)
        for way in ways.values():
            yield from way.report(idle=False, ended=False)
        yield self.metrics_frame()

    def metrics_frame(self) -> Frame:
        """What this task counted."""
        content = {"operators": self._metrics.counters()}
        return Frame(METRICS_STAGE, 0, Signal.METRICS, 0, 0, "", content)


class _SplitWay:
    """The way of one split's elements through the chain of its source, in one task."""

    def __init__(self, name: str, root: ChainNode, split: str, channel: str, place: int) -> None:
        self._name = name
        self._root = root
        self._split = split
        self._router = Router(root, channel, place)
        self._reports = Router(root, split, place)
        self._run = ChainRun(self._router.send)

    def send(self, elements: Elements) -> Iterator[Frame]:
        """Run elements through the chain; frames come when enough is waiting."""
        try:
            self._run.push(self._root, {None: elements})
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
            yield from self._reports.signal_frames(edge, Signal.SPLIT_REPORT, 0, report)
