"""The functions that are chained: what each does with a batch of elements."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

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

    def apply(self, batch: Batch) -> Batch:
        """The elements that come out."""


@dataclass(frozen=True, slots=True)
class Map:
    """One element for one."""

    name: str
    call: Callable[[Any], Any]
    user_function: Any

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

    def apply(self, batch: Batch) -> Elements:
        """Call the function with each element."""
        elements = as_elements(batch)
        call, kept = self.call, []
        try:
            for value in elements.values:
                kept.append(bool(call(value)))
        except Exception as error:
            raise element_error(self.name, error, elements, len(kept)) from error
        return Elements(
            [v for v, keep in zip(elements.values, kept, strict=True) if keep],
            [t for t, keep in zip(elements.timestamps, kept, strict=True) if keep],
            [o for o, keep in zip(elements.order, kept, strict=True) if keep],
        )


@dataclass(frozen=True, slots=True)
class FlatMap:
    """Any number of elements for one."""

    name: str
    call: Callable[[Any], Iterable[Any] | None]
    user_function: Any

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
