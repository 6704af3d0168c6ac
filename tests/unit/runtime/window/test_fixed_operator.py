"""Windows of fixed size handle many elements at once where nothing can come out between them, and only there."""

import pytest

from eventide.datastream.functions import ReduceFunction, associative, not_associative
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
from eventide.errors import DataError, UserFunctionError
from eventide.runtime.elements.elements import Elements
from eventide.runtime.elements.keys import key_group
from eventide.runtime.metrics import LATE_DROPPED, WITHOUT_WINDOW, Metrics
from eventide.runtime.state.backend import MemoryBackend
from eventide.runtime.tasks.operator import OperatorContext
from eventide.runtime.window.contents import AllElements, Reduced
from eventide.runtime.window.fixed_operator import FixedWindowOperator
from eventide.runtime.window.functions import FiringFunction, WindowSpec
from eventide.runtime.window.grouping_operator import GroupingWindowOperator
from eventide.runtime.window.operation import open_windows
from eventide.runtime.window.operator import WindowOperator
from eventide.runtime.window.reducing import Partials

TENS = TumblingEventTimeWindows.of(10)
CONCATENATE = Reduced(ReduceFunction.of(lambda a, b: a + b))


class OwnTumbling(TumblingEventTimeWindows):
    """A subclass, which may do anything."""


class OwnTrigger(EventTimeTrigger):
    """A subclass, which may do anything."""


class Driven:
    """A window operator, and its results since it was last looked at."""

    def __init__(self, assigner=TENS, contents=CONCATENATE, lateness_ms=0, watermark=-(2**63)):
        self.metrics = Metrics()
        self.backend = MemoryBackend()
        spec = WindowSpec("w", assigner, EventTimeTrigger(), contents, FiringFunction(), lateness_ms=lateness_ms)
        self.watermark = watermark
        self.spec = spec
        self.operator = self.opened()

    def opened(self):
        return open_windows(self.spec, self.backend, OperatorContext(4, self.metrics, self.watermark, 0))

    def next_batch(self):
        """Store the state, and go on as the next micro-batch does."""
        self.operator.flush()
        self.operator = self.opened()

    def process(self, *parts):
        self.operator.process(list(parts))

    def advance(self, watermark):
        self.operator.advance(watermark)
        self.watermark = watermark
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
        (EventTimeSessionWindows.with_gap(10), EventTimeTrigger(), None, GroupingWindowOperator),
        (EventTimeSessionWindows.with_gap(10), OwnTrigger(), None, WindowOperator),
        (GlobalWindows.create(), CountTrigger.of(2), None, WindowOperator),
        (GlobalWindows.create(), PurgingTrigger.of(CountTrigger.of(2)), None, GroupingWindowOperator),
    ],
)
def test_built_in_windows_and_triggers_without_an_evictor_take_many_elements_at_once(assigner, trigger, evictor, kind):
    spec = WindowSpec("w", assigner, trigger, AllElements(), FiringFunction(), evictor)
    assert type(open_windows(spec, MemoryBackend(), OperatorContext(4, Metrics(), 0, 0))) is kind


def test_elements_of_several_channels_come_in_their_one_order():
    driven = Driven()
    driven.process(
        elements(("a", "1", 3), ("a", "3", 5), ("b", "5", 4), places=[0, 1, 4]),
        elements(("a", "2", 1), ("b", "4", 2), places=[0, 2]),
    )
    assert driven.outputs() == []
    assert sorted(driven.advance(9)) == [("123", 9), ("45", 9)]
    assert driven.operator.all_entries() == {}
    assert driven.operator.all_timers() == []


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
    assert [time for time, _, _ in driven.operator.all_timers()] == [24]
    assert driven.advance(24) == []
    assert driven.operator.all_entries() == {}


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
    assert driven.operator.all_entries() == {}
    assert driven.operator.all_timers() == []


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


LEFT_FOLD = Reduced(not_associative(lambda a, b: f"({a}{b})"))
PARTS = Reduced(associative(lambda a, b: a + b))


class Traffic(MemoryBackend):
    """Counts the bytes that are read and written."""

    bytes = 0

    def get(self, name):
        value = super().get(name)
        self.bytes += len(value or b"")
        return value

    def put(self, name, value):
        super().put(name, value)
        self.bytes += len(value)


@pytest.mark.parametrize(("contents", "result"), [(LEFT_FOLD, "(((12)3)4)"), (PARTS, "1234"), (AllElements(), "1234")])
def test_elements_of_several_batches_meet_in_the_order_of_arrival(contents, result):
    driven = Driven(contents=contents)
    for number in range(1, 5):
        driven.process(elements(("a", str(number), 9 - number), ("b", "x", 3)))
        driven.next_batch()
    fired = driven.advance(9)
    assert "".join(value for value, _ in fired if "x" not in value) == result
    assert driven.operator.all_entries() == {}
    driven.next_batch()
    assert driven.backend.values == {}


