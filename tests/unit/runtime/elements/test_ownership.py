"""An element is handed on without a copy only if it and all of its parts are immutable."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import pytest

from eventide.runtime.elements.ownership import own


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
