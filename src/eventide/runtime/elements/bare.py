"""Bare functions: those whose code shows that they hold on to nothing, so that no copies are needed around them.

Most lambdas are of this kind. Of any other function it is taken for granted that it may keep, change and put out again
all that it ever saw. What the class of an element does, when an operator or an attribute of it is used, belongs to the
element.
"""

from __future__ import annotations

import builtins
import dis
from collections.abc import Callable, Iterator
from decimal import Decimal
from operator import attrgetter, itemgetter
from types import CodeType, FunctionType, MethodType
from typing import Any
from weakref import WeakKeyDictionary

from eventide.common.types import Row
from eventide.runtime.elements.ownership import FIXED

_HARMLESS = frozenset(
    {abs, all, any, bool, bytes, chr, dict, divmod, enumerate, float, format, frozenset, hash, hex, int, isinstance}
    | {len, list, max, min, oct, ord, pow, range, repr, reversed, round, set, slice, sorted, str, sum, tuple, zip}
    | {Row, Decimal}
)
"""Builtins and classes that hold on to nothing."""

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
MAKE_FUNCTION SET_FUNCTION_ATTRIBUTE
"""
_READS = frozenset(_READING.split())
"""Instructions that change nothing but what the function has made itself."""

_CALLS = frozenset({"CALL", "CALL_KW"})
_OF_GENERATORS = frozenset({"YIELD_VALUE", "RETURN_GENERATOR", "JUMP_BACKWARD_NO_INTERRUPT"})
_WRITES_ARGUMENTS = frozenset({"STORE_SUBSCR", "DELETE_SUBSCR"})

_known: WeakKeyDictionary[FunctionType, dict[tuple[bool, bool], bool]] = WeakKeyDictionary()


def is_bare(function: Callable[..., Any]) -> bool:
    """Whether a function keeps nothing, and gives nothing but what it made or was given in the same call.

    >>> buffer = []
    >>> is_bare(lambda pair: (pair[0], pair[1] + 1)), is_bare(lambda pair: (pair[0], buffer))
    (True, False)
    """
    return getattr(function, "is_bare", False) is True or _is_safe(function, looks=False)


def only_looks(function: Callable[..., Any]) -> bool:
    """Whether a function neither keeps nor changes what it is given; what it gives may be a part of that.

    >>> only_looks(lambda event: event.user), only_looks(lambda event: event.tags.pop())
    (True, False)
    """
    parts = getattr(function, "selects", None)
    if parts is not None:
        return all(map(only_looks, parts))
    return type(function) is attrgetter or _is_safe(function, looks=True)


def _is_safe(function: Any, *, looks: bool) -> bool:
    is_method = type(function) is MethodType
    plain = function.__func__ if is_method else function
    if type(plain) is not FunctionType:
        return type(plain) is itemgetter or any(plain is known for known in (int, float, str, bool, len))
    known = _known.setdefault(plain, {})
    found = known.get((looks, is_method))
    if found is None:
        known[looks, is_method] = True  # stands while it is looked at a function that calls itself
        found = known[looks, is_method] = _has_safe_code(plain, looks=looks, is_method=is_method)
    return found


def _has_safe_code(function: FunctionType, *, looks: bool, is_method: bool) -> bool:
    code = function.__code__
    try:
        enclosed = [cell.cell_contents for cell in function.__closure__ or ()]
    except ValueError:  # it is still empty
        return False
    outside = [*enclosed, *(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    if not FIXED.issuperset(map(type, outside)):
        return False
    itself = code.co_varnames[0] if is_method and code.co_argcount else None
    if itself is None and is_method:
        return False
    calls = 0
    for instruction, is_nested in _instructions(code):
        name, value = instruction.opname, instruction.argval
        if not (name in _READS or (is_nested and name in _OF_GENERATORS)):
            if name == "LOAD_ATTR" and looks and not _is_method_load(instruction):
                continue
            if name not in _WRITES_ARGUMENTS or looks:
                return False
        if name == "BINARY_OP" and looks and instruction.argrepr.endswith("="):
            return False
        if name == "LOAD_GLOBAL":
            known = function.__globals__.get(value, getattr(builtins, value, _NOTHING))
            if not _is_harmless(known, looks=looks):
                return False
        if itself is not None and not is_nested and name != "STORE_FAST" and _names(value, itself):
            return False
        calls += (name in _CALLS) - (name == "MAKE_FUNCTION") - (name == "LOAD_GLOBAL" and _is_callee(instruction))
    return calls <= 0


_NOTHING = object()


def _is_harmless(known: Any, *, looks: bool) -> bool:
    if type(known) is FunctionType:
        return _is_safe(known, looks=looks)
    return type(known) in FIXED or (isinstance(known, type | type(len)) and known in _HARMLESS)


def _names(value: Any, name: str) -> bool:
    return name in value if isinstance(value, tuple) else value == name


def _is_callee(instruction: dis.Instruction) -> bool:
    """Whether a global is loaded in order to be called."""
    return bool((instruction.arg or 0) & 1)


def _is_method_load(instruction: dis.Instruction) -> bool:
    """Whether an attribute is loaded in order to be called: from Python 3.12 on, the instruction says so."""
    return "NULL" in instruction.argrepr


def _instructions(code: CodeType, *, is_nested: bool = False) -> Iterator[tuple[dis.Instruction, bool]]:
    """The instructions of a function and of the comprehensions in it."""
    for instruction in dis.get_instructions(code):
        yield instruction, is_nested
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _instructions(constant, is_nested=True)
