"""Checks of streams' arguments."""

from __future__ import annotations

from typing import TypeVar

from eventide.errors import ProgramError

_F = TypeVar("_F")


def function_of(where: str, function: _F) -> _F:
    """A function, or a function object, if it is one.

    Raises:
        ProgramError: naming the method that needs one.
    """
    if not callable(function):
        raise ProgramError(f"{where} needs a function or a function object, not {function!r}")
    return function
