"""Why functions run in Python, in words: of a program, for ``explain``, and of a batch, for its counters."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import getattr_static
from types import CodeType, FunctionType, MethodType
from typing import NamedTuple

from eventide.common.typeinfo import TypeInformation
from eventide.runtime.tracing.admission import NotThereYet, NotTraceable
from eventide.runtime.tracing.kernels import Guard

UNTIL_OPENED = "it is not opened yet: "
"""Begins the reason of a function that is looked at again when its object has been opened."""

UNDECLARED = "the type of its elements is not declared"


def why_python(attempt: Callable[[], object], function: object, type_info: TypeInformation) -> str | None:
    """Why a function stays Python, with its place, as a try with its trace says; None if it need not.

    The ``type_info`` is the type of the elements that it is called with.
    """
    try:
        if type_info.is_pickled:
            raise NotTraceable(UNDECLARED)
        attempt()
    except NotTraceable as reason:
        return f"{UNTIL_OPENED if isinstance(reason, NotThereYet) else ''}{reason}{place_of(function)}"
    return None


def place_of(function: object) -> str:
    """The place of a function in the program, in brackets after a space; empty if the program has no code of it.

    The place of an object is that of its ``__call__``, or else of the first method of its class.

    >>> place_of(len)
    ''
    """
    code = _code_of(function)
    return "" if code is None else f" (line {code.co_firstlineno} of {code.co_filename.rpartition('/')[2]})"


def _code_of(function: object) -> CodeType | None:
    if isinstance(function, partial):
        return _code_of(function.func)
    if isinstance(function, MethodType):
        return _code_of(function.__func__)
    wrapped = getattr_static(function, "__wrapped__", None)
    if wrapped is not None:
        return _code_of(wrapped)
    if isinstance(function, FunctionType):
        return None if _is_ours(function) else function.__code__
    for kind in (function if isinstance(function, type) else type(function)).__mro__:
        if _is_ours(kind):
            return None
        methods = {name: one for name, one in vars(kind).items() if isinstance(one, FunctionType)}
        if methods:
            return methods.get("__call__", next(iter(methods.values()))).__code__
    return None


def _is_ours(one: type | FunctionType) -> bool:
    return str(one.__module__).partition(".")[0] == "eventide"  # code that is made at run time may have no module


class BatchInPython(NamedTuple):
    """A batch of columns that an operator hands to its function in Python, and why: what a guard found in it."""

    operator: str
    reason: str


def reason_of(error: Exception) -> str:
    """Why columns refuse a batch, in few words, without the values in it: batches are counted by their reasons."""
    if isinstance(error, Guard | NotTraceable):
        return str(error)
    return f"columns that cannot be computed with ({type(error).__name__})"
