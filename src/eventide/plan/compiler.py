"""Turns the graph into stages: what can be chained is chained, every keyed operator begins a stage.

A watermark generator of the user's has state for each split, which the tasks of a source cannot keep: so it begins a
stage too, where it comes directly behind a source. Behind a stage, it works in the tasks of that.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from eventide.datastream._graph import (
    AssignTransformation,
    DataFrameTransformation,
    FunctionTransformation,
    KeyTransformation,
    SideOutputTransformation,
    SinkTransformation,
    SourceTransformation,
    Transformation,
    UnionTransformation,
    WindowTransformation,
)
from eventide.errors import ProgramError
from eventide.plan.identity import generators_identity, split_stage_identity, stage_identity
from eventide.plan.job import DataFrameSourceSpec, JobPlan, SinkSpec
from eventide.plan.pruning import used_fields
from eventide.plan.speeds import planned
from eventide.plan.stages import SOURCES, begins_stage
from eventide.runtime.chain.chain import ChainNode, Edge
from eventide.runtime.chain.timestamps import AssignTimestamps
from eventide.runtime.elements.codec import ElementCodec
from eventide.runtime.eventtime.gate import GateInput
from eventide.runtime.exchange.outlets import Together
from eventide.runtime.sources.task import SourceSpec
from eventide.runtime.tasks.split_stage import SplitStage
from eventide.runtime.tasks.stage import OperatorStage, StageSpec


def compile_plan(sinks: Sequence[SinkTransformation], parallelism: int, max_parallelism: int) -> JobPlan:
    """Compile what the sinks need.

    Args:
        sinks: the sinks of the program.
        parallelism: the number of subtasks of each keyed stage.
        max_parallelism: the number of key groups.
    """
    return _Compiler(sinks, parallelism, max_parallelism).compile()


@dataclass(slots=True)
class _Growing:
    """A chain node while its children are still being found."""

    step: Any = None
    tag: str | None = None
    nodes: list[_Growing] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)

    def finished(self) -> ChainNode:
        return ChainNode(self.step, self.tag, tuple(node.finished() for node in self.nodes), tuple(self.edges))


@dataclass(frozen=True, slots=True)
class _Path:
    """How a stream got from its task's head to where the compiler stands."""

    head: Transformation
    producer: str
    assigner: int | None = None


