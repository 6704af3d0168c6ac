"""Functions on elements as a program asks for them, and as they run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from eventide.api.functions import ReduceFunction
from eventide.common.typeinfo import DictTypeInfo, TypeInformation
from eventide.common.typeinfo.widening import has_text
from eventide.runtime.elements.codec import ElementCodec
from eventide.runtime.elements.elements import types_of_fields
from eventide.runtime.exchange.partitioners import ForwardPartitioner, KeyGroupPartitioner, StreamPartitioner
from eventide.runtime.process.functions import Handle, Processing, ProcessSpec
from eventide.runtime.process.operator import KeyedProcessOperator, ProcessOperator
from eventide.runtime.process.rolling import Accumulates, Chooses, Rolling, RollingOperator, RollingSpec
from eventide.runtime.state.backend import Backend
from eventide.runtime.state.keyed import KeyedState
from eventide.runtime.state.operators import AGGREGATES, KEEPS, KEY_FIELDS, in_words
from eventide.runtime.state.transaction import TransactionalState
from eventide.runtime.tasks.operator import Key, Operator, OperatorContext, OperatorInput, PlannedOperator, is_exact
from eventide.runtime.tracing.column_functions import result_type, traced, traced_reduce
from eventide.runtime.tracing.reasons import UNDECLARED, place_of, why_python

_OF_ROLLING = "the aggregate of its elements"


@dataclass(frozen=True, slots=True)
class ProcessOperation:
    """Description of a function of one input or two."""

    processing: Processing
    result_type: TypeInformation
    endless: str | None = None
    needs_all: bool = False
    dead_letters: str | None = None

    @property
    def kind(self) -> str:
        """The kind of the operator, in words that stay."""
        return self.processing.kind

    def planned(self, name: str, inputs: Sequence[OperatorInput], max_parallelism: int) -> PlannedOperator:
        """Element by element: a user function sees each."""
        has_keys = all(source.key is not None for source in inputs)
        spec = ProcessSpec(name, self.processing, has_keys, self.result_type, self.dead_letters)
        partitioners = tuple(partitioner_of(source, max_parallelism) for source in inputs)
        return PlannedOperator(
            spec, open_process, partitioners, spec.speed, identity_of(inputs, max_parallelism), (None,) * len(inputs)
        )


@dataclass(frozen=True, slots=True)
class RollingOperation(ProcessOperation):
    """Description of a rolling aggregation, which runs on columns where they give the same."""

    processing: Rolling

    def planned(self, name: str, inputs: Sequence[OperatorInput], max_parallelism: int) -> PlannedOperator:
        """Choose the speed; the results are the same at both."""
        (source,) = inputs
        rolling, value_type = self.processing, source.value_type
        identity = self._identity(source, max_parallelism)
        key, obstacle = self._key_on_columns(source)
        if key is None:
            planned = ProcessOperation.planned(self, name, inputs, max_parallelism)
            return replace(planned, speed=f"element by element, because {obstacle}", identity=identity)
        kind, function = _type_of(source), rolling.function
        spec = RollingSpec(name, rolling, True, value_type, self.dead_letters, function=function, key=key, kind=kind)
        partitioner = KeyGroupPartitioner(
            ElementCodec(value_type), key.select, max_parallelism, key_columns=key.columns
        )
        return PlannedOperator(spec, RollingOperator, (partitioner,), spec.speed, identity, (None,))

    def known_type(self, source: OperatorInput) -> TypeInformation:
        """The type of its results as it was declared, or as traces find it: that of its elements, if it has columns."""
        return source.value_type if self._key_on_columns(source)[0] is None else _type_of(source)

    def _key_on_columns(self, source: OperatorInput) -> tuple[Key | None, str]:
        """The key of elements on columns; None, and why, if it does not run on columns."""
        function = self.processing.function
        key, why = _key_on_columns(function, source)
        obstacle = why if key is None else _obstacle(function, source, key.type_info)
        return (key, "") if obstacle is None else (None, obstacle)

    def _identity(self, source: OperatorInput, max_parallelism: int) -> dict[str, str]:
        """Identity of its state; a reduce function of the user's may come to do what a built-in one did."""
        is_built_in = isinstance(self.processing.function, Accumulates | Chooses)
        made = {AGGREGATES: self.kind} if is_built_in else {}
        return identity_of([source], max_parallelism, keeps=_OF_ROLLING) | made


def _type_of(source: OperatorInput) -> TypeInformation:
    """The type of the columns that elements come as: the declared one, or else that of a trace."""
    return source.known_type or source.value_type


