"""Turns the graph into a plan: functions are chained where they can be, operators of one depth share a stage.

``Alignments`` says which sources wait for each other, and what each of them must know for that.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from eventide.common.accepted import has_no_effect, level_of_the_program
from eventide.common.timestamp_assigner import ExpressionAssigner
from eventide.common.typeinfo import RowTypeInfo
from eventide.common.watermark_generators import BoundedOutOfOrderness, SuppliedGenerator
from eventide.common.watermark_strategy import NullTimestamps, WatermarkAlignment
from eventide.errors import ProgramError
from eventide.plan.chains import Chains, IncomingEdge, Target, inputs_identity, strategies_identity
from eventide.plan.graph import (
    AlignmentTransformation,
    AssignTransformation,
    DataFrameTransformation,
    FunctionTransformation,
    InputTransformation,
    KeyTransformation,
    OperationTransformation,
    SinkTransformation,
    SourceTransformation,
    Transformation,
    UnionTransformation,
    heads,
    reachable,
    unique_names,
    why_without_parallelism,
)
from eventide.plan.identity import audience_of, function_names, generators_identity, operator_ids
from eventide.plan.job import (
    NO_STRATEGIES,
    DataFrameSourceSpec,
    JobPlan,
    RuntimeExecutionMode,
    SinkSpec,
    Strategies,
    drops_rows,
)
from eventide.plan.strategies import declared, with_values
from eventide.runtime.chain.chain import ChainNode
from eventide.runtime.chain.chained_operators import Filter
from eventide.runtime.chain.timestamps import AssignTimestamps
from eventide.runtime.elements.codec import ElementCodec
from eventide.runtime.eventtime.valve import ValveEdge
from eventide.runtime.exchange.partitioners import DroppingPartitioner, ForwardPartitioner, ReportsOnlyPartitioner
from eventide.runtime.sources.alignment import ByTime, SourceAlignment
from eventide.runtime.sources.task import SourceSpec
from eventide.runtime.state.operators import MAY_GO, SOURCES
from eventide.runtime.tasks.alignment_task import AlignedSource, AlignmentTaskSpec
from eventide.runtime.tasks.operator import Operation, PlannedOperator
from eventide.runtime.tasks.operator_task import OperatorTaskSpec
from eventide.runtime.tasks.split_task import SplitTaskSpec
from eventide.runtime.tasks.stage import Stage
from eventide.runtime.tasks.task import TaskSpec


def compile_plan(
    ends: Sequence[Transformation],
    parallelism: int,
    max_parallelism: int,
    mode: RuntimeExecutionMode = RuntimeExecutionMode.STREAMING,
    changed: Strategies = NO_STRATEGIES,
) -> JobPlan:
    """Compile what a program runs.

    Args:
        ends: its sinks, and the operators that run though no sink takes their results; the nodes that they need are
            found.
        parallelism: the number of subtasks of each keyed operator.
        max_parallelism: the number of key groups.
        mode: the mode of the program; one with batch DataFrames alone runs in batch execution in any case.
        changed: values of watermark strategies that are to take the place of those that the program declares.

    Raises:
        ProgramError: if a program cannot run as it is written.
    """
    plan = _Compiler(with_values(ends, changed), parallelism, max_parallelism, mode).compile()
    again = partial(compile_plan, with_values(ends, NO_STRATEGIES), parallelism, max_parallelism, mode)
    return replace(plan, strategies=declared(ends), compiled_again=again)


def runs_in_batch(nodes: Iterable[Transformation], mode: RuntimeExecutionMode) -> bool:
    """Say whether a program of these nodes runs in batch execution, where all of its input comes before any watermark.

    It does where the mode says so, where the mode is AUTOMATIC and all input is bounded, and where it reads batch
    DataFrames alone.

    Raises:
        ProgramError: if the mode is BATCH, and a source never ends.
    """
    inputs = [node for node in nodes if isinstance(node, InputTransformation)]
    endless = [node.name for node in inputs if not node.is_bounded]
    if mode is RuntimeExecutionMode.BATCH and endless:
        raise ProgramError(
            f"batch mode needs bounded sources; {', '.join(map(repr, endless))} of this program never ends"
        )
    if mode is RuntimeExecutionMode.STREAMING:
        return not endless and all(isinstance(node, DataFrameTransformation) for node in inputs)
    return not endless


class UsedFields:
    """The fields of elements that are used, by the node that gives them; None if whole elements are.

    Whole elements are what sinks and side outputs get, and Python functions of which it is not known what they read.
    """

    def __init__(self, chains: Chains, operators: Mapping[int, PlannedOperator]) -> None:
        self._chains = chains
        self._operators = operators
        self._known: dict[int, frozenset[str] | None] = {}

    def of_source(self, node: InputTransformation) -> tuple[str, ...] | None:
        """The fields of the elements of a source, in their order; None if they have no names, too."""
        kind, used = node.type_info, self._of(node)
        if used is None or not isinstance(kind, RowTypeInfo) or kind.names is None:
            return None
        return tuple(name for name in kind.names if name in used) or kind.names[:1]

    def _of(self, node: Transformation) -> frozenset[str] | None:
        waiting = [node]  # without recursion: a program may be longer than Python's stack is deep
        while waiting:
            consumers = self._chains.consumers(waiting[-1])
            unknown = [one for one in consumers if self._hands_on(one) and one.number not in self._known]
            if unknown:
                waiting += unknown
            else:
                done = waiting.pop()
                self._known[done.number] = _together(self._by(done, consumer) for consumer in consumers)
        return self._known[node.number]

    def _hands_on(self, node: Transformation) -> bool:
        """Whether what comes to a node goes on as it is."""
        match node:
            case AssignTransformation():
                return not node.begins_task or self._chains.looks_at(node) is not None
            case FunctionTransformation():
                return node.dead_letters is None and isinstance(node.operator(), Filter)
            case KeyTransformation():
                return node.dead_letters is None
        return isinstance(node, UnionTransformation)

    def _by(self, node: Transformation, consumer: Transformation) -> frozenset[str] | None:
        """The fields that a consumer of a node uses, and those after it to which it hands the elements on."""
        operator = self._operators.get(consumer.number)
        if operator is not None:
            inputs = zip(consumer.inputs, operator.used_fields, strict=True)
            return _together(fields for source, fields in inputs if source is node)
        if isinstance(consumer, AlignmentTransformation):
            return frozenset()
        read: Iterable[str] | None = None
        if isinstance(consumer, FunctionTransformation) and consumer.dead_letters is None:
            read = self._chains.fields_read(consumer)
        elif isinstance(consumer, AssignTransformation):
            read = _used_by_strategy(consumer)
        elif isinstance(consumer, KeyTransformation | UnionTransformation):
            read = ()
        if self._hands_on(consumer):
            return _together((read, self._known[consumer.number]))
        return _together((read,)) if isinstance(consumer, FunctionTransformation) else None


def _together(parts: Iterable[Iterable[str] | None]) -> frozenset[str] | None:
    """All fields of some parts; None if one of them is not known."""
    found: set[str] = set()
    for part in parts:
        if part is None:
            return None
        found.update(part)
    return frozenset(found)


class _Compiler:
    def __init__(
        self, ends: Sequence[Transformation], parallelism: int, max_parallelism: int, mode: RuntimeExecutionMode
    ) -> None:
        self._parallelism = parallelism
        self._max_parallelism = max_parallelism
        self._nodes = reachable(ends)
        self._in_batch = runs_in_batch(self._nodes, mode)
        self._names = unique_names(self._nodes)
        self._alignments = Alignments(self._nodes, self._names)
        alignment = self._alignments.node()
        if alignment is not None:
            self._nodes.append(alignment)
            self._names[alignment.number] = alignment.name
        self._stage = _stages(self._nodes)
        # What begins tasks, those of sources aside, in the order of stages; then the sinks.
        self._heads = sorted((n for n in self._nodes if self._stage.get(n.number)), key=lambda n: self._stage[n.number])
        self._sinks = [node for node in self._nodes if isinstance(node, SinkTransformation)]
        self._number = {node.number: number for number, node in enumerate([*self._heads, *self._sinks], start=1)}
        self._operators = {
            node.number: _operation(node).planned(
                self._names[node.number], node.operator_inputs(in_batch=self._in_batch), max_parallelism
            )
            for node in self._heads
            if isinstance(node, OperationTransformation)
        }
        self._ids = operator_ids(self._nodes, self._operators)
        self._assigners = {n.number: n for n in self._nodes if isinstance(n, AssignTransformation)}
        self._chains = Chains(self._nodes, self._names, self._ids, self._target)
        self._used_fields = UsedFields(self._chains, self._operators)
        self._split_tasks: dict[int, SplitTaskSpec] = {}
        self._operator_tasks: dict[int, OperatorTaskSpec] = {}

    def compile(self) -> JobPlan:
        sources = tuple(self._source(node) for node in self._nodes if isinstance(node, InputTransformation))
        tasks = [self._task(node) for node in self._heads]
        audience = audience_of(tasks)
        sources = tuple(_heard(s, tasks, audience) if isinstance(s, SourceSpec) else s for s in sources)
        tasks = [replace(task, audience=audience, in_batch=self._in_batch) for task in tasks]
        self._warn_of_limits()
        depth = max(self._stage.values(), default=0)
        stages = tuple(
            Stage(number, tuple(t for t, n in zip(tasks, self._heads, strict=True) if self._stage[n.number] == number))
            for number in range(1, depth + 1)
        )
        sinks = tuple(
            SinkSpec(self._number[node.number], self._names[node.number], node.type_info, node.sink, node.uid)
            for node in self._sinks
        )
        return JobPlan(sources, stages, sinks, self._parallelism, self._max_parallelism, in_batch=self._in_batch)

    def _target(self, consumer: Transformation, input_number: int) -> Target:
        """Where a consumer has what comes on one of its inputs."""
        number = self._number[consumer.number]
        if isinstance(consumer, AlignmentTransformation):
            return Target(number, 1, ReportsOnlyPartitioner(), takes_elements=False)
        if consumer.number in self._operators:
            partitioner = self._operators[consumer.number].partitioners[input_number]
            return Target(number, self._subtasks_of(consumer), partitioner)
        if isinstance(consumer, AssignTransformation) and (seen := self._chains.looks_at(consumer)) is not None:
            return Target(number, self._subtasks_of(consumer), seen)
        subtasks = self._parallelism if isinstance(consumer, SinkTransformation) else self._subtasks_of(consumer)
        kind = consumer.inputs[input_number].type_info
        if isinstance(consumer, SinkTransformation) and drops_rows(consumer.sink):
            return Target(number, subtasks, DroppingPartitioner(kind))
        return Target(number, subtasks, ForwardPartitioner(ElementCodec(kind)))

    def _source(self, node: InputTransformation) -> SourceSpec | DataFrameSourceSpec:
        name, root = self._names[node.number], self._chains.chain(node)
        fields = self._used_fields.of_source(node)
        spec: SourceSpec | DataFrameSourceSpec
        if isinstance(node, SourceTransformation):
            spec = SourceSpec(
                name,
                node.type_info,
                root,
                node.source,
                fields,
                alignment=self._alignments.of(node),
                dead_letters=node.dead_letters,
            )
        elif isinstance(node, DataFrameTransformation):
            spec = DataFrameSourceSpec(name, node.reader, node.type_info, root, fields)
        else:
            raise TypeError(f"{node.name!r} is not a source that can be run")
        return replace(spec, parallelism=self._parallelism, max_parallelism=self._max_parallelism)

    def _task(self, node: Transformation) -> TaskSpec:
        # What comes here comes from sources and from stages before, whose chains were built before this one.
        incoming = self._chains.incoming(node)
        as_one = node.number in self._operators and self._operators[node.number].is_union
        edges = tuple(self._valve_edge(one, 0 if as_one else one.input) for one in incoming)
        spec: TaskSpec
        if isinstance(node, OperationTransformation):
            spec = self._operator_task(node, edges, incoming)
        elif isinstance(node, AssignTransformation):
            spec = self._split_task(node, edges)
        elif isinstance(node, AlignmentTransformation):
            return self._alignment_task(node, edges, incoming)
        else:
            raise TypeError(f"{node.name!r} has no tasks of its own")
        stage = {"level": str(self._stage[node.number]), "parallelism": str(spec.parallelism)}
        watermarks = strategies_identity(incoming) | generators_identity(spec.root)
        sources = json.dumps(self._sources_heard(incoming), sort_keys=True)
        inputs = inputs_identity(incoming) | {SOURCES: sources}
        return replace(spec, identity=spec.identity | stage | inputs | watermarks)

    def _sources_heard(self, incoming: Sequence[IncomingEdge]) -> dict[str, str]:
        """The ids of the sources whose splits come on edges, from them or through tasks for splits, by their names."""
        found: dict[str, str] = {}
        for incoming_edge in incoming:
            if isinstance(incoming_edge.head, InputTransformation):
                found[self._names[incoming_edge.head.number]] = self._ids[incoming_edge.head.number]
            elif incoming_edge.head.number in self._split_tasks:
                found |= self._sources_heard(self._chains.incoming(incoming_edge.head))
        return found

    def _operator_task(
        self, node: OperationTransformation, edges: tuple[ValveEdge, ...], incoming: list[IncomingEdge]
    ) -> OperatorTaskSpec:
        operator = self._operators[node.number]
        self._check_that_it_ends(node)
        spec = self._operator_tasks[node.number] = OperatorTaskSpec(
            number=self._number[node.number],
            id=self._ids[node.number],
            name=self._names[node.number],
            operator=operator.spec,
            open=operator.open,
            edges=edges,
            codecs={incoming_edge.edge.number: incoming_edge.edge.partitioner.codec for incoming_edge in incoming},
            input_of={incoming_edge.edge.number: incoming_edge.input for incoming_edge in incoming},
            root=self._chains.chain(node),
            parallelism=self._subtasks_of(node),
            max_parallelism=self._max_parallelism,
            identity=operator.identity | {"functions": function_names(node, operator)},
            speed=operator.speed,
            broadcast_input=operator.broadcast_input,
            tells_watermark=operator.tells_watermark,
        )
        return spec

    def _split_task(self, node: AssignTransformation, edges: tuple[ValveEdge, ...]) -> SplitTaskSpec:
        seen = self._chains.looks_at(node)
        spec = SplitTaskSpec(
            number=self._number[node.number],
            id=self._ids[node.number],
            name=self._names[node.number],
            edges=edges,
            codec=ElementCodec(node.inputs[0].type_info) if seen is None else seen.codec,
            of_source=node.of_source,
            root=self._chains.chain(node),
            parallelism=self._subtasks_of(node),
            max_parallelism=self._max_parallelism,
            identity={"element type": str(node.inputs[0].type_info)},
            speed="the watermarks of each split, by a generator of its own",
        )
        self._split_tasks[node.number] = spec
        return spec

    def _alignment_task(
        self, node: AlignmentTransformation, edges: tuple[ValveEdge, ...], incoming: list[IncomingEdge]
    ) -> AlignmentTaskSpec:
        return AlignmentTaskSpec(
            number=self._number[node.number],
            id=self._ids[node.number],
            name=self._names[node.number],
            edges=edges,
            sources={a.edge.number: sources for a in incoming if (sources := self._sources_before(a))},
            groups=self._alignments.groups(),
            root=ChainNode(),
            parallelism=1,
            max_parallelism=self._max_parallelism,
            identity={"level": str(self._stage[node.number]), MAY_GO: "yes"},
            speed="tells sources where the others of their group stand",
        )

    def _sources_before(self, incoming_edge: IncomingEdge) -> tuple[AlignedSource, ...]:
        """The sources whose splits come on an edge; none after an operator."""
        if isinstance(incoming_edge.head, SourceTransformation):
            passing = not incoming_edge.head.source.holds_when_new()
            return (AlignedSource(self._names[incoming_edge.head.number], splits_pass=passing),)
        if incoming_edge.head.number not in self._split_tasks:
            return ()
        spec = self._split_tasks[incoming_edge.head.number]
        passing_of = {
            self._names[n.number]: not n.source.holds_when_new()
            for n in self._nodes
            if isinstance(n, SourceTransformation)
        }
        return tuple(
            AlignedSource(edge.producer, spec.channel(edge.name, ""), passing_of[edge.producer]) for edge in spec.edges
        )

    def _valve_edge(self, incoming_edge: IncomingEdge, input_number: int) -> ValveEdge:
        head, number = incoming_edge.head, incoming_edge.edge.assigner
        assigner = None if number is None else self._assigners[number]
        strategy = None if assigner is None else assigner.strategy
        is_source = not isinstance(head, OperationTransformation)
        if isinstance(head, InputTransformation):
            channels = head.known_splits()
        elif head.number in self._split_tasks:
            channels = self._split_tasks[head.number].channels()
        elif assigner is None and self._operator_tasks[head.number].first_speaks_for_all:
            channels = ("0",)
        else:
            channels = tuple(map(str, range(self._subtasks_of(head))))
        idle_after_ms = None if strategy is None else strategy.idle_timeout_ms
        by_elements = has_own_watermarks = False
        if strategy is None and isinstance(head, SourceTransformation):
            idle_after_ms = head.idle_timeout_ms
            by_elements = head.source.active_by_elements()
            has_own_watermarks = idle_after_ms is not None
        return ValveEdge(
            incoming_edge.edge.number,
            incoming_edge.name,
            channels,
            is_source,
            idle_after_ms,
            input_number,
            by_elements,
            self._names[head.number],
            has_own_watermarks,
            assigned_after=is_source and assigner is not None and not assigner.of_source,
        )

    def _subtasks_of(self, node: Transformation) -> int:
        """The number of its subtasks; one where there are no keys to deal elements out by."""
        if isinstance(node, OperationTransformation) and node.needs_all:
            return 1
        return min(node.parallelism or self._parallelism, self._parallelism, self._max_parallelism)

    def _warn_of_limits(self) -> None:
        """Say where a program asks for more subtasks than it gets; where the number has no effect, that was said."""
        limit = min(self._parallelism, self._max_parallelism)
        for node in self._heads:
            if (node.parallelism or 0) > limit and why_without_parallelism(node) is None:
                warnings.warn(
                    f"set_parallelism({node.parallelism}) gives {self._names[node.number]!r} {limit} subtask(s), the "
                    "most that the environment allows; call env.set_parallelism(...) with the highest number of all",
                    UserWarning,
                    stacklevel=level_of_the_program(),
                )

    def _check_that_it_ends(self, node: Transformation) -> None:
        endless = node.operation.endless if isinstance(node, OperationTransformation) else None
        sources = [source for source in reachable([node]) if isinstance(source, SourceTransformation)]
        if endless is not None and not self._in_batch and any(source.source.may_end() for source in sources):
            raise ProgramError(f"{self._names[node.number]!r} would not end with its input: {endless}")


def _heard(source: SourceSpec, tasks: Iterable[TaskSpec], audience: str) -> SourceSpec:
    """Return a copy of a source that knows its audience, and the operators in it that tell its tasks something."""
    targets = {edge.target for edge in source.root.all_edges()}
    telling = [task for task in tasks if isinstance(task, OperatorTaskSpec) and task.tells_watermark]
    return replace(source, audience=audience, telling={t.number: t.id for t in telling if t.number in targets})


def _operation(node: OperationTransformation) -> Operation:
    """Return the description of an operator; with dead letters, if the program wants them."""
    if node.dead_letters is None:
        return node.operation
    return replace(node.operation, dead_letters=node.dead_letters)  # type: ignore[type-var]


def _stages(nodes: Sequence[Transformation]) -> dict[int, int]:
    """How many shuffles lie before the elements of each node that has tasks of its own; none before a source's."""
    stages: dict[int, int] = {}
    for node in nodes:
        if node.begins_task:
            upstream = heads(node.inputs)
            if isinstance(node, AssignTransformation):  # a generator on splits; what else comes has its own tasks
                upstream = [head for head in upstream if isinstance(head, InputTransformation)]
            stages[node.number] = 1 + max((stages[head.number] for head in upstream), default=-1)
    return stages


