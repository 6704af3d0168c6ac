"""Facts that the code of a plain function shows about its arguments, whatever version of Python has compiled it."""

from __future__ import annotations

import dis
import re
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

_SEES_LOCALS = frozenset({"locals", "vars", "eval", "exec", "dir", "sys", "inspect"})
_CHANGES_METHODS = frozenset({"setattr", "__setattr__", "__dict__", "__class__", "vars"})
_WITHOUT_EFFECT = frozenset({"CACHE", "PRECALL", "NOP", "EXTENDED_ARG", "RESUME"})
_LIBRARY = ("abc", "typing", "builtins")


def codes(code: CodeType) -> Iterator[CodeType]:
    """A code, and those of the functions within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


def steps(code: CodeType) -> list[tuple[str, Any]]:
    """The instructions of a code, by name, with their arguments: each about one variable, none without an effect."""
    found: list[tuple[str, Any]] = []
    for one in dis.get_instructions(code):
        verbs = re.findall("(LOAD|STORE|DELETE)_FAST", one.opname)
        if verbs:
            names = one.argval if isinstance(one.argval, tuple) else (one.argval,)
            found += [(f"{verb}_FAST", name) for verb, name in zip(verbs, names, strict=True)]
        elif one.opname not in _WITHOUT_EFFECT:
            found.append((one.opname, one.argval))
    return found


def argument(function: object, place: int) -> tuple[CodeType, str] | None:
    """The code of a plain function, and the name of its argument at a place; None if it may see that in other ways."""
    if type(function) is not FunctionType or place >= function.__code__.co_argcount:
        return None
    code = function.__code__
    if any(_SEES_LOCALS.intersection(part.co_names) for part in codes(code)):
        return None
    return code, code.co_varnames[place]


def mentions(instruction: dis.Instruction, name: str) -> bool:
    """Whether an instruction is about a variable: newer versions of Python name two of them in one."""
    value = instruction.argval
    is_about_variables = "FAST" in instruction.opname or instruction.opname in ("MAKE_CELL", "LOAD_CLOSURE")
    return is_about_variables and (value == name or (isinstance(value, tuple) and name in value))


def keeps_methods(kind: type, methods: frozenset[str], base: type) -> bool:
    """Whether objects of a class have the methods of the class, as far as its code and that of its bases show."""
    for ancestor in kind.__mro__:
        if ancestor.__module__ == base.__module__ or ancestor.__module__ in _LIBRARY:
            continue
        if {"__getattribute__", "__getattr__"} & vars(ancestor).keys():
            return False
        functions = [one for one in vars(ancestor).values() if isinstance(one, FunctionType)]
        changes = _CHANGES_METHODS | methods
        if any(changes.intersection(_stored_names(one.__code__, _CHANGES_METHODS)) for one in functions):
            return False
    return True


def _stored_names(code: CodeType, changes: frozenset[str]) -> Iterator[str]:
    """The attributes that a code sets, and the names by which it could set others."""
    for part in codes(code):
        for instruction in dis.get_instructions(part):
            if instruction.opname == "STORE_ATTR" or instruction.argval in changes:
                yield instruction.argval
