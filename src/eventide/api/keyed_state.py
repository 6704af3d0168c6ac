"""Keyed state as functions see it: its interfaces, its descriptors, and the store that functions get it from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Generic

from eventide.api.time_to_live import StateTtlConfig
from eventide.common.type_variables import IN, OUT, K, S_co, T, V
from eventide.common.typeinfo import TypeInformation, Types
from eventide.errors import ProgramError

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa


class State(ABC):
    """A value that is kept for one key (and window), is part of the checkpoint, and survives a restart."""

    @abstractmethod
    def clear(self) -> None:
        """Delete the value of the current key (and window)."""


class ValueState(State, Generic[T]):
    """State that holds one value."""

    @abstractmethod
    def value(self) -> T | None:
        """Return the value, or None if there is none."""

    @abstractmethod
    def update(self, value: T | None) -> None:
        """Replace the value; None deletes it."""


class AppendingState(State, Generic[IN, OUT]):
    """State to which elements are added, and which gives a value made of them."""

    @abstractmethod
    def get(self) -> OUT | None:
        """Return the value of the elements, or None if there are none."""

    @abstractmethod
    def add(self, value: IN) -> None:
        """Add one element."""


class MergingState(AppendingState[IN, OUT]):
    """Appending state that can be merged with another, when windows merge."""


class ListState(MergingState[T, Iterable[T]]):
    """State that holds a list; iterate over it to read it."""

    @abstractmethod
    def get(self) -> Iterable[T]:
        """Return the elements in their order; empty, not None, if there are none."""

    @abstractmethod
    def add_all(self, values: Sequence[T]) -> None:
        """Append several elements."""

    @abstractmethod
    def update(self, values: Sequence[T]) -> None:
        """Replace the list."""

    def __iter__(self) -> Iterator[T]:
        return iter(self.get())


class ReducingState(MergingState[T, T]):
    """State that reduces added elements to one value with a `ReduceFunction`."""


class AggregatingState(MergingState[IN, OUT]):
    """State that aggregates added elements with an `AggregateFunction`."""


class _ReadableMap(State, Generic[K, V]):
    """A map that can be read."""

    @abstractmethod
    def get(self, key: K) -> V | None:
        """Return the value of `key`, or None if there is none."""

    @abstractmethod
    def contains(self, key: K) -> bool:
        """Say whether the map contains `key`."""

    @abstractmethod
    def items(self) -> Iterator[tuple[K, V]]:
        """Iterate over all keys with their values, in no particular order; the map may be changed meanwhile."""

    @abstractmethod
    def keys(self) -> Iterator[K]:
        """Iterate over all keys; the map may be changed meanwhile."""

    @abstractmethod
    def values(self) -> Iterator[V]:
        """Iterate over all values; the map may be changed meanwhile."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Say whether the map is empty."""

    def __getitem__(self, key: K) -> V | None:
        return self.get(key)

    def __contains__(self, key: K) -> bool:
        return self.contains(key)

    def __iter__(self) -> Iterator[K]:
        return iter(self.keys())


class _WritableMap(_ReadableMap[K, V]):
    """A map that can be read and changed."""

    @abstractmethod
    def put(self, key: K, value: V) -> None:
        """Set the value of `key`."""

    @abstractmethod
    def put_all(self, dict_value: Mapping[K, V] | Iterable[tuple[K, V]]) -> None:
        """Set the values of several keys, given as a mapping or as pairs."""

    @abstractmethod
    def remove(self, key: K) -> None:
        """Delete `key`; no effect if it is absent."""

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        self.remove(key)


class MapState(_WritableMap[K, V]):
    """State that holds a map, used like a dict."""


class ReadOnlyBroadcastState(_ReadableMap[K, V]):
    """Broadcast state for elements of the stream that is not broadcast: a map that they may only read.

    Do not change its values in place.
    """


class BroadcastState(ReadOnlyBroadcastState[K, V], _WritableMap[K, V]):
    """Broadcast state for elements of the broadcast stream: a map, of which every subtask has a copy.

    Every subtask sees the same elements in the same order, and must do the same with them.
    """


