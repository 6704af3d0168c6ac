"""The life of a window where it is easily missed: late and ended at once, merged into itself, without an end."""

import pytest

from eventide.common import Row, Types, WatermarkStrategy
from eventide.datastream.functions import AggregateFunction, ProcessWindowFunction
from eventide.datastream.state import ValueStateDescriptor
from eventide.datastream.window import (
    CountEvictor,
    CountTrigger,
    EventTimeTrigger,
    GlobalWindow,
    MergingWindowAssigner,
    TimeWindow,
    TumblingEventTimeWindows,
    WindowAssigner,
)
from eventide.testing import ScriptedSource, local_environment

EVENT = Types.ROW_NAMED(["k", "t"], [Types.STRING(), Types.LONG()])
BY_T = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("t")
BY_SECOND = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda e, _: e[1])
COUNT = ValueStateDescriptor("count", Types.LONG())


class OneByOne(EventTimeTrigger):
    """A trigger of the user's: windows run in the operator for any window."""


def scripted(*batches, strategy=BY_SECOND, kind=None):
    """A stream of one split, with a list of elements for each micro-batch."""
    source = ScriptedSource(["s"], [[("s", element) for element in batch] for batch in batches], kind)
    return local_environment().from_source(source, strategy, "script", kind)


class Clears(ProcessWindowFunction):
    """Emits the times of elements and remembers in `cleared` the windows that were cleared."""

    def __init__(self):
        self.cleared = []

    def process(self, key, context, elements):
        context.window_state().get_state(COUNT).update(1)
        yield [element[1] for element in elements]

    def clear(self, context):
        context.window_state().get_state(COUNT).clear()
        self.cleared.append(context.window())


@pytest.fixture
def cleared(monkeypatch):
    """The windows that functions have cleared: copies of a function share them."""
    windows = []
    monkeypatch.setattr(Clears, "__init__", lambda self: None)
    monkeypatch.setattr(Clears, "cleared", windows, raising=False)
    return windows


@pytest.mark.parametrize("trigger", [EventTimeTrigger(), OneByOne()])
def test_a_window_is_cleared_whose_late_element_comes_with_the_end_of_its_lateness(trigger, cleared):
    batches = [[Row(k="b", t=time) for time in times] for times in ([31], [23, 53])]
    keyed = scripted(*batches, strategy=BY_T, kind=EVENT).key_by("k").window(TumblingEventTimeWindows.of(10))
    windows = keyed.trigger(trigger).allowed_lateness(3).process(Clears())
    assert list(windows.execute_and_collect()) == [[23], [31], [53]]
    assert cleared == [TimeWindow(20, 30), TimeWindow(30, 40), TimeWindow(50, 60)]


class Text(AggregateFunction):
    """Writes down what was added to what; elements that are 2 give no accumulator."""

    def create_accumulator(self):
        return "new"

    def add(self, value, accumulator):
        return None if value[0] == 2 else f"{accumulator}+{value[0]}"

    def get_result(self, accumulator):
        return f"result {accumulator}"

    def merge(self, left, right):
        raise NotImplementedError


@pytest.mark.parametrize(("values", "result"), [([1, 2, 3], "result None+3"), ([1, 2], "result None")])
def test_after_an_evictor_an_aggregate_function_goes_on_from_an_accumulator_that_is_none(values, result):
    keyed = scripted([(value, 1) for value in values]).key_by(lambda _: "k").window(TumblingEventTimeWindows.of(10))
    assert list(keyed.evictor(CountEvictor.of(5)).aggregate(Text()).execute_and_collect()) == [result]


class Marks(AggregateFunction):
    """Lists times; asking for the result changes the accumulator."""

    def create_accumulator(self):
        return []

    def add(self, value, accumulator):
        return [*accumulator, value[1]]

    def get_result(self, accumulator):
        accumulator.append("|")
        return accumulator

    def merge(self, left, right):
        return left + right


@pytest.mark.parametrize("trigger", [EventTimeTrigger(), OneByOne()])
@pytest.mark.parametrize("late", [[[3], [4]], [[3, 4]]])
def test_a_result_that_changes_the_accumulator_changes_no_later_result(trigger, late):
    batches = [[("k", time) for time in times] for times in ([1, 25], *late)]
    keyed = scripted(*batches).key_by(lambda _: "k").window(TumblingEventTimeWindows.of(10)).trigger(trigger)
    found = list(keyed.allowed_lateness(50).aggregate(Marks()).execute_and_collect())
    assert found == [[1, "|"], [1, 3, "|"], [1, 3, 4, "|"], [25, "|"]]


class IntoTheFirst(MergingWindowAssigner):
    """Merges windows that meet into the first of them, as it is."""

    def assign_windows(self, element, timestamp, context):
        return [TimeWindow(timestamp, timestamp + 10)]

    def get_default_trigger(self, env=None):
        return EventTimeTrigger()

    def is_event_time(self):
        return True

    def merge_windows(self, windows, callback):
        if TimeWindow(10, 20) in windows and len(windows) > 1:
            callback.merge(list(windows), TimeWindow(0, 10))


class Times(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield [element[0] for element in elements]


@pytest.mark.parametrize(("trigger", "fired"), [(CountTrigger.of(3), []), (EventTimeTrigger(), [[0, 20, 10]])])
def test_a_window_into_which_others_are_merged_loses_the_state_of_its_trigger(trigger, fired):
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda e, _: e[0])
    keyed = scripted([(0,), (20,), (10,)], strategy=times).key_by(lambda _: "k").window(IntoTheFirst())
    assert list(keyed.trigger(trigger).process(Times()).execute_and_collect()) == fired


class ToTheEnd(WindowAssigner):
    def assign_windows(self, element, timestamp, context):
        return [GlobalWindow.get()]

    def get_default_trigger(self, env=None):
        return EventTimeTrigger()

    def is_event_time(self):
        return True


def test_a_window_that_ends_with_time_itself_is_cleared(cleared):
    windows = scripted([("a", 1)]).key_by(lambda e: e[0]).window(ToTheEnd()).process(Clears())
    assert list(windows.execute_and_collect()) == [[1]]
    assert cleared == [GlobalWindow.get()]
