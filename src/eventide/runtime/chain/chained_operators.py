"""The functions that are chained: what each does with a batch of elements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any, ClassVar, Protocol, TypeAlias

import pyarrow as pa

from eventide.api.dead_letters import ADVICE
from eventide.common.typeinfo import TypeInformation
from eventide.errors import DataError
from eventide.runtime.chain.contexts import ElementContext
from eventide.runtime.elements.bare import is_bare, only_looks
from eventide.runtime.elements.columns import Batch, as_elements
from eventide.runtime.elements.elements import Elements
from eventide.runtime.elements.ownership import FIXED, all_fixed, own, own_in_turn
from eventide.runtime.invoke import last_of, no_results, user_function_error

Call: TypeAlias = Callable[[Any, ElementContext], Iterable[Any]]
"""Gives what comes of one element, or raises."""


class ChainedOperator(Protocol):
    """A function on elements that keeps no state."""

    @property
    def name(self) -> str:
        """The operator's name."""

    @property
    def user_function(self) -> Any:
        """The user's function, to be opened and closed."""

    @property
    def takes_columns(self) -> bool:
        """Whether it works on columns; else it calls Python with each element."""

    def apply(self, batch: Batch) -> Batch:
        """The elements that come out."""


HANDLING = "while it handled an element"


@dataclass(frozen=True, slots=True)
class Map:
    """One element for one; ``type_info`` is the type that was declared for what comes out."""

    name: str
    call: Callable[[Any], Any]
    user_function: Any
    takes_columns: bool = False
    type_info: TypeInformation | None = None
    during: ClassVar[str] = HANDLING

    def caller(self, values: list[Any]) -> Call:
        """The function, whose result is one of one."""
        call = self.call
        return lambda value, _: [call(value)]

    def apply(self, batch: Batch) -> Elements:
        """Call the function with each element."""
        elements = as_elements(batch)
        call, values = self.call, iter(elements.values)
        try:
            results = [call(value) for value in values] if is_bare(call) else own_in_turn(map(call, values))
        except Exception as error:
            raise element_error(self.name, error, elements, values) from error
        return Elements(as_results(self.name, results, self.type_info), elements.timestamps, elements.sequence)


@dataclass(frozen=True, slots=True)
class Projection:
    """Some fields of a tuple, by their places: what a map calls.

    >>> Projection((2, 0))(("a", "b", "c"))
    ('c', 'a')
    """

    places: tuple[int, ...]
    is_bare: ClassVar[bool] = True

    def __call__(self, value: tuple[Any, ...]) -> tuple[Any, ...]:
        """These fields of one tuple."""
        return tuple(value[place] for place in self.places)


@dataclass(frozen=True, slots=True)
class Filter:
    """The elements for which the function is true."""

    name: str
    call: Callable[[Any], Any]
    user_function: Any
    takes_columns: bool = False
    type_info: ClassVar[None] = None
    during: ClassVar[str] = HANDLING

    def caller(self, values: list[Any]) -> Call:
        """The element itself, or nothing."""
        call = self.call
        return lambda value, _: [value] if call(value) else []

    def apply(self, batch: Batch) -> Elements:
        """Call the function with each element."""
        elements = as_elements(batch)
        call, values = self.call, iter(elements.values)
        given = elements.values
        try:
            if only_looks(call) or all_fixed(given):
                kept = [bool(call(value)) for value in values]
            else:
                given, kept = [], []
                for value in values:
                    kept.append(bool(call(value)))
                    given.append(own(value) if kept[-1] else None)
        except Exception as error:
            raise element_error(self.name, error, elements, values) from error
        if all(kept):
            return replace(elements, values=given)
        return Elements(
            list(compress(given, kept)),
            list(compress(elements.timestamps, kept)),
            list(compress(elements.sequence, kept)),
            columns=None if elements.columns is None else elements.columns.filtered(pa.array(kept)),
        )


@dataclass(frozen=True, slots=True)
class FlatMap:
    """Any number of elements for one; ``type_info`` is the type that was declared for what comes out."""

    name: str
    call: Callable[[Any], Iterable[Any] | None]
    user_function: Any
    takes_columns: bool = False
    type_info: TypeInformation | None = None
    during: ClassVar[str] = HANDLING

    def caller(self, values: list[Any]) -> Call:
        """The function, whose results are listed."""
        call = self.call
        return lambda value, _: list((given := call(value)) or no_results(given))

    def apply(self, batch: Batch) -> Elements:
        """Call the function with each element; its results keep the element's timestamp and number."""
        elements = as_elements(batch)
        out, call, values = Elements(), self.call, iter(elements.values)
        put, put_timestamp, put_number = out.values.append, out.timestamps.append, out.sequence.append
        fixed, are_fixed = FIXED, FIXED.issuperset  # own looks at these first: here without a call for each result
        try:
            for value, timestamp, number in zip(values, elements.timestamps, elements.sequence, strict=True):
                given = call(value)
                for one in given or no_results(given):
                    kind = type(one)
                    is_fixed = kind in fixed or (kind is tuple and are_fixed(map(type, one)))
                    put(one if is_fixed else own(one))
                    put_timestamp(timestamp)
                    put_number(number)
        except Exception as error:
            raise element_error(self.name, error, elements, values) from error
        out.values = as_results(self.name, out.values, self.type_info)
        return out


def as_results(operator: str, values: list[Any], type_info: TypeInformation | None, advice: str = ADVICE) -> list[Any]:
    """Turn results of a function into values of its declared type: so the next function finds its fields.

    Raises:
        DataError: naming the operator, and the first value that does not fit.
    """
    if type_info is None:
        return values
    try:
        return type_info.converted(values)
    except DataError as error:
        during = "when its results were brought to their declared type"
        raise user_function_error(operator, error, during=during, advice=advice) from error


def element_error(name: str, error: Exception, elements: Elements, handled: Iterator[Any]) -> Exception:
    """Return the error of a function that took its elements one by one from the iterator ``handled``."""
    element = last_of(elements.values, handled)
    return user_function_error(name, error, during=HANDLING, advice=ADVICE, element=element)
