"""The logical graph that a program builds: one transformation per call of the fluent API."""

from __future__ import annotations

import itertools
import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from eventide.api.source import Source
from eventide.common.typeinfo import TypeInformation, Types
from eventide.common.watermark_strategy import WatermarkAlignment, WatermarkSpec
from eventide.connectors.sink import CollectSink, Sink
from eventide.errors import ProgramError, check_is, dead_letter_advice
from eventide.runtime.chain.chained_operators import ChainedOperator, type_after
from eventide.runtime.joins.windowed import KeyOfSide
from eventide.runtime.pickles import captured
from eventide.runtime.process.operation import Redistribution, RollingOperation
from eventide.runtime.tasks.operator import Key, Operation, OperatorInput

_numbers = itertools.count()


class Transformation:
    """A node of the graph. ``name``, ``uid``, ``parallelism`` and ``dead_letters`` may be set until the job runs.

    ``dead_letters`` is the tag of the side output for what it cannot handle; None: that is an error.
    ``has_timestamps`` says whether its elements carry event time. Flink: ``Transformation``.
    """

    def __init__(
        self,
        name: str,
        inputs: tuple[Transformation, ...] = (),
        type_info: TypeInformation | None = None,
        has_timestamps: bool | None = None,
    ) -> None:
        self.number = next(_numbers)
        self.name = name
        self.uid: str | None = None
        self.parallelism: int | None = None
        self.dead_letters: str | None = None
        self.inputs = inputs
        check_is(type_info, TypeInformation | None, f"the elements of {name!r} have a type such as Types.STRING()")
        self.type_info = type_info or Types.PICKLED_BYTE_ARRAY()
        inherited = bool(inputs) and all(node.has_timestamps for node in inputs)
        self.has_timestamps: bool = inherited if has_timestamps is None else has_timestamps

    @property
    def begins_task(self) -> bool:
        """Whether tasks of its own make its elements: those of a source, or those of an operator after a shuffle."""
        return False

    @property
    def is_operator(self) -> bool:
        """Whether a job runs the operator without a sink downstream: its function may have another effect."""
        return False

    @property
    def is_punctuated(self) -> bool:
        """Whether a watermark may come between any two of its elements, not only after those of a micro-batch."""
        return any(node.is_punctuated for node in self.inputs)

    def known_type(self, *, for_good: bool) -> TypeInformation:
        """The type of its elements as it was declared, or as traces of the functions before it find it.

        A value that a function takes from outside may change, and the type with it: not with ``for_good``.
        """
        return self.type_info


class InputTransformation(Transformation, ABC):
    """A node whose elements come from outside: the base of all sources."""

    @property
    def begins_task(self) -> bool:
        return True

    @property
    @abstractmethod
    def is_bounded(self) -> bool:
        """Whether the source is bounded."""

    @abstractmethod
    def known_splits(self) -> tuple[str, ...]:
        """The splits that hold the watermark from the start."""


class SourceTransformation(InputTransformation):
    """Reads a :class:`~eventide.datastream.connectors.Source`.

    Where its own watermarks count, a split is idle that has been silent for ``idle_timeout_ms`` (None: only when the
    source says so), and they are what ``alignment`` is about.
    """

    def __init__(
        self,
        name: str,
        source: Source,
        type_info: TypeInformation,
        idle_timeout_ms: int | None = None,
        alignment: WatermarkAlignment | None = None,
    ) -> None:
        super().__init__(name, (), type_info, has_timestamps=source.gives_timestamps())
        self.source = source
        self.idle_timeout_ms = idle_timeout_ms
        self.alignment = alignment

    @property
    def has_strategy(self) -> bool:
        """Whether a strategy says something about the source's own watermarks."""
        return self.idle_timeout_ms is not None or self.alignment is not None or self.source.gives_watermarks()

    @property
    def is_punctuated(self) -> bool:
        return self.source.gives_watermarks()

    @property
    def is_bounded(self) -> bool:
        return self.source.is_bounded()

    def known_splits(self) -> tuple[str, ...]:
        return tuple(self.source.splits())


class DataFrameTransformation(InputTransformation):
    """Reads a Spark DataFrame, which only the Spark host looks into."""

    def __init__(self, name: str, reader: Any, type_info: TypeInformation, has_timestamps: bool) -> None:
        super().__init__(name, (), type_info, has_timestamps)
        self.reader = reader

    @property
    def is_bounded(self) -> bool:
        return bool(self.reader.is_bounded())

    def known_splits(self) -> tuple[str, ...]:
        return tuple(self.reader.known_splits())


