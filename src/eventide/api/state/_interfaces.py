"""Interfaces of state for the functions and triggers that use it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Generic

from eventide.common.type_variables import IN, OUT, K, T, V


class State(ABC):
    """A value that is kept for one key (and window), is part of the checkpoint, and survives a restart."""

    @abstractmethod
    def clear(self) -> None:
        """Delete the value of the current key (and window)."""


class ValueState(State, Generic[T]):
    """State that holds one value."""

    @abstractmethod
    def value(self) -> T | None:
        """Return the value, or None where there is none."""

    @abstractmethod
    def update(self, value: T | None) -> None:
        """Replace the value; None deletes it."""


class AppendingState(State, Generic[IN, OUT]):
    """State that takes in elements and gives something that is made of them."""

    @abstractmethod
    def get(self) -> OUT | None:
        """Return what the elements make, or None where there are none."""

    @abstractmethod
    def add(self, value: IN) -> None:
        """Take in one element."""


class MergingState(AppendingState[IN, OUT]):
    """Appending state of which two can be made one, when windows merge."""


class ListState(MergingState[T, Iterable[T]]):
    """State that holds a list; iterate over it to read it."""

    @abstractmethod
    def get(self) -> Iterable[T]:
        """Return the elements in their order; nothing, not None, where there are none."""

    @abstractmethod
    def add_all(self, values: Sequence[T]) -> None:
        """Append several elements."""

    @abstractmethod
    def update(self, values: Sequence[T]) -> None:
        """Replace the list."""

    def __iter__(self) -> Iterator[T]:
        return iter(self.get())


class ReducingState(MergingState[T, T]):
    """State that reduces what is added to one value with a `ReduceFunction`."""


class AggregatingState(MergingState[IN, OUT]):
    """State that aggregates what is added with an `AggregateFunction`."""


class MapState(State, Generic[K, V]):
    """State that holds a map, used like a dict."""

    @abstractmethod
    def get(self, key: K) -> V | None:
        """Return the value of `key`, or None where there is none."""

    @abstractmethod
    def put(self, key: K, value: V) -> None:
        """Set the value of `key`."""

    @abstractmethod
    def put_all(self, dict_value: Mapping[K, V]) -> None:
        """Set the values of several keys."""

    @abstractmethod
    def remove(self, key: K) -> None:
        """Delete `key`; nothing happens where it is not there."""

    @abstractmethod
    def contains(self, key: K) -> bool:
        """Say whether `key` is there."""

    @abstractmethod
    def items(self) -> Iterable[tuple[K, V]]:
        """Return all keys with their values."""

    @abstractmethod
    def keys(self) -> Iterable[K]:
        """Return all keys."""

    @abstractmethod
    def values(self) -> Iterable[V]:
        """Return all values."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Say whether there is no key."""

    def __getitem__(self, key: K) -> V | None:
        return self.get(key)

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        self.remove(key)

    def __contains__(self, key: K) -> bool:
        return self.contains(key)

    def __iter__(self) -> Iterator[K]:
        return iter(self.keys())


class ReadOnlyBroadcastState(State, Generic[K, V]):
    """Broadcast state as elements of the stream that is not broadcast see it: a map that they may read.

    Its values are not to be changed in place either.
    """

    @abstractmethod
    def get(self, key: K) -> V | None:
        """Return the value of `key`, or None where there is none."""

    @abstractmethod
    def contains(self, key: K) -> bool:
        """Say whether `key` is there."""

    @abstractmethod
    def items(self) -> Iterable[tuple[K, V]]:
        """Return all keys with their values, in no particular order."""

    @abstractmethod
    def keys(self) -> Iterable[K]:
        """Return all keys."""

    @abstractmethod
    def values(self) -> Iterable[V]:
        """Return all values."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Say whether there is no key."""

    def __getitem__(self, key: K) -> V | None:
        return self.get(key)

    def __contains__(self, key: K) -> bool:
        return self.contains(key)

    def __iter__(self) -> Iterator[K]:
        return iter(self.keys())


class BroadcastState(ReadOnlyBroadcastState[K, V]):
    """Broadcast state as elements of the broadcast stream see it: a map, of which every subtask has a copy.

    All subtasks must make the same of the same elements; they have them in one order.
    """

    @abstractmethod
    def put(self, key: K, value: V) -> None:
        """Set the value of `key`."""

    @abstractmethod
    def put_all(self, dict_value: Mapping[K, V]) -> None:
        """Set the values of several keys."""

    @abstractmethod
    def remove(self, key: K) -> None:
        """Delete `key`; nothing happens where it is not there."""

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        self.remove(key)
