"""An element is handed on without a copy only if it and all of its parts are immutable."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import pytest

from eventide.common.types import Row, RowKind
from eventide.runtime.elements.ownership import own, own_beside, own_unless


class Pair(NamedTuple):
    first: object
    second: object


class TupleWithAttributes(tuple):
    pass


class SetWithASlot(frozenset):
    __slots__ = ("extra",)


@dataclass(frozen=True)
class Event:
    user: object

    @cached_property
    def seen(self):
        return []


class DerivedEvent(Event):
    pass


def with_attribute(value, name, content):
    object.__setattr__(value, name, content)
    return value


@pytest.mark.parametrize(
    "value", [1, "a", None, (1, (2, "a")), frozenset({1}), Pair(1, 2), Event(1), Event((1, Event("a")))]
)
def test_what_cannot_be_changed_is_not_copied(value):
    assert own(value) is value


@pytest.mark.parametrize(
    "value",
    [
        [1],
        {"a": [1]},
        (1, [2]),
        Pair(1, []),
        Event([1]),
        DerivedEvent(1),
        with_attribute(Event(1), "seen", [1]),
        with_attribute(TupleWithAttributes((1,)), "extra", [1]),
        with_attribute(SetWithASlot({1}), "extra", [1]),
    ],
    ids=repr,
)
def test_what_can_be_changed_is_copied(value):
    copied = own(value)
    assert copied is not value
    assert copied == value


def test_a_value_that_a_frozen_dataclass_computed_once_is_a_part_of_it():
    event = Event("a")
    event.seen.append(1)
    copied = own(event)
    event.seen.append(2)
    assert copied.seen == [1]


@pytest.mark.parametrize("kind", [lambda *parts: parts, Row], ids=["tuple", "Row"])
def test_parts_of_what_is_held_are_handed_on_once_and_others_are_copied(kind):
    held, other = [1], [2]
    before = kind(1, held)
    after = own_unless(kind(held, held, other, [held]), before)
    assert after == kind([1], [1], [2], [[1]])
    assert after[0] is held
    assert all(part is not held for part in (after[1], after[3][0]))
    assert after[2] is not other


def test_a_row_around_parts_of_another_keeps_its_names_and_kind_and_is_a_row_of_its_own():
    before = Row(count=1, seen=[1])
    after = Row(count=2, seen=before.seen)
    after.set_row_kind(RowKind.DELETE)
    mine = own_unless(after, before)
    assert mine is not after
    assert (mine, mine.get_field_names(), mine.get_row_kind()) == (after, ["count", "seen"], RowKind.DELETE)
    assert mine.seen is before.seen


def test_one_held_object_at_two_places_becomes_two_objects():
    held = [1]
    first, second = own_beside([held, held], [held])
    assert first is held
    assert second == held
    assert second is not held
