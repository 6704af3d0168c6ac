"""The state of a function on a keyed stream: found once, when it is opened; of the current key, whenever it is used."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias, TypeVar

from eventide.api.functions import AggregateFunction, Function, KeyedStateStore, ReduceFunction
from eventide.api.state import (
    AggregatingState,
    AggregatingStateDescriptor,
    ListState,
    ListStateDescriptor,
    MapState,
    MapStateDescriptor,
    ReducingState,
    ReducingStateDescriptor,
    State,
    StateDescriptor,
    StateTtlConfig,
    ValueState,
    ValueStateDescriptor,
)
from eventide.common.ms import MIN_MS
from eventide.common.typeinfo import TypeInformation
from eventide.errors import ProgramError
from eventide.runtime.elements.ownership import FIXED, own, own_beside, own_unless
from eventide.runtime.state import declared
from eventide.runtime.state.bucket import Pickled, live, unpickled
from eventide.runtime.state.expiring import (
    LIST,
    MAP,
    ONE,
    SUFFIX,
    Cell,
    ExpiringCell,
    ExpiringList,
    ExpiringMap,
    TimeToLive,
    with_times,
    without_times,
)
from eventide.runtime.state.keyed import KeyedState
from eventide.runtime.state.timers import Timers

FUNCTION_STATE = "global:"
"""The beginning of the names of functions' state: windows have others beside it."""

Scope: TypeAlias = Callable[[], tuple[Any, Hashable]]
Cells: TypeAlias = Callable[[str], Cell]
"""Makes the cell of a name."""
Declares: TypeAlias = Callable[[str, TypeInformation, str], None]
"""Is told the type of each name, and the kind of its state."""
Slots: TypeAlias = Callable[[str, StateTtlConfig, int], tuple[Cell, TimeToLive]]
"""Makes the cell of a name for a state of some form that expires."""

_Kind = TypeVar("_Kind", bound=StateDescriptor[Any])
_State = TypeVar("_State", bound=State)
_T = TypeVar("_T")

_EXPIRING: dict[int, Callable[[Cell, TimeToLive], State]] = {LIST: ExpiringList, MAP: ExpiringMap}


class KeyContext:
    """The key that a function is called for, and where what is kept of it is found.

    It stays for as long as the function is open, while each micro-batch has its own view of the state: the operator
    sets the current key before it calls the function. On its way to a worker it forgets everything.

    Attributes:
        key: the key.
        values: the state of all loaded keys, by name and key.
        clock_ms: the time of the micro-batch by the clock.
        event_timers: the timers of event time.
        processing_timers: the timers of processing time.
        is_kept: whether the function has got its state where it may keep it, and not when it was opened.
    """

    __slots__ = (
        "_declared",
        "_keyed",
        "_lasting",
        "_without_limit",
        "clock_ms",
        "event_timers",
        "is_kept",
        "key",
        "processing_timers",
        "store",
        "values",
    )

    event_timers: Timers
    processing_timers: Timers

    def __init__(self) -> None:
        self.key: object = None
        self.values: Mapping[str, dict[Any, Any]] = _NO_VALUES
        self.clock_ms = MIN_MS
        self.store = StateHandles(self._cell, self._declare, self._slot)
        self.is_kept = False
        self._keyed: KeyedState | None = None
        self._declared: dict[str, tuple[TypeInformation, str]] = {}
        self._without_limit: set[str] = set()
        self._lasting: dict[type, Any] = {}

    def lasting(self, kind: type[_T], *arguments: Any) -> _T:
        """An object of a class, which stays while the function is open: what a function has kept of it stays right."""
        found: _T | None = self._lasting.get(kind)
        if found is None:
            found = self._lasting[kind] = kind(*arguments)
        return found

    def begin(self, keyed: KeyedState, clock_ms: int) -> None:
        """Begin a micro-batch of a time by the clock, on the state that an operator has in it.

        Raises:
            StateError: if a state was stored as another kind, or with a type that does not widen to the one that the
                program declares.
        """
        self._keyed, self.clock_ms = keyed, clock_ms
        keyed.without_limit = self._without_limit
        self.event_timers, self.processing_timers = keyed.event_timers, keyed.processing_timers
        for name, (type_info, kind) in self._declared.items():
            keyed.declare(name, type_info, kind)

    def leave(self) -> None:
        """Forget the current key: a function that uses state from now on makes a mistake."""
        self.key, self.values = None, _NO_VALUES

    def _declare(self, name: str, type_info: TypeInformation, kind: str) -> None:
        """Take down the type and the kind of a state; values of another type are converted before they are used."""
        self._declared[FUNCTION_STATE + name] = type_info, kind
        if self._keyed is not None:
            self._keyed.declare(FUNCTION_STATE + name, type_info, kind)

    def _cell(self, name: str) -> _CellOfKey:
        """The cell of a state without a time to live; if it had one before, what it kept then stays."""
        name = FUNCTION_STATE + name
        self._without_limit.add(name)
        return _CellOfKey(self, name, name + SUFFIX, without_times)

    def _slot(self, name: str, config: StateTtlConfig, form: int) -> tuple[_CellOfKey, TimeToLive]:
        """The cell of a state that expires; values from before it had a time to live count as used now."""
        ttl = TimeToLive.of(config, lambda: self.clock_ms)
        name = FUNCTION_STATE + name
        return _CellOfKey(self, name + SUFFIX, name, lambda plain: with_times(plain, ttl, form)), ttl

    def __reduce__(self) -> tuple[type[KeyContext], tuple[()]]:
        return KeyContext, ()