class FunctionTransformation(Transformation):
    """A function that is chained: map, filter, flat_map or process.

    ``kind`` builds its operator from a name, what to call, and what the user wrote.
    """

    def __init__(
        self,
        name: str,
        source: Transformation,
        kind: Callable[[str, Callable[..., Any], Any], ChainedOperator],
        call: Callable[..., Any],
        user_function: object,
        type_info: TypeInformation | None,
        *,
        has_side_outputs: bool = False,
    ) -> None:
        super().__init__(name, (source,), type_info)
        self.has_side_outputs = has_side_outputs
        self.kind, self.call, self.user_function = captured((kind, call, user_function), f"the operator {name!r}")

    def operator(self, name: str | None = None) -> ChainedOperator:
        """Make the operator, with the name that it has in a program, or the one that the user gave."""
        return self.kind(name or self.name, self.call, self.user_function)

    def known_type(self, *, for_good: bool) -> TypeInformation:
        return type_after(
            self.operator(), self.inputs[0].known_type(for_good=for_good), self.type_info, for_good=for_good
        )

    @property
    def is_operator(self) -> bool:
        """True: it calls a function."""
        return True


class AssignTransformation(Transformation):
    """Assigns timestamps and watermarks; ``of_source`` says that it is part of the source, not an operator after it.

    ``declared`` is the strategy of the program, also where the values of ``strategy`` were changed while a job runs.
    """

    def __init__(self, name: str, source: Transformation, strategy: WatermarkSpec, *, of_source: bool = False) -> None:
        super().__init__(name, (source,), source.type_info, has_timestamps=True)
        self.strategy = self.declared = captured(strategy, f"the watermark strategy of {name!r}")
        self.of_source = of_source

    def known_type(self, *, for_good: bool) -> TypeInformation:
        return self.inputs[0].known_type(for_good=for_good)

    @property
    def alignment(self) -> WatermarkAlignment | None:
        """The watermark alignment of its strategy."""
        return self.strategy.alignment

    @property
    def begins_task(self) -> bool:
        """Whether the strategy has a user-defined generator on the splits of a source, whose tasks keep no state.

        After an operator, such a generator works in the operator's tasks.
        """
        return self.strategy.is_supplied and any(isinstance(head, InputTransformation) for head in heads(self.inputs))

    @property
    def is_operator(self) -> bool:
        """Whether the strategy comes after an operator; directly after a source, it is a part of the source."""
        return not isinstance(self.inputs[0], InputTransformation)

    @property
    def is_punctuated(self) -> bool:
        return not self.strategy.is_periodic


class AlignmentTransformation(Transformation):
    """Collects the progress of streams whose sources wait for each other; it emits nothing."""

    def __init__(self, aligned: Iterable[Transformation]) -> None:
        super().__init__("watermark alignment", tuple(aligned))
        self.uid = "eventide watermark alignment"

    @property
    def begins_task(self) -> bool:
        """True: one task hears all of them."""
        return True


class UnionTransformation(Transformation):
    """Several streams of one type as one."""


class KeyTransformation(Transformation):
    """Extracts a key from each element."""

    def __init__(self, source: Transformation, key: Key) -> None:
        super().__init__("key_by", (source,), source.type_info)
        self.key = captured(key, "the key of key_by")

    def known_type(self, *, for_good: bool) -> TypeInformation:
        return self.inputs[0].known_type(for_good=for_good)


