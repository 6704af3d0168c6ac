"""Broadcast state: maps of which each subtask has a copy, read where they are touched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from eventide.api.state import BroadcastState, MapStateDescriptor, ReadOnlyBroadcastState
from eventide.errors import ProgramError
from eventide.runtime.elements.ownership import own, own_unless
from eventide.runtime.state.backend import Backend, PartOfState
from eventide.runtime.state.keyed import KeyedState

_VALUE = "v"


class BroadcastStates:
    """The broadcast states of an operator in one subtask, by the names of their descriptors.

    A map is stored like state by key: what a micro-batch reads and writes are the buckets of the keys that it asks for.
    """

    def __init__(self, backend: Backend, descriptors: Iterable[MapStateDescriptor]) -> None:
        self._maps = {
            descriptor.name: _Map(KeyedState(PartOfState(backend, f"broadcast/{descriptor.name}/"), 1))
            for descriptor in descriptors
        }
        self._views = {name: _View(states) for name, states in self._maps.items()}

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
        for states in self._maps.values():
            states.flush()

    def _checked(self, descriptor: Any) -> str:
        name = getattr(descriptor, "name", None)
        if name not in self._maps:
            raise ProgramError(
                f"the stream was not broadcast with {descriptor!r}, but with {', '.join(self._maps)}; name "
                "each descriptor that the function asks for in broadcast(…)"
            )
        return str(name)


class _Map(BroadcastState[Any, Any]):
    def __init__(self, keyed: KeyedState) -> None:
        self._keyed = keyed
        self._all_at_hand = False

    def get(self, key: Any) -> Any:
        found = self._keyed.read(key, None, _VALUE)
        return None if found is None else found[0]

    def contains(self, key: Any) -> bool:
        return self._keyed.read(key, None, _VALUE) is not None

    def put(self, key: Any, value: Any) -> None:
        self._keyed.write(own(key), None, _VALUE, (own_unless(value, self.get(key)),))

    def put_all(self, dict_value: Mapping[Any, Any]) -> None:
        for key, value in dict_value.items():
            self.put(key, value)

    def remove(self, key: Any) -> None:
        self._keyed.take(key, None, _VALUE)

    def items(self) -> Iterable[tuple[Any, Any]]:
        if not self._all_at_hand:
            self._keyed.open_everything()
            self._all_at_hand = True
        return [(key, value) for key, (value,) in self._keyed.items(_VALUE)]

    def keys(self) -> Iterable[Any]:
        return [key for key, _ in self.items()]

    def values(self) -> Iterable[Any]:
        return [value for _, value in self.items()]

    def is_empty(self) -> bool:
        return not self.items()

    def clear(self) -> None:
        for key in self.keys():
            self.remove(key)

    def flush(self) -> None:
        self._keyed.flush()
        self._all_at_hand = False


class _View(ReadOnlyBroadcastState[Any, Any]):
    def __init__(self, states: _Map) -> None:
        self._states = states

    def get(self, key: Any) -> Any:
        return self._states.get(key)

    def contains(self, key: Any) -> bool:
        return self._states.contains(key)

    def items(self) -> Iterable[tuple[Any, Any]]:
        return self._states.items()

    def keys(self) -> Iterable[Any]:
        return self._states.keys()

    def values(self) -> Iterable[Any]:
        return self._states.values()

    def is_empty(self) -> bool:
        return self._states.is_empty()

    def clear(self) -> None:
        raise ProgramError("broadcast state is changed by elements of the broadcast stream only")
