"""Names and types of state: what a function shows to get at its state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic

from eventide.api.functions import AggregateFunction, ReduceFunction
from eventide.api.state._interfaces import AggregatingState, ListState, MapState, ReducingState, ValueState
from eventide.api.state._ttl import StateTtlConfig
from eventide.common.type_variables import ACC, IN, OUT, K, S_co, T, V
from eventide.common.typeinfo import TypeInformation, Types
from eventide.errors import ProgramError

if TYPE_CHECKING:
    from eventide.api.functions import KeyedStateStore


class StateDescriptor(ABC, Generic[S_co]):
    """The name of a state within its operator, and the type of what it holds. Not to be changed once made.

    Args:
        name: The name, different from that of every other state of the operator.
        type_info: The type of what is stored.

    Raises:
        ProgramError: The name is empty, or the type is no `TypeInformation`.
    """

    def __init__(self, name: str, type_info: TypeInformation) -> None:
        if not isinstance(name, str) or not name:
            message = f"state descriptor: expected a name, got {name!r}"
            raise ProgramError(message)
        self.name = name
        self.type_info = _checked_type(name, type_info)
        self.ttl_config: StateTtlConfig | None = None

    def enable_time_to_live(self, ttl_config: StateTtlConfig) -> None:
        """Have the state expire when it is not used; call it before the state is asked for.

        Raises:
            ProgramError: `ttl_config` is no `StateTtlConfig`.
        """
        if not isinstance(ttl_config, StateTtlConfig):
            message = f"state {self.name!r}: expected a StateTtlConfig, got {ttl_config!r}"
            raise ProgramError(message)
        self.ttl_config = ttl_config if ttl_config.is_enabled() else None

    def get_name(self) -> str:
        """Return the name."""
        return self.name

    @abstractmethod
    def bind(self, store: KeyedStateStore) -> S_co:
        """Return the state of this name from `store`; the descriptor knows of which kind it is."""

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
        """Return the `ValueState` of this name."""
        return store.get_state(self)


class ListStateDescriptor(StateDescriptor[ListState[T]]):
    """Describes a `ListState`; `element_type` is the type of one element."""

    def __init__(self, name: str, elem_type_info: TypeInformation[T]) -> None:
        self.element_type = _checked_type(name, elem_type_info)
        super().__init__(name, Types.LIST(elem_type_info))

    def bind(self, store: KeyedStateStore) -> ListState[T]:
        """Return the `ListState` of this name."""
        return store.get_list_state(self)


class MapStateDescriptor(StateDescriptor[MapState[K, V]]):
    """Describes a `MapState`; `key_type` and `value_type` are the types of its keys and values."""

    def __init__(self, name: str, key_type_info: TypeInformation[K], value_type_info: TypeInformation[V]) -> None:
        self.key_type = _checked_type(name, key_type_info)
        self.value_type = _checked_type(name, value_type_info)
        super().__init__(name, Types.MAP(key_type_info, value_type_info))

    def bind(self, store: KeyedStateStore) -> MapState[K, V]:
        """Return the `MapState` of this name."""
        return store.get_map_state(self)


class ReducingStateDescriptor(StateDescriptor[ReducingState[T]]):
    """Describes a `ReducingState`.

    Args:
        name: The name.
        reduce_function: A `ReduceFunction`, or a plain function of two values.
        type_info: The type of the values.

    Raises:
        ProgramError: `reduce_function` is neither.

    >>> ReducingStateDescriptor("earliest", min, Types.LONG()).get_reduce_function().reduce(3, 2)
    2
    """

    def __init__(
        self,
        name: str,
        reduce_function: ReduceFunction[T] | Callable[[T, T], T],
        type_info: TypeInformation[T],
    ) -> None:
        super().__init__(name, type_info)
        self._reduce_function = ReduceFunction.of(reduce_function)

    def get_reduce_function(self) -> ReduceFunction[T]:
        """Return the function, as a `ReduceFunction` in any case."""
        return self._reduce_function

    def bind(self, store: KeyedStateStore) -> ReducingState[T]:
        """Return the `ReducingState` of this name."""
        return store.get_reducing_state(self)


class AggregatingStateDescriptor(StateDescriptor[AggregatingState[IN, OUT]]):
    """Describes an `AggregatingState`.

    Args:
        name: The name.
        agg_function: The `AggregateFunction`.
        state_type_info: The type of its accumulator, which is what is stored.

    Raises:
        ProgramError: `agg_function` is no `AggregateFunction`.
    """

    def __init__(
        self, name: str, agg_function: AggregateFunction[IN, ACC, OUT], state_type_info: TypeInformation[ACC]
    ) -> None:
        super().__init__(name, state_type_info)
        if not isinstance(agg_function, AggregateFunction):
            message = f"state {name!r}: expected an AggregateFunction, got {agg_function!r}"
            raise ProgramError(message)
        self._agg_function: AggregateFunction[IN, Any, OUT] = agg_function

    def get_agg_function(self) -> AggregateFunction[IN, Any, OUT]:
        """Return the function."""
        return self._agg_function

    def bind(self, store: KeyedStateStore) -> AggregatingState[IN, OUT]:
        """Return the `AggregatingState` of this name."""
        return store.get_aggregating_state(self)


def _checked_type(name: str, type_info: object) -> TypeInformation:
    if not isinstance(type_info, TypeInformation):
        message = f"state {name!r}: expected a TypeInformation such as Types.LONG(), got {type_info!r}"
        raise ProgramError(message)
    return type_info
