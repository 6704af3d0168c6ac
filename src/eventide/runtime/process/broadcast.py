"""The operator of a stream beside a broadcast one: every subtask has all elements of the latter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from eventide.api.functions import BroadcastProcessFunction, KeyedBroadcastProcessFunction
from eventide.api.state import BroadcastState, MapStateDescriptor, ReadOnlyBroadcastState, StateDescriptor
from eventide.common.typeinfo import TypeInformation
from eventide.errors import ProgramError
from eventide.runtime.chain.chained_operators import ElementContext, Moment
from eventide.runtime.chain.outputs import Collector
from eventide.runtime.elements.codec import ElementCodec
from eventide.runtime.elements.elements import Elements, interleave
from eventide.runtime.exchange.partitioners import ToAll
from eventide.runtime.invoke import user_function_error
from eventide.runtime.process.contexts import KeyedElementContext
from eventide.runtime.process.functions import Handle
from eventide.runtime.process.operation import identity_of, partitioner_of
from eventide.runtime.process.operator import KeyedProcessOperator, ProcessOperator
from eventide.runtime.process.spec import ProcessSpec
from eventide.runtime.state.backend import Backend
from eventide.runtime.state.broadcast import BroadcastStates
from eventide.runtime.state.expiring import SUFFIX
from eventide.runtime.state.key_context import FUNCTION_STATE, KeyContext
from eventide.runtime.state.keyed import KeyedState
from eventide.runtime.tasks.operator import Operator, OperatorContext, OperatorInput, PlannedOperator, Receive


@dataclass(frozen=True, slots=True)
class ProcessBeside:
    """A ``BroadcastProcessFunction`` or ``KeyedBroadcastProcessFunction``; these are its calls for the first input."""

    user_function: BroadcastProcessFunction[Any, Any, Any] | KeyedBroadcastProcessFunction[Any, Any, Any, Any]
    kind: str = "process beside a broadcast stream"

    @property
    def on_element(self) -> tuple[Handle, ...]:
        """Its ``process_element``."""
        return (self.user_function.process_element,)

    @property
    def on_timer(self) -> Handle | None:
        """Its ``on_timer``, where it has one."""
        function = self.user_function
        if not isinstance(function, KeyedBroadcastProcessFunction):
            return None
        return function.on_timer if type(function).on_timer is not KeyedBroadcastProcessFunction.on_timer else None

    @property
    def may_wait_for_clock(self) -> bool:
        """Whether it has timers."""
        return self.on_timer is not None


class _ElementContext(ElementContext, BroadcastProcessFunction.ReadOnlyContext):
    """Context of the function with an element of the stream without keys; ``states`` is to be set."""

    states: BroadcastStates

    def current_processing_time(self) -> int:
        return self._timers.current_processing_time()

    def current_watermark(self) -> int:
        return self._timers.current_watermark()

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> ReadOnlyBroadcastState[Any, Any]:
        return self.states.view_of(state_descriptor)


class _KeyedElementContext(KeyedElementContext, _ElementContext, KeyedBroadcastProcessFunction.OnTimerContext):
    """Context of the function with an element of the keyed stream, or a timer."""


class _BroadcastContext(BroadcastProcessFunction.Context, KeyedBroadcastProcessFunction.Context):
    """Context of the function with an element of the broadcast stream."""

    def __init__(self, moment: Moment, states: BroadcastStates, keyed: KeyedState | None, at: KeyContext) -> None:
        self.time_ms: int | None = None
        self._moment = moment
        self._states = states
        self._keyed = keyed
        self._at = at

    def timestamp(self) -> int | None:
        return self.time_ms

    def current_processing_time(self) -> int:
        return self._moment.processing_time

    def current_watermark(self) -> int:
        return self._moment.watermark

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        return self._states.of(state_descriptor)

    def apply_to_keyed_state(self, state_descriptor: StateDescriptor, function: Callable[[Any, Any], Any]) -> None:
        if self._keyed is None:
            raise ProgramError("apply_to_keyed_state needs a keyed stream beside the broadcast one; call key_by before")
        self._keyed.open_everything()
        state, name = state_descriptor.bind(self._at.store), FUNCTION_STATE + state_descriptor.name
        at = self._at
        self._keyed.forget_expired(at.clock_ms)
        at.values = self._keyed.values
        for key in [*dict.fromkeys([*at.values[name], *at.values[name + SUFFIX]])]:
            at.key = key
            function(key, state)
        at.leave()


def _receiver(spec: BroadcastSpec, context: _BroadcastContext, out: Collector) -> Receive:
    """The handler of elements of the broadcast stream, in the order that they have in every subtask."""
    handle = spec.processing.user_function.process_broadcast_element

    def receive(parts: list[Elements]) -> None:
        spec.key_context.leave()
        value = None
        try:
            for _, value, context.time_ms in interleave(parts).rows():
                results = handle(value, context)
                if results is not None:
                    out.put_results(results, context.time_ms)
        except Exception as error:
            raise user_function_error(
                spec.name, error, during="while it handled a broadcast element", element=value
            ) from error

    return receive


class BroadcastOperator(ProcessOperator):
    """A stream without keys beside a broadcast one. Flink: ``CoBroadcastWithNonKeyedOperator``."""

    advice = ""

    def __init__(self, spec: BroadcastSpec, states: BroadcastStates, context: OperatorContext) -> None:
        super().__init__(spec, context)
        self._states = states
        self._context = seen = _ElementContext(self._moment)
        seen.states = states
        beside = _BroadcastContext(self._moment, states, None, spec.key_context)
        self.inputs = (*self.inputs, _receiver(spec, beside, self._out))

    def flush(self) -> None:
        """Store the broadcast state."""
        self._states.flush()


class KeyedBroadcastOperator(KeyedProcessOperator):
    """A keyed stream beside a broadcast one. Flink: ``CoBroadcastWithKeyedOperator``."""

    advice = ""

    def __init__(
        self, spec: BroadcastSpec, keyed: KeyedState, states: BroadcastStates, context: OperatorContext
    ) -> None:
        super().__init__(spec, keyed, context)
        self._states = states
        self._context = seen = _KeyedElementContext(self._moment, self._at, keyed)
        seen.states = states
        beside = _BroadcastContext(self._moment, states, keyed, self._at)
        self.inputs = (*self.inputs, _receiver(spec, beside, self._out))

    def flush(self) -> None:
        """Store the state by key, and the broadcast state."""
        super().flush()
        self._states.flush()


@dataclass(frozen=True, slots=True, kw_only=True)
class BroadcastSpec(ProcessSpec):
    """An operator beside a broadcast stream; ``descriptors`` are those of its broadcast states."""

    descriptors: tuple[MapStateDescriptor, ...]

    def describe(self) -> list[tuple[str, str]]:
        """Return the lines of ``explain``."""
        names = ", ".join(descriptor.name for descriptor in self.descriptors)
        return [*ProcessSpec.describe(self), ("broadcast state", f"{names}: a copy in each subtask")]


@dataclass(frozen=True, slots=True)
class BroadcastOperation:
    """Description of a function of a stream beside a broadcast one."""

    processing: ProcessBeside
    descriptors: tuple[MapStateDescriptor, ...]
    result_type: TypeInformation
    endless: str | None = None
    needs_all: bool = False

    @property
    def kind(self) -> str:
        """Its kind, in words that stay."""
        return self.processing.kind

    def planned(self, name: str, inputs: Sequence[OperatorInput], max_parallelism: int) -> PlannedOperator:
        """Element by element: a user function sees each."""
        source, broadcast = inputs
        spec = BroadcastSpec(
            name=name,
            processing=self.processing,
            has_keys=source.key is not None,
            output_type=self.result_type,
            descriptors=self.descriptors,
        )
        partitioners = (
            partitioner_of(source, max_parallelism, has_keys=spec.has_keys),
            ToAll(ElementCodec(broadcast.value_type)),
        )
        identity = identity_of([source], max_parallelism) | {"broadcast state": ", ".join(map(repr, self.descriptors))}
        return PlannedOperator(
            spec, open_broadcast, partitioners, spec.speed, identity, (None, None), broadcast_input=1
        )


def open_broadcast(spec: BroadcastSpec, backend: Backend, context: OperatorContext) -> Operator:
    """The operator of a function beside a broadcast stream, on its state."""
    states = BroadcastStates(backend, spec.descriptors)
    if not spec.has_keys:
        return BroadcastOperator(spec, states, context)
    keyed = KeyedState(backend, context.max_parallelism, in_batch=context.in_batch)
    return KeyedBroadcastOperator(spec, keyed, states, context)
