import operator
import pickle

import pytest

from eventide.common import Types
from eventide.datastream.functions import AggregateFunction, KeyedStateStore, ReduceFunction
from eventide.datastream.state import (
    AggregatingStateDescriptor,
    ListState,
    ListStateDescriptor,
    MapState,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from eventide.errors import ProgramError
from eventide.runtime.state.expiring import SUFFIX
from eventide.runtime.state.rows_of_keys import AS_THEY_ARE, SPACES


@pytest.mark.parametrize("end", [SUFFIX, SPACES, AS_THEY_ARE])
def test_a_name_does_not_end_as_names_of_stored_columns_do(end):
    for name in (end, f"a{end}"):
        for make in (ValueStateDescriptor, ListStateDescriptor):
            with pytest.raises(ProgramError, match="ends with a control character that eventide uses itself"):
                make(name, Types.LONG())
    assert ValueStateDescriptor(f"a{end}b", Types.LONG()).name == f"a{end}b"


class Longer(ReduceFunction):
    def reduce(self, value1, value2):
        return max(value1, value2, key=len)


class Count(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + 1

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


class NamingStore(KeyedStateStore):
    """A store that answers with the kind of state it was asked for."""

    def get_state(self, state_descriptor):
        return "value"

    def get_list_state(self, state_descriptor):
        return "list"

    def get_map_state(self, state_descriptor):
        return "map"

    def get_reducing_state(self, state_descriptor):
        return "reducing"

    def get_aggregating_state(self, state_descriptor):
        return "aggregating"


class DictMapState(MapState):
    def __init__(self):
        self._map = {}

    def get(self, key):
        return self._map.get(key)

    def put(self, key, value):
        self._map[key] = value

    def put_all(self, dict_value):
        self._map.update(dict_value)

    def remove(self, key):
        self._map.pop(key, None)

    def contains(self, key):
        return key in self._map

    def items(self):
        return self._map.items()

    def keys(self):
        return self._map.keys()

    def values(self):
        return self._map.values()

    def is_empty(self):
        return not self._map

    def clear(self):
        self._map.clear()


class PlainListState(ListState):
    def __init__(self, values):
        self._values = values

    def get(self):
        return self._values

    def add(self, value):
        self._values.append(value)

    def add_all(self, values):
        self._values.extend(values)

    def update(self, values):
        self._values = list(values)

    def clear(self):
        self._values = []


def descriptors():
    return {
        "value": ValueStateDescriptor("v", Types.LONG()),
        "list": ListStateDescriptor("l", Types.LONG()),
        "map": MapStateDescriptor("m", Types.STRING(), Types.LONG()),
        "reducing": ReducingStateDescriptor("r", Longer(), Types.STRING()),
        "aggregating": AggregatingStateDescriptor("a", Count(), Types.LONG()),
    }


@pytest.mark.parametrize("kind", descriptors())
def test_a_descriptor_asks_the_store_for_its_own_kind(kind):
    assert descriptors()[kind].bind(NamingStore()) == kind


@pytest.mark.parametrize("kind", descriptors())
def test_descriptors_pickle(kind):
    copy = pickle.loads(pickle.dumps(descriptors()[kind]))
    assert repr(copy) == repr(descriptors()[kind])
    assert copy.get_name() == kind[0]


def test_a_descriptor_knows_the_types_of_the_parts_and_of_the_whole():
    listed, mapped = descriptors()["list"], descriptors()["map"]
    assert (listed.element_type, listed.type_info) == (Types.LONG(), Types.LIST(Types.LONG()))
    assert (mapped.key_type, mapped.value_type) == (Types.STRING(), Types.LONG())
    assert mapped.type_info == Types.MAP(Types.STRING(), Types.LONG())


@pytest.mark.parametrize(("function", "result"), [(Longer(), "long"), (operator.add, "solong")])
def test_a_reducing_state_takes_an_object_or_a_function(function, result):
    descriptor = ReducingStateDescriptor("r", function, Types.STRING())
    assert descriptor.get_reduce_function().reduce("so", "long") == result


@pytest.mark.parametrize(
    "build",
    [
        lambda: ValueStateDescriptor("", Types.LONG()),
        lambda: ValueStateDescriptor("v", int),
        lambda: ListStateDescriptor("l", None),
        lambda: MapStateDescriptor("m", Types.LONG(), None),
        lambda: ReducingStateDescriptor("r", 17, Types.LONG()),
        lambda: AggregatingStateDescriptor("a", max, Types.LONG()),
    ],
)
def test_descriptors_that_make_no_sense_are_refused(build):
    with pytest.raises(ProgramError):
        build()


def test_map_state_is_used_like_a_dict():
    state = DictMapState()
    state["a"] = 1
    state["b"] = 2
    del state["b"]
    assert "a" in state
    assert "b" not in state
    assert (state["a"], state["b"], list(state)) == (1, None, ["a"])


def test_list_state_is_iterated():
    assert list(PlainListState([1, 2])) == [1, 2]
