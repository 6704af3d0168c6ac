"""The state objects that user code holds: thin views of the keyed state, by descriptor."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, Protocol, TypeAlias

from eventide.api.functions import AggregateFunction, KeyedStateStore, ReduceFunction
from eventide.api.state import (
    AggregatingState,
    AggregatingStateDescriptor,
    ListState,
    ListStateDescriptor,
    MapState,
    MapStateDescriptor,
    ReducingState,
    ReducingStateDescriptor,
    StateDescriptor,
    StateTtlConfig,
    ValueState,
    ValueStateDescriptor,
)
from eventide.common.typeinfo import TypeInformation
from eventide.errors import ProgramError
from eventide.runtime.elements.ownership import FIXED, own, own_beside, own_unless
from eventide.runtime.state.expiring import LIST, MAP, ONE, ExpiringCell, ExpiringList, ExpiringMap, Slot, TimeToLive
from eventide.runtime.state.keyed import KeyedState

Scope: TypeAlias = Callable[[], tuple[Any, Hashable]]
Cells: TypeAlias = "Callable[[str], Cell]"
"""Makes the cell of a name."""
Declares: TypeAlias = Callable[[str, TypeInformation], None]
"""Is told the type of each name."""
Slots: TypeAlias = Callable[[str, StateTtlConfig, int], tuple[Slot, TimeToLive]]
"""Makes the slot of a name for a state of some form that expires."""


class Cell(Protocol):
    """The slot of one named state under the key and namespace that are current when it is used."""

    def read(self) -> Any:
        """Return the stored value; None if there is none."""

    def write(self, value: Any) -> None:
        """Store a value."""

    def clear(self) -> None:
        """Forget what is stored."""

    def take(self, namespace: Hashable) -> Any:
        """Remove and return what is stored under another namespace of the current key."""


class ScopedCell:
    """A cell of keyed state whose key and namespace a function tells."""

    def __init__(self, keyed: KeyedState, name: str, scope: Scope) -> None:
        self._keyed = keyed
        self._name = name
        self._scope = scope

    def read(self) -> Any:
        """Return the stored value; None if there is none."""
        return self._keyed.read(*self._scope(), self._name)

    def write(self, value: Any) -> None:
        """Store a value."""
        self._keyed.write(*self._scope(), self._name, value)

    def clear(self) -> None:
        """Forget what is stored."""
        self._keyed.take(*self._scope(), self._name)

    def take(self, namespace: Hashable) -> Any:
        """Remove and return what is stored under another namespace of the current key."""
        key, _ = self._scope()
        return self._keyed.take(key, namespace, self._name)


class _Handle:
    def __init__(self, cell: Cell) -> None:
        self._cell = cell

    def clear(self) -> None:
        self._cell.clear()


class _Value(_Handle, ValueState[Any]):
    def __init__(self, cell: Cell) -> None:
        super().__init__(cell)
        self.__dict__["value"] = cell.read  # stands before the method: one call less, for each element

    def value(self) -> Any:
        return self._cell.read()

    def update(self, value: Any) -> None:
        if value is None:
            self._cell.clear()
        elif type(value) in FIXED:
            self._cell.write(value)
        else:
            self._cell.write(own_unless(value, self._cell.read()))


class _Merging(_Handle, ABC):
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


class _List(_Merging, ListState[Any]):
    def get(self) -> Iterator[Any]:
        return iter(list(self._cell.read() or ()))

    def __iter__(self) -> Iterator[Any]:
        return self.get()

    def add(self, value: Any) -> None:
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


class _Map(_Handle, MapState[Any, Any]):
    def _entries(self) -> dict[Any, Any]:
        return self._cell.read() or {}

    def get(self, key: Any) -> Any:
        return self._entries().get(key)

    def put(self, key: Any, value: Any) -> None:
        stored = self._entries()
        stored[own(key)] = own_unless(value, stored.get(key))
        self._cell.write(stored)

    def put_all(self, entries: Any) -> None:
        stored = self._entries()
        for key, value in dict(entries).items():
            stored[own(key)] = own_unless(value, stored.get(key))
        if stored:
            self._cell.write(stored)

    def remove(self, key: Any) -> None:
        stored = self._entries()
        stored.pop(key, None)
        if not stored:
            self._cell.clear()

    def contains(self, key: Any) -> bool:
        return key in self._entries()

    def items(self) -> Iterable[tuple[Any, Any]]:
        return list(self._entries().items())

    def keys(self) -> Iterable[Any]:
        return list(self._entries())

    def values(self) -> Iterable[Any]:
        return list(self._entries().values())

    def is_empty(self) -> bool:
        return not self._entries()

    def __getitem__(self, key: Any) -> Any:
        return self.get(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.put(key, value)

    def __delitem__(self, key: Any) -> None:
        self.remove(key)

    def __contains__(self, key: Any) -> bool:
        return self.contains(key)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.keys())


class _Reducing(_Merging, ReducingState[Any]):
    def __init__(self, cell: Cell, function: ReduceFunction) -> None:
        super().__init__(cell)
        self._reduce = function.reduce

    def get(self) -> Any:
        return self._cell.read()

    def add(self, value: Any) -> None:
        before = self._cell.read()
        self._cell.write(own(value) if before is None else own_unless(self._reduce(before, value), before))

    def _combine(self, left: Any, right: Any) -> Any:
        return own_unless(self._reduce(left, right), left, right)


class _Aggregating(_Merging, AggregatingState[Any, Any]):
    def __init__(self, cell: Cell, function: AggregateFunction) -> None:
        super().__init__(cell)
        self._function = function

    def get(self) -> Any:
        accumulator = self._cell.read()
        return None if accumulator is None else self._function.get_result(accumulator)

    def add(self, value: Any) -> None:
        accumulator = self._cell.read()
        if accumulator is None:
            accumulator = own(self._function.create_accumulator())
        self._cell.write(own_unless(self._function.add(value, accumulator), accumulator))

    def _combine(self, left: Any, right: Any) -> Any:
        return own_unless(self._function.merge(left, right), left, right)


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

    def _once(self, descriptor: StateDescriptor, build: Callable[[], Any]) -> Any:
        kind = self._kinds.setdefault(descriptor.name, type(descriptor))
        if kind is not type(descriptor):
            raise ProgramError(
                f"the state {descriptor.name!r} was used with a {kind.__name__} before, and now with a "
                f"{type(descriptor).__name__}; give each state a name of its own"
            )
        handle = self._handles.get(descriptor.name)
        if handle is None:
            self._declares(descriptor.name, descriptor.type_info)
            handle = self._handles[descriptor.name] = build()
        return handle

    def _cell(self, descriptor: StateDescriptor) -> Cell:
        expiring = self._expiring(descriptor, ONE)
        return self._cells(descriptor.name) if expiring is None else ExpiringCell(*expiring)

    def _expiring(self, descriptor: StateDescriptor, form: int) -> tuple[Slot, TimeToLive] | None:
        """Where a state that expires is, and how; None for any other."""
        if descriptor.ttl_config is None:
            return None
        if self._slots is None:
            raise ProgramError(
                f"the state {descriptor.name!r} of a window or trigger goes with its window, and has no time to live "
                "of its own; the state of a key has: get it from the runtime context, or from global_state()"
            )
        return self._slots(descriptor.name, descriptor.ttl_config, form)

    def get_state(self, state_descriptor: ValueStateDescriptor) -> ValueState[Any]:
        """One value."""
        state: ValueState[Any] = self._once(state_descriptor, lambda: _Value(self._cell(state_descriptor)))
        return state

    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """A list."""

        def build() -> ListState[Any]:
            expiring = self._expiring(state_descriptor, LIST)
            return _List(self._cells(state_descriptor.name)) if expiring is None else ExpiringList(*expiring)

        state: ListState[Any] = self._once(state_descriptor, build)
        return state

    def get_map_state(self, state_descriptor: MapStateDescriptor) -> MapState[Any, Any]:
        """A map."""

        def build() -> MapState[Any, Any]:
            expiring = self._expiring(state_descriptor, MAP)
            return _Map(self._cells(state_descriptor.name)) if expiring is None else ExpiringMap(*expiring)

        state: MapState[Any, Any] = self._once(state_descriptor, build)
        return state

    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor) -> ReducingState[Any]:
        """One value, reduced from all that was added."""
        function = state_descriptor.get_reduce_function()
        state: ReducingState[Any] = self._once(
            state_descriptor, lambda: _Reducing(self._cell(state_descriptor), function)
        )
        return state

    def get_aggregating_state(self, state_descriptor: AggregatingStateDescriptor) -> AggregatingState[Any, Any]:
        """One result, aggregated from all that was added."""
        function = state_descriptor.get_agg_function()
        state: AggregatingState[Any, Any] = self._once(
            state_descriptor, lambda: _Aggregating(self._cell(state_descriptor), function)
        )
        return state

    def merge(self, descriptor: StateDescriptor, namespaces: Iterable[Hashable]) -> None:
        """Merge the values under other namespaces of the current key into the current one."""
        handle = descriptor.bind(self)
        if not isinstance(handle, _Merging):
            raise ProgramError(
                f"the state {descriptor.name!r} cannot be merged when windows merge; use a list, reducing or "
                "aggregating state, or let the trigger's can_merge return False"
            )
        handle.merge_from(namespaces)


def handles_under(keyed: KeyedState, prefix: str, scope: Scope) -> StateHandles:
    """State objects on keyed state, whose key and namespace a function tells, with a prefix to names."""
    return StateHandles(
        lambda name: ScopedCell(keyed, f"{prefix}{name}", scope),
        lambda name, type_info: keyed.declare(f"{prefix}{name}", type_info),
    )
