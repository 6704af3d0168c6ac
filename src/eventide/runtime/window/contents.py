"""Contents of windows: all of their elements, or the value of a reduce or aggregate function."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from eventide.api.functions import AggregateFunction, ReduceFunction
from eventide.api.windows import TimestampedValue
from eventide.runtime.elements.ownership import is_bare, only_looks, own, own_unless

TimeArray: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
"""The timestamps of elements, in milliseconds."""


class AtElement(Exception):
    """Says at which element the user's function raised an error."""

    def __init__(self, error: Exception, key: object, element: object) -> None:
        super().__init__(error, key, element)
        self.error = error
        self.key = key
        self.element = element


class Contents(ABC):
    """How elements gather in a window, as a plain value that can be pickled."""

    __slots__ = ()

    @property
    def user_function(self) -> Any:
        """The reduce or aggregate function, to be opened and closed; None if there is none."""
        return None

    @property
    def is_associative(self) -> bool:
        """Whether elements may be added to several, which :meth:`merge` puts together in order, with the same result.

        If not, each element has to be added after the one before it.
        """
        return True

    @abstractmethod
    def describe(self) -> str:
        """Describe the contents in words that never change: they are part of a program's identity in a checkpoint."""

    @abstractmethod
    def add(self, kept: object, value: object, timestamp: int | None) -> Any:
        """Return the contents after one more element; ``kept`` is None in a window that has nothing."""

    def add_each(self, kept: dict[Any, Any], keys: Sequence[Any], values: Sequence[Any], timestamps: TimeArray) -> None:
        """Add many elements, in their order, to what is kept of their keys: the same as :meth:`add` with each.

        Raises:
            AtElement: if the user's function raised, saying at which element.
        """
        key = value = None
        try:
            for key, value, timestamp in zip(keys, values, timestamps.tolist(), strict=True):
                kept[key] = self.add(kept.get(key), value, timestamp)
        except Exception as error:
            raise AtElement(error, key, value) from error

    @abstractmethod
    def merge(self, left: object, right: object) -> Any:
        """Return the contents after two windows became one."""

    def continued(self, earlier: object, later: Any) -> Any:
        """Return the contents of one window from those of its earlier and of its later elements."""
        return self.merge(earlier, later)

    @abstractmethod
    def view(self, kept: object) -> Iterable[Any] | None:
        """The contents as the window function sees them; None if there are none, so that the window does not fire.

        A reduce function may return None, and so may ``get_result`` of an aggregate function: then there are none.
        Flink: ``windowState.get()``, whose null is not emitted.
        """


@dataclass(frozen=True, slots=True)
class AllElements(Contents):
    """Keeps every element, in the order of arrival."""

    def describe(self) -> str:
        return "AllElements"

    def add(self, kept: Any, value: object, timestamp: int | None) -> Any:
        if kept is None:
            return [value]
        kept.append(value)
        return kept

    def add_each(self, kept: dict[Any, Any], keys: Sequence[Any], values: Sequence[Any], timestamps: TimeArray) -> None:
        append_each(kept, keys, values)

    def merge(self, left: object, right: Any) -> Any:
        """The elements of the first window, then those of the second."""
        left += right
        return left

    def view(self, kept: Any) -> Iterable[Any]:
        """A list of the elements, which the user's function may change without harm."""
        return list(kept)