def _used_by_strategy(node: AssignTransformation) -> set[str] | None:
    strategy = node.strategy
    seen = strategy.generator.columns if isinstance(strategy.generator, SuppliedGenerator) else ()
    assigner, column = strategy.timestamp_assigner, strategy.timestamp_column
    read: Iterable[str] | None
    if isinstance(assigner, ExpressionAssigner):
        read = assigner.fields()
    elif assigner is None:
        read = [column] if isinstance(column, str) else []
    elif seen is None or node.dead_letters is not None:
        read = None
    else:
        read = AssignTimestamps(node.name, node.number, strategy).fields_read(node.type_info)
    return None if seen is None or read is None else {*seen, *read}


@dataclass(frozen=True, slots=True)
class _Aligned:
    """A source, with the stream that it is aligned by and what the strategy there says."""

    source: SourceTransformation
    stream: Transformation
    alignment: WatermarkAlignment


class Alignments:
    """The sources of a program that wait for others, among all of its nodes, whose names are given by number.

    Raises:
        ProgramError: if one of them is a DataFrame, or is aligned in two ways.
    """

    def __init__(self, nodes: Iterable[Transformation], names: Mapping[int, str]) -> None:
        self._names = names
        self._by_source: dict[int, _Aligned] = {}
        for node in nodes:
            if isinstance(node, SourceTransformation | AssignTransformation) and node.alignment is not None:
                self._take(node, node.alignment)

    def _take(self, stream: Transformation, alignment: WatermarkAlignment) -> None:
        sources = sources_of(stream)
        if not sources:
            has_no_effect(
                f"the watermark alignment of {self._names[stream.number]!r}",
                "it stands downstream of an operator, and only sources can wait; give it to the strategy of a source",
            )
        for source in sources:
            name = self._names[source.number]
            if not isinstance(source, SourceTransformation):
                raise ProgramError(
                    f"the source {name!r} is a Spark DataFrame, which Spark plans by itself, so that no split of it "
                    "can be held back for the others of the watermark group "
                    f"{alignment.group!r}; read it with from_source(...), such as a FileSource or a Source of your "
                    "own, or leave out with_watermark_alignment(...) and limit what a micro-batch reads with an "
                    "option of the DataFrame, such as maxFilesPerTrigger or maxOffsetsPerTrigger"
                )
            if source.number in self._by_source:
                raise ProgramError(
                    f"the source {name!r} has two strategies with watermark alignment; it can wait by one of them, so "
                    "leave out with_watermark_alignment(...) in the other"
                )
            self._by_source[source.number] = _Aligned(source, stream, alignment)

    def node(self) -> AlignmentTransformation | None:
        """The operator that gets the reports of all of them; None if there is none."""
        streams = {aligned.stream.number: aligned.stream for aligned in self._by_source.values()}
        return AlignmentTransformation(streams[number] for number in sorted(streams)) if streams else None

    def groups(self) -> dict[str, tuple[str, ...]]:
        """The names of the sources of each group that wait for each other."""
        found: dict[str, list[str]] = {}
        for number, aligned in sorted(self._by_source.items()):
            if aligned.alignment.drift_ms is None:
                continue
            found.setdefault(aligned.alignment.group, []).append(self._names[number])
        return {group: tuple(names) for group, names in sorted(found.items())}

    def of(self, source: InputTransformation) -> SourceAlignment | None:
        """The alignment of a source; None for one that does not wait."""
        aligned = self._by_source.get(source.number)
        if aligned is None or aligned.alignment.drift_ms is None:
            return None
        group = aligned.alignment.group
        return SourceAlignment(group, aligned.alignment.drift_ms, self.groups()[group], _by_time(aligned))


def sources_of(stream: Transformation) -> Sequence[InputTransformation]:
    """The sources whose elements come to a stream without an operator on the way."""
    if isinstance(stream, InputTransformation):
        return [stream]
    found: dict[int, InputTransformation] = {}
    for head in heads(stream.inputs):
        if isinstance(head, InputTransformation | AssignTransformation):
            found |= {source.number: source for source in sources_of(head)}
    return [found[number] for number in sorted(found)]


def _by_time(aligned: _Aligned) -> ByTime | None:
    """How the positions of a source follow from event time, where every element moves its watermark in a known way."""
    stream = aligned.stream
    if not isinstance(stream, AssignTransformation) or stream.inputs != (aligned.source,):
        return None
    strategy, generator = stream.strategy, stream.strategy.generator
    has_times = strategy.timestamp_column is not None or aligned.source.source.gives_timestamps()
    if strategy.timestamp_assigner is not None or strategy.null_timestamps is not NullTimestamps.FAIL or not has_times:
        return None
    if not isinstance(generator, BoundedOutOfOrderness):
        return None
    return ByTime(generator.bound_ms + 1, strategy.timestamp_column)
