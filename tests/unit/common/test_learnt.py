"""An object's gained state comes back, and its constructor's values come from the program."""

import pickle
import threading
from dataclasses import dataclass

import pytest

from eventide.common.learnt import Learnt
from eventide.errors import ProgramError, StateError


class Plain:
    """Has one parameter, and learns."""

    limit = 5

    def __init__(self, parameter):
        self.parameter = parameter
        self.nested = {"parameter": parameter, "words": ["a", "a"]}
        self.function = lambda value: (parameter, value)
        self.lock = threading.Lock()
        self.found = []
        self.highest = None
        self.warming_up = True


def handed_on(before, after):
    """Another object, with what the first has learnt since the call of `learn`."""
    learnt = Learnt(before)

    def learn(change):
        change(before)
        Learnt(after).restore(pickle.loads(pickle.dumps(learnt.snapshot())))
        return after

    return learn


def nothing(thing):
    pass


def test_without_learning_every_parameter_is_the_new_one():
    after = handed_on(Plain(1), Plain(2))(nothing)
    assert (after.parameter, after.nested["parameter"], after.function(3)) == (2, 2, (2, 3))
    assert Learnt(Plain(1)).snapshot() == ("Plain", False, ({}, []))


def change_all(thing):
    thing.found.append("found in place")
    thing.highest = 7
    thing.later = "new"
    thing.limit = 6
    del thing.warming_up


def test_what_was_set_changed_in_place_added_or_removed_comes_back_and_the_rest_is_new():
    after = handed_on(Plain(1), Plain(2))(change_all)
    assert (after.found, after.highest, after.later, after.limit) == (["found in place"], 7, "new", 6)
    assert not hasattr(after, "warming_up")
    assert (after.parameter, after.nested["parameter"], after.function(3)) == (2, 2, (2, 3))


def test_it_goes_on_over_many_lives():
    thing, learnt = Plain(0), None
    for life in range(4):
        thing = Plain(life)
        observed = Learnt(thing)
        if learnt is not None:
            observed.restore(learnt)
        thing.found.append(life)
        learnt = pickle.loads(pickle.dumps(observed.snapshot()))
    assert (thing.found, thing.parameter) == ([0, 1, 2, 3], 3)
    assert sorted(learnt[2][0]) == ["found"]


def test_what_is_again_as_it_was_made_is_no_longer_learnt():
    thing = Plain(1)
    learnt = Learnt(thing)
    thing.highest, thing.found = None, list(thing.found)
    assert learnt.snapshot()[2] == ({}, [])


def test_an_equal_number_of_another_type_is_learnt():
    thing = Plain(1)
    learnt = Learnt(thing)
    thing.parameter = 1.0
    assert learnt.snapshot()[2] == ({"parameter": 1.0}, [])


class WithSlots:
    __slots__ = ("_WithSlots__hidden", "bound", "last")

    def __init__(self, bound):
        self.bound, self.__hidden = bound, 0

    def see(self, value):
        self.last = value
        self.__hidden += value

    def seen(self):
        return self.bound, self.last, self.__hidden


class WithSlotsAndMore(WithSlots):
    """Has attributes besides, as a generator with slots does."""

    def see(self, value):
        super().see(value)
        self.more = value


@pytest.mark.parametrize("kind", [WithSlots, WithSlotsAndMore])
def test_slots_are_attributes_too(kind):
    after = handed_on(kind(1), kind(2))(lambda thing: thing.see(5))
    assert after.seen() == (2, 5, 5)
    assert getattr(after, "more", 5) == 5


@dataclass
class Fields:
    bound: int
    highest: int = 0


def test_so_are_the_fields_of_a_dataclass():
    def learn(thing):
        thing.highest = 8

    assert handed_on(Fields(1), Fields(2))(learn) == Fields(2, 8)


class SaysWhatPickles:
    """Leaves out what does not pickle, and makes it again."""

    def __init__(self, bound):
        self.bound, self.last, self.lock = bound, 0, threading.Lock()

    def see(self, value):
        self.last, self.lock = value, threading.Lock()

    def __getstate__(self):
        return {name: value for name, value in vars(self).items() if name != "lock"}

    def __setstate__(self, state):
        vars(self).update(state)
        self.lock = "made again"


def test_what_it_says_when_it_is_pickled_counts():
    after = handed_on(SaysWhatPickles(1), SaysWhatPickles(2))(lambda thing: thing.see(5))
    assert (after.bound, after.last, after.lock) == (2, 5, "made again")


class Decides(Plain):
    """Says by itself what it has learnt."""

    def snapshot_state(self):
        return {"highest": self.highest}

    def restore_state(self, state):
        self.highest = state["highest"]


def test_what_it_says_of_itself_takes_precedence():
    after = handed_on(Decides(1), Decides(2))(change_all)
    assert (after.highest, after.found, after.warming_up, after.parameter) == (7, [], True, 2)


def test_one_of_the_two_methods_alone_is_refused():
    class Half(Plain):
        def snapshot_state(self):
            return 1

    with pytest.raises(ProgramError, match=r"Half has one of snapshot_state\(\) and restore_state\(state\); it needs"):
        Learnt(Half(1))


class IsAList(list):
    pass


class SaysATuple(Plain):
    def __getstate__(self):
        return 1, 2, 3


@pytest.mark.parametrize("thing", [IsAList(), SaysATuple(1)], ids=["list", "tuple"])
def test_what_keeps_things_elsewhere_is_refused_with_advice(thing):
    with pytest.raises(ProgramError, match=r"keeps state outside its attributes.*give it snapshot_state"):
        Learnt(thing)


def test_what_another_class_has_learnt_is_refused():
    with pytest.raises(StateError, match="the state of a Plain, but the program uses a Fields"):
        Learnt(Fields(1)).restore(Learnt(Plain(1)).snapshot())
    with pytest.raises(StateError, match=r"the state of a Decides with snapshot_state\(\), but the"):
        Learnt(Plain(1)).restore(Learnt(Decides(1)).snapshot())
