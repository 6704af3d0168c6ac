"""From the types of the program that was saved to those of the program that begins: what becomes of each value."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from eventide.api.windows import TimestampedValue
from eventide.common.typeinfo.texts import type_of_text
from eventide.common.typeinfo.widening import Conversion
from eventide.pickling.pickles import dumps, loads
from eventide.runtime.joins.interval import ELEMENTS
from eventide.runtime.state.declared import conversion_of_texts, obstacle_between
from eventide.runtime.window.operator import CONTENTS
from eventide.savepoint.rows import VALUE, WINDOW

Identity: TypeAlias = Mapping[str, str]
"""Identity of an operator's state."""

ELEMENT_TYPES = ("element type", "element types")
BOOTSTRAPPED = "bootstrapped"
"""Mark in the identity of an operator whose state no job has made: it says only what is known of it."""

KEPT_FIELDS = "kept fields"
"""Parts that follow from the types of elements, and are seen in the tables themselves."""

_KEY_TYPE, _BROADCAST = "key type", "broadcast state"
_CONTENTS = "window contents"
_NAME = r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
_BY_NAME = re.compile(rf"MapStateDescriptor\({_NAME}, (MAP\(.*?\))\)(?=, MapStateDescriptor\(|$)", re.DOTALL)


def accepted(before: Identity, now: Identity) -> dict[str, str]:
    """Return the former identity of an operator's state, with the program's types where former ones widen to them."""
    if BOOTSTRAPPED in before:
        before = {**now, **{what: text for what, text in before.items() if what != BOOTSTRAPPED}}
    found = dict(before)
    keeps_columns = before.get(_CONTENTS, "").startswith("AggregatedColumns")
    for what in (*ELEMENT_TYPES, _KEY_TYPE):
        was, becomes = before.get(what), now.get(what)
        if was is None or becomes is None or (keeps_columns and not _has_tables(now)):
            continue
        if _fit(_types(was), _types(becomes), is_key=what == _KEY_TYPE):
            found[what] = becomes
    if _BROADCAST in before and _BROADCAST in now:
        was_of, becomes_of = _broadcast(before), _broadcast(now)
        if [*was_of] == [*becomes_of] and _fit([*was_of.values()], [*becomes_of.values()], is_key=False):
            found[_BROADCAST] = now[_BROADCAST]
    return found


class Widening:
    """Widening of the values of an operator's state by key.

    Args:
        before: what it depended on in the program that was saved.
        now: what it depends on.

    Raises:
        StateError: if a type does not widen.
    """

    def __init__(self, before: Identity, now: Identity) -> None:
        self._elements: Sequence[Conversion | None] = ()
        for what in ELEMENT_TYPES:
            if before.get(what) != now.get(what) and what in before and what in now:
                pairs = zip(_types(before[what]), _types(now[what]), strict=True)
                self._elements = [conversion_of_texts(was, becomes, "elements") for was, becomes in pairs]
        self._has_accumulators = before.get(_CONTENTS) == "Aggregated"
        was_of, becomes_of = _broadcast(before), _broadcast(now)
        self._broadcast = {
            name: conversion_of_texts(was, becomes_of[name], f"the broadcast state {name!r}")
            for name, was in was_of.items()
            if name in becomes_of
        }

    def of_row(self, row: dict[str, Any]) -> dict[str, Any]:
        """A row of state by key."""
        convert = self._of_values(row)
        return row if convert is None else {**row, "value_pickle": dumps(convert(loads(row["value_pickle"])))}

    def of_broadcast(self, row: dict[str, Any], name: str) -> dict[str, Any]:
        """A row of the broadcast state of a name."""
        convert = self._broadcast.get(name)
        if convert is None:
            return row
        key = loads(row["key_pickle"])
        (value,) = loads(row["value_pickle"])
        return {**row, "value_pickle": dumps((convert({key: value})[key],))}

    def _of_values(self, row: Mapping[str, Any]) -> Callable[[Any], Any] | None:
        """Return the conversion of the value of a row; None where it stays."""
        if row["kind"] == VALUE and row["name"] == ELEMENTS and len(self._elements) == 2:
            side = self._elements[loads(row["namespace_pickle"])]
            return None if side is None else lambda kept: (kept[0], [side(value) for value in kept[1]])
        if len(self._elements) != 1 or self._elements[0] is None:
            return None
        of_window = row["kind"] == WINDOW or (row["kind"] == VALUE and row["name"] == CONTENTS)
        is_accumulator = self._has_accumulators and not row["chunk"]  # after the first chunk there are elements
        if not of_window or is_accumulator:
            return None
        convert = self._elements[0]
        return lambda kept: [_element(value, convert) for value in kept]


def _element(value: Any, convert: Conversion) -> Any:
    if isinstance(value, TimestampedValue):
        return TimestampedValue(convert(value.value), value.timestamp)
    return convert(value)


def _has_tables(now: Identity) -> bool:
    return now.get("stored form") == "ColumnarWindow"


def _types(text: str) -> list[str]:
    """The texts of one type, or of two with a word between."""
    for match in re.finditer(" and ", text):
        parts = [text[: match.start()], text[match.end() :]]
        if all(map(_is_type, parts)):
            return parts
    return [text]


def _is_type(text: str) -> bool:
    try:
        type_of_text(text)
    except ValueError:
        return False
    return True


def _fit(before: Sequence[str], now: Sequence[str], *, is_key: bool) -> bool:
    return len(before) == len(now) and all(
        obstacle_between(was, becomes, is_key=is_key) is None for was, becomes in zip(before, now, strict=True)
    )


def _broadcast(identity: Identity) -> dict[str, str]:
    """The types of broadcast states by their names."""
    return {ast.literal_eval(name): types for name, types in _BY_NAME.findall(identity.get(_BROADCAST, ""))}
