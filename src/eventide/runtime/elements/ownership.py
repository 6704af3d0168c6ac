"""Elements share no objects: what a function puts out, or puts into state, becomes a copy of its own.

A copy is made only of what can be changed (decision 40). Tuples of plain values, which most elements are, are handed on
as they are.
"""

from __future__ import annotations

import copy
import datetime
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from decimal import Decimal
from enum import Enum
from itertools import chain
from typing import Any
from uuid import UUID

import numpy as np

from eventide.common.types import Row

_DATES = (datetime.date, datetime.datetime, datetime.time, datetime.timedelta, datetime.timezone)
_NUMBERS = (int, float, complex, bool, Decimal, np.int64, np.int32, np.float64, np.float32, np.bool_)
FIXED = frozenset({str, bytes, type(None), UUID, *_NUMBERS, *_DATES})
"""The types whose objects cannot be changed. Those of a subclass may have attributes, which can."""

_FLAT = (Row, list, dict)
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


def own_in_turn(values: Iterable[Any]) -> list[Any]:
    """Give each element of an iterator as :func:`own` does, before the iterator makes the next one.

    >>> growing = []
    >>> own_in_turn(growing.append(number) or growing for number in range(3))
    [[0], [0, 1], [0, 1, 2]]
    """
    fixed, are_fixed = FIXED, FIXED.issuperset
    return [
        value if (kind := type(value)) in fixed or (kind is tuple and are_fixed(map(type, value))) else own(value)
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


def _copied(value: Any, kind: type) -> Any:
    if _is_fixed(value):
        return value
    if kind in _FLAT:
        parts = chain(value, value.values()) if kind is dict else value
        return copy.copy(value) if FIXED.issuperset(map(type, parts)) else copy.deepcopy(value)
    if _is_plain_class(kind):
        state = vars(value)
        if FIXED.issuperset(map(type, state.values())):
            made: Any = object.__new__(kind)
            vars(made).update(state)
            return made
    return copy.deepcopy(value)


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
