"""The five kinds of state as user code holds them; each ends with nothing stored."""

import pytest

from eventide.common import Types
from eventide.datastream.functions import AggregateFunction
from eventide.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from eventide.errors import ProgramError
from eventide.runtime.state.backend import MemoryBackend
from eventide.runtime.state.key_context import handles_under
from eventide.runtime.state.keyed import KeyedState


class Mean(AggregateFunction):
    def create_accumulator(self):
        return (0, 0)

    def add(self, value, accumulator):
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a, acc_b):
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


VALUE = ValueStateDescriptor("value", Types.INT())
LIST = ListStateDescriptor("list", Types.INT())
MAP = MapStateDescriptor("map", Types.STRING(), Types.INT())
SUM = ReducingStateDescriptor("sum", lambda a, b: a + b, Types.INT())
MEAN = AggregatingStateDescriptor("mean", Mean(), Types.PICKLED_BYTE_ARRAY())


class Store:
    """Handles over an empty state, with the scope in the test's hands."""

    def __init__(self):
        self.scope = ("k", "w")
        self.backend = MemoryBackend()
        self.keyed = KeyedState(self.backend, 4)
        self.handles = handles_under(self.keyed, "p:", lambda: self.scope)

    def stored(self):
        return self.keyed.all_entries()


def test_a_value():
    store = Store()
    state = store.handles.get_state(VALUE)
    assert state.value() is None
    state.update(0)
    assert state.value() == 0
    assert store.stored() == {("k", "w"): {"p:value": 0}}
    state.clear()
    assert state.value() is None
    assert store.stored() == {}


def test_a_value_of_none_is_no_value():
    store = Store()
    state = store.handles.get_state(VALUE)
    state.update(1)
    state.update(None)
    assert store.stored() == {}


def test_a_list():
    store = Store()
    state = store.handles.get_list_state(LIST)
    assert list(state.get()) == list(state) == []
    state.add(1)
    state.add_all([2, 3])
    assert list(state.get()) == list(state) == [1, 2, 3]
    state.update([4])
    assert list(state) == [4]
    state.clear()
    assert store.stored() == {}


def test_an_empty_list_is_no_list():
    store = Store()
    state = store.handles.get_list_state(LIST)
    state.add_all([])
    assert store.stored() == {}
    state.add(1)
    state.update([])
    assert store.stored() == {}


def test_a_list_does_not_share_what_it_was_given():
    store, given = Store(), [1]
    state = store.handles.get_list_state(LIST)
    state.update(given)
    state.add(2)
    assert (given, list(state)) == ([1], [1, 2])


def test_a_map():
    store = Store()
    state = store.handles.get_map_state(MAP)
    assert state.is_empty()
    assert (state.get("a"), "a" in state, list(state)) == (None, False, [])
    state.put("a", 1)
    state["b"] = 2
    state.put_all(dict_value=[("c", 3)])
    assert (state.get("a"), state["b"], state.contains("c"), "d" in state) == (1, 2, True, False)
    assert (list(state.items()), list(state.keys()), list(state.values())) == (
        [("a", 1), ("b", 2), ("c", 3)],
        ["a", "b", "c"],
        [1, 2, 3],
    )
    for key in state:
        state.remove(key)
    del state["missing"]
    assert state.is_empty()
    state.put_all({})
    assert store.stored() == {}


def test_reducing_and_aggregating():
    store = Store()
    total, mean = store.handles.get_reducing_state(SUM), store.handles.get_aggregating_state(MEAN)
    assert (total.get(), mean.get()) == (None, None)
    for value in (1, 2, 6):
        total.add(value)
        mean.add(value)
    assert (total.get(), mean.get()) == (9, 3.0)
    total.clear()
    mean.clear()
    assert (total.get(), mean.get(), store.stored()) == (None, None, {})


def test_none_clears_what_is_reduced_or_aggregated():
    store = Store()
    for state in (store.handles.get_reducing_state(SUM), store.handles.get_aggregating_state(MEAN)):
        seen = []
        for value in (1, None, 3):
            state.add(value)
            seen.append(state.get())
        assert seen == [1, None, 3]
        state.add(None)
    assert store.stored() == {}


def test_one_handle_serves_every_key_and_window():
    store = Store()
    state = store.handles.get_state(VALUE)
    state.update(1)
    store.scope = ("k", "other window")
    assert state.value() is None
    state.update(2)
    store.scope = ("other key", "w")
    assert state.value() is None
    store.scope = ("k", "w")
    assert state.value() == 1


def test_all_kinds_come_back_after_a_flush():
    store = Store()
    store.handles.get_state(VALUE).update(1)
    store.handles.get_list_state(LIST).add(2)
    store.handles.get_map_state(MAP).put("a", 3)
    store.handles.get_reducing_state(SUM).add(4)
    store.handles.get_aggregating_state(MEAN).add(5)
    store.keyed.flush()
    again = handles_under(KeyedState(store.backend, 4), "p:", lambda: store.scope)
    assert again.get_state(VALUE).value() == 1
    assert list(again.get_list_state(LIST)) == [2]
    assert again.get_map_state(MAP).get("a") == 3
    assert again.get_reducing_state(SUM).get() == 4
    assert again.get_aggregating_state(MEAN).get() == 5.0


@pytest.mark.parametrize(
    ("descriptor", "seen", "merged"),
    [(LIST, list, [1, 2, 3]), (SUM, lambda s: s.get(), 6), (MEAN, lambda s: s.get(), 2.0)],
)
def test_states_of_several_windows_become_one(descriptor, seen, merged):
    store = Store()
    state = descriptor.bind(store.handles)
    for window, value in [("w1", 1), ("w2", 2), ("w3", 3)]:
        store.scope = ("k", window)
        state.add(value)
    store.scope = ("k", "all")
    store.handles.merge(descriptor, ["w1", "none", "w2", "w3"])
    assert seen(state) == merged
    assert list(store.stored()) == [("k", "all")]


@pytest.mark.parametrize("descriptor", [VALUE, MAP])
def test_values_and_maps_cannot_be_merged(descriptor):
    with pytest.raises(
        ProgramError, match=rf"state '{descriptor.name}' cannot be merged.*use a list, reducing or aggregating"
    ):
        Store().handles.merge(descriptor, ["w1"])


def test_one_name_is_one_kind_of_state():
    store = Store()
    store.handles.get_state(ValueStateDescriptor("x", Types.INT()))
    with pytest.raises(
        ProgramError, match=r"state 'x' was used with a ValueStateDescriptor before, and now with a ListStateDescriptor"
    ):
        store.handles.get_list_state(ListStateDescriptor("x", Types.INT()))