@dataclass(frozen=True, slots=True)
class Reduced(Contents):
    """Keeps one element, in a list of one: the result of the reduce function for all.

    If the function returned None, the next element starts over. So it does after an element that is None, which drops
    what was there. The list then has a second entry, True: the content takes the place of that of earlier elements,
    which may be elsewhere. Flink: ``HeapReducingState.add``.

    Of elements that were reduced before the shuffle, it gets an :class:`Accumulated` where there was None among them.

    The function may change its first argument: what is kept belongs to one key and window. What else it returns is
    copied, because it may keep that and change it later.
    """

    function: ReduceFunction

    @property
    def user_function(self) -> Any:
        return self.function

    @property
    def is_associative(self) -> bool:
        """Whether the function says so."""
        return self.function.is_associative is True

    def describe(self) -> str:
        return "Reduced, associative" if self.is_associative else "Reduced"

    def add(self, kept: Any, value: object, timestamp: int | None) -> Any:
        """Reduce what is kept and the element, or what stands for several."""
        if type(value) is Accumulated:
            return [value.accumulator, True]
        return [None, True] if value is None else self.reduced(kept, value)

    def reduced(self, kept: Any, value: object) -> Any:
        """The contents after the function was called with one more element, which may be None."""
        if kept is None:
            return [value]
        before, *rest = kept
        result = value if before is None else self.function.reduce(before, value)
        return [own_unless(result, before), *rest]

    def add_each(self, kept: dict[Any, Any], keys: Sequence[Any], values: Sequence[Any], timestamps: TimeArray) -> None:
        if not _BEGIN_ANEW.isdisjoint(map(type, values)):
            Contents.add_each(self, kept, keys, values, np.zeros(len(values), np.int64))
            return
        reduce, get = self.function.reduce, kept.get
        keeps = not is_bare(reduce)
        key = value = None
        try:
            for key, value in zip(keys, values, strict=True):
                cell = get(key)
                if cell is None:
                    kept[key] = [value]
                else:
                    before = cell[0]
                    result = value if before is None else reduce(before, value)
                    cell[0] = own_unless(result, before) if keeps else result
        except Exception as error:
            raise AtElement(error, key, value) from error

    def merge(self, left: Any, right: Any) -> Any:
        return _merged(self.function.reduce, left, right)

    def continued(self, earlier: Any, later: Any) -> Any:
        if len(later) > 1:
            return later
        return [*self.merge(earlier, later)[:1], *earlier[1:]]

    def view(self, kept: Any) -> Iterable[Any] | None:
        """The one element; None if the function returned None, or the last element was None."""
        return None if kept[0] is None else [kept[0]]


class Accumulated(NamedTuple):
    """The accumulator of some elements, or what they were reduced to, by itself, which travels in their place.

    ``how`` says of each of its fields how it is put together with that of other elements: "sum", "max", "min", or
    "first" where they are the same. So it can be stored, and be put together by a program that no longer makes such.
    Without any, the accumulator takes the place of that of the elements before: one of its own was None.
    """

    accumulator: Any
    how: tuple[str, ...]

    def after(self, before: object) -> Any:
        """The accumulator of its elements and of those of an accumulator before.

        >>> Accumulated({"n": 2, "highest": 5}, ("sum", "max")).after({"n": 1, "highest": 7})
        {'n': 3, 'highest': 7}
        """
        if not self.how:
            return self.accumulator
        if type(before) is dict:
            parts = zip(self.how, before.values(), self.accumulator.values(), strict=True)
            return dict(zip(before, (_PUT_TOGETHER[how](*both) for how, *both in parts), strict=True))
        if type(before) is tuple:
            parts = zip(self.how, before, self.accumulator, strict=True)
            return tuple(_PUT_TOGETHER[how](*both) for how, *both in parts)
        return _PUT_TOGETHER[self.how[0]](before, self.accumulator)


_BEGIN_ANEW = {type(None), Accumulated}
"""The types of what drops the value of a reduce function."""

_PUT_TOGETHER: dict[str, Callable[[Any, Any], Any]] = {
    "sum": operator.add,
    "max": max,
    "min": min,
    "first": lambda before, _: before,
}


