"""Programs that put one object into several elements, or keep and change what they were given: results are Flink's."""

from __future__ import annotations

import pytest

from eventide.common import Time, Types, WatermarkStrategy
from eventide.datastream import KeyedProcessFunction, MapFunction
from eventide.datastream.functions import AggregateFunction, ProcessWindowFunction
from eventide.datastream.state import AggregatingStateDescriptor, ReducingStateDescriptor, ValueStateDescriptor
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.testing import ScriptedSource, local_environment
from support.twin import plan_of, run, timed

_SECOND = TumblingEventTimeWindows.of(Time.seconds(1))


def results(stream):
    """The elements of a stream, in their order."""
    return [value for batch in run(plan_of(stream, parallelism=1)) for value, _ in batch[0]]


def elements(*values):
    return local_environment().from_collection(list(values))


class CountsInPlace(KeyedProcessFunction):
    """Keeps the list of its key's first element as state, and changes it there."""

    def open(self, runtime_context):
        self.state = runtime_context.get_state(ValueStateDescriptor("count", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, value, ctx):
        count = self.state.value() or value[1]
        count[0] += 1
        self.state.update(count)
        yield f"{value[0]}{count[0]}"


def test_state_of_one_key_stays_when_that_of_another_is_changed():
    zero = [0]
    stream = elements("a", "b", "a", "b").map(lambda key: (key, zero)).key_by(lambda e: e[0]).process(CountsInPlace())
    assert sorted(results(stream)) == ["a1", "a2", "b1", "b2"]


class KeepsTheFirst(AggregateFunction):
    """Counts in its accumulator, which is the first object that it was given."""

    def create_accumulator(self):
        return None

    def add(self, value, accumulator):
        accumulator = value[2] if accumulator is None else accumulator
        accumulator["count"] += 1
        return accumulator

    def get_result(self, accumulator):
        return accumulator["count"]

    def merge(self, a, b):
        raise NotImplementedError


def test_an_aggregate_may_keep_the_first_object_as_its_accumulator():
    counts = {"count": 0}
    keyed = timed(local_environment(), [(key, 1, counts) for key in "abab"]).key_by(lambda e: e[0])
    assert results(keyed.window(_SECOND).aggregate(KeepsTheFirst())) == [2, 2]


def adds_in_place(first, second):
    first[1] += second[1]
    return first


def test_a_rolling_reduce_may_change_its_first_argument():
    one = ["a", 1]
    assert results(elements(one, one, one).key_by(lambda e: e[0]).reduce(adds_in_place)) == [
        ["a", n] for n in (1, 2, 3)
    ]


def test_a_reduce_of_windows_may_change_its_first_argument():
    one = ["a", 1]
    keyed = timed(local_environment(), [one, one, one])
    keyed = keyed.key_by(lambda e: e[0])
    assert results(keyed.window(_SECOND).reduce(adds_in_place)) == [["a", 3]]
    assert one == ["a", 1]


def changes_the_parent(child):
    child["parent"]["seen"] += 1
    return child["name"], child["parent"]["seen"]


def test_children_of_a_flat_map_do_not_share_their_parent():
    def children(parent):
        return [{"name": name, "parent": parent} for name in parent["children"]]

    stream = elements({"children": "xyz", "seen": 0}).flat_map(children).map(changes_the_parent)
    assert results(stream) == [("x", 1), ("y", 1), ("z", 1)]


def increments(element):
    element["n"] += 1
    return element


def test_one_object_several_times_in_a_collection_is_several_elements():
    one = {"n": 1}
    assert results(elements(one, one, one).map(increments)) == [{"n": 2}] * 3
    assert one == {"n": 1}


class ReusesOneRow(MapFunction):
    def __init__(self):
        self.row = [None]

    def map(self, value):
        self.row[0] = value
        return self.row


def test_a_map_function_may_put_out_one_row_again_and_again():
    assert results(elements(1, 2, 3).map(ReusesOneRow())) == [[1], [2], [3]]


def grows(_):
    row = []
    for number in range(3):
        row.append(number)
        yield row


def test_a_generator_may_put_out_one_list_that_grows():
    assert results(elements("x").flat_map(grows)) == [[0], [0, 1], [0, 1, 2]]


class MarksInPlace(ProcessWindowFunction):
    """Appends a mark to each element that it sees, and gives how long each has become."""

    def process(self, key, context, elements):
        lengths = []
        for element in elements:
            element.append("seen")
            lengths.append(len(element))
        yield lengths


@pytest.mark.parametrize("late", ["in the next micro-batch", "two of them"])
def test_a_late_element_that_a_window_function_changes_stays_as_it_was(late):
    batches = [[("s", ["a", 1])], [("s", ["a", 5000])], [("s", ["a", 2])], [("s", ["a", 3])]]
    if late == "two of them":
        batches[2:] = [batches[2] + batches[3]]
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda e, _: e[1])
    stream = local_environment().from_source(ScriptedSource(["s"], batches), strategy, "s").key_by(lambda e: e[0])
    stream = stream.window(_SECOND).allowed_lateness(60_000).process(MarksInPlace())
    assert results(stream) == [[3], [3, 3], [3, 3, 3], [3]]


class CountsItsCopies(list):
    copies = 0

    def __deepcopy__(self, memo):
        CountsItsCopies.copies += 1
        return CountsItsCopies(self)


def puts_a_tuple_around(first, second):
    first[1].extend(second[1])
    return first[0] + second[0], first[1]


class PutsATupleAround(AggregateFunction):
    """Makes a new tuple around the same list of each element, as its accumulator."""

    def create_accumulator(self):
        return 0, CountsItsCopies()

    def add(self, value, accumulator):
        return puts_a_tuple_around(accumulator, value)

    def get_result(self, accumulator):
        return accumulator[0]

    def merge(self, a, b):
        return puts_a_tuple_around(a, b)


class KeepsTuples(KeyedProcessFunction):
    """Keeps the same sum in three kinds of state."""

    def open(self, runtime_context):
        kind = Types.PICKLED_BYTE_ARRAY()
        self.value = runtime_context.get_state(ValueStateDescriptor("value", kind))
        self.reduced = runtime_context.get_reducing_state(ReducingStateDescriptor("reduced", puts_a_tuple_around, kind))
        self.aggregated = runtime_context.get_aggregating_state(
            AggregatingStateDescriptor("aggregated", PutsATupleAround(), kind)
        )

    def process_element(self, value, ctx):
        added = value[0], CountsItsCopies(value[1])
        self.value.update(puts_a_tuple_around(self.value.value() or (0, CountsItsCopies()), added))
        self.reduced.add(added)
        self.aggregated.add(added)
        yield self.value.value()[0], self.reduced.get()[0], self.aggregated.get()


def by_one_key(count):
    return elements(*((1, [n]) for n in range(count))).key_by(lambda element: 0)


@pytest.mark.parametrize(
    "build",
    [lambda k: k.count_window(90).aggregate(PutsATupleAround()), lambda k: k.process(KeepsTuples())],
    ids=["window", "state"],
)
def test_a_list_in_a_new_tuple_for_each_element_is_not_copied_for_each(build):
    CountsItsCopies.copies = 0
    last = results(build(by_one_key(90)))[-1]
    assert last in (90, (90, 90, 90))
    assert CountsItsCopies.copies < 10
