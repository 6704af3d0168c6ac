"""Functions on elements as a program asks for them, and as they run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from eventide.common.typeinfo import TypeInformation
from eventide.runtime.elements.codec import ElementCodec
from eventide.runtime.exchange.partitioners import ForwardPartitioner, KeyGroupPartitioner, StreamPartitioner
from eventide.runtime.process.functions import Handle, Processing, ProcessSpec
from eventide.runtime.process.operator import KeyedProcessOperator, ProcessOperator
from eventide.runtime.state.backend import Backend
from eventide.runtime.state.keyed import KeyedState
from eventide.runtime.state.transaction import TransactionalState
from eventide.runtime.tasks.operator import Operator, OperatorContext, OperatorInput, PlannedOperator


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
        """Its kind, in words that stay."""
        return self.processing.kind

    def planned(self, name: str, inputs: Sequence[OperatorInput], max_parallelism: int) -> PlannedOperator:
        """Element by element: a user function sees each."""
        has_keys = all(source.key is not None for source in inputs)
        spec = ProcessSpec(name, self.processing, has_keys, self.result_type, self.dead_letters)
        partitioners = tuple(partitioner_of(source, max_parallelism, has_keys=has_keys) for source in inputs)
        return PlannedOperator(
            spec, open_process, partitioners, spec.speed, identity_of(inputs, max_parallelism), (None,) * len(inputs)
        )


def open_process(spec: ProcessSpec, backend: Backend, context: OperatorContext) -> Operator:
    """The operator of a function, on its state."""
    if not spec.has_keys:
        return ProcessOperator(spec, context)
    state = KeyedState if spec.dead_letters is None else TransactionalState
    return KeyedProcessOperator(spec, state(backend, context.max_parallelism, in_batch=context.in_batch), context)


def identity_of(inputs: Sequence[OperatorInput], max_parallelism: int) -> dict[str, str]:
    """Identity of a function's state: where inputs have keys, it depends on these."""
    keys = [source.key for source in inputs if source.key is not None]
    if len(keys) < len(inputs):
        return {}
    return {
        "stored form": "keyed state",
        "key type": " and ".join(dict.fromkeys(str(key.type_info) for key in keys)),
        "max parallelism": str(max_parallelism),
    }


def partitioner_of(source: OperatorInput, max_parallelism: int, *, has_keys: bool) -> StreamPartitioner:
    """How elements get there: by key, or all of a task to one subtask."""
    if source.key is None or not has_keys:
        return ForwardPartitioner(ElementCodec(source.value_type))
    key = source.key
    return KeyGroupPartitioner(
        ElementCodec(source.value_type, key.type_info), key.select, max_parallelism, key_columns=key.columns
    )


@dataclass(frozen=True, slots=True)
class HandOn:
    """No function at all."""

    kind: str
    user_function: None = None
    may_wait_for_clock: bool = False

    @property
    def on_element(self) -> tuple[Handle, ...]:
        """The element itself."""
        return (_itself,)

    @property
    def on_timer(self) -> Handle | None:
        """None."""
        return None


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
        spec = ProcessSpec(name, HandOn(self.kind), False, self.result_type)
        partitioner = self.partitioner(ElementCodec(source.value_type))
        return PlannedOperator(spec, open_process, (partitioner,), "as they are", {}, (None,))


def _itself(value: Any, _: Any) -> tuple[Any]:
    return (value,)