class _Compiler:
    def __init__(self, sinks: Sequence[SinkTransformation], parallelism: int, max_parallelism: int) -> None:
        self._parallelism = parallelism
        self._max_parallelism = max_parallelism
        self._nodes = _reachable(sinks)
        self._names = _unique_names(self._nodes)
        self._consumers: dict[int, list[Transformation]] = defaultdict(list)
        for node in self._nodes:
            for source in node.inputs:
                self._consumers[source.number].append(node)
        self._stages = [node for node in self._nodes if begins_stage(node)]
        self._sinks = [node for node in self._nodes if isinstance(node, SinkTransformation)]
        targets = [*self._stages, *self._sinks]
        self._number = {node.number: number for number, node in enumerate(targets, start=1)}
        self._strategies = {n.number: n.strategy for n in self._nodes if isinstance(n, AssignTransformation)}
        self._operators = {
            node.number: planned(node, self._names[node.number], max_parallelism)
            for node in self._stages
            if isinstance(node, WindowTransformation)
        }
        self._edges: dict[int, list[tuple[Edge, Transformation]]] = defaultdict(list)
        self._splits: dict[int, tuple[str, ...]] = {}

    def compile(self) -> JobPlan:
        sources = [
            self._source(node)
            for node in self._nodes
            if isinstance(node, SourceTransformation | DataFrameTransformation)
        ]
        stages = [self._stage(node) for node in self._stages]
        sinks = [
            SinkSpec(self._number[node.number], self._names[node.number], node.type_info, node.sink)
            for node in self._sinks
        ]
        return JobPlan(tuple(sources), tuple(stages), tuple(sinks), self._parallelism)

    def _source(self, node: SourceTransformation | DataFrameTransformation) -> SourceSpec | DataFrameSourceSpec:
        name, root = self._names[node.number], self._chain(node)
        fields = used_fields(node, self._consumers, self._operators)
        if isinstance(node, SourceTransformation):
            return SourceSpec(name, node.type_info, root, node.source, fields)
        return DataFrameSourceSpec(name, node.reader, node.type_info, root, fields)

    def _stage(self, node: Transformation) -> StageSpec:
        if isinstance(node, WindowTransformation):
            return self._operator_stage(node)
        return self._split_stage(node)

    def _operator_stage(self, node: WindowTransformation) -> OperatorStage:
        # Inputs come from sources and from earlier stages, whose chains were built before this one.
        edges = self._edges[node.number]
        name = self._names[node.number]
        _check_that_it_ends(node, name)
        operator = self._operators[node.number]
        root = self._chain(node)
        return OperatorStage(
            number=self._number[node.number],
            name=name,
            operator=operator.spec,
            inputs=tuple(self._gate_input(edge, head) for edge, head in edges),
            codecs={edge.number: edge.outlet.codec for edge, _ in edges},
            root=root,
            parallelism=self._subtasks_of(node),
            max_parallelism=self._max_parallelism,
            identity=stage_identity(node, operator, edges, self._max_parallelism) | generators_identity(root),
            speed=operator.speed,
        )

    def _split_stage(self, node: Transformation) -> SplitStage:
        edges = self._edges[node.number]
        root = self._chain(node)
        stage = SplitStage(
            number=self._number[node.number],
            name=self._names[node.number],
            inputs=tuple(self._gate_input(edge, head) for edge, head in edges),
            codec=ElementCodec(node.inputs[0].type_info),
            root=root,
            parallelism=self._parallelism_of(node),
            max_parallelism=self._max_parallelism,
            identity=split_stage_identity(node, edges) | generators_identity(root),
            speed="the watermarks of each split, by a generator of its own",
        )
        self._splits[node.number] = stage.channels()
        return stage

    def _gate_input(self, edge: Edge, head: Transformation) -> GateInput:
        strategy = None if edge.assigner is None else self._strategies[edge.assigner]
        idle_after_ms = None if strategy is None else strategy.idle_timeout_ms
        if isinstance(head, WindowTransformation):
            subtasks = tuple(map(str, range(self._subtasks_of(head))))
            return GateInput(edge.number, subtasks, is_source=False, idle_after_ms=idle_after_ms)
        by_elements = strategy is None and isinstance(head, SourceTransformation) and head.source.active_by_elements()
        return GateInput(edge.number, self._splits_of(head), True, idle_after_ms, active_by_elements=by_elements)

    def _splits_of(self, head: Transformation) -> tuple[str, ...]:
        """The splits that are known from the start, of a source or behind a split stage."""
        if isinstance(head, SourceTransformation):
            return tuple(head.source.splits())
        if isinstance(head, DataFrameTransformation):
            return tuple(head.reader.known_splits())
        return self._splits[head.number]

    def _parallelism_of(self, node: Transformation) -> int:
        return min(node.parallelism or self._parallelism, self._parallelism, self._max_parallelism)

    def _subtasks_of(self, node: Transformation) -> int:
        alone = isinstance(node, WindowTransformation) and not isinstance(node.inputs[0], KeyTransformation)
        return 1 if alone else self._parallelism_of(node)

    def _chain(self, head: Transformation) -> ChainNode:
        root = _Growing()
        path = _Path(head, self._names[head.number])
        if isinstance(head, AssignTransformation):
            self._assign(head, root, path)
        else:
            self._follow(head, root, path)
        return root.finished()

    def _assign(self, node: AssignTransformation, grown: _Growing, path: _Path) -> None:
        name = self._names[node.number]
        child = _Growing(AssignTimestamps(name, node.number, node.strategy))
        grown.nodes.append(child)
        self._follow(node, child, _Path(path.head, name, node.number))

    def _follow(self, node: Transformation, grown: _Growing, path: _Path) -> None:
        """Attach everything that consumes ``node`` to the chain node that produces its elements."""
        for consumer in self._consumers[node.number]:
            self._attach(consumer, grown, path)

    def _attach(self, consumer: Transformation, grown: _Growing, path: _Path) -> None:
        name = self._names[consumer.number]
        if isinstance(consumer, FunctionTransformation):
            child = _Growing(consumer.kind(name, consumer.call, consumer.user_function))
            grown.nodes.append(child)
            self._follow(consumer, child, _Path(path.head, name, path.assigner))
        elif isinstance(consumer, AssignTransformation) and not (
            consumer.strategy.is_supplied and isinstance(path.head, SOURCES)
        ):
            self._assign(consumer, grown, path)
        elif isinstance(consumer, SideOutputTransformation):
            child = _Growing(tag=consumer.tag)
            grown.nodes.append(child)
            self._follow(consumer, child, path)
        elif isinstance(consumer, KeyTransformation | UnionTransformation):
            self._follow(consumer, grown, path)
        else:
            grown.edges.append(self._edge(consumer, path))

    def _edge(self, target: Transformation, path: _Path) -> Edge:
        to_sink = isinstance(target, SinkTransformation)
        if target.number in self._operators:
            outlet = self._operators[target.number].outlet
        else:
            outlet = Together(ElementCodec(target.inputs[0].type_info))
        edge = Edge(
            number=len(self._edges[target.number]) + 1,
            target=self._number[target.number],
            producer=path.producer,
            subtasks=self._parallelism if to_sink else self._subtasks_of(target),
            outlet=outlet,
            assigner=path.assigner,
            has_watermarks=not to_sink,
            by_element=self._is_by_element(path) and not outlet.mixes_splits,
        )
        self._edges[target.number].append((edge, path.head))
        return edge

    def _is_by_element(self, path: _Path) -> bool:
        if isinstance(path.head, WindowTransformation):
            return path.assigner is not None and self._strategies[path.assigner].is_supplied
        return True


def _check_that_it_ends(node: WindowTransformation, name: str) -> None:
    sources = [source for source in _reachable([node]) if isinstance(source, SourceTransformation)]
    if node.endless_if_bounded and any(source.source.may_end() for source in sources):
        raise ProgramError(
            f"the windows of {name!r} have no end, so its continuous trigger would fire for ever when its input "
            "ends; use windows of event time, or a CountTrigger"
        )


def _reachable(sinks: Sequence[Transformation]) -> list[Transformation]:
    """Every transformation that a sink needs, sources first: numbers grow with creation."""
    found: dict[int, Transformation] = {}
    waiting: list[Transformation] = list(sinks)
    while waiting:
        node = waiting.pop()
        if node.number not in found:
            found[node.number] = node
            waiting.extend(node.inputs)
    return [found[number] for number in sorted(found)]


def _unique_names(nodes: list[Transformation]) -> dict[int, str]:
    """Give operators of one name numbers, so that counters and messages tell them apart."""
    seen: Counter[str] = Counter()
    taken = {node.name for node in nodes}
    names = {}
    for node in nodes:
        seen[node.name] += 1
        name = node.name
        if seen[name] > 1:
            while (name := f"{node.name}-{seen[node.name]}") in taken:
                seen[node.name] += 1
            taken.add(name)
        names[node.number] = name
    return names
