"""An element is handed on without a copy only if it is immutable, or if its function shows that it keeps nothing."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from operator import attrgetter, itemgetter
from typing import NamedTuple

import pytest

from eventide.common.types import Row, RowKind
from eventide.runtime.chain.chained_operators import FlatMap, Moment
from eventide.runtime.elements.elements import Elements
from eventide.runtime.elements.ownership import UNSHARED, is_bare, only_looks, own, own_beside, own_in_turn, own_unless
from eventide.runtime.metrics import Metrics


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


# ruff: noqa: B006, C416, F841, PLC3002, PLW0108, PLW0603, PLW0642, RUF012


STORE = []
RATES = {"a": 2}
LIMIT = 3
last = None


def remembers(value):
    global last
    last = value
    return value


def recalls(value):
    return last


def keeps(value):
    STORE.append(value)
    return value


def doubles(value):
    return value * 2


def first_of_two(value):
    return second_of_two(value) if value else keeps(value)


def second_of_two(value):
    return first_of_two(value) if value else value


def counts_down(value):
    return counts_down(value - 1) if value else value


def enclosing(kept):
    return lambda v: kept


def counting():
    count = 0

    def count_up(v):
        nonlocal count
        count += 1
        return v, count

    return count_up


def mutable_default(v, kept=[]):
    return kept


def mutable_keyword(v, *, kept={}):
    return kept


def generates(v):
    row = [v]
    yield row
    row[0] = 0
    yield row


def imports(v):
    import sys

    return sys.modules


def defines_a_class(v):
    class Inner:
        pass

    return Inner


def tries(v):
    try:
        return v[0]
    except Exception as error:
        return error


async def waits(v):
    return v


class Kept:
    shared = []
    limit = 4

    def __init__(self):
        self.n, self.row, self.function = 1, [], doubles

    def gives_itself(self, v):
        return self

    def gives_its_row(self, v):
        return self.row

    def gives_what_the_class_has(self, v):
        return self.shared

    def stores(self, v):
        self.n = v
        return v

    def calls_another(self, v):
        return self.gives_its_row(v)

    def calls_an_attribute(self, v):
        return self.function(v)

    def computed(self, v):
        return self.property

    def aliases(self, v):
        me = self
        return me.row

    def chooses(self, v):
        return (v if v else self).n

    def in_a_comprehension(self, v):
        return [self.row for _ in v]

    def star(*args):
        return args[0].row

    def replaces_itself(self, v):
        self = v
        return self.n

    @property
    def property(self):
        return self.row

    def adds(self, v):
        return v[0], v[1] + self.n + self.limit

    def static_like(self, v):
        return v[0]


NOT_BARE = {
    "a mutable object in its closure": enclosing([]),
    "a closure that it changes": counting(),
    "a mutable global": lambda v: STORE,
    "an entry of a mutable global": lambda v: RATES["a"],
    "a mutable global that it changes": lambda v: STORE.append(v),
    "a global that it sets": remembers,
    "a function that keeps": lambda v: keeps(v),
    "a function that keeps, as a key": lambda v: sorted(v, key=keeps),
    "a mutable default": mutable_default,
    "a mutable keyword default": mutable_keyword,
    "a mutable default of a lambda": lambda v, kept=[]: kept,
    "a generator": generates,
    "an unknown function": lambda v: functools.reduce(max, v),
    "a function that an element holds": lambda v: v[0](v),
    "such a function, beside a lambda that nobody calls": lambda v: (v[0](v), lambda: 0),
    "such a function, beside a lambda that orders": lambda v: (v[0](v), sorted(v, key=lambda x: x)),
    "such a function, beside a comprehension": lambda v: [v[0](v) for _ in v],
    "one of two functions": lambda v: (len if v else v[0])(v),
    "a nested lambda that is called": lambda v: (lambda kept=[]: kept)(),
    "a nested lambda that keeps": lambda v: sorted(v, key=lambda x: STORE.append(x)),
    "a nested function that gives a global": lambda v: [STORE for _ in v],
    "a method of its element": lambda v: v.append(1),
    "an attribute of its element": lambda v: v.tags,
    "that it sets": lambda v: setattr(v, "x", STORE),
    "a mutable class": lambda v: Kept,
    "an object of a class": lambda v: Kept(),
    "the namespace": lambda v: globals(),
    "star arguments of a call": lambda v: max(*v),
    "an iterator that it asks": lambda v: next(v),
    "an import": imports,
    "a class of its own": defines_a_class,
    "an error that it catches": tries,
    "a coroutine": waits,
    "a partial function": functools.partial(doubles),
    "a method of a list": STORE.append,
    "a callable object": type("Callable", (), {"__call__": lambda self, v: v})(),
    "its object": Kept().gives_itself,
    "a list of its object": Kept().gives_its_row,
    "a list of its class": Kept().gives_what_the_class_has,
    "an attribute that it stores": Kept().stores,
    "another method": Kept().calls_another,
    "a function that its object has": Kept().calls_an_attribute,
    "a property": Kept().computed,
    "its object by another name": Kept().aliases,
    "its object or its element": Kept().chooses,
    "its object in a comprehension": Kept().in_a_comprehension,
    "its object among star arguments": Kept().star,
    "an object that it replaces": Kept().replaces_itself,
    "one of two that call each other, of which one keeps": first_of_two,
    "the other one of the two": second_of_two,
}

BARE = {
    "a tuple": lambda v: (v[0], v[1] + 1),
    "a constant": lambda v: "x",
    "a global number": lambda v: v if v < LIMIT else -v,
    "a closure of a number": enclosing(3),
    "a default number": lambda v, n=1: v + n,
    "a text": lambda v: f"{v[0]:>3}{v[1]!r}",
    "builtins": lambda v: max(len(v), int(v[0]), abs(-1)),
    "an order": lambda v: sorted(v, key=lambda x: -x[1], reverse=True),
    "a walrus": lambda v: (n := v[0], n + 1),
    "comprehensions": lambda v: [{x: y for x, y in v}, {x for x in v}, [x for x in v if x > LIMIT]],
    "a slice": lambda v: v[1:] + v[:1],
    "a function of this kind": lambda v: doubles(v),
    "a function that calls itself": counts_down,
    "a row": lambda v: Row(a=v[0], b=Decimal(1)),
    "star arguments": lambda *v: v,
    "a method that ignores its object": Kept().static_like,
    "a method that reads numbers of its object": Kept().adds,
    "an item": itemgetter(0),
    "a class of numbers": int,
}


@pytest.mark.parametrize("function", NOT_BARE.values(), ids=NOT_BARE.keys())
def test_is_not_bare_if_it_can_keep_or_share(function):
    assert not is_bare(function)


@pytest.mark.parametrize("function", BARE.values(), ids=BARE.keys())
def test_is_bare(function):
    assert is_bare(function)


def sets_an_item(v):
    v[0] = 1
    return v


def adds_in_place(v):
    v += [1]
    return v


def deletes(v):
    del v[0]
    return v


@pytest.mark.parametrize("function", [sets_an_item, adds_in_place, deletes])
def test_a_bare_function_may_change_its_argument_and_then_does_more_than_look(function):
    assert (is_bare(function), only_looks(function)) == (True, False)


LOOKS_NO_MORE = {
    "a method": lambda v: v.pop(),
    "a method of a part": lambda v: v.tags.pop() > 3,
    "a method by a name": lambda v: (pop := v.pop)(),
    "such a method, beside a lambda": lambda v: ((pop := v.pop)(), lambda: 0),
    "a method as a key": lambda v: max([1], key=v.append),
    "a method as a key, by a name": lambda v: (f := v.append, [max([x], key=f) for x in (1, 2)]),
    "an attribute that it sets": lambda v: setattr(v, "n", 1),
    "a function that keeps": lambda v: keeps(v.n),
    "a mutable object of its own": Kept().gives_its_row,
    "a mutable global": lambda v: v.n in STORE,
}


@pytest.mark.parametrize("function", LOOKS_NO_MORE.values(), ids=LOOKS_NO_MORE.keys())
def test_does_more_than_look(function):
    assert not only_looks(function)


@pytest.mark.parametrize(
    "function",
    [lambda v: v.user, lambda v: v.user.name[1:], lambda v: v["n"] % 3 == 0, Kept().adds, attrgetter("a"), len],
)
def test_only_looks(function):
    assert only_looks(function)


def test_what_a_global_holds_now_counts():
    global last
    last = None
    assert is_bare(recalls)
    last = []
    assert not is_bare(recalls)
    last = None


def test_what_an_enclosing_function_sets_later_counts():
    held = None

    def gives(v):
        return held

    assert is_bare(gives)
    held = []
    assert not is_bare(gives)


def test_what_an_attribute_holds_now_counts():
    owner = Kept()
    assert is_bare(owner.adds)
    owner.n = []
    assert not is_bare(owner.adds)


def test_a_cell_that_is_still_empty_is_not_bare():
    def gives(v):
        return later

    assert not is_bare(gives)
    later = 1
    assert is_bare(gives)


def test_an_object_that_reads_attributes_in_its_own_way_is_not_bare():
    class Lazy(Kept):
        def __getattribute__(self, name):
            return object.__getattribute__(self, name)

    assert not is_bare(Lazy().adds)


def test_the_result_does_not_depend_on_which_of_two_functions_is_looked_at_first():
    assert (is_bare(first_of_two), is_bare(second_of_two)) == (False, False)


def main_output(step, elements):
    return step.outputs(elements, Moment(), Metrics(0))[None]


class TestResultsWithoutAnotherOwner:
    """A row, a list or a dict of plain values is handed on as it is only if its function has not kept it."""

    @pytest.mark.skipif(UNSHARED < 0, reason="this Python does not count every reference")
    @pytest.mark.parametrize("made", [lambda: Row(a=1), lambda: [1], lambda: {"a": 1}])
    def test_it_is_not_copied(self, made):
        ids = []

        def new(_):
            value = made()
            ids.append(id(value))
            return value

        given = own_in_turn(map(new, range(3)))
        assert list(map(id, given)) == ids

    @pytest.mark.parametrize("made", [lambda: Row(a=1), lambda: [1], lambda: {"a": 1}])
    def test_what_is_kept_is_copied(self, made):
        kept = []

        def new(_):
            kept.append(made())
            return kept[-1]

        given = own_in_turn(map(new, range(3)))
        assert given == kept
        assert not set(map(id, given)) & set(map(id, kept))

    def test_a_part_that_can_be_changed_is_copied_with_its_owner(self):
        part = [1]
        (given,) = own_in_turn(Row(a=part) for _ in range(1))
        part.append(2)
        assert given == Row(a=[1])

    def test_a_row_in_a_list_that_is_kept_is_copied(self):
        kept = []

        def several(number):
            kept.append([Row(a=number), Row(a=number)])
            return kept[-1]

        out = main_output(FlatMap("several", several, None), Elements([1, 2], [None, None], [0, 1]))
        for rows in kept:
            rows[0]["a"] = 9
        assert out.values == [Row(a=1), Row(a=1), Row(a=2), Row(a=2)]

    def test_a_row_that_is_twice_in_a_list_becomes_two(self):
        out = main_output(FlatMap("twice", lambda number: [Row(a=number)] * 2, None), Elements([1], [None], [0]))
        out.values[0]["a"] = 9
        assert out.values == [Row(a=9), Row(a=1)]

    def test_a_row_that_a_generator_changes_and_gives_again_is_copied(self):
        def growing(number):
            row = Row(a=number)
            yield row
            row["a"] += 1
            yield row

        out = main_output(FlatMap("growing", growing, None), Elements([1], [None], [0]))
        assert out.values == [Row(a=1), Row(a=2)]