class OperationTransformation(Transformation):
    """An operator after a shuffle, with any number of inputs, each keyed or not.

    ``side_outputs`` are the types of its side outputs, by tag.
    """

    def __init__(
        self,
        name: str,
        inputs: tuple[Transformation, ...],
        type_info: TypeInformation | None,
        operation: Operation,
        side_outputs: dict[str, TypeInformation] | None = None,
        has_timestamps: bool = True,
    ) -> None:
        super().__init__(name, inputs, type_info, has_timestamps)
        self.operation = captured(operation, f"the operator {name!r}")
        self.side_outputs = side_outputs or {}

    @property
    def begins_task(self) -> bool:
        return True

    def known_type(self, *, for_good: bool) -> TypeInformation:
        if not isinstance(self.operation, RollingOperation):
            return self.type_info
        (source,) = self.inputs
        key = source.key if isinstance(source, KeyTransformation) else None
        known = source.known_type(for_good=for_good)
        return self.operation.known_type(OperatorInput(source.type_info, key, known_type=known))

    @property
    def is_operator(self) -> bool:
        """True, but where elements only take another way to the subtasks."""
        return not isinstance(self.operation, Redistribution)

    @property
    def is_punctuated(self) -> bool:
        """False: the watermarks of an operator come after its results."""
        return False

    @property
    def is_keyed(self) -> bool:
        """Whether the operator works by key."""
        return any(isinstance(source, KeyTransformation) for source in self.inputs)

    @property
    def needs_all(self) -> bool:
        """Whether a single subtask has all elements."""
        return self.operation.needs_all and not self.is_keyed

    def operator_inputs(self, *, in_batch: bool) -> tuple[OperatorInput, ...]:
        """Facts about the operator's inputs, in batch or streaming execution."""
        return tuple(
            OperatorInput(
                source.type_info,
                source.key if isinstance(source, KeyTransformation) else None,
                source.is_punctuated and not in_batch,
                in_batch,
                source.known_type(for_good=True),
                _from_sources(source),
            )
            for source in self.inputs
        )


def _from_sources(stream: Transformation) -> bool:
    """Whether the tasks of sources send all elements of a stream on, and eventide plans some of these sources."""
    made_by = heads([stream])
    is_planned = any(isinstance(head, SourceTransformation) for head in made_by)
    return is_planned and all(isinstance(head, InputTransformation) for head in made_by)


class SideOutputTransformation(Transformation):
    """One side output of an operator; or the elements for which a strategy had no timestamp, so that they have none.

    The dead letters of a timestamp assigner have none either; where a source gave some before, they have these.
    """

    def __init__(self, source: Transformation, tag: str, type_info: TypeInformation) -> None:
        has_timestamps = False if isinstance(source, AssignTransformation) else None
        super().__init__(f"side output {tag}", (source,), type_info, has_timestamps)
        self.tag = tag


class SinkTransformation(Transformation):
    """Hands elements to a sink."""

    def __init__(self, name: str, source: Transformation, sink: Sink) -> None:
        super().__init__(name, (source,), source.type_info)
        self.sink = sink

    @property
    def is_operator(self) -> bool:
        """True: it is why a job runs."""
        return True


def heads(streams: Iterable[Transformation]) -> list[Transformation]:
    """The nodes whose tasks make the elements of some streams, without repetition, in the order of the program."""
    found: dict[int, Transformation] = {}
    seen: set[int] = set()
    waiting = [*streams]
    while waiting:
        node = waiting.pop()
        if node.number not in seen:
            seen.add(node.number)
            if node.begins_task:
                found[node.number] = node
            if isinstance(node, AssignTransformation) and node.begins_task:
                # What comes from operators is given its watermarks in their tasks.
                waiting += [head for head in heads(node.inputs) if not isinstance(head, InputTransformation)]
            elif not node.begins_task:
                waiting += node.inputs
    return [found[number] for number in sorted(found)]


def reachable(streams: Iterable[Transformation]) -> list[Transformation]:
    """Every transformation that some need, inputs first: numbers grow with creation."""
    found: dict[int, Transformation] = {}
    waiting = [*streams]
    while waiting:
        node = waiting.pop()
        if node.number not in found:
            found[node.number] = node
            waiting += node.inputs
    return [found[number] for number in sorted(found)]


def unique_names(nodes: Iterable[Transformation]) -> dict[int, str]:
    """Give operators of one name numbers, so that counters and messages tell them apart."""
    nodes = [*nodes]
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


def as_json(ends: Iterable[Transformation], parallelism: int) -> str:
    """The graph of a program in Flink's form of an execution plan, which its visualiser draws.

    A redistribution, such as ``rebalance``, is not a node there, but a property of the edge after it.
    """
    nodes: list[dict[str, Any]] = []
    for node in reachable(ends):
        if isinstance(node, OperationTransformation) and isinstance(node.operation, Redistribution):
            continue
        kind = "Data Source" if not node.inputs else "Data Sink" if isinstance(node, SinkTransformation) else "Operator"
        described = {"id": node.number, "type": node.name, "pact": kind, "contents": node.name}
        nodes.append(described | {"parallelism": node.parallelism or parallelism})
        if node.inputs:
            nodes[-1]["predecessors"] = [
                {"id": source.number, "ship_strategy": strategy, "side": "second"}
                for source, strategy in map(_shipped, node.inputs)
            ]
    return json.dumps({"nodes": nodes}, indent=2)


