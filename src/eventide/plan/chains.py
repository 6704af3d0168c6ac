"""Chaining: the functions that run in the tasks of a source or an operator, up to the next shuffle or sink."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, cast

from eventide.common.timestamp_assigner import SuppliedAssigner
from eventide.common.typeinfo import RowTypeInfo, TupleTypeInfo, TypeInformation, Types
from eventide.common.watermark_generators import SuppliedGenerator
from eventide.common.watermark_strategy import WatermarkSpec
from eventide.plan.graph import (
    AssignTransformation,
    FunctionTransformation,
    InputTransformation,
    KeyTransformation,
    OperationTransformation,
    SideOutputTransformation,
    SinkTransformation,
    SourceTransformation,
    Transformation,
    UnionTransformation,
    advice_on_key,
    advice_on_type,
)
from eventide.runtime.chain.chain import ChainNode
from eventide.runtime.chain.chained_operators import (
    DeadLetterOperator,
    ElementOperator,
    Filter,
    FlatMap,
    KeyCheck,
    Map,
    StatelessOperator,
    type_after,
)
from eventide.runtime.chain.timestamps import AssignTimestamps
from eventide.runtime.exchange.frames import Edge
from eventide.runtime.exchange.partitioners import FieldsPartitioner, ReportsOnlyPartitioner, StreamPartitioner
from eventide.runtime.exchange.selected_keys import selector_of
from eventide.runtime.state.operators import INPUTS, in_words
from eventide.runtime.tracing.reasons import UNTIL_OPENED

_UNDECLARED = Types.PICKLED_BYTE_ARRAY()


@dataclass(frozen=True, slots=True)
class Target:
    """Where elements go: an operator's input, or a sink. ``subtasks`` is how many share what comes.

    One that does not take elements hears how far they have come.
    """

    number: int
    subtasks: int
    partitioner: StreamPartitioner
    takes_elements: bool = True


TargetOf: TypeAlias = Callable[[Transformation, int], Target]
"""Says where a consumer that is not chained to a stream has what comes on one of its inputs."""


@dataclass(frozen=True, slots=True)
class IncomingEdge:
    """An edge as its receiver sees it: the tasks that it comes from, and the input that it leads to.

    ``origin`` is the id of those tasks. ``strategy`` is what the watermarks on it follow from: the uid of the last
    strategy on the way, else its description; empty without one. ``name`` is what the edge's state is kept under.
    """

    edge: Edge
    head: Transformation
    input: int
    origin: str
    strategy: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class _Path:
    """How a stream got from its task's head to where the walk stands.

    ``assigner`` is the last one on the way, if any; ``is_supplied`` says that its generator is the user's, and
    ``marked_by`` is the assigner whose tasks have it, where only what it looks at goes there.
    ``advice_on_type`` tells of the last on the way that declared a type of its elements. ``type_info`` is the type of
    the elements as far as it is known here, declared or found by a trace.
    """

    head: Transformation
    producer: str
    assigner: int | None = None
    is_supplied: bool = False
    marked_by: AssignTransformation | None = None
    advice_on_type: str = ""
    type_info: TypeInformation = _UNDECLARED


@dataclass(slots=True)
class _Growing:
    """A chain node while its children are still being found."""

    operator: Any = None
    tag: str | None = None
    nodes: list[_Growing] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    speed: str = ""
    type_info: TypeInformation | None = None

    def finished(self) -> ChainNode:
        nodes = tuple(node.finished() for node in self.nodes)
        return ChainNode(self.operator, self.tag, nodes, tuple(self.edges), self.speed, self.type_info)


class Chains:
    """Builds the chain of each head, those of inputs before those of what they lead to.

    Args:
        nodes: all of the program.
        names: the name of each, by number.
        ids: the id of the state of each head and each user-defined generator, by number.
        target_of: where what is not chained goes.
    """

    def __init__(
        self, nodes: Sequence[Transformation], names: Mapping[int, str], ids: Mapping[int, str], target_of: TargetOf
    ) -> None:
        self._names = names
        self._ids = ids
        self._target_of = target_of
        self._consumers: dict[int, list[Transformation]] = defaultdict(list)
        for node in nodes:
            for source in dict.fromkeys(node.inputs):
                self._consumers[source.number].append(node)
        self._incoming: dict[int, list[IncomingEdge]] = defaultdict(list)
        self._reported: dict[int, list[Edge]] = defaultdict(list)
        self._fields_read: dict[int, frozenset[str] | None] = {}
        self._declared = {node.number: node.declared for node in nodes if isinstance(node, AssignTransformation)}

    def consumers(self, node: Transformation) -> list[Transformation]:
        """The nodes that take the elements of a stream."""
        return self._consumers[node.number]

    def incoming(self, node: Transformation) -> list[IncomingEdge]:
        """The edges to an operator, from the chains that were built so far."""
        return _named(self._incoming[node.number])

    def chain(self, head: Transformation) -> ChainNode:
        """All that runs in the tasks of a head."""
        root = _Growing()
        name = self._names[head.number]
        path = _Path(head, name, advice_on_type=advice_on_type(head, name))
        path = replace(path, type_info=head.known_type(for_good=False))
        if isinstance(head, AssignTransformation) and self.looks_at(head) is not None:
            operator = self._operator_of(head)
            strategy = WatermarkSpec(head.strategy.generator)  # the elements have their timestamps
            edges = sorted(self._reported[head.number], key=lambda edge: edge.address)
            root.nodes.append(
                _Growing(replace(operator, strategy=strategy, place=None, dead_letters=None), edges=edges)
            )
        elif isinstance(head, AssignTransformation):
            self._assign(head, root, path)
        else:
            self._follow(head, root, path)
        return root.finished()

    def fields_read(self, node: FunctionTransformation) -> frozenset[str] | None:
        """The fields of its elements that a function reads, besides handing them on; None if that is not known."""
        if node.number not in self._fields_read:
            operator, read = node.operator(), None
            if isinstance(operator, Map | Filter | FlatMap):
                read = operator.fields_read(node.inputs[0].type_info)
            self._fields_read[node.number] = read
        return self._fields_read[node.number]

    def looks_at(self, node: AssignTransformation) -> FieldsPartitioner | None:
        """The part of elements that goes to the tasks of a user-defined generator; None if elements go there.

        They go past it where they come from one source, have their timestamps without it, and the plan knows which of
        their fields it looks at (decision 57).
        """
        strategy, generator = node.strategy, node.strategy.generator
        if not node.begins_task or not isinstance(generator, SuppliedGenerator) or generator.is_assigner:
            return None
        if isinstance(strategy.timestamp_assigner, SuppliedAssigner) or self._assigns_again(node):
            return None
        source = _only_source(node)
        if source is None or not (strategy.is_periodic or isinstance(source, SourceTransformation)):
            return None  # several tasks may have elements of one split of a DataFrame, which then have no common order
        kind, names = node.type_info, generator.columns
        if names is None or not (generator.ignores_elements or isinstance(kind, RowTypeInfo)):
            return None
        types = dict(zip(kind.field_names, kind.field_types, strict=True)) if isinstance(kind, RowTypeInfo) else {}
        if any(name not in types or types[name].has_exponents for name in names):
            return None
        return FieldsPartitioner(kind, names, highest_only=generator.needs_highest_only)

    def _assigns_again(self, node: Transformation) -> bool:
        """Whether another strategy follows in the same tasks."""
        return any(
            isinstance(consumer, AssignTransformation) or (not consumer.begins_task and self._assigns_again(consumer))
            for consumer in self._consumers[node.number]
        )

    def _operator_of(self, node: AssignTransformation) -> AssignTimestamps:
        kind, column = node.type_info, node.strategy.timestamp_column
        place = kind.field_names.index(column) if isinstance(kind, TupleTypeInfo) and isinstance(column, str) else None
        name, id_ = self._names[node.number], self._ids.get(node.number, "")
        return AssignTimestamps(name, node.number, node.strategy, id_, place, node.dead_letters)

    def _assign(self, node: AssignTransformation, grown: _Growing, path: _Path) -> None:
        operator = self._operator_of(node)
        child = _Growing(operator, speed=_speed(operator, path.type_info))
        grown.nodes.append(child)
        assigned = replace(path, producer=operator.name, assigner=node.number, is_supplied=node.strategy.is_supplied)
        if _needs_tasks(node, path.head) and path.marked_by is None:
            child.edges.append(self._edge(node, 0, path))
            assigned = replace(assigned, marked_by=node)
        self._follow(node, child, assigned)

    def _follow(self, node: Transformation, grown: _Growing, path: _Path) -> None:
        """Attach everything that consumes a stream to the chain node that produces its elements."""
        for consumer in self._consumers[node.number]:
            for input_number, source in enumerate(consumer.inputs):
                if source is node:
                    self._attach(consumer, input_number, grown, path)

    def _attach(self, consumer: Transformation, input_number: int, grown: _Growing, path: _Path) -> None:
        match consumer:
            case FunctionTransformation():
                name = self._names[consumer.number]
                operator = cast("ElementOperator", consumer.operator(name))
                if isinstance(operator, Filter):
                    operator = replace(operator, only_looks=self.fields_read(consumer) is not None)
                tag = consumer.dead_letters
                child = _Growing(
                    operator if tag is None else DeadLetterOperator(operator, tag),
                    speed=_speed(operator, path.type_info),
                )
                grown.nodes.append(child)
                advice = path.advice_on_type if operator.type_info is None else advice_on_type(consumer, name)
                known = type_after(operator, path.type_info, consumer.type_info)
                self._follow(consumer, child, replace(path, producer=name, advice_on_type=advice, type_info=known))
            case AssignTransformation() if not _needs_tasks(consumer, path.head) or self.looks_at(consumer):
                self._assign(consumer, grown, path)
            case SideOutputTransformation():
                child = _Growing(tag=consumer.tag, type_info=consumer.type_info)
                grown.nodes.append(child)
                self._follow(consumer, child, replace(path, type_info=consumer.type_info))
            case KeyTransformation() if consumer.dead_letters is not None:
                name = self._names[consumer.number]
                check = KeyCheck(name, consumer.key.select, consumer.key.type_info, selector_of(consumer.key.select))
                child = _Growing(DeadLetterOperator(check, consumer.dead_letters), speed=_speed(check, path.type_info))
                grown.nodes.append(child)
                self._follow(consumer, child, replace(path, producer=name))
            case KeyTransformation() | UnionTransformation():
                self._follow(consumer, grown, path)
            case _ if path.marked_by is not None:
                edge = self._edge(consumer, input_number, path)
                if edge.has_watermarks:
                    self._reported[path.marked_by.number].append(replace(edge, partitioner=ReportsOnlyPartitioner()))
                if edge.takes_elements:
                    grown.edges.append(replace(edge, is_reported=False))
            case _:
                grown.edges.append(self._edge(consumer, input_number, path))

    def _edge(self, consumer: Transformation, input_number: int, path: _Path) -> Edge:
        target = self._target_of(consumer, input_number)
        # Each element has a point of its own in splits, and where a generator looks at an output.
        has_points = path.is_supplied or isinstance(path.head, InputTransformation | AssignTransformation)
        edge = Edge(
            number=len(self._incoming[consumer.number]) + 1,
            target=target.number,
            producer=path.producer,
            subtasks=target.subtasks,
            partitioner=target.partitioner,
            assigner=path.assigner,
            has_watermarks=not isinstance(consumer, SinkTransformation),
            by_element=has_points and not target.partitioner.mixes_splits,
            takes_elements=target.takes_elements,
            advice_on_key=advice_on_key(consumer.inputs[input_number]),
            advice_on_type=path.advice_on_type,
        )
        head = path.marked_by or path.head
        incoming_edge = IncomingEdge(edge, head, input_number, self._ids[head.number], self._strategy(path))
        self._incoming[consumer.number].append(incoming_edge)
        return edge

    def _strategy(self, path: _Path) -> str:
        """The origin of the watermarks at the end of a path, in words that stay when the program grows around it."""
        if path.assigner is None:
            return ""
        return self._ids.get(path.assigner) or self._declared[path.assigner].describe()


def _speed(operator: StatelessOperator, type_info: TypeInformation) -> str:
    """How an operator calls its function with elements of a type, for ``explain``; empty where it has none to call."""
    if isinstance(operator, AssignTimestamps) and operator.takes_columns:
        return ""
    reason = operator.why_in_python(type_info)
    if reason is None:
        return "on columns, where its elements come so"
    if reason.startswith(UNTIL_OPENED):
        return f"on columns, if what open() makes can be traced; {reason}"
    return f"in Python, because {reason}"


def _only_source(node: Transformation) -> InputTransformation | None:
    """The source of a stream, if all of its elements come from one, and no operator is on the way."""
    while len(node.inputs) == 1 and not isinstance(node, OperationTransformation):
        (node,) = node.inputs
    return node if isinstance(node, InputTransformation) else None


def _needs_tasks(node: AssignTransformation, head: Transformation) -> bool:
    """Whether a generator needs tasks of its own for what comes from a head: on the splits of a source."""
    return node.strategy.is_supplied and isinstance(head, InputTransformation)


def _named(incoming: Sequence[IncomingEdge]) -> list[IncomingEdge]:
    """Several from one origin to one input are numbered by their strategies, so that their order may change."""
    ways: Counter[tuple[int, str]] = Counter()
    named = {}
    for incoming_edge in sorted(incoming, key=lambda incoming_edge: incoming_edge.strategy):
        way = (incoming_edge.input, incoming_edge.origin)
        ways[way] += 1
        name = f"{incoming_edge.input}:{incoming_edge.origin}" + (f":{ways[way]}" if ways[way] > 1 else "")
        named[incoming_edge.edge.number] = replace(incoming_edge, name=name)
    return [named[incoming_edge.edge.number] for incoming_edge in incoming]


def inputs_identity(incoming: Sequence[IncomingEdge]) -> dict[str, str]:
    """Where the elements of an operator of two inputs come from, in the order of these."""
    origins: dict[int, set[str]] = defaultdict(set)
    for incoming_edge in incoming:
        is_source = isinstance(incoming_edge.head, InputTransformation)
        origins[incoming_edge.input].add(repr(incoming_edge.head.name if is_source else incoming_edge.origin))
    if len(origins) < 2:
        return {}
    return {INPUTS: in_words(", ".join(sorted(origins[number])) for number in sorted(origins))}


def strategies_identity(incoming: Sequence[IncomingEdge]) -> dict[str, str]:
    """The strategies on several ways from one origin to one input, where they differ: the ways are numbered by them."""
    ways: dict[str, list[IncomingEdge]] = defaultdict(list)
    for incoming_edge in incoming:
        ways[f"strategies of input {incoming_edge.input + 1} from {incoming_edge.origin!r}"].append(incoming_edge)
    return {
        way: " | ".join(sorted(incoming_edge.strategy or "none" for incoming_edge in several))
        for way, several in ways.items()
        if len({incoming_edge.edge.assigner for incoming_edge in several}) > 1
    }