def is_rich(function: object) -> bool:
    """Whether a function is opened, so that it may have state of its own."""
    return isinstance(function, Function) and type(function).open is not Function.open


class ScopedCell(Cell):
    """A cell of keyed state whose key and namespace a function tells."""

    def __init__(self, keyed: KeyedState, name: str, scope: Scope) -> None:
        self._keyed = keyed
        self._name = name
        self._scope = scope

    def read(self) -> Any:
        return self._keyed.read(*self._scope(), self._name)

    def write(self, value: object) -> None:
        self._keyed.write(*self._scope(), self._name, value)

    def clear(self) -> None:
        self._keyed.take(*self._scope(), self._name)

    def take(self, namespace: Hashable) -> Any:
        key, _ = self._scope()
        return self._keyed.take(key, namespace, self._name)


class StateHandles(KeyedStateStore):
    """Builds each state object once, on the cell of its name.

    ``declares`` is told the type of each first; ``slots`` has the cells of states that expire.
    """

    def __init__(self, cells: Cells, declares: Declares, slots: Slots | None = None) -> None:
        self._cells = cells
        self._declares = declares
        self._slots = slots
        self._handles: dict[str, Any] = {}
        self._kinds: dict[str, type[StateDescriptor]] = {}

    def _once(self, descriptor: StateDescriptor, make: Callable[[Cell], _State], named: str, form: int = ONE) -> _State:
        kind = self._kinds.setdefault(descriptor.name, type(descriptor))
        if kind is not type(descriptor):
            raise ProgramError(
                f"the state {descriptor.name!r} was used with a {kind.__name__} before, and now with a "
                f"{type(descriptor).__name__}; give each state a name of its own"
            )
        if descriptor.name not in self._handles:
            self._declares(descriptor.name, descriptor.type_info, named)
            self._handles[descriptor.name] = self._made(descriptor, make, form)
        handle: _State = self._handles[descriptor.name]
        return handle

    def _made(self, descriptor: StateDescriptor, make: Callable[[Cell], Any], form: int) -> Any:
        """The state of a descriptor on its cell; in a list or a map that expires, each part does so by itself."""
        if descriptor.ttl_config is None:
            return make(self._cells(descriptor.name))
        if self._slots is None:
            raise ProgramError(
                f"the state {descriptor.name!r} of a window or trigger goes with its window, and has no time to live "
                "of its own; the state of a key has: get it from the runtime context, or from global_state()"
            )
        expiring = self._slots(descriptor.name, descriptor.ttl_config, form)
        return make(ExpiringCell(*expiring)) if form == ONE else _EXPIRING[form](*expiring)

    def get_state(self, state_descriptor: ValueStateDescriptor) -> ValueState[Any]:
        return self._once(state_descriptor, _ValueHandle, declared.VALUE)

    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        return self._once(state_descriptor, _ListHandle, declared.LIST, LIST)

    def get_map_state(self, state_descriptor: MapStateDescriptor) -> MapState[Any, Any]:
        return self._once(state_descriptor, _MapHandle, declared.MAP, MAP)

    def get_reducing_state(self, state_descriptor: StateDescriptor[ReducingState[Any]]) -> ReducingState[Any]:
        function = _of_kind(ReducingStateDescriptor, state_descriptor).get_reduce_function()
        return self._once(state_descriptor, lambda cell: _Reducing(cell, function), declared.REDUCING)

    def get_aggregating_state(
        self, state_descriptor: StateDescriptor[AggregatingState[Any, Any]]
    ) -> AggregatingState[Any, Any]:
        function = _of_kind(AggregatingStateDescriptor, state_descriptor).get_agg_function()
        return self._once(state_descriptor, lambda cell: _Aggregating(cell, function), declared.AGGREGATING)

    def merge(self, descriptor: StateDescriptor, namespaces: Iterable[Hashable]) -> None:
        """Merge the values under other namespaces of the current key into the current one."""
        handle = descriptor.bind(self)
        if not isinstance(handle, _Merging):
            raise ProgramError(
                f"the state {descriptor.name!r} cannot be merged when windows merge; use a list, reducing or "
                "aggregating state, or let the trigger's can_merge return False"
            )
        handle.merge_from(namespaces)