@dataclass(frozen=True, slots=True)
class Aggregated(Contents):
    """Keeps the accumulator of an aggregate function, in a list of one.

    Of elements that were aggregated before the shuffle it gets :class:`Accumulated`.

    Its ``merge`` is only for windows that merge, and need not exist otherwise; so elements are added one by one. Where
    ``add`` returned None, the next element begins with a new accumulator. What the function was not given in an
    accumulator is copied, because the function may have it elsewhere too.
    """

    function: AggregateFunction

    @property
    def user_function(self) -> Any:
        return self.function

    @property
    def is_associative(self) -> bool:
        """False: its ``merge`` need not exist."""
        return False

    def describe(self) -> str:
        return "Aggregated"

    def add(self, kept: Any, value: object, timestamp: int | None) -> Any:
        """Add the element, or what stands for several, to the accumulator."""
        if type(value) is Accumulated:
            return [value.accumulator if kept is None or kept[0] is None else value.after(kept[0])]
        if value is None:  # Flink drops the accumulator
            return [None]
        before = own(self.function.create_accumulator()) if kept is None or kept[0] is None else kept[0]
        result = self.function.add(value, before)
        return [own_unless(result, before)]

    def add_each(self, kept: dict[Any, Any], keys: Sequence[Any], values: Sequence[Any], timestamps: TimeArray) -> None:
        if Accumulated in set(map(type, values)):
            Contents.add_each(self, kept, keys, values, np.zeros(len(values), np.int64))
            return
        add, create_accumulator, get = self.function.add, self.function.create_accumulator, kept.get
        keeps = not is_bare(add)
        key = value = None
        try:
            for key, value in zip(keys, values, strict=True):
                cell = get(key)
                if value is None:
                    kept[key] = [None]
                elif cell is None or cell[0] is None:
                    before = own(create_accumulator())
                    result = add(value, before)
                    kept[key] = [own_unless(result, before) if keeps else result]
                else:
                    before = cell[0]
                    result = add(value, before)
                    cell[0] = own_unless(result, before) if keeps else result
        except Exception as error:
            raise AtElement(error, key, value) from error

    def merge(self, left: Any, right: Any) -> Any:
        return _merged(self.function.merge, left, right)

    def view(self, kept: Any) -> Iterable[Any] | None:
        """The one result, which is a copy: it may be the accumulator, which goes on changing. None if it is None.

        The function gets a copy of the accumulator too, so that it may change it and the window's next result is right.
        """
        (accumulator,) = kept
        if accumulator is None:
            return None
        get_result = self.function.get_result
        result = get_result(accumulator if only_looks(get_result) else own(accumulator))
        return None if result is None else [own(result)]


@dataclass(frozen=True, slots=True)
class Evictable(Contents):
    """Keeps every element with its timestamp, and lets a reduce or aggregate function see them when it fires."""

    incremental: Contents | None = None

    @property
    def user_function(self) -> Any:
        return None if self.incremental is None else self.incremental.user_function

    def describe(self) -> str:
        return "Evictable" if self.incremental is None else f"Evictable, {self.incremental.describe()}"

    def add(self, kept: Any, value: object, timestamp: int | None) -> Any:
        element = TimestampedValue(value, timestamp)
        if kept is None:
            return [element]
        kept.append(element)
        return kept

    def merge(self, left: object, right: Any) -> Any:
        """The elements of the first window, then those of the second."""
        return left + right

    def view(self, kept: Any) -> Iterable[Any]:
        """The elements without their timestamps, or the one result over them, which may be None.

        Where an evictor has left no element, the result of an aggregate function is that of an empty accumulator, and
        the result of a reduce function is None. Both functions are called with elements that are None, too, and an
        aggregate function goes on from an accumulator that is None. Flink: ``AggregateApplyWindowFunction``,
        ``ReduceApplyWindowFunction``.
        """
        if self.incremental is None:
            return [element.value for element in kept]
        function = self.incremental.user_function
        if isinstance(function, AggregateFunction):
            accumulator = own(function.create_accumulator())
            for element in kept:
                accumulator = function.add(own(element.value), accumulator)
            return [own(function.get_result(accumulator))]
        result = None
        for element in kept:
            value = own(element.value)
            if isinstance(self.incremental, Reduced):
                result = self.incremental.reduced(result, value)
            else:
                result = self.incremental.add(result, value, element.timestamp)
        shown = None if result is None else self.incremental.view(result)
        return [None] if shown is None else shown


def _merged(function: Callable[[Any, Any], Any], left: list[Any], right: list[Any]) -> list[Any]:
    """Two cells as one; a cell whose content is None adds nothing."""
    if left[0] is None or right[0] is None:
        return right if left[0] is None else left
    result = function(left[0], right[0])
    return [own_unless(result, left[0], right[0])]


def append_each(lists: dict[Any, Any], keys: Sequence[Any], values: Sequence[Any]) -> None:
    """Append each value to the list of its key."""
    get = lists.get
    for key, value in zip(keys, values, strict=True):
        elements = get(key)
        if elements is None:
            lists[key] = [value]
        else:
            elements.append(value)
