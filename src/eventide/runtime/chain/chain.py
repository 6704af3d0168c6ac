"""Chains: the functions between a source or an operator and the next shuffle, and the ways out of a task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NoReturn

from eventide.common.typeinfo import TypeInformation
from eventide.errors import DataError, TypeMismatch
from eventide.runtime.chain.chained_operators import (
    EXTRACTING,
    ChainedOperator,
    Moment,
    Process,
    StatelessOperator,
    watched,
)
from eventide.runtime.chain.timestamps import AssignTimestamps, times_of
from eventide.runtime.chain.watermarks import ChannelWatermarks
from eventide.runtime.elements.elements import Elements
from eventide.runtime.elements.keys import NoKey
from eventide.runtime.exchange.dividing import DividingPartitioner, DividingWriter
from eventide.runtime.exchange.frames import (
    BY_ELEMENT,
    END_OF_BATCH,
    END_OF_INPUT,
    Edge,
    Frame,
    Signal,
    WatermarkReport,
)
from eventide.runtime.exchange.partitioners import RecordWriter, StreamPartitioner
from eventide.runtime.invoke import user_function_error
from eventide.runtime.metrics import WITHOUT_TIMESTAMP, Metrics
from eventide.runtime.observation.observers import SplitObserver
from eventide.runtime.tracing.kernels import Guard
from eventide.runtime.tracing.reasons import reason_of

_REPORTS_OF_A_FRAME = 2_048
_MOST_BYTES = 1 << 30
_KEYS_TYPED = "when the keys of its elements were converted to their declared type"


@dataclass(frozen=True, slots=True)
class ChainNode:
    """An operator with what follows it; the root has no operator. ``tag`` names the side output that it listens to.

    ``type_info`` is the type that the readers of the side output have declared; None for operators.
    ``speed`` says how the operator handles elements that come as columns, and why; empty for the root and side outputs.
    """

    operator: ChainedOperator | AssignTimestamps | None = None
    tag: str | None = None
    nodes: tuple[ChainNode, ...] = ()
    edges: tuple[Edge, ...] = ()
    speed: str = ""
    type_info: TypeInformation | None = None

    def all_nodes(self) -> Iterable[ChainNode]:
        """This node and all that follow it in the task."""
        yield self
        for node in self.nodes:
            yield from node.all_nodes()

    def assigners(self) -> list[AssignTimestamps]:
        """The operators that give timestamps and watermarks in the task, in a defined order."""
        return [node.operator for node in self.all_nodes() if isinstance(node.operator, AssignTimestamps)]

    def shows_time(self) -> bool:
        """Return whether a function in the task can ask for the time of the micro-batch."""
        return any(isinstance(node.operator, Process) for node in self.all_nodes())

    def with_partitioner(self, partitioner: StreamPartitioner) -> ChainNode:
        """Return a copy in which elements leave on all edges as a partitioner says."""
        nodes = tuple(node.with_partitioner(partitioner) for node in self.nodes)
        return replace(self, nodes=nodes, edges=tuple(replace(e, partitioner=partitioner) for e in self.edges))

    def knowing(self, watermarks: Mapping[int, int]) -> ChainNode:
        """Return a copy for tasks that know at which watermarks some operators stand, by their numbers."""
        nodes = tuple(node.knowing(watermarks) for node in self.nodes)
        return replace(self, nodes=nodes, edges=tuple(_knowing(edge, watermarks) for edge in self.edges))

    def all_edges(self) -> list[Edge]:
        """The edges that leave the task, in a defined order."""
        return sorted((e for node in self.all_nodes() for e in node.edges), key=lambda e: e.address)


def _knowing(edge: Edge, watermarks: Mapping[int, int]) -> Edge:
    partitioner, watermark = edge.partitioner, watermarks.get(edge.target)
    if watermark is None or not isinstance(partitioner, DividingPartitioner):
        return edge
    return replace(edge, partitioner=partitioner.knowing(watermark))


class ChannelOutput:
    """The output of one channel, a split or a subtask: through the chain of its task, and out of the task.

    ``task`` is the index of the task, and ``slot`` says which subtask gets the elements that are not keyed.
    ``watermarks_of`` are by the number of their assigner. An ``observer`` sees the timestamps of a split. All channels
    of the task have the ``shared`` writers in common, by the address of their edge; their owner gives away what is in
    them. Where such a writer divides elements, the channel has one of its own beside it.
    """

    def __init__(
        self,
        root: ChainNode,
        channel: str,
        task: int,
        slot: int,
        watermarks_of: Mapping[int, ChannelWatermarks] | None = None,
        metrics: Metrics | None = None,
        moment: Moment | None = None,
        *,
        observer: SplitObserver | None = None,
        shared: Mapping[tuple[int, int], RecordWriter] | None = None,
    ) -> None:
        self._root = root
        self._channel = channel
        self._task = task
        self._watermarks_of = watermarks_of or {}
        self._metrics = metrics or Metrics()
        self._moment = moment or Moment()
        self._observer = observer
        shared = shared or {}
        apart = {at: writer.apart() for at, writer in shared.items() if isinstance(writer, DividingWriter)}
        self._own = [edge for edge in root.all_edges() if edge.address not in shared or edge.address in apart]
        self._writers = {**shared, **apart}
        self._writers |= {
            edge.address: edge.partitioner.open(edge.producer, slot, edge.subtasks)
            for edge in self._own
            if edge.address not in apart
        }
        self.waiting_bytes = 0
        """About how many bytes its elements in all writers take."""

    @property
    def waiting(self) -> int:
        """How many elements wait in the writers of its own."""
        return sum(self._writers[edge.address].size for edge in self._own)

    def push(self, outputs: Mapping[str | None, Elements]) -> None:
        """Run elements of the task, by side output (None: the main one), through the chain, up to the writers.

        Raises:
            DataError: if an element is not of its declared type, or has no key, or there are too many dead letters.
            UserFunctionError: if a chained function or a key selector raised.
        """
        self._push(self._root, outputs)
        self._metrics.check_dead_letters()

    def element_frames(self, point: int = BY_ELEMENT) -> Iterator[Frame]:
        """Pack and give away what is waiting; on edges by element, each has a point of its own.

        Raises:
            DataError: if an element or its key is not of the type that was declared for it, or cannot be sent.
        """
        self.waiting_bytes = 0
        for edge in self._own:
            at = BY_ELEMENT if edge.by_element else point
            yield from packed(edge, self._writers[edge.address], self._channel, at, self._task)

    def _push(self, node: ChainNode, outputs: Mapping[str | None, Elements]) -> None:
        main = outputs.get(None)
        if main:
            self._hand_on(node, main)
        for tag in dict.fromkeys(child.tag for child in node.nodes if child.tag is not None):
            self._put_out(node, tag, outputs.get(tag))

    def _run(self, node: ChainNode, batch: Elements | None) -> None:
        if not batch:
            return
        if node.operator is None:
            self._hand_on(node, batch)
        elif isinstance(node.operator, AssignTimestamps):
            self._assign(node, self._watermarks_of[node.operator.number], batch)
        elif (results := self._on_columns(node.operator, batch)) is not None:
            self._push(node, results if isinstance(results, Mapping) else {None: results})
        else:
            operator = watched(node.operator, self._metrics)
            for part in batch.pieces():
                outputs = operator.outputs(part, self._moment, self._metrics)
                self._metrics.rest()
                self._push(node, outputs)

    def _on_columns(
        self, operator: StatelessOperator, batch: Elements
    ) -> Elements | Mapping[str | None, Elements] | None:
        """The results of an operator that works on columns; None if it has to call Python with each element."""
        if batch.columns is None or not batch.is_unread:
            return None
        try:
            return operator.on_columns(batch.columns)
        except Guard as guard:
            self._metrics.count_in_python(operator.name, reason_of(guard))
            return None

    def _assign(self, node: ChainNode, watermarks: ChannelWatermarks, batch: Elements) -> None:
        operator = watermarks.operator
        if isinstance(results := self._on_columns(operator, batch), Elements):
            self._hand_on_timed(node, watermarks, results)
            return
        for part in (batch,) if operator.takes_columns else batch.pieces():
            timed, without, letters = operator.sort_out(part)
            self._hand_on_timed(node, watermarks, timed)
            if without:
                self._metrics.count(operator.name, WITHOUT_TIMESTAMP, len(without))
                self._put_out(node, operator.strategy.null_timestamps, without)
            if letters:
                letters.shorten(self._metrics.count_dead_letters(operator.name, letters.values))
                self._put_out(node, operator.dead_letters, letters)

    def _hand_on_timed(self, node: ChainNode, watermarks: ChannelWatermarks, timed: Elements) -> None:
        if timed:
            watermarks.see(timed)
            if self._observer is not None:
                self._observer.see(watermarks.operator.number, times_of(timed))
            self._hand_on(node, timed)

    def _put_out(self, node: ChainNode, tag: object, batch: Elements | None) -> None:
        """Hand a side output to all of its receivers."""
        listeners = [child for child in node.nodes if child.tag is not None and child.tag == tag]
        for child in listeners:
            own = batch.copy() if batch and len(listeners) > 1 else batch
            self._run(child, None if own is None else own.typed(child.type_info))

    def _hand_on(self, node: ChainNode, batch: Elements) -> None:
        if not batch:
            return
        edges = [edge for edge in node.edges if edge.takes_elements]
        for edge in edges:
            self._write(edge, batch)
        followers = [child for child in node.nodes if child.tag is None]
        shared = len(followers) + len(edges) > 1
        for child in followers:
            self._run(child, batch.copy() if shared else batch)

    def _write(self, edge: Edge, batch: Elements) -> None:
        self.waiting_bytes += batch.nbytes
        try:
            in_python = self._writers[edge.address].add(batch)
            if in_python is not None:
                self._metrics.count_in_python(*in_python)
        except (NoKey, TypeMismatch) as error:
            _refuse(edge, error)


def report_frames(edge: Edge, reports: list[WatermarkReport]) -> Iterator[Frame]:
    """Tell every subtask after an edge what channels say; sinks have no clock."""
    said = [report for report in reports if report.says_something]
    for start in range(0, len(said), _REPORTS_OF_A_FRAME):
        yield from _to_all(edge, Signal.REPORTS, END_OF_BATCH, said[start : start + _REPORTS_OF_A_FRAME])


def end_frames(edge: Edge) -> Iterator[Frame]:
    """Tell every subtask after an edge that the source as a whole has ended."""
    return _to_all(edge, Signal.END_OF_SOURCE, END_OF_INPUT, None)


def packed(edge: Edge, writer: RecordWriter, channel: str, point: int, task: int) -> Iterator[Frame]:
    """Give the elements that wait in a writer, as frames.

    Raises:
        DataError: if an element or its key is not of the type that was declared for it, or cannot be sent.
    """
    try:
        for subtask, content in writer.take():
            if len(content) > _MOST_BYTES:
                raise DataError(
                    f"an element of {len(content):,} bytes is too large: Spark's rows end at 2 GB, and an element may "
                    f"have {_MOST_BYTES:,} bytes. Keep large objects in files or a store, and send their names"
                )
            yield Frame(edge.target, subtask, Signal.ELEMENTS, point, edge.number, channel, content, task)
    except DataError as error:
        _refuse(edge, error)


def _to_all(edge: Edge, signal: Signal, point: int, content: object) -> Iterator[Frame]:
    if edge.has_watermarks and edge.is_reported:
        for subtask in range(edge.subtasks):
            yield Frame(edge.target, subtask, signal, point, edge.number, "", content)


def _refuse(edge: Edge, error: DataError) -> NoReturn:
    """Say of elements why they cannot leave on an edge, and what would let the job go on.

    Raises:
        DataError: if they are to blame.
        UserFunctionError: if a key selector raised.
    """
    reason: Exception = error
    advice, of = "", {}
    match error:
        case NoKey():
            reason, advice, of = error.error, edge.advice_on_key, error.of
            during = _KEYS_TYPED if isinstance(reason, TypeMismatch) else EXTRACTING
        case TypeMismatch():
            during, advice = "when its elements were converted to their declared type", edge.advice_on_type
        case _:
            during = "when its elements were sent on"
    raise user_function_error(edge.producer, reason, during=during, advice=advice, **of) from reason