def without_uid(ends: Iterable[Transformation]) -> list[str]:
    """The names of the operators of a program that keep state and have no uid."""
    return [node.name for node in reachable(ends) if isinstance(node, OperationTransformation) and node.uid is None]


def why_without_parallelism(node: Transformation) -> str | None:
    """Why a number of subtasks of its own makes no difference to a node, and what does; None if it has one."""
    if isinstance(node, InputTransformation):
        return (
            "which is a source: it is read in as many tasks as it has splits, up to the parallelism of the "
            "environment; call env.set_parallelism(...)"
        )
    if isinstance(node, OperationTransformation) and node.needs_all:
        return None if node.parallelism == 1 else "whose windows have no key, so that one subtask has all; key_by first"
    if node.begins_task:
        return None
    return (
        f"which runs in the tasks of {node.inputs[0].name!r}, without a shuffle between them; call set_parallelism on "
        "the window before it, or env.set_parallelism(...)"
    )


def why_nothing_is_bad(node: Transformation) -> str | None:
    """The reason why an operator has no dead letters; None if it can have some."""
    match node:
        case KeyTransformation():
            return f"its keys are the fields {', '.join(node.key.columns)}" if node.key.columns else None
        case OperationTransformation():
            if isinstance(node.operation, Redistribution):
                return "it passes elements on unchanged; call it on the stream before"
            if not hasattr(node.operation, "dead_letters"):
                return "functions with a broadcast stream, and joins that select fields, have no dead letters"
            return None
        case FunctionTransformation() | AssignTransformation() | SourceTransformation():
            return None
    return "it is not a source, a function, a window or a key; call it on the stream of one of these"


def advice_on_key(node: Transformation) -> str:
    """The advice for a job that stops because an element from a node has no key; empty if there is none."""
    if not isinstance(node, KeyTransformation) or why_nothing_is_bad(node) is not None:
        return ""
    if isinstance(node.key.select, KeyOfSide):
        return dead_letter_advice("the stream that key_by with the same function gives, before it is joined")
    return dead_letter_advice("the stream that key_by gives")


def advice_on_type(node: Transformation, name: str) -> str:
    """The advice for a job that stops because an element from a node is not of its declared type."""
    return dead_letter_advice(f"the stream that {name!r} gives") if why_nothing_is_bad(node) is None else ""


class NextJob:
    """The operators and sinks that a program has made since its last job; each runs once, with all that it needs.

    An operator runs without a sink downstream, too: its function may have another effect.
    """

    def __init__(self) -> None:
        self._nodes: dict[int, Transformation] = {}

    def add(self, node: Transformation) -> None:
        """Take a node in, if it is an operator or a sink."""
        if node.is_operator:
            self._nodes[node.number] = node

    @property
    def collects(self) -> bool:
        """Whether the program takes elements while the job runs."""
        return any(isinstance(n, SinkTransformation) and isinstance(n.sink, CollectSink) for n in self._nodes.values())

    def nodes(self) -> list[Transformation]:
        """The nodes so far.

        Raises:
            ProgramError: if there are none.
        """
        if not self._nodes:
            raise ProgramError(
                "the program has no sink and no operator, so there is nothing to run; add one, such as print(), or "
                "call execute_and_collect()"
            )
        return [*self._nodes.values()]

    def taken(self) -> list[Transformation]:
        """The nodes so far, for the job that begins; the one after it starts with none.

        Raises:
            ProgramError: if there are none.
        """
        nodes = self.nodes()
        self._nodes.clear()
        return nodes

    def run_only_for_others(self, *nodes: Transformation) -> None:
        """Leave out nodes that run only where an operator or a sink after them does."""
        for node in nodes:
            self._nodes.pop(node.number, None)

    def leave_out(self, sink: SinkTransformation) -> None:
        """Leave out operators that a user query runs for its own sink."""
        for node in reachable([sink]):
            self._nodes.pop(node.number, None)


def _shipped(source: Transformation) -> tuple[Transformation, str]:
    """Where the elements of an input come from, and Flink's name for the way that they take."""
    strategy = "HASH" if isinstance(source, KeyTransformation) else "FORWARD"
    while isinstance(source, OperationTransformation) and isinstance(source.operation, Redistribution):
        strategy = source.operation.ship_strategy if strategy == "FORWARD" else strategy
        (source,) = source.inputs
    return source, strategy
