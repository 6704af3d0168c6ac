"""Sessions of objects: what they keep of a key, and what they cost where a watermark comes after each element."""

import sys

from eventide.common import Types, WatermarkStrategy
from eventide.common.windows import TimeWindow
from eventide.datastream.window import EventTimeSessionWindows, MergingWindowAssigner, Window
from eventide.runtime.state.backend import MemoryBackend
from eventide.runtime.state.keyed import KeyedState
from eventide.runtime.window.operator import MergingWindows, Sessions, windows_of
from eventide.testing import OperatorHarness, local_environment

BY_TIME = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda e, _: e[1])


def windowed(assigner):
    rows = local_environment().from_collection([], Types.TUPLE([Types.STRING(), Types.LONG()]))
    return rows.assign_timestamps_and_watermarks(BY_TIME).key_by(lambda e: e[0]).window(assigner)


class Merged:
    """Windows of one key, and what was told when they merged."""

    def __init__(self):
        self.keyed = KeyedState(MemoryBackend(), 1)
        self.windows = Sessions(self.keyed)
        self.told = []

    def add(self, start, end):
        found = self.windows.add("k", TimeWindow(start, end), lambda *what: self.told.append(what))
        return found.start, found.end


def test_windows_that_touch_become_one_and_others_do_not():
    merged = Merged()
    assert [merged.add(*window) for window in [(20, 30), (0, 10), (41, 50)]] == [(20, 30), (0, 10), (41, 50)]
    assert merged.told == []
    assert merged.add(31, 40) == (31, 40)
    assert merged.add(22, 25) == (20, 30)
    assert merged.told == []
    assert merged.add(10, 31) == (0, 40)
    result, before = TimeWindow(0, 40), [TimeWindow(0, 10), TimeWindow(20, 30), TimeWindow(31, 40)]
    assert merged.told == [(result, before, result, before)]
    assert merged.keyed.all_entries() == {("k", None): {"windows": ([0, 41], [40, 50])}}


def test_a_window_is_there_until_it_is_retired():
    merged = Merged()
    merged.add(0, 10)
    merged.add(20, 30)
    for gone in (TimeWindow(0, 9), TimeWindow(5, 10), TimeWindow(30, 40)):
        assert merged.windows.state_window("k", gone) is None
        merged.windows.retire("k", gone)
    assert merged.windows.state_window("k", TimeWindow(20, 30)) == TimeWindow(20, 30)
    merged.windows.retire("k", TimeWindow(0, 10))
    merged.windows.retire("k", TimeWindow(20, 30))
    assert merged.keyed.all_entries() == {}


class Numbers(Window):
    """A window that is no stretch of time."""

    def __init__(self, numbers):
        self.numbers = numbers

    def max_timestamp(self):
        return 100

    def __eq__(self, other):
        return isinstance(other, Numbers) and self.numbers == other.numbers

    def __hash__(self):
        return hash(self.numbers)


class EvenTogether(MergingWindowAssigner):
    """All even numbers are in one window, each odd number in one of its own."""

    def assign_windows(self, element, timestamp, context):
        return [Numbers(frozenset({element[1]}))]

    def get_default_trigger(self, env=None):
        return EventTimeSessionWindows.with_gap(1).get_default_trigger()

    def get_window_serializer(self):
        return None

    def is_event_time(self):
        return True

    def merge_windows(self, windows, callback):
        even = [window for window in windows if all(number % 2 == 0 for number in window.numbers)]
        if len(even) > 1:
            callback.merge(even, Numbers(frozenset().union(*(window.numbers for window in even))))


def test_an_assigner_of_the_user_merges_windows_of_its_own_kind():
    keyed = KeyedState(MemoryBackend(), 1)
    assert isinstance(windows_of(EvenTogether(), keyed), MergingWindows)
    assert isinstance(windows_of(EventTimeSessionWindows.with_gap(1), keyed), Sessions)
    with OperatorHarness(windowed(EvenTogether()).reduce(lambda a, b: (a[0], a[1] + b[1]))) as harness:
        for number in (2, 3, 4, 5, 8, 3):
            harness.process(("k", number), timestamp=number)
        harness.advance_watermark(100)
        assert sorted(harness.outputs()) == [("k", 5), ("k", 6), ("k", 14)]


def steps_of(count):
    """How many steps of Python's it takes to handle elements with a watermark after each."""
    steps = 0

    def trace(frame, event, _):
        nonlocal steps
        frame.f_trace_opcodes = True
        steps += event == "opcode"
        return trace

    with OperatorHarness(windowed(EventTimeSessionWindows.with_gap(10)).reduce(lambda a, b: b)) as harness:
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            for i in range(count):
                harness.process((str(i), i), timestamp=i + 10_000)
                harness.advance_watermark(i)
        finally:
            sys.settrace(before)
        harness.advance_watermark(100_000)
        assert len(harness.outputs()) == count
    return steps


def test_a_watermark_after_each_element_costs_the_same_however_many_sessions_are_open():
    assert steps_of(800) / steps_of(200) < 4.5
