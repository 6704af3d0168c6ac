"""The functions that are chained: what each does with a batch of elements."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import compress
from typing import Any, Protocol

import pyarrow as pa

from eventide.runtime.columns import Batch, as_elements
from eventide.runtime.events import Elements
from eventide.runtime.invoke import user_function_error


class Step(Protocol):
    """A function on elements that keeps no state."""

    @property
    def name(self) -> str:
        """The operator's name."""

    @property
    def user_function(self) -> Any:
        """What the user wrote, to be opened and closed."""

    @property
    def takes_columns(self) -> bool:
        """Whether it works on columns; else it calls Python with each element."""

    def apply(self, batch: Batch) -> Batch:
        """The elements that come out."""


@dataclass(frozen=True, slots=True)
class Map:
    """One element for one."""

    name: str
    call: Callable[[Any], Any]
    user_function: Any
    takes_columns: bool = False

    def apply(self, batch: Batch) -> Elements:
        """Call the function with each element."""
        elements = as_elements(batch)
        call, results = self.call, []
        try:
            for value in elements.values:
                results.append(call(value))
        except Exception as error:
            raise element_error(self.name, error, elements, len(results)) from error
        return Elements(results, elements.timestamps, elements.order)


@dataclass(frozen=True, slots=True)
class Filter:
    """The elements for which the function is true."""

    name: str
    call: Callable[[Any], Any]
    user_function: Any
    takes_columns: bool = False

    def apply(self, batch: Batch) -> Elements:
        """Call the function with each element."""
        elements = as_elements(batch)
        call = self.call
        kept: list[bool] = []
        try:
            for value in elements.values:
                kept.append(bool(call(value)))
        except Exception as error:
            raise element_error(self.name, error, elements, len(kept)) from error
        if all(kept):
            return elements
        columns = (elements.values, elements.timestamps, elements.order)
        arrow = None if elements.arrow is None else elements.arrow.filter(pa.array(kept))
        return Elements(*(list(compress(column, kept)) for column in columns), arrow=arrow)


@dataclass(frozen=True, slots=True)
class FlatMap:
    """Any number of elements for one."""

    name: str
    call: Callable[[Any], Iterable[Any] | None]
    user_function: Any
    takes_columns: bool = False

    def apply(self, batch: Batch) -> Elements:
        """Call the function with each element; its results keep the element's timestamp and place."""
        elements = as_elements(batch)
        out, done = Elements(), 0
        try:
            for value, timestamp, order in zip(elements.values, elements.timestamps, elements.order, strict=True):
                for result in self.call(value) or ():
                    out.append(result, timestamp, order)
                done += 1
        except Exception as error:
            raise element_error(self.name, error, elements, done) from error
        return out


def element_error(name: str, error: Exception, elements: Elements, done: int) -> Exception:
    """What to say of an error in a function that had handled ``done`` of the elements."""
    return user_function_error(name, error, during="while it handled an element", element=elements.values[done])
