"""Elements share no objects: each result of a function, and each value that it puts into state, becomes a copy.

A copy is made only of what can be changed (decision 40). Tuples of plain values, which most elements are, are handed on
as they are.

Bare functions need no copies: their code shows that they keep no object. Most lambdas are of this kind, and methods
that read plain attributes of their object. Any other function may keep, change and emit again all that it ever saw.
What the class of an element does, when an operator or an attribute of it is used, belongs to the element.
"""

from __future__ import annotations

import builtins
import copy
import datetime
import dis
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from itertools import chain
from operator import attrgetter, itemgetter
from sys import getrefcount
from types import CodeType, FunctionType, MethodType
from typing import Any
from uuid import UUID

import numpy as np

from eventide.common.types import Row

_DATES = (datetime.date, datetime.datetime, datetime.time, datetime.timedelta, datetime.timezone)
_NUMBERS = (int, float, complex, bool, Decimal, np.int64, np.int32, np.float64, np.float32, np.bool_)
FIXED = frozenset({str, bytes, type(None), UUID, *_NUMBERS, *_DATES})
"""The types whose objects cannot be changed. Those of a subclass may have attributes, which can."""

_SHALLOW_COPY: dict[type, Callable[[Any], Any]] = {Row: Row.__copy__, list: list.copy, dict: dict.copy}
"""Copies of containers, by their type: enough where all that is in them is fixed."""

_COUNTS_EVERY_REFERENCE = sys.implementation.name == "cpython" and sys.version_info < (3, 14)
UNSHARED: int = next(getrefcount(value) for value in map(str.split, ("",))) if _COUNTS_EVERY_REFERENCE else -1
"""The count of `getrefcount` for an object that has no other owner than the variable of a loop.

Later versions of Python leave out references of variables, now and then, and others count in another way. There, no
object has this number.
"""
_COPIED_OTHERWISE = frozenset({"__deepcopy__", "__copy__", "__slots__", "__getstate__", "__setstate__", "__new__"})
_COPIED_OTHERWISE |= {"__reduce__", "__reduce_ex__", "__getnewargs__", "__getnewargs_ex__"}


def own(value: Any) -> Any:
    """Give an element that no other owner can change: a copy, or the element itself if it is immutable.

    An object that cannot be copied, such as a lock, is given as it is: it may go through a chain, and no further.

    >>> pair, several = (1, 2), (1, [2])
    >>> own(pair) is pair, own(several) is several
    (True, False)
    """
    kind = type(value)
    if kind in FIXED or (kind is tuple and FIXED.issuperset(map(type, value))):
        return value
    try:
        return _copied(value, kind)
    except Exception:  # whatever a user's class raises, or what is too deep to be copied
        return value


def own_each(values: list[Any]) -> list[Any]:
    """Give each of many elements as :func:`own` does; the list itself where none of them can be changed."""
    return values if all_fixed(values) else list(map(own, values))


def own_in_turn(values: Iterable[Any], copied: Callable[[Any], Any] | None = None) -> list[Any]:
    """Give each element of an iterator as :func:`own` does, before the iterator makes the next one.

    ``copied`` takes the place of `own` where there may be something to copy.

    >>> growing = []
    >>> own_in_turn(growing.append(number) or growing for number in range(3))
    [[0], [0, 1], [0, 1, 2]]
    """
    fixed, are_fixed, copied = FIXED, FIXED.issuperset, copied or own
    return [
        value
        if (kind := type(value)) in fixed
        or (kind is tuple and are_fixed(map(type, value)))
        or (getrefcount(value) == UNSHARED and is_flat(value))
        else copied(value)
        for value in values
    ]


def own_unless(value: Any, *held: Any) -> Any:
    """Give a value as :func:`own` does, but hand on what its receiver holds already and replaces with the value.

    That is the value itself, or the parts of a tuple or row that are parts of a held one too: an accumulator may be a
    new tuple around the same list each time, and the list is not copied.

    >>> before = (1, ["a"])
    >>> after = own_unless((2, before[1], before[1]), before)
    >>> after, after[1] is before[1], after[2] is before[1]
    ((2, ['a'], ['a']), True, False)
    """
    kind = type(value)
    if kind in FIXED or (kind is tuple and FIXED.issuperset(map(type, value))):
        return value
    for each in held:
        if value is each:
            return value
    if kind is not tuple and kind is not Row:
        return own(value)
    parts = own_beside(value, chain.from_iterable(each for each in held if type(each) is kind))
    if kind is tuple:
        return tuple(parts)
    row = Row.of_fields(value.get_field_names(), parts)
    row.set_row_kind(value.get_row_kind())
    return row


def own_beside(values: Iterable[Any], held: Iterable[Any]) -> list[Any]:
    """Give each of some values as :func:`own` does, but hand on the objects that their receiver holds already.

    An object that is there several times is handed on once, and copied for its other places.
    """
    values = [*values]
    if all_fixed(values):
        return values
    known = set(map(id, held))
    made = []
    for value in values:
        if id(value) in known:
            known.remove(id(value))
            made.append(value)
        else:
            made.append(own(value))
    return made


