"""Calls of a user's function, and errors of it with the operator, the key and the element."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from operator import length_hint
from typing import Any

from eventide.errors import DataError, EventideError, ProgramError, StateError, UserFunctionError

_LONGEST = 500


def shown(value: object) -> str:
    """A value's text form, cut where it would flood a message."""
    try:
        text = repr(value)
    except Exception as error:
        text = f"<a {type(value).__name__} whose repr raised {repr_of(error)}>"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text)} characters)"


def repr_of(error: BaseException) -> str:
    """An error as text, whose own may be an error again."""
    try:
        return repr(error)
    except Exception:
        return type(error).__name__


def is_of_the_data(error: BaseException) -> bool:
    """Whether an error may be one of a single element: not if the program or its state is wrong, or memory is short."""
    return not isinstance(error, ProgramError | StateError | MemoryError)


def user_function_error(
    operator: str, error: BaseException, *, during: str, advice: str = "", **what: object
) -> EventideError:
    """Wrap what a user's function raised; eventide's own errors keep their type and get the place added.

    ``advice`` says what would let the job go on, where the data may be to blame.
    """
    place = ", ".join(f"{name} {shown(value)}" for name, value in what.items())
    head = f"in operator {operator!r}, {during}" + (f" ({place})" if place else "")
    if isinstance(error, EventideError):
        kind = DataError if isinstance(error, DataError) else type(error)
        is_told = not isinstance(error, DataError | UserFunctionError) or advice in str(error)
        return kind(f"{head}: {error}" + ("" if is_told else f"; {advice}"))
    trace = "".join(traceback.format_exception(error)).rstrip()
    advised = f"; {advice}" if advice and is_of_the_data(error) else ""
    return UserFunctionError(f"{head}: the user's function raised {repr_of(error)}{advised}. Its traceback:\n{trace}")


@contextmanager
def calling(operator: str, *, during: str, advice: str = "", **what: object) -> Iterator[None]:
    """Guard one call into user code."""
    try:
        yield
    except Exception as error:
        raise user_function_error(operator, error, during=during, advice=advice, **what) from error


def results_of(returned: Any) -> Iterable[Any]:
    """The results of a function that returns them together: none for None, whatever else is iterated.

    Raises:
        ProgramError: if it returned something that cannot be iterated, such as 0.

    >>> [*results_of(None)], [*results_of([0])]
    ([], [0])
    """
    if returned is None:
        return ()
    try:
        results: Iterable[Any] = iter(returned)
    except TypeError:
        raise ProgramError(
            f"the function returned {shown(returned)}; it has to return a list of its results, or to yield them, and "
            "None stands for no results"
        ) from None
    return results


def no_timestamp() -> DataError:
    """Return the error for an element without the timestamp that its windows need."""
    return DataError(
        "the element has no timestamp; give the stream one with assign_timestamps_and_watermarks and a strategy with a "
        "timestamp assigner"
    )


def last_of(values: list[Any], handled: Iterator[Any]) -> Any:
    """The value that an iterator over a list gave last; the list's iterator knows how many are left.

    Nothing has to be counted while all goes well.
    """
    return values[len(values) - length_hint(handled) - 1]
