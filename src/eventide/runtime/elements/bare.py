"""Bare functions: their code shows that they keep no object, so their elements need no copies.

Most lambdas are of this kind, and methods that read plain attributes of their object. Any other function may keep,
change and put out again all that it ever saw. What the class of an element does, when an
operator or an attribute of it is used, belongs to the element.
"""

from __future__ import annotations

import builtins
import dis
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from operator import attrgetter, itemgetter
from types import CodeType, FunctionType, MethodType
from typing import Any

from eventide.common.types import Row
from eventide.runtime.elements.ownership import FIXED

_HARMLESS = frozenset(
    {abs, all, any, bool, bytes, chr, dict, divmod, enumerate, float, format, frozenset, hash, hex, int, isinstance}
    | {len, list, max, min, oct, ord, pow, range, repr, reversed, round, set, slice, sorted, str, sum, tuple, zip}
    | {Row, Decimal}
)
"""Builtins and classes that keep no object."""

_READING = """
RESUME NOP CACHE EXTENDED_ARG PUSH_NULL POP_TOP COPY SWAP LOAD_CONST LOAD_SMALL_INT RETURN_VALUE RETURN_CONST
LOAD_FAST LOAD_FAST_CHECK LOAD_FAST_AND_CLEAR LOAD_FAST_LOAD_FAST LOAD_FAST_BORROW LOAD_FAST_BORROW_LOAD_FAST_BORROW
STORE_FAST STORE_FAST_LOAD_FAST STORE_FAST_STORE_FAST STORE_FAST_MAYBE_NULL DELETE_FAST LOAD_GLOBAL LOAD_DEREF
COPY_FREE_VARS MAKE_CELL LOAD_CLOSURE BINARY_OP BINARY_SUBSCR BINARY_SLICE COMPARE_OP IS_OP CONTAINS_OP
UNARY_NEGATIVE UNARY_NOT UNARY_INVERT TO_BOOL BUILD_TUPLE BUILD_LIST BUILD_MAP BUILD_SET BUILD_STRING BUILD_SLICE
BUILD_CONST_KEY_MAP LIST_EXTEND LIST_APPEND LIST_TO_TUPLE SET_ADD SET_UPDATE MAP_ADD DICT_UPDATE DICT_MERGE
UNPACK_SEQUENCE UNPACK_EX FORMAT_VALUE FORMAT_SIMPLE FORMAT_WITH_SPEC CONVERT_VALUE JUMP_FORWARD JUMP_BACKWARD
JUMP_BACKWARD_NO_INTERRUPT JUMP_IF_FALSE_OR_POP JUMP_IF_TRUE_OR_POP POP_JUMP_IF_FALSE POP_JUMP_IF_TRUE
POP_JUMP_IF_NONE POP_JUMP_IF_NOT_NONE POP_JUMP_FORWARD_IF_FALSE POP_JUMP_FORWARD_IF_TRUE POP_JUMP_FORWARD_IF_NONE
POP_JUMP_FORWARD_IF_NOT_NONE POP_JUMP_BACKWARD_IF_FALSE POP_JUMP_BACKWARD_IF_TRUE POP_JUMP_BACKWARD_IF_NONE
POP_JUMP_BACKWARD_IF_NOT_NONE GET_ITER FOR_ITER END_FOR POP_ITER NOT_TAKEN GET_LEN PRECALL CALL CALL_KW KW_NAMES
MAKE_FUNCTION SET_FUNCTION_ATTRIBUTE RERAISE
"""
_READS = frozenset(_READING.split())
"""Instructions that change only objects that the function has made itself."""

_CALLS = frozenset({"CALL", "CALL_KW"})
_OF_GENERATORS = frozenset({"YIELD_VALUE", "RETURN_GENERATOR", "JUMP_BACKWARD_NO_INTERRUPT"})
_WRITES_ARGUMENTS = frozenset({"STORE_SUBSCR", "DELETE_SUBSCR"})
_LOADS = frozenset({"LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW"})
_HARMLESS_INTRINSICS = frozenset({3, 5, 6})
"""Of CALL_INTRINSIC_1: an error of a generator, the unary plus, a tuple of a list."""
_COMPREHENSIONS = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})
"""Functions that Python makes and calls at once."""

_NOTHING = object()
_USUAL_READING: Any = object.__getattribute__


def is_bare(function: Callable[..., Any]) -> bool:
    """Whether a function keeps no object, and returns only objects that it made or was given in the same call.

    >>> buffer = []
    >>> is_bare(lambda pair: (pair[0], pair[1] + 1)), is_bare(lambda pair: (pair[0], buffer))
    (True, False)
    """
    return getattr(function, "is_bare", False) is True or _is_safe(function, looks=False)


def only_looks(function: Callable[..., Any]) -> bool:
    """Whether a function leaves its arguments unchanged and keeps no part of them; its result may contain them.

    >>> only_looks(lambda event: event.user), only_looks(lambda event: event.tags.pop())
    (True, False)
    """
    parts = getattr(function, "selects", None)
    if parts is not None:
        return all(map(only_looks, parts))
    return type(function) is attrgetter or _is_safe(function, looks=True)


@dataclass(frozen=True, slots=True)
class _Needs:
    """The names that a harmless code looks up when it runs: globals, and attributes of the object of a method."""

    of_globals: tuple[str, ...]
    of_itself: tuple[str, ...]


