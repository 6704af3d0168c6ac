"""Source tasks: they read ranges of splits, run what is chained to the source, and report for each split."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from eventide.api.functions.output_tag import DEAD_LETTER, DeadLetterLimits
from eventide.api.source import Counted, SideOutput, Source, Unreadable
from eventide.common.ms import MIN_MS
from eventide.common.typeinfo import RowTypeInfo, TypeInformation
from eventide.errors import advised
from eventide.runtime.chain.chain import ChainNode, end_frames
from eventide.runtime.chain.outputs import cannot_be_read, dead_letter
from eventide.runtime.chain.watermarks import ChannelWatermarks, HighestTimestamp, MadeElsewhere
from eventide.runtime.elements.elements import Elements
from eventide.runtime.elements.keys import stable_hash
from eventide.runtime.exchange.frames import Frame, metrics_frame
from eventide.runtime.invoke import Search, user_function_error
from eventide.runtime.metrics import PARTS_LOST, RECORDS_OUT, FunctionMetrics, Metrics
from eventide.runtime.sources.alignment import SourceAlignment
from eventide.runtime.sources.offsets import PlannedSource, SplitRange
from eventide.runtime.sources.reached import Reached
from eventide.runtime.sources.splits import WAITING_BYTES, ReaderOutput, SourceOutput, SplitReader

_WAITING = 262_144
READING = "while it read its source"


@dataclass(frozen=True, slots=True)
class ChainSpec:
    """Chain of a source: its name, the type of its elements, and the operators that they run through; picklable.

    ``parallelism``, ``max_parallelism`` and ``job_parameters`` are what the functions may ask for: a source has as many
    tasks at most, a DataFrame as many as Spark says. ``function_metrics`` is what they count with, where they are open.
    ``search`` looks for an element that ends the process.
    """

    name: str
    type_info: TypeInformation
    root: ChainNode
    parallelism: int = field(default=1, kw_only=True)
    max_parallelism: int = field(default=1, kw_only=True)
    job_parameters: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    function_metrics: FunctionMetrics = field(default_factory=FunctionMetrics, compare=False, repr=False, kw_only=True)
    dead_letter_limits: DeadLetterLimits = field(default=DeadLetterLimits(), kw_only=True)
    search: Search = field(default=Search(), kw_only=True)


@dataclass(frozen=True, slots=True)
class SourceSpec(ChainSpec):
    """All that a host must know to run a source of splits.

    ``fields`` are those of its elements that anything uses; None if whole elements are. ``audience`` is a name for the
    operators that wait for what sources say: another one for others, or where they expect other splits. With
    ``alignment``, its splits wait for others. ``dead_letters`` is the side output of what it cannot read.
    ``is_pruned`` says that its elements come without fields that they were declared with. ``telling`` are the operators
    that tell its tasks at which watermark they stand, with their ids by number; a host may keep that ``reached_in`` a
    folder.
    """

    source: Source
    fields: tuple[str, ...] | None = None
    audience: str = ""
    alignment: SourceAlignment | None = None
    dead_letters: str | None = None
    is_pruned: bool = False
    telling: Mapping[int, str] = field(default_factory=dict)
    reached_in: str | None = None

    def pruned(self) -> SourceSpec:
        """Return a copy whose source may leave out unused columns, and sorts out bad elements if that is wanted."""
        if self.dead_letters is not None:
            return replace(self, source=self.source.sorting_out())
        if self.fields is None or self.source.get_produced_type() != self.type_info:
            return self
        source = self.source.with_columns(self.fields)
        kind = source.get_produced_type()
        if not _is_part(kind, self.type_info, self.fields) or kind.has_exponents:  # columns would lose exponents
            return self
        return replace(self, source=source, type_info=kind, is_pruned=kind != self.type_info)

    @property
    def planned(self) -> PlannedSource:
        """The part of it that plans micro-batches."""
        return PlannedSource(self.name, self.source, self.alignment, self.reached_in if self.telling else None)

    def watermarks_before(self, batch: int, reached: Reached | None) -> dict[int, int]:
        """Where operators stand when a micro-batch begins, by their numbers; only those of which that is certain."""
        known = {} if reached is None else reached.watermarks_before(batch, self.audience)
        return {number: known[id_] for number, id_ in self.telling.items() if id_ in known}


def _is_part(kind: TypeInformation, whole: TypeInformation, fields: Iterable[str]) -> bool:
    """Whether the fields of a type of rows are among those of another, in their order, and some fields among them."""
    if not isinstance(kind, RowTypeInfo) or not isinstance(whole, RowTypeInfo) or kind.names is None:
        return False
    pairs = zip(whole.field_names, whole.types, strict=True)
    kept = [pair for pair in pairs if pair[0] in kind.names]
    return {*fields} <= {*kind.names} and kept == [*zip(kind.names, kind.types, strict=True)]


class SourceTask:
    """One task of a source during one micro-batch, at a time by the clock; ``task`` is the task index.

    ``watermarks`` are those that operators stand at, by their numbers, as far as they are known.
    """

    def __init__(
        self, spec: ChainSpec, task: int = 0, clock_ms: int = MIN_MS, watermarks: Mapping[int, int] | None = None
    ) -> None:
        self._name = spec.name
        self._type_info = spec.type_info
        self._metrics = Metrics(limits=spec.dead_letter_limits, search=spec.search.begin(task, clock_ms))
        self._function_metrics = spec.function_metrics
        self._counted: list[dict[str, Any]] = []
        self._task = task
        self._clock_ms = clock_ms
        self._dead_letters = spec.dead_letters if isinstance(spec, SourceSpec) else None
        self._is_pruned = isinstance(spec, SourceSpec) and spec.is_pruned
        root = spec.root.knowing(watermarks) if watermarks else spec.root
        self._output = ReaderOutput(spec.name, root, task, self._metrics, clock_ms)

    def read_ranges(self, source: Source, ranges: Sequence[SplitRange], ends_source: bool) -> Iterator[Frame]:
        """Read parts of splits; ``ends_source`` is set in the one task that says that the whole source has ended."""
        together = [ranges] if source.reads_together() else [[one] for one in ranges]
        for some in together:
            yield from self._read_ranges(source, some)
        yield from self._last_frames()
        if ends_source:
            for edge in self._output.edges:
                yield from end_frames(edge)

    def _read_ranges(self, source: Source, ranges: Sequence[SplitRange]) -> Iterator[Frame]:
        """Read some splits at the same time, and report for each; the number of elements that wait is bounded."""
        may_be_idle, side_types = source.active_by_elements(), dict(source.side_outputs())
        if self._dead_letters is not None:
            side_types[self._dead_letters] = DEAD_LETTER
        readers = [
            SplitReader(
                one,
                self._output_of(one.split),
                self._type_info,
                side_types,
                self._unreadable,
                self._count,
                may_be_idle=may_be_idle,
                sorts_out=self._dead_letters is not None,
                as_columns=self._is_pruned,
            )
            for one in ranges
        ]
        waiting = 0
        for reader, tag, batch in self._batches(source, readers):
            yield from self._send(reader.output, batch, tag)
            waiting += len(batch)
            if waiting >= _WAITING or sum(one.output.waiting_bytes for one in readers) >= WAITING_BYTES:
                for one in readers:
                    yield from one.output.element_frames()
                waiting = 0
        for reader in readers:
            done = reader.range
            yield from reader.output.finish(
                ended=done.ended, joined=done.joined, rest=done.rest, is_operator=may_be_idle
            )
            self._metrics.count(self._name, PARTS_LOST, done.lost)

    def send_rows(self, parts: Iterable[tuple[str, Elements]]) -> Iterator[Frame]:
        """Run rows of a DataFrame through the chain, as (split, elements), and report each split after them.

        Several tasks may have rows of one split: each reports the highest watermark that it saw.
        """
        outputs: dict[str, SourceOutput] = {}
        for split, batch in parts:
            if split not in outputs:
                outputs[split] = self._output_of(split)
            yield from self._send(outputs[split], batch)
        for output in outputs.values():
            yield from output.finish(ended=False)
        yield from self._last_frames()

    def _unreadable(self, bad: Unreadable) -> SideOutput | None:
        """The dead letter of what cannot be read; None if there are more than are wanted.

        Raises:
            DataError: if none is wanted.
        """
        if self._dead_letters is None:
            raise advised(cannot_be_read(bad)) from bad.error
        place = {"key": bad.key, "split": bad.split, "position": bad.position}
        letter = dead_letter(self._name, READING, bad.error, element=bad.raw, timestamp=bad.timestamp, **place)
        if not self._metrics.count_dead_letters(self._name, [letter]):
            return None
        return SideOutput(self._dead_letters, letter, bad.timestamp)

    def _output_of(self, split: str) -> SourceOutput:
        watermarks_of: dict[int, ChannelWatermarks] = {
            operator.number: (MadeElsewhere if operator.strategy.is_supplied else HighestTimestamp)(operator, split)
            for operator in self._output.root.assigners()
        }
        # Elements that are not keyed stay together by split, so that all of them go to one subtask.
        return SourceOutput(self._output, split, stable_hash(split), watermarks_of)

    def _batches(
        self, source: Source, readers: Sequence[SplitReader]
    ) -> Iterator[tuple[SplitReader, str | None, Elements]]:
        """The elements of some ranges in handy numbers, by side output, with the reader that they come from.

        Readers wait for more elements of their splits. When all waiting elements together are too many, all are given.
        """
        reader_of = {part.part: reader for reader in readers for part in reader.range.parts}
        at = readers[0] if len(readers) == 1 else None
        waiting = 0
        try:
            for part, items in _runs(source, readers):
                at = reader_of[part]
                waiting -= at.waiting
                for tag, batch in at.batches(items):
                    yield at, tag, batch
                waiting += at.waiting
                if waiting < _WAITING:
                    continue
                for at in readers:
                    for tag, batch in at.rest():
                        yield at, tag, batch
                at, waiting = reader_of[part], 0
            for at in readers:
                for tag, batch in at.rest():
                    yield at, tag, batch
        except Exception as error:
            where = {} if at is None else at.place()
            raise user_function_error(self._name, error, during=READING, **where) from error

    def _count(self, counted: Counted) -> None:
        self._counted.append({self._name: counted.by_name})

    def _send(self, output: SourceOutput, batch: Elements, tag: str | None = None) -> Iterator[Frame]:
        if tag is None:
            self._metrics.count(self._name, RECORDS_OUT, len(batch))
        yield from output.send(batch, tag)

    def _last_frames(self) -> Iterator[Frame]:
        """Give the last frames: elements that all splits sent together, their reports, and this task's counts."""
        self._metrics.check_dead_letters()
        yield from self._output.last_frames()
        functions = [*self._counted, *self._function_metrics.take(self._task, self._clock_ms)]
        counters = self._metrics.counters()
        rows = counters.get(self._name, {}).get(RECORDS_OUT, 0)
        yield metrics_frame({"operators": counters, "functions": functions, "rows": rows})


def _runs(source: Source, readers: Sequence[SplitReader]) -> Iterator[tuple[str, Iterable[Any]]]:
    parts = [part for reader in readers for part in reader.range.parts if part.start != part.end]
    return source.read_together(parts) if parts else iter(())