@pytest.mark.parametrize("contents", [LEFT_FOLD, PARTS, AllElements()])
def test_keys_come_by_group_and_first_arrival_however_batches_are_cut(contents):
    keys = [f"k{i * 7 % 50}" for i in range(50)]
    orders = []
    for cuts in ([50], [1] * 50, [20, 30]):
        driven = Driven(contents=contents)
        start = 0
        for cut in cuts:
            some = keys[start : start + cut]
            driven.process(elements(*((key, key, 1) for key in some)))
            driven.next_batch()
            start += cut
        orders.append([value for value, _ in driven.advance(9)])
    assert orders[0] == orders[1] == orders[2] == sorted(keys, key=lambda key: key_group(key, 4))


def test_a_batch_that_touches_few_of_many_keys_moves_few_bytes():
    driven = Driven()
    driven.backend = Traffic()
    driven.operator = driven.opened()
    driven.process(elements(*((f"k{i}", "x", 1) for i in range(20_000))))
    driven.next_batch()
    for batch in range(20):
        driven.backend.bytes = 0
        driven.process(elements(*((f"k{i * 20 + batch}", "y", 1) for i in range(10))))
        driven.next_batch()
        assert driven.backend.bytes < 20_000


def test_a_key_with_many_elements_is_folded_soon():
    driven = Driven(contents=LEFT_FOLD)
    for _ in range(3):
        driven.process(elements(*(("a", "x", 1) for _ in range(100))))
        driven.next_batch()
    (name,) = (name for name in driven.backend.values if "/" in name)
    assert name == "chunks/0/0"
    assert driven.advance(9) == [("(" * 299 + "x" + "x)" * 299, 9)]


def test_late_elements_over_several_batches_build_on_what_is_stored():
    driven = Driven(contents=LEFT_FOLD, lateness_ms=5)
    driven.process(elements(("a", "1", 8), ("b", "b", 3)))
    driven.advance(9)
    driven.next_batch()
    for number, result in (("2", "(12)"), ("3", "((12)3)")):
        driven.process(elements(("a", number, 7)))
        assert driven.outputs() == [(result, 9)]
        driven.next_batch()
    assert {(key, kept["contents"][0]) for (key, _), kept in driven.operator.all_entries().items()} == {
        ("a", "((12)3)"),
        ("b", "b"),
    }
    assert driven.advance(14) == []
    assert driven.operator.all_entries() == {}


@pytest.mark.parametrize("contents", [LEFT_FOLD, PARTS])
def test_an_element_of_a_great_many_windows_is_appended_to_few_rows(contents):
    driven = Driven(SlidingEventTimeWindows.of(1_000, 1), contents)
    driven.process(elements(("a", "1", 500)))
    driven.next_batch()
    assert sum("/" in name for name in driven.backend.values) <= 17
    driven.process(elements(("a", "2", 501)))
    driven.next_batch()
    fired = driven.advance(700)
    assert [time for _, time in fired] == list(range(500, 701))
    assert {value for value, _ in fired[1:]} == {"12" if contents is PARTS else "(12)"}
    driven.next_batch()
    fired = driven.advance(3_000)
    assert [time for _, time in fired] == list(range(701, 1_501))
    assert fired[-1] == ("2", 1_500)
    driven.next_batch()
    assert driven.backend.values == {}


def test_an_error_of_a_function_names_the_element_when_elements_meet_later():
    def refuses(a, b):
        raise ValueError("no")

    driven = Driven(contents=Reduced(associative(refuses)))
    for value in "12":
        driven.process(elements(("a", value, 1)))
        driven.next_batch()
    with pytest.raises(UserFunctionError, match="while it handled an element"):
        driven.advance(9)


@pytest.mark.parametrize("assigner", [TENS, SlidingEventTimeWindows.of(10, 5)])
def test_an_error_from_before_the_shuffle_is_raised_unless_its_pane_is_late(assigner):
    driven = Driven(assigner, Reduced(associative(lambda a, b: a + b)), watermark=25)
    failed = Partials(["k"], ["x"], [30], [(0, 2), (30, 1)], 0, [(0, "UserFunctionError", "of a late element")])
    driven.process(failed)
    assert driven.counted() == {LATE_DROPPED: 2}
    assert driven.advance(39)[-1] == ("x", 39)
    for kind in (UserFunctionError, DataError):
        with pytest.raises(kind, match="of an element"):
            driven.process(Partials([], [], [], [(40, 2)], 0, [(40, kind.__name__, "of an element")]))