def _obstacle(function: ReduceFunction[Any], source: OperatorInput, key: TypeInformation) -> str | None:
    """Why a rolling aggregation cannot run on columns, and what to change; None if it can."""
    kind = _type_of(source)
    if source.in_batch:
        return "batch mode has only the last result of each key, in the order of timestamps"
    if kind.has_exponents:
        return f"columns do not keep how many digits each number of {kind} has"
    if not (has_text(kind) and has_text(key)):
        return f"the name of the type {kind} does not describe it completely"
    if isinstance(function, Accumulates | Chooses):
        return None if function.fold(kind) is not None else f"columns do not add up or compare that field of {kind}"
    reduce = function.reduce
    return why_python(lambda: traced_reduce(reduce, kind), reduce, kind)


def _key_on_columns(function: ReduceFunction[Any], source: OperatorInput) -> tuple[Key | None, str]:
    """How keys are found on columns; None, and why, if columns do not have them, or do not tell them apart."""
    key, kind = source.key, _type_of(source)
    if key is None or kind.is_pickled:
        return None, f"{UNDECLARED}{place_of(function)}"
    names, found = key.columns, key.type_info
    if not names:
        if key.why_in_python(kind) is not None:
            return None, key.why_no_fields(kind)
        found = result_type(traced(key.select, kind), None)
        if key.type_info != found and not key.type_info.is_pickled:
            place = place_of(key.select)
            return None, f"the key selector gives {found}, and {key.type_info} is declared{place}"
    if isinstance(found, DictTypeInfo) or not all(map(is_exact, types_of_fields(found))):
        return None, f"columns cannot tell keys of type {found} apart; key by plain fields"
    return Key(key.select, found, names), ""


def open_process(spec: ProcessSpec, backend: Backend, context: OperatorContext) -> Operator:
    """The operator of a function, on its state."""
    if not spec.has_keys:
        return ProcessOperator(spec, context)
    state = KeyedState if spec.dead_letters is None else TransactionalState
    keyed = state(backend, context.max_parallelism, in_batch=context.in_batch)
    return KeyedProcessOperator(spec, keyed, context)


def identity_of(
    inputs: Sequence[OperatorInput], max_parallelism: int, *, keeps: str = "the states of its function"
) -> dict[str, str]:
    """Identity of state by key: where inputs have keys, it depends on these, and on what is kept of each."""
    keys = [source.key for source in inputs if source.key is not None]
    if len(keys) < len(inputs):
        return {}
    return {
        "stored form": "keyed state",
        "key type": in_words(dict.fromkeys(str(key.type_info) for key in keys)),
        "max parallelism": str(max_parallelism),
        KEEPS: keeps,
        **key_fields_of(inputs),
    }


def key_fields_of(inputs: Sequence[OperatorInput]) -> dict[str, str]:
    """The fields that keys consist of, as a part of the identity of state; none where a function may do anything."""
    keys = [source.key.by_field(source.value_type, several=True) for source in inputs if source.key is not None]
    if not keys or not all(key.columns for key in keys):
        return {}
    return {KEY_FIELDS: in_words(", ".join(key.columns) for key in keys)}


def partitioner_of(source: OperatorInput, max_parallelism: int) -> KeyGroupPartitioner | ForwardPartitioner:
    """How elements get there: by key, or all of a task to one subtask."""
    if source.key is None:
        return ForwardPartitioner(ElementCodec(source.value_type))
    key = source.key
    return KeyGroupPartitioner(
        ElementCodec(source.value_type, key.type_info), key.select, max_parallelism, key_columns=key.columns
    )


@dataclass(frozen=True, slots=True)
class PassThrough(Processing):
    """No function at all."""

    @property
    def on_element(self) -> tuple[Handle, ...]:
        return (lambda value, _: (value,),)


BROADCAST = "broadcast"
"""The kind of a redistribution by which every subtask gets all elements."""


@dataclass(frozen=True, slots=True)
class Redistribution:
    """Description of ``rebalance`` and the like: another way to the subtasks.

    ``partitioner`` makes the way out of the tasks before from the codec of elements.
    """

    kind: str
    partitioner: Callable[[ElementCodec], StreamPartitioner]
    result_type: TypeInformation
    endless: str | None = None
    needs_all: bool = False

    @property
    def ship_strategy(self) -> str:
        """Flink's name for this way, in its execution plans."""
        return self.kind.removeprefix("partition_").upper()

    def planned(self, name: str, inputs: Sequence[OperatorInput], max_parallelism: int) -> PlannedOperator:
        """Element by element; nothing is kept."""
        (source,) = inputs
        spec = ProcessSpec(name, PassThrough(None, self.kind), False, self.result_type)
        partitioner = self.partitioner(ElementCodec(source.value_type))
        return PlannedOperator(spec, open_process, (partitioner,), "as they are", {}, (None,))
