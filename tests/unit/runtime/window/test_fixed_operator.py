"""Windows of fixed size handle many elements at once where nothing can come out between them, and only there."""

import pytest

from eventide.datastream.functions import ReduceFunction
from eventide.datastream.window import (
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindows,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from eventide.runtime.elements.elements import Elements
from eventide.runtime.metrics import LATE_DROPPED, WITHOUT_WINDOW, Metrics
from eventide.runtime.state.backend import MemoryBackend
from eventide.runtime.state.keyed import KeyedState
from eventide.runtime.window.contents import AllElements, Reduced
from eventide.runtime.window.fixed_operator import FixedWindowOperator
from eventide.runtime.window.functions import PassOn
from eventide.runtime.window.operator import WindowOperator
from eventide.runtime.window.partials import Partials
from eventide.runtime.window.spec import WindowSpec

TENS = TumblingEventTimeWindows.of(10)
CONCATENATE = Reduced(ReduceFunction.of(lambda a, b: a + b))


class OwnTumbling(TumblingEventTimeWindows):
    """A subclass, which may do anything."""


class OwnTrigger(EventTimeTrigger):
    """A subclass, which may do anything."""


class Driven:
    """A window operator, and what came out of it since it was last looked at."""

    def __init__(self, assigner=TENS, contents=CONCATENATE, lateness_ms=0, watermark=-(2**63)):
        self.metrics = Metrics()
        self.keyed = KeyedState(MemoryBackend(), 4)
        spec = WindowSpec("w", assigner, EventTimeTrigger(), contents, PassOn(), lateness_ms=lateness_ms)
        self.operator = spec.operator(self.keyed, self.metrics, watermark, 0)

    def process(self, *parts):
        self.operator.process(list(parts))

    def advance(self, watermark):
        self.operator.advance(watermark)
        return self.outputs()

    def outputs(self):
        found = self.operator.take_outputs().get(None, Elements())
        return list(zip(found.values, found.timestamps, strict=True))

    def counted(self):
        return self.metrics.counters().get("w", {})


def elements(*entries, places=None):
    """Elements of (key, value, timestamp)."""
    keys, values, timestamps = (list(column) for column in zip(*entries, strict=True))
    return Elements(values, timestamps, places or list(range(len(entries))), keys)


@pytest.mark.parametrize(
    ("assigner", "trigger", "evictor", "kind"),
    [
        (TENS, EventTimeTrigger(), None, FixedWindowOperator),
        (SlidingEventTimeWindows.of(10, 20), EventTimeTrigger(), None, FixedWindowOperator),
        (TENS, CountTrigger.of(2), None, WindowOperator),
        (TENS, PurgingTrigger.of(EventTimeTrigger()), None, WindowOperator),
        (TENS, OwnTrigger(), None, WindowOperator),
        (OwnTumbling(10), EventTimeTrigger(), None, WindowOperator),
        (TENS, EventTimeTrigger(), CountEvictor.of(2), WindowOperator),
        (EventTimeSessionWindows.with_gap(10), EventTimeTrigger(), None, WindowOperator),
        (GlobalWindows.create(), CountTrigger.of(2), None, WindowOperator),
    ],
)
def test_only_windows_that_follow_from_time_alone_are_handled_at_once(assigner, trigger, evictor, kind):
    spec = WindowSpec("w", assigner, trigger, AllElements(), PassOn(), evictor)
    assert type(spec.operator(KeyedState(MemoryBackend(), 4), Metrics(), 0, 0)) is kind


def test_elements_of_several_channels_come_in_their_one_order():
    driven = Driven()
    driven.process(
        elements(("a", "1", 3), ("a", "3", 5), ("b", "5", 4), places=[0, 1, 4]),
        elements(("a", "2", 1), ("b", "4", 2), places=[0, 2]),
    )
    assert driven.outputs() == []
    assert sorted(driven.advance(9)) == [("123", 9), ("45", 9)]
    assert driven.keyed.all_entries() == {}
    assert driven.keyed.event_timers.all() == []


def test_an_element_late_for_one_window_is_kept_in_the_other_at_its_place():
    driven = Driven(SlidingEventTimeWindows.of(10, 5))
    driven.advance(4)
    driven.process(elements(("a", "1", 6), ("a", "2", 3), ("a", "3", 9), ("a", "4", -4)))
    assert driven.advance(30) == [("123", 9), ("13", 14)]
    assert driven.counted() == {LATE_DROPPED: 1}


def test_late_elements_fire_one_by_one_while_those_in_time_wait():
    driven = Driven(lateness_ms=5)
    driven.advance(9)
    driven.process(elements(("a", "1", 8), ("a", "2", 12), ("a", "3", 7), ("a", "4", 11)))
    assert driven.outputs() == [("1", 9), ("13", 9)]
    assert driven.advance(19) == [("24", 19)]
    assert [time for time, _, _ in driven.keyed.event_timers.all()] == [24]
    assert driven.advance(24) == []
    assert driven.keyed.all_entries() == {}


def test_an_element_in_a_gap_is_counted():
    driven = Driven(SlidingEventTimeWindows.of(5, 10))
    driven.process(elements(("a", "1", 3), ("a", "2", 7)))
    assert driven.advance(9) == [("1", 4)]
    assert driven.counted() == {WITHOUT_WINDOW: 1}


def test_what_was_reduced_before_is_reduced_further_in_the_order_of_the_channels():
    driven = Driven()
    driven.process(
        Partials(["a", "b", "a"], ["1", "2", "5"], [0, 0, 10], [(0, 5), (10, 1)], 0),
        Partials(["a"], ["34"], [0], [(0, 2)], 1),
    )
    assert sorted(driven.advance(9)) == [("134", 9), ("2", 9)]
    assert driven.advance(19) == [("5", 19)]
    assert driven.keyed.all_entries() == {}
    assert driven.keyed.event_timers.all() == []


def test_of_what_was_reduced_before_late_windows_are_dropped_and_their_elements_counted():
    driven = Driven(watermark=9)
    driven.process(Partials(["a", "b", "a"], ["1", "2", "3"], [0, 0, 10], [(0, 5), (10, 3)], 0))
    assert driven.counted() == {LATE_DROPPED: 5}
    assert driven.advance(19) == [("3", 19)]


def test_runs_of_panes_go_into_each_window_that_is_not_late_in_their_order():
    driven = Driven(SlidingEventTimeWindows.of(10, 5), watermark=4)
    counts = [(-5, 2), (0, 3), (5, 4)]
    driven.process(Partials(["a", "a", "a", "a"], ["1", "2", "3", "4"], [5, 0, -5, 5], counts, 0))
    assert driven.counted() == {LATE_DROPPED: 2}
    assert driven.advance(30) == [("124", 9), ("14", 14)]