def _is_safe(function: Any, *, looks: bool, seen: set[FunctionType] | None = None) -> bool:
    """Whether the code of a function is harmless, and all that it reaches from outside is so at this moment.

    Of functions that call each other, those in ``seen`` are being looked at already.
    """
    owner, plain = (function.__self__, function.__func__) if type(function) is MethodType else (_NOTHING, function)
    if type(plain) is not FunctionType:
        return type(plain) is itemgetter or any(plain is known for known in (int, float, str, bool, len))
    seen = set() if seen is None else seen
    if plain in seen:
        return True
    needs = _needs(plain.__code__, looks=looks, is_method=owner is not _NOTHING)
    if needs is None:
        return False
    try:
        enclosed = [cell.cell_contents for cell in plain.__closure__ or ()]
    except ValueError:  # it is still empty
        return False
    outside = [*enclosed, *(plain.__defaults__ or ()), *(plain.__kwdefaults__ or {}).values()]
    if not FIXED.issuperset(map(type, outside)) or not all(
        _is_plain_attribute(owner, name) for name in needs.of_itself
    ):
        return False
    if owner is _NOTHING:
        seen.add(plain)
    found = (plain.__globals__.get(name, getattr(builtins, name, _NOTHING)) for name in needs.of_globals)
    return all(_is_harmless(known, looks=looks, seen=seen) for known in found)


def _is_harmless(known: Any, *, looks: bool, seen: set[FunctionType]) -> bool:
    if type(known) is FunctionType:
        return _is_safe(known, looks=looks, seen=seen)
    return type(known) in FIXED or (type(known) in (type, type(len)) and known in _HARMLESS)


def _is_plain_attribute(owner: Any, name: str) -> bool:
    """Whether an object has an attribute that cannot be changed, and that is read without calling anything."""
    kind = type(owner)
    if kind.__getattribute__ is not _USUAL_READING:
        return False
    on_class = next((vars(ancestor)[name] for ancestor in kind.__mro__ if name in vars(ancestor)), _NOTHING)
    if on_class is not _NOTHING and type(on_class) not in FIXED:
        return False
    return type(getattr(owner, "__dict__", {}).get(name, on_class)) in FIXED


@lru_cache(maxsize=1024)
def _needs(code: CodeType, *, looks: bool, is_method: bool) -> _Needs | None:
    """The names that a code looks up when it runs; None if the code may be harmful.

    Each call must be that of a global or of a comprehension, so calls are counted. A method may use its own object only
    to read attributes.
    """
    itself = code.co_varnames[0] if is_method and code.co_argcount else None
    if itself is None and is_method:
        return None
    names: set[str] = set()
    attributes: set[str] = set()
    calls, reads_attributes, is_itself = 0, False, False
    for instruction, is_nested in _instructions(code):
        name, value, was_itself = instruction.opname, instruction.argval, is_itself
        is_itself = itself is not None and not is_nested and _names(value, itself)
        if was_itself:
            if name != "LOAD_ATTR" or _is_method_load(instruction) or instruction.is_jump_target:
                return None
            attributes.add(value)
        elif name == "LOAD_ATTR" and looks and not _is_method_load(instruction):
            reads_attributes = True
        elif not _is_allowed(instruction, looks=looks, is_nested=is_nested):
            return None
        if is_itself and not (name in _LOADS and (value == itself or value[-1] == itself != value[0])):
            return None
        if name == "LOAD_GLOBAL":
            names.add(value)
            calls -= _is_callee(instruction)
        calls += name in _CALLS
        calls -= name == "LOAD_CONST" and isinstance(value, CodeType) and value.co_name in _COMPREHENSIONS
    takes_key = any(isinstance(one, tuple) and "key" in one for part in _codes(code) for one in part.co_consts)
    if calls > 0 or (reads_attributes and takes_key):  # a method that was read may be called as the key of an order
        return None
    return _Needs(tuple(names), tuple(attributes))


def _is_allowed(instruction: dis.Instruction, *, looks: bool, is_nested: bool) -> bool:
    name = instruction.opname
    if name == "CALL_INTRINSIC_1":
        return instruction.arg in _HARMLESS_INTRINSICS
    if name == "BINARY_OP" and looks:
        return not instruction.argrepr.endswith("=")
    return name in _READS or (is_nested and name in _OF_GENERATORS) or (name in _WRITES_ARGUMENTS and not looks)


def _names(value: Any, name: str) -> bool:
    return name in value if isinstance(value, tuple) else value == name


def _is_callee(instruction: dis.Instruction) -> bool:
    """Whether a global is loaded in order to be called."""
    return bool((instruction.arg or 0) & 1)


def _is_method_load(instruction: dis.Instruction) -> bool:
    """Whether an attribute is loaded in order to be called: from Python 3.12 on, the instruction says so."""
    return "NULL" in instruction.argrepr


def _instructions(code: CodeType) -> Iterator[tuple[dis.Instruction, bool]]:
    """The instructions of a function, and those of the comprehensions and lambdas in it."""
    for part in _codes(code):
        for instruction in dis.get_instructions(part):
            yield instruction, part is not code


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code of a function, and of the functions in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)
