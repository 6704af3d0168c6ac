"""Fields of elements that the code of a function names: no other fields need to become Python objects for it."""

from __future__ import annotations

import dis
from collections.abc import Callable, Sequence
from functools import lru_cache
from types import CodeType, FunctionType, MethodType
from typing import Any

from eventide.common.typeinfo import CompositeTypeInfo, DictTypeInfo, RowTypeInfo
from eventide.common.types import Row

_LOADS = frozenset({"LOAD_FAST", "LOAD_FAST_BORROW"})
_LOADS_LAST = frozenset({"LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW", "STORE_FAST_LOAD_FAST"})
"""Instructions that name two variables, of which they load the last one last."""

_LOADS_CONSTANT = frozenset({"LOAD_CONST", "LOAD_SMALL_INT"})
_LOOKS_AROUND = frozenset(
    {"locals", "vars", "dir", "eval", "exec", "breakpoint", "_getframe", "currentframe", "stack", "f_locals", "f_back"}
)
"""Names by which a function may find its argument without naming that."""

_METHODS = frozenset(name for name in dir(Row) if not isinstance(getattr(Row, name), property))
"""Attributes of rows that are no fields; fields become properties."""


def touched_fields(function: Callable[..., Any], kind: CompositeTypeInfo[Any]) -> frozenset[int] | None:
    """The places of the fields of its first argument that a function may look at; None if that is not known.

    It is known of a function whose code uses the argument for nothing but single fields, which it names: by an
    attribute, a text or a whole number. Functions that are called with these fields cannot find the argument.

    >>> from eventide.common.typeinfo import Types
    >>> order = Types.ROW_NAMED(["user", "cents", "note"], [Types.STRING(), Types.LONG(), Types.STRING()])
    >>> sorted(touched_fields(lambda e: print(e.user, e["cents"]), order))
    [0, 1]
    >>> touched_fields(lambda e: print(e), order) is None
    True
    """
    plain = function.__func__ if type(function) is MethodType else function
    if type(plain) is not FunctionType:
        return None
    named = _named(plain.__code__, 1 if plain is not function else 0)
    if named is None:
        return None
    places = [_place(name, how, kind) for name, how in named]
    return None if None in places else frozenset(place for place in places if place is not None)


def _place(name: object, how: str, kind: CompositeTypeInfo[Any]) -> int | None:
    """The place of a field that is named in some way; None if it is none, or if something else may have that name."""
    names: Sequence[str] = kind.field_names
    if how == "attribute":
        is_field = isinstance(kind, RowTypeInfo) and name in names and name not in _METHODS
        return names.index(str(name)) if is_field else None
    if type(name) is str and isinstance(kind, RowTypeInfo | DictTypeInfo):
        return names.index(name) if name in names else None
    if type(name) is int and not isinstance(kind, DictTypeInfo) and -len(names) <= name < len(names):
        return name % len(names)
    return None


@lru_cache(maxsize=1024)
def _named(code: CodeType, argument: int) -> frozenset[tuple[object, str]] | None:
    """The fields of an argument that a code names, and how; None if it may do more with the argument.

    Code of functions inside is not looked at: they do not see the argument, unless it is one of their variables, too.
    """
    if code.co_argcount <= argument or not _LOOKS_AROUND.isdisjoint(code.co_names):
        return None
    name = code.co_varnames[argument]
    if name in code.co_cellvars:
        return None
    found: set[tuple[object, str]] = set()
    steps = [one for one in dis.get_instructions(code) if one.opname not in ("CACHE", "EXTENDED_ARG")]
    for at, step in enumerate(steps):
        value = step.argval
        if step.opname in ("LOAD_CONST", "LOAD_ATTR", "LOAD_METHOD", "LOAD_GLOBAL"):
            continue  # a text, or another name, that happens to be the same
        if value != name and not (isinstance(value, tuple) and name in value):
            continue
        is_last = step.opname in _LOADS_LAST and value[-1] == name != value[0]
        if not is_last and step.opname not in _LOADS:
            return None
        field = _field_after(steps[at + 1 : at + 3])
        if field is None:
            return None
        found.add(field)
    return frozenset(found)


def _field_after(steps: Sequence[dis.Instruction]) -> tuple[object, str] | None:
    """The field that is taken of a variable by the instructions after it, and how; None if another thing is done."""
    if any(one.is_jump_target for one in steps[:1]):
        return None
    if steps and steps[0].opname == "LOAD_ATTR" and "NULL" not in steps[0].argrepr:
        return steps[0].argval, "attribute"
    if len(steps) < 2 or steps[0].opname not in _LOADS_CONSTANT or steps[1].is_jump_target:
        return None
    is_item = steps[1].opname == "BINARY_SUBSCR" or (steps[1].opname == "BINARY_OP" and steps[1].argrepr == "[]")
    return (steps[0].argval, "item") if is_item else None