class VectorizedValueState(ABC):
    """State that holds one value for each key, for many keys at once. Flink: ``ValueState``.

    ``keys`` are always some of the keys of the call: ``ctx.keys``, ``ctx.distinct_keys``, or any selection of them. A
    key may be among them several times.
    """

    @abstractmethod
    def get(self, keys: pa.Array) -> pa.Array:
        """Return the values of some keys, in an array of the declared type; null for a key without a value."""

    @abstractmethod
    def put(self, keys: pa.Array, values: pa.Array | np.ndarray) -> None:
        """Store a value for each of some keys. A null deletes. If a key has several values, the last one stays."""

    @abstractmethod
    def clear(self, keys: pa.Array) -> None:
        """Delete the values of some keys."""


class VectorizedMapState(ABC):
    """State that holds a map for each key, for many keys at once. Flink: ``MapState``.

    ``keys`` are some of the keys of the call, as for a `VectorizedValueState`. An entry is named by a key and, beside
    it in ``map_keys``, its key in the map, which is never null. A key that is touched is written with its whole map.

    >>> import numpy as np, pyarrow as pa
    >>> from eventide.common import Row, Types
    >>> from eventide.datastream.functions import VectorizedKeyedProcessFunction
    >>> from eventide.datastream.state import MapStateDescriptor
    >>> from eventide.testing import local_environment
    >>> class LastPrices(VectorizedKeyedProcessFunction):
    ...     def open(self, runtime_context):
    ...         prices = MapStateDescriptor("prices", Types.STRING(), Types.LONG())
    ...         self.prices = runtime_context.get_vectorized_map_state(prices)
    ...
    ...     def process_batch(self, batch, ctx):
    ...         self.prices.put(ctx.keys, batch.column("item"), batch.column("price"))
    ...         rows, items, prices = self.prices.entries(ctx.distinct_keys)
    ...         shops, (_, first) = ctx.distinct_keys.take(rows), np.unique(ctx.key_numbers, return_index=True)
    ...         ctx.collect(pa.record_batch({"shop": shops, "item": items, "price": prices}), first[rows])
    >>> offer = Types.ROW_NAMED(["shop", "item", "price"], [Types.STRING(), Types.STRING(), Types.LONG()])
    >>> offers = [Row(shop="north", item=item, price=price) for item, price in [("tea", 3), ("milk", 2), ("tea", 4)]]
    >>> stream = local_environment().set_parallelism(1).from_collection(offers, offer)
    >>> [*stream.key_by("shop").process(LastPrices(), offer).execute_and_collect()]
    [Row(shop='north', item='tea', price=4), Row(shop='north', item='milk', price=2)]
    """

    @abstractmethod
    def get(self, keys: pa.Array, map_keys: pa.Array | np.ndarray) -> pa.Array:
        """Return the values of some entries, in an array of the declared type; null for an absent entry."""

    @abstractmethod
    def put(self, keys: pa.Array, map_keys: pa.Array | np.ndarray, values: pa.Array | np.ndarray) -> None:
        """Store the values of some entries, null included. If an entry has several values, the last one stays."""

    @abstractmethod
    def remove(self, keys: pa.Array, map_keys: pa.Array | np.ndarray) -> None:
        """Delete some entries; no effect for entries that are absent."""

    @abstractmethod
    def entries(self, keys: pa.Array) -> tuple[np.ndarray, pa.Array, pa.Array]:
        """Return all entries of some keys, those of a key in the order in which they were first put.

        Returns:
            For each entry the index of its key in ``keys``, in ascending order; its key in the map; and its value.
        """

    @abstractmethod
    def clear(self, keys: pa.Array) -> None:
        """Delete the maps of some keys."""


_ENDS_OF_STORED_NAMES = ("\x1d", "\x1e", "\x1f")
"""The ends of the names under which state is stored in a form of its own."""


