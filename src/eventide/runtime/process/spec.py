"""Process operators as a program describes them, and as they are planned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from eventide.api.functions import KeyedStateStore
from eventide.common.typeinfo import TypeInformation, Types
from eventide.runtime.chain.outputs import described
from eventide.runtime.elements.codec import ElementCodec
from eventide.runtime.elements.elements import in_time_order
from eventide.runtime.exchange.partitioners import ForwardPartitioner, KeyGroupPartitioner, StreamPartitioner
from eventide.runtime.process.functions import Processing
from eventide.runtime.process.operator import KeyedProcessOperator, ProcessOperator
from eventide.runtime.state.backend import Backend
from eventide.runtime.state.key_context import KeyContext
from eventide.runtime.state.keyed import KeyedState
from eventide.runtime.state.transaction import TransactionalState
from eventide.runtime.tasks.operator import Operator, OperatorContext, OperatorInput, PlannedOperator, SortInputs


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """A process operator; picklable, and built into a living one by each task.

    ``dead_letters`` is the side output of elements and timers that its function cannot handle; None: they are errors.
    """

    name: str
    processing: Processing
    has_keys: bool
    output_type: TypeInformation = field(default_factory=Types.PICKLED_BYTE_ARRAY)
    dead_letters: str | None = None
    key_context: KeyContext = field(default_factory=KeyContext, compare=False, repr=False)

    def open(self, backend: Backend, context: OperatorContext) -> Operator:
        """The operator on its state."""
        if not self.has_keys:
            return ProcessOperator(self, context)
        state = KeyedState if self.dead_letters is None else TransactionalState
        return KeyedProcessOperator(self, state(backend, context.max_parallelism, in_batch=context.in_batch), context)

    @property
    def needs_clock(self) -> bool:
        """Whether the function may set timers by the clock."""
        return self.has_keys and self.processing.may_wait_for_clock

    @property
    def sort_inputs(self) -> SortInputs | None:
        """Sorts by timestamps across both inputs, if they have keys."""
        return in_time_order if self.has_keys else None

    @property
    def state_of_functions(self) -> KeyedStateStore | None:
        """Where its function finds its state; None where there are no keys."""
        return self.key_context.store if self.has_keys else None

    @property
    def speed(self) -> str:
        """How it runs, and why."""
        return f"element by element, because {type(self.processing.user_function).__name__} is Python"

    def user_functions(self) -> list[Any]:
        """The function that the user wrote, to be opened and closed."""
        function = self.processing.user_function
        return [] if function is None else [function]

    def describe(self) -> list[tuple[str, str]]:
        """Return the lines of ``explain``."""
        state = "per key, in buckets that are read when one of their keys is touched" if self.has_keys else "none"
        timers = "by key" if self.has_keys and self.processing.on_timer is not None else "none"
        function = ("function", type(self.processing.user_function).__name__)
        return [function, ("state", state), ("timers", timers), *described(self.dead_letters)]


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
            spec, partitioners, spec.speed, identity_of(inputs, max_parallelism), (None,) * len(inputs)
        )


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
