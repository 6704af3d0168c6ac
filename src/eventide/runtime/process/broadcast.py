"""The operator of a stream beside a broadcast one: every subtask has all elements of the latter.

Its broadcast state are maps of which each subtask has a copy, read where they are touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eventide.api.functions import BroadcastProcessFunction, KeyedBroadcastProcessFunction
from eventide.api.state import BroadcastState, MapStateDescriptor, ReadOnlyBroadcastState, StateDescriptor
from eventide.common.typeinfo import TypeInformation
from eventide.errors import ProgramError
from eventide.runtime.chain.chained_operators import Clock, ElementContext, Moment
from eventide.runtime.elements.codec import ElementCodec
from eventide.runtime.elements.elements import Elements, interleave
from eventide.runtime.elements.ownership import own, own_unless
from eventide.runtime.exchange.partitioners import BroadcastPartitioner
from eventide.runtime.process.functions import KeyedElementContext, ProcessEach, ProcessSpec
from eventide.runtime.process.operation import identity_of, partitioner_of
from eventide.runtime.process.operator import KeyedProcessOperator, ProcessOperator
from eventide.runtime.state.backend import Backend, PartOfState
from eventide.runtime.state.expiring import SUFFIX
from eventide.runtime.state.key_context import FUNCTION_STATE, KeyContext
from eventide.runtime.state.keyed import KeyedState
from eventide.runtime.tasks.operator import Operator, OperatorContext, OperatorInput, PlannedOperator, Receive


@dataclass(frozen=True, slots=True)
class BroadcastProcess(ProcessEach):
    """A ``BroadcastProcessFunction`` or ``KeyedBroadcastProcessFunction``; these are its calls for the first input."""

    kind: str = "process beside a broadcast stream"


class _BroadcastElementContext(ElementContext, BroadcastProcessFunction.ReadOnlyContext):
    """Context of the function with an element of the stream without keys; ``states`` is to be set."""

    states: BroadcastStates

    def current_processing_time(self) -> int:
        return self._timers.current_processing_time()

    def current_watermark(self) -> int:
        return self._timers.current_watermark()

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> ReadOnlyBroadcastState[Any, Any]:
        return self.states.view_of(state_descriptor)


class _KeyedBroadcastElementContext(
    KeyedElementContext, _BroadcastElementContext, KeyedBroadcastProcessFunction.OnTimerContext
):
    """Context of the function with an element of the keyed stream, or a timer."""


class _BroadcastContext(Clock, BroadcastProcessFunction.Context, KeyedBroadcastProcessFunction.Context):
    """Context of the function with an element of the broadcast stream."""

    keyed: KeyedState | None = None
    """The state by key in this micro-batch; None beside a stream without keys."""

    def __init__(self, moment: Moment, states: BroadcastStates, at: KeyContext) -> None:
        super().__init__(moment)
        self.time_ms: int | None = None
        self._states = states
        self._at = at

    def timestamp(self) -> int | None:
        return self.time_ms

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        return self._states.of(state_descriptor)

    def apply_to_keyed_state(self, state_descriptor: StateDescriptor, function: Callable[[Any, Any], Any]) -> None:
        if self.keyed is None:
            raise ProgramError("apply_to_keyed_state needs a keyed stream beside the broadcast one; call key_by before")
        self.keyed.open_everything()
        state, name = state_descriptor.bind(self._at.store), FUNCTION_STATE + state_descriptor.name
        at = self._at
        self.keyed.forget_expired(at.clock_ms)
        at.values = self.keyed.values
        for key in [*dict.fromkeys([*at.values[name], *at.values[name + SUFFIX]])]:
            at.key = key
            function(key, state)
        at.leave()


def _receiver(
    operator: BroadcastOperator | KeyedBroadcastOperator, spec: BroadcastSpec, context: _BroadcastContext
) -> Receive:
    """The handler of elements of the broadcast stream, in the order that they have in every subtask."""
    handle = spec.processing.user_function.process_broadcast_element

    def receive(parts: list[Elements]) -> None:
        spec.key_context.leave()
        operator.handle_each(interleave(parts), handle, context, "while it handled a broadcast element")

    return receive


class BroadcastOperator(ProcessOperator):
    """A stream without keys beside a broadcast one. Flink: ``CoBroadcastWithNonKeyedOperator``."""

    advice = ""

    def __init__(self, spec: BroadcastSpec, states: BroadcastStates, context: OperatorContext) -> None:
        super().__init__(spec, context)
        self._states = states
        self._context = seen = self._at.lasting(_BroadcastElementContext, self._moment)
        seen.states = states
        beside = self._at.lasting(_BroadcastContext, self._moment, states, self._at)
        self.inputs = (*self.inputs, _receiver(self, spec, beside))

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
        self._context = seen = self._at.lasting(_KeyedBroadcastElementContext, self._moment, self._at)
        seen.states = states
        beside = self._at.lasting(_BroadcastContext, self._moment, states, self._at)
        beside.keyed = keyed
        self.inputs = (*self.inputs, _receiver(self, spec, beside))

    def flush(self) -> None:
        """Store the state by key, and the broadcast state."""
        super().flush()
        self._states.flush()


@dataclass(frozen=True, slots=True, kw_only=True)
class BroadcastSpec(ProcessSpec):
    """An operator beside a broadcast stream; ``descriptors`` are those of its broadcast states."""

    descriptors: tuple[MapStateDescriptor, ...]

    def describe(self) -> list[tuple[str, str]]:
        names = ", ".join(descriptor.name for descriptor in self.descriptors)
        return [*ProcessSpec.describe(self), ("broadcast state", f"{names}: a copy in each subtask")]


@dataclass(frozen=True, slots=True)
class BroadcastOperation:
    """Description of a function of a stream beside a broadcast one."""

    processing: BroadcastProcess
    descriptors: tuple[MapStateDescriptor, ...]
    result_type: TypeInformation
    endless: str | None = None
    needs_all: bool = False

    @property
    def kind(self) -> str:
        """The kind of the operator, in words that stay."""
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
            partitioner_of(source, max_parallelism),
            BroadcastPartitioner(ElementCodec(broadcast.value_type)),
        )
        identity = identity_of([source], max_parallelism) | {"broadcast state": ", ".join(map(repr, self.descriptors))}
        return PlannedOperator(
            spec, open_broadcast, partitioners, spec.speed, identity, (None, None), broadcast_input=1
        )


def open_broadcast(spec: BroadcastSpec, backend: Backend, context: OperatorContext) -> Operator:
    """The operator of a function beside a broadcast stream, on its state."""
    states = spec.key_context.lasting(BroadcastStates, spec.descriptors)
    states.begin(backend)
    if not spec.has_keys:
        return BroadcastOperator(spec, states, context)
    keyed = KeyedState(backend, context.max_parallelism, in_batch=context.in_batch)
    return KeyedBroadcastOperator(spec, keyed, states, context)


_VALUE = "v"


class BroadcastStates:
    """The broadcast states of an operator in one subtask, by the names of their descriptors.

    A map is stored like state by key: a micro-batch reads the keys that it asks for, and writes those that it changes.
    A function may keep the maps, which stay while it is open.
    """

    def __init__(self, descriptors: Iterable[MapStateDescriptor]) -> None:
        self._stored: dict[str, KeyedState] = {}
        names = [descriptor.name for descriptor in descriptors]
        self._maps = {name: _BroadcastMap(self._stored, name) for name in names}
        self._views = {name: _View(self._stored, name) for name in names}

    def begin(self, backend: Backend) -> None:
        """Begin a micro-batch, on what is stored."""
        for name in self._maps:
            self._stored[name] = KeyedState(PartOfState(backend, f"broadcast/{name}/"), 1)

    def of(self, descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        """The state of a descriptor.

        Raises:
            ProgramError: if the stream was not broadcast with it.
        """
        return self._maps[self._checked(descriptor)]

    def view_of(self, descriptor: MapStateDescriptor) -> ReadOnlyBroadcastState[Any, Any]:
        """Return a view of the state that can only be read."""
        return self._views[self._checked(descriptor)]

    def flush(self) -> None:
        """Store what was changed."""
        for keyed in self._stored.values():
            keyed.flush()

    def _checked(self, descriptor: object) -> str:
        name = getattr(descriptor, "name", None)
        if name not in self._maps:
            raise ProgramError(
                f"the stream was not broadcast with {descriptor!r}, but with {', '.join(self._maps)}; name "
                "each descriptor that the function asks for in broadcast(…)"
            )
        return str(name)


class _View(ReadOnlyBroadcastState[Any, Any]):
    def __init__(self, stored: Mapping[str, KeyedState], name: str) -> None:
        self._stored = stored
        self._name = name
        self._loaded: KeyedState | None = None

    @property
    def _keyed(self) -> KeyedState:
        """The stored entries, as this micro-batch sees them."""
        return self._stored[self._name]

    def get(self, key: object) -> Any:
        found = self._keyed.read(key, None, _VALUE)
        return None if found is None else found[0]

    def contains(self, key: object) -> bool:
        return self._keyed.read(key, None, _VALUE) is not None

    def items(self) -> Iterator[tuple[Any, Any]]:
        if self._loaded is not self._keyed:
            self._loaded = self._keyed
            self._loaded.open_everything()
        return iter([(key, value) for key, (value,) in self._keyed.items(_VALUE)])

    def keys(self) -> Iterator[Any]:
        return iter([key for key, _ in self.items()])

    def values(self) -> Iterator[Any]:
        return iter([value for _, value in self.items()])

    def is_empty(self) -> bool:
        return next(self.items(), None) is None

    def clear(self) -> None:
        raise ProgramError(
            "broadcast state is changed by elements of the broadcast stream only; change it in "
            "process_broadcast_element"
        )


class _BroadcastMap(_View, BroadcastState[Any, Any]):
    def put(self, key: object, value: object) -> None:
        self._keyed.write(own(key), None, _VALUE, (own_unless(value, self.get(key)),))

    def put_all(self, dict_value: Mapping[Any, Any] | Iterable[tuple[Any, Any]]) -> None:
        for key, value in dict(dict_value).items():
            self.put(key, value)

    def remove(self, key: object) -> None:
        self._keyed.take(key, None, _VALUE)

    def clear(self) -> None:
        for key in self.keys():
            self.remove(key)