def _of_kind(kind: type[_Kind], descriptor: StateDescriptor[Any]) -> _Kind:
    if not isinstance(descriptor, kind):
        raise ProgramError(f"expected a {kind.__name__} of the state, got {descriptor!r}")
    return descriptor


def handles_under(keyed: KeyedState, prefix: str, scope: Scope) -> StateHandles:
    """State objects on keyed state, whose key and namespace a function tells, with a prefix to names."""
    return StateHandles(
        lambda name: ScopedCell(keyed, f"{prefix}{name}", scope),
        lambda name, type_info, kind: keyed.declare(f"{prefix}{name}", type_info, kind),
    )


class _CellOfKey:
    """The cell of one named state of the current key.

    ``other`` is where an earlier program kept it, with a time to live where it has none now, or the other way round;
    ``converted`` makes what is kept there what is kept here.
    """

    __slots__ = ("_at", "_converted", "_name", "_other")

    def __init__(self, at: KeyContext, name: str, other: str, converted: Callable[[Any], Any]) -> None:
        self._at = at
        self._name = name
        self._other = other
        self._converted = converted

    def read(self) -> Any:
        at = self._at
        values = at.values[self._name]
        value = values.get(at.key)
        if type(value) is Pickled:
            value = values[at.key] = live(value)
        elif value is None and self._other in at.values:
            earlier = unpickled(at.values[self._other], at.key)
            if earlier is not None:
                value = values[at.key] = self._converted(earlier)
                del at.values[self._other][at.key]
        return value

    def write(self, value: object) -> None:
        at = self._at
        at.values[self._name][at.key] = value
        if self._other in at.values:
            at.values[self._other].pop(at.key, None)

    def clear(self) -> None:
        self.take(None)

    def take(self, namespace: Hashable) -> Any:
        value = self.read()
        self._at.values[self._name].pop(self._at.key, None)
        return value


class _NoValues(dict[str, dict[Any, Any]]):
    """Stands where there is no current key."""

    def __missing__(self, name: str) -> dict[Any, Any]:
        raise ProgramError(
            "state belongs to a key, and there is no current key here; get it in open(), and use it where an element "
            "or a timer is handled"
        )


_NO_VALUES = _NoValues()


class _StateHandle:
    def __init__(self, cell: Cell) -> None:
        self._cell = cell

    def clear(self) -> None:
        self._cell.clear()