class StateDescriptor(ABC, Generic[S_co]):
    """The name of a state within its operator, and the type of its values. It must not be changed.

    Args:
        name: The name, different from that of every other state of the operator.
        type_info: The type of the stored values.

    Raises:
        ProgramError: The name is empty or ends with U+001D, U+001E or U+001F, or the type is not a `TypeInformation`.
    """

    def __init__(self, name: str, type_info: TypeInformation) -> None:
        if not isinstance(name, str) or not name:
            raise ProgramError(f"state descriptor: expected a name, got {name!r}")
        if name.endswith(_ENDS_OF_STORED_NAMES):
            raise ProgramError(
                f"the name of the state {name!r} ends with a control character that eventide uses itself where state "
                "is stored; leave it out"
            )
        self.name = name
        self.type_info = _checked_type(name, type_info)
        self.ttl_config: StateTtlConfig | None = None

    def enable_time_to_live(self, ttl_config: StateTtlConfig) -> None:
        """Let the state expire when it is not used; call this before the state is asked for.

        Raises:
            ProgramError: `ttl_config` is not a `StateTtlConfig`.
        """
        if not isinstance(ttl_config, StateTtlConfig):
            raise ProgramError(f"state {self.name!r}: expected a StateTtlConfig, got {ttl_config!r}")
        self.ttl_config = ttl_config if ttl_config.is_enabled() else None

    def get_name(self) -> str:
        """Return the name."""
        return self.name

    @abstractmethod
    def bind(self, store: KeyedStateStore) -> S_co:
        """Return the state of this name from `store`, of the kind of this descriptor."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.type_info})"


class ValueStateDescriptor(StateDescriptor[ValueState[T]]):
    """Describes a `ValueState`.

    >>> ValueStateDescriptor("last_seen", Types.LONG())
    ValueStateDescriptor('last_seen', LONG)
    """

    def __init__(self, name: str, value_type_info: TypeInformation[T]) -> None:
        super().__init__(name, value_type_info)

    def bind(self, store: KeyedStateStore) -> ValueState[T]:
        return store.get_state(self)


class ListStateDescriptor(StateDescriptor[ListState[T]]):
    """Describes a `ListState`; `element_type` is the type of one element."""

    def __init__(self, name: str, elem_type_info: TypeInformation[T]) -> None:
        self.element_type = _checked_type(name, elem_type_info)
        super().__init__(name, Types.LIST(elem_type_info))

    def bind(self, store: KeyedStateStore) -> ListState[T]:
        return store.get_list_state(self)


class MapStateDescriptor(StateDescriptor[MapState[K, V]]):
    """Describes a `MapState`; `key_type` and `value_type` are the types of its keys and values."""

    def __init__(self, name: str, key_type_info: TypeInformation[K], value_type_info: TypeInformation[V]) -> None:
        self.key_type = _checked_type(name, key_type_info)
        self.value_type = _checked_type(name, value_type_info)
        super().__init__(name, Types.MAP(key_type_info, value_type_info))

    def bind(self, store: KeyedStateStore) -> MapState[K, V]:
        return store.get_map_state(self)


class KeyedStateStore(ABC):
    """Access to state by its descriptor: the state of the current key, and of the window, if there is one."""

    @abstractmethod
    def get_state(self, state_descriptor: ValueStateDescriptor[T]) -> ValueState[T]:
        """Return the state that holds one value."""

    @abstractmethod
    def get_list_state(self, state_descriptor: ListStateDescriptor[T]) -> ListState[T]:
        """Return the state that holds a list."""

    @abstractmethod
    def get_map_state(self, state_descriptor: MapStateDescriptor[K, V]) -> MapState[K, V]:
        """Return the state that holds a map."""

    @abstractmethod
    def get_reducing_state(self, state_descriptor: StateDescriptor[ReducingState[T]]) -> ReducingState[T]:
        """Return the state that reduces added elements."""

    @abstractmethod
    def get_aggregating_state(
        self, state_descriptor: StateDescriptor[AggregatingState[IN, OUT]]
    ) -> AggregatingState[IN, OUT]:
        """Return the state that aggregates added elements."""

    def get_vectorized_state(self, state_descriptor: ValueStateDescriptor) -> VectorizedValueState:
        """Return the state that holds one value for each key, for a `VectorizedKeyedProcessFunction`. Not in Flink.

        Raises:
            ProgramError: The function is of another kind.
        """
        raise ProgramError(
            f"the state {state_descriptor.name!r} is asked for with get_vectorized_state by a function that is called "
            "for one key at a time; use get_state"
        )

    def get_vectorized_map_state(self, state_descriptor: MapStateDescriptor) -> VectorizedMapState:
        """Return the state that holds a map for each key, for a `VectorizedKeyedProcessFunction`. Not in Flink.

        Raises:
            ProgramError: The function is of another kind.
        """
        raise ProgramError(
            f"the state {state_descriptor.name!r} is asked for with get_vectorized_map_state by a function that is "
            "called for one key at a time; use get_map_state"
        )


def _checked_type(name: str, type_info: object) -> TypeInformation:
    if not isinstance(type_info, TypeInformation):
        raise ProgramError(f"state {name!r}: expected a TypeInformation such as Types.LONG(), got {type_info!r}")
    return type_info