def all_fixed(values: Iterable[Any]) -> bool:
    """Whether a quick look shows that all elements are immutable.

    >>> all_fixed([1, "a"]), all_fixed([(1, "a"), (2, "b")]), all_fixed([(1, ["a"])])
    (True, True, False)
    """
    kinds = set(map(type, values))
    if kinds <= FIXED:
        return True
    return kinds == {tuple} and FIXED.issuperset(map(type, chain.from_iterable(values)))


def _copied(value: object, kind: type) -> Any:
    if kind in _SHALLOW_COPY:
        return _SHALLOW_COPY[kind](value) if is_flat(value) else copy.deepcopy(value)
    if _is_fixed(value):
        return value
    if _is_plain_class(kind):
        state = vars(value)
        if FIXED.issuperset(map(type, state.values())):
            made: object = object.__new__(kind)
            vars(made).update(state)
            return made
    return copy.deepcopy(value)


def is_flat(value: Any) -> bool:
    """Whether an object is a row, a list or a dict in which nothing can be changed: it has one owner if it is unshared.

    >>> is_flat([1, "a"]), is_flat([1, ["a"]]), is_flat((1, "a"))
    (True, False, False)
    """
    kind = type(value)
    if kind not in _SHALLOW_COPY:
        return False
    return FIXED.issuperset(map(type, chain(value, value.values()) if kind is dict else value))


def _is_fixed(value: Any) -> bool:
    """Whether an object and all of its parts are immutable."""
    kind = type(value)
    if kind in FIXED:
        return True
    if kind is frozenset or issubclass(kind, tuple):
        return kind.__dictoffset__ == 0 and all(map(_is_fixed, value))
    if issubclass(kind, Enum):
        return True
    if not is_dataclass(kind) or not _is_frozen(kind):
        return False
    parts = [getattr(value, field.name, None) for field in fields(kind)]
    return all(map(_is_fixed, [*parts, *getattr(value, "__dict__", {}).values()]))  # what it computed once, too


def _is_frozen(kind: type) -> bool:
    """Whether the class of an object is a frozen dataclass itself, and not one that was derived from it."""
    parameters = vars(kind).get("__dataclass_params__")
    return parameters is not None and bool(parameters.frozen)


_plain_classes: dict[type, bool] = {}


def _is_plain_class(kind: type) -> bool:
    """Whether objects of a class consist only of their attributes, and copy by the default rules."""
    found = _plain_classes.get(kind)
    if found is None:
        ancestors = [vars(ancestor) for ancestor in kind.__mro__ if ancestor is not object]
        usual = not any(name in attributes for attributes in ancestors for name in _COPIED_OTHERWISE)
        found = _plain_classes[kind] = usual and kind.__dictoffset__ != 0
    return found


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
READS = frozenset(_READING.split())
"""Instructions that change only objects that the function has made itself."""

_CALLS = frozenset({"CALL", "CALL_KW"})
_OF_GENERATORS = frozenset({"YIELD_VALUE", "RETURN_GENERATOR", "JUMP_BACKWARD_NO_INTERRUPT"})
_WRITES_ARGUMENTS = frozenset({"STORE_SUBSCR", "DELETE_SUBSCR"})
_LOADS = frozenset({"LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW"})
_HARMLESS_INTRINSICS = frozenset({3, 5, 6})
"""Arguments of CALL_INTRINSIC_1: an error of a generator, the unary plus, a tuple of a list."""
COMPREHENSIONS = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})
"""Functions that Python makes and calls at once."""

_NOTHING = object()
_USUAL_READING: object = object.__getattribute__


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


def _is_safe(function: object, *, looks: bool, seen: set[FunctionType] | None = None) -> bool:
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


def _is_harmless(known: object, *, looks: bool, seen: set[FunctionType]) -> bool:
    if type(known) is FunctionType:
        return _is_safe(known, looks=looks, seen=seen)
    return type(known) in FIXED or (type(known) in (type, type(len)) and known in _HARMLESS)


def _is_plain_attribute(owner: object, name: str) -> bool:
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
    for instruction, is_nested in instructions(code):
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
        calls -= name == "LOAD_CONST" and isinstance(value, CodeType) and value.co_name in COMPREHENSIONS
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
    return name in READS or (is_nested and name in _OF_GENERATORS) or (name in _WRITES_ARGUMENTS and not looks)


def _names(value: object, name: str) -> bool:
    return name in value if isinstance(value, tuple) else value == name


def _is_callee(instruction: dis.Instruction) -> bool:
    """Whether a global is loaded in order to be called."""
    return bool((instruction.arg or 0) & 1)


def _is_method_load(instruction: dis.Instruction) -> bool:
    """Whether an attribute is loaded in order to be called: from Python 3.12 on, the instruction says so."""
    return "NULL" in instruction.argrepr


def instructions(code: CodeType) -> Iterator[tuple[dis.Instruction, bool]]:
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