class _ValueHandle(_StateHandle, ValueState[Any]):
    def __init__(self, cell: Cell) -> None:
        super().__init__(cell)
        self.__dict__["value"] = cell.read  # stands before the method: one call less, for each element

    def value(self) -> Any:
        return self._cell.read()

    def update(self, value: object) -> None:
        if value is None:
            self._cell.clear()
        elif type(value) in FIXED:
            self._cell.write(value)
        else:
            self._cell.write(own_unless(value, self._cell.read()))


class _Merging(_StateHandle, ABC):
    """A state whose values under several namespaces can become one."""

    @abstractmethod
    def _combine(self, left: Any, right: Any) -> Any:
        """The one value of two windows that become one."""

    def merge_from(self, namespaces: Iterable[Hashable]) -> None:
        for namespace in namespaces:
            other = self._cell.take(namespace)
            if other is not None:
                mine = self._cell.read()
                self._cell.write(other if mine is None else self._combine(mine, other))


class _ListHandle(_Merging, ListState[Any]):
    def get(self) -> list[Any]:
        return list(self._cell.read() or ())

    def add(self, value: object) -> None:
        self.add_all([value])

    def add_all(self, values: Iterable[Any]) -> None:
        stored = self._cell.read()
        if stored is None:
            self.update(values)
        else:
            stored.extend(map(own, values))

    def update(self, values: Iterable[Any]) -> None:
        stored = own_beside(values, self._cell.read() or ())
        if stored:
            self._cell.write(stored)
        else:
            self._cell.clear()

    def _combine(self, left: list[Any], right: list[Any]) -> list[Any]:
        return left + right


class _MapHandle(_StateHandle, MapState[Any, Any]):
    def _entries(self) -> dict[Any, Any]:
        return self._cell.read() or {}

    def get(self, key: object) -> Any:
        return self._entries().get(key)

    def put(self, key: object, value: object) -> None:
        stored = self._entries()
        stored[own(key)] = own_unless(value, stored.get(key))
        self._cell.write(stored)

    def put_all(self, dict_value: Mapping[Any, Any] | Iterable[tuple[Any, Any]]) -> None:
        stored = self._entries()
        for key, value in dict(dict_value).items():
            stored[own(key)] = own_unless(value, stored.get(key))
        if stored:
            self._cell.write(stored)

    def remove(self, key: object) -> None:
        stored = self._entries()
        stored.pop(key, None)
        if not stored:
            self._cell.clear()

    def contains(self, key: object) -> bool:
        return key in self._entries()

    def items(self) -> Iterator[tuple[Any, Any]]:
        return iter([*self._entries().items()])

    def keys(self) -> Iterator[Any]:
        return iter([*self._entries()])

    def values(self) -> Iterator[Any]:
        return iter([*self._entries().values()])

    def is_empty(self) -> bool:
        return not self._entries()


class _Reducing(_Merging, ReducingState[Any]):
    def __init__(self, cell: Cell, function: ReduceFunction) -> None:
        super().__init__(cell)
        self._reduce = function.reduce

    def get(self) -> Any:
        return self._cell.read()

    def add(self, value: object) -> None:
        if value is None:  # as in Flink
            self._cell.clear()
        else:
            self.include(value)

    def include(self, value: object) -> None:
        """Call the function with one more value, even if that is None, as a rolling ``reduce`` does."""
        before = self._cell.read()
        self._cell.write(own(value) if before is None else own_unless(self._reduce(before, value), before))

    def _combine(self, left: object, right: object) -> Any:
        return own_unless(self._reduce(left, right), left, right)


class _Aggregating(_Merging, AggregatingState[Any, Any]):
    def __init__(self, cell: Cell, function: AggregateFunction) -> None:
        super().__init__(cell)
        self._function = function

    def get(self) -> Any:
        accumulator = self._cell.read()
        return None if accumulator is None else self._function.get_result(accumulator)

    def add(self, value: object) -> None:
        if value is None:  # as in Flink
            self._cell.clear()
            return
        accumulator = self._cell.read()
        if accumulator is None:
            accumulator = own(self._function.create_accumulator())
        self._cell.write(own_unless(self._function.add(value, accumulator), accumulator))

    def _combine(self, left: object, right: object) -> Any:
        return own_unless(self._function.merge(left, right), left, right)
