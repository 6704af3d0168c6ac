"""Folds in sessions and in windows of processing time: columns give what calls with each element give, in its order."""

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.common import Row, Time, Types, WatermarkStrategy
from eventide.datastream.functions import AggregateFunction, ReduceFunction, in_python
from eventide.datastream.window import (
    EventTimeSessionWindows,
    EventTimeTrigger,
    ProcessingTimeSessionWindows,
    ProcessingTimeTrigger,
    SlidingProcessingTimeWindows,
    TumblingProcessingTimeWindows,
)
from eventide.runtime.elements.elements import Columns, Elements
from eventide.runtime.metrics import Metrics
from eventide.runtime.state.backend import MemoryBackend
from eventide.runtime.state.keyed import KeyedState
from eventide.runtime.tasks.operator import OperatorContext
from eventide.runtime.window import folding_operator
from eventide.runtime.window.contents import Aggregated, Reduced
from eventide.runtime.window.folding_operator import FoldingWindowOperator, intervals_of
from eventide.runtime.window.functions import FiringFunction, WindowSpec
from eventide.runtime.window.operator import WindowOperator
from eventide.testing import local_environment
from support.columns import in_columns

TRADE = Types.TUPLE([Types.STRING(), Types.LONG(), Types.DOUBLE()])


class Mean(AggregateFunction):
    def create_accumulator(self):
        return 0.0, 0

    def add(self, value, accumulator):
        return accumulator[0] + value[2], accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


FUNCTIONS = [
    Aggregated(Mean()),
    Reduced(ReduceFunction.of(lambda a, b: (a[0], a[1] + b[1], a[2] + b[2]))),
    Reduced(ReduceFunction.of(lambda a, b: (b[0], max(a[1], b[1]), b[2]))),
    Reduced(ReduceFunction.of(lambda a, b: a if a[2] >= b[2] else b)),
    Reduced(ReduceFunction.of(lambda a, b: b if b[1] % 2 else a)),  # no fold that is known
]
WINDOWS = [
    (EventTimeSessionWindows.with_gap(Time.milliseconds(5)), 0),
    (EventTimeSessionWindows.with_gap(Time.milliseconds(3)), 6),
    (TumblingProcessingTimeWindows.of(Time.milliseconds(10)), 0),
    (SlidingProcessingTimeWindows.of(Time.milliseconds(10), Time.milliseconds(4)), 0),
    (ProcessingTimeSessionWindows.with_gap(Time.milliseconds(5)), 0),
    (EventTimeSessionWindows.with_dynamic_gap(lambda e: 2 + e[1] % 7), 3),
    (ProcessingTimeSessionWindows.with_dynamic_gap(lambda e: 2 + e[1] % 7), 0),
]
FLOATS = st.floats(-1e3, 1e3) | st.sampled_from([0.1, -0.0, 0.0, math.nan, math.inf, 1e308])
WHOLE = st.integers(-5, 5) | st.sampled_from([2**62, -(2**62)])
ELEMENTS = st.lists(st.tuples(st.sampled_from("abcß"), WHOLE, FLOATS, st.integers(0, 40)), max_size=30)
BATCHES = st.lists(
    st.tuples(ELEMENTS, st.none() | st.integers(0, 45), st.integers(0, 8), st.booleans()), min_size=1, max_size=6
)


class Driven:
    """A window operator, which is opened anew for each micro-batch that begins with a restart."""

    def __init__(self, kind, contents, assigner, lateness_ms):
        trigger = EventTimeTrigger() if assigner.is_event_time() else ProcessingTimeTrigger()
        self.kind, self.clock = kind, 0
        self.spec = WindowSpec(
            "w", assigner, trigger, contents, FiringFunction(), lateness_ms=lateness_ms, late_tag="late"
        )
        self.backend, self.metrics, self.watermark = MemoryBackend(), Metrics(), -(2**63)
        self.open()

    def open(self):
        context = OperatorContext(4, self.metrics, self.watermark, self.clock)
        self.operator = self.kind(self.spec, KeyedState(self.backend, 4), context)

    def batch(self, elements, watermark, waits_ms):
        """The outputs of a micro-batch, the state after it, and the timers in the order in which they fire."""
        self.clock += waits_ms
        self.operator._moment.processing_time = self.clock
        self.operator.advance_clock(self.clock)
        self.operator.process([elements])
        if watermark is not None and watermark > self.watermark:
            self.watermark = watermark
            self.operator.advance(watermark)
        outputs = {tag: (found.values, found.timestamps) for tag, found in self.operator.take_outputs().items()}
        timers = self.operator.all_timers(), self.operator.all_processing_timers()
        entries = sorted(map(repr, self.operator.all_entries().items()))
        self.operator.flush()
        return repr((outputs, timers, entries, self.metrics.counters().get("w", {}).get("numLateRecordsDropped")))


def columns_of(rows):
    values, times = [row[:3] for row in rows], [row[3] for row in rows]
    numbers = pa.array(range(len(rows)), pa.int64())
    return Columns(TRADE, TRADE.to_arrow(values), pa.array(times, pa.int64()), numbers)


@pytest.mark.parametrize(("assigner", "lateness_ms"), WINDOWS)
@pytest.mark.parametrize("contents", FUNCTIONS)
@settings(max_examples=25)
@given(batches=BATCHES)
def test_columns_give_what_calls_with_each_element_give(contents, assigner, lateness_ms, batches):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folding_operator, "_WORTH_COLUMNS", 1)
        patch.setattr(folding_operator, "_FEWEST_BY_GROUP", 0)
        ours, theirs = (
            Driven(kind, contents, assigner, lateness_ms) for kind in (FoldingWindowOperator, WindowOperator)
        )
        for rows, watermark, waits_ms, restarts in batches:
            keys, columns = [row[0] for row in rows], columns_of(rows)
            lists = TRADE.from_arrow(columns.values), [row[3] for row in rows], list(range(len(rows))), list(keys)
            expected = theirs.batch(Elements(*lists), watermark, waits_ms)
            assert ours.batch(Elements(keys=keys, columns=columns), watermark, waits_ms) == expected
            if restarts:
                ours.open()
                theirs.open()


@pytest.mark.parametrize(("assigner", "lateness_ms"), WINDOWS)
@pytest.mark.parametrize("contents", FUNCTIONS[:-1])
def test_they_run_on_columns(contents, assigner, lateness_ms, monkeypatch):
    def never(*arguments):
        raise AssertionError(arguments)

    monkeypatch.setattr(FoldingWindowOperator, "_process_one", never)
    driven = Driven(FoldingWindowOperator, contents, assigner, lateness_ms)
    for start in (0.1, 0.7):
        rows = [("ab"[number % 2], number, start * number, number // 10) for number in range(600)]
        driven.batch(Elements(keys=[row[0] for row in rows], columns=columns_of(rows)), None, 1)
    assert driven.metrics.counters() == {}
    assert {key for key, _ in driven.operator.all_entries()} == {"a", "b"}


def test_few_elements_of_each_key_are_handled_one_by_one(monkeypatch):
    monkeypatch.setattr(folding_operator, "added_by_key", None)
    driven = Driven(FoldingWindowOperator, FUNCTIONS[1], WINDOWS[0][0], 0)
    rows = [("ab"[number % 2], number, 0.5, 10 * number) for number in range(600)]
    driven.batch(Elements(keys=[row[0] for row in rows], columns=columns_of(rows)), None, 1)
    assert len(driven.operator.all_timers()) == 600


def test_an_element_without_a_timestamp_is_an_error_with_its_sentence():
    driven = Driven(FoldingWindowOperator, FUNCTIONS[1], WINDOWS[0][0], 0)
    rows = [("a", 1, 0.5, None if number == 7 else number) for number in range(600)]
    with pytest.raises(Exception, match="has no timestamp"):
        driven.batch(Elements(keys=["a"] * 600, columns=columns_of(rows)), None, 1)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30)), min_size=1, max_size=20), st.integers(1, 6))
def test_intervals_are_those_of_elements_that_come_one_after_the_other(rows, gap_ms):
    codes = {}
    keys = np.array([codes.setdefault(key, len(codes)) for key, _ in rows])
    times = np.array([time for _, time in rows])
    found = intervals_of(keys, times, times + gap_ms)
    open_sessions, bridged = [], set()
    for at, (key, time) in enumerate(zip(keys.tolist(), (time for _, time in rows), strict=True)):
        touched = [one for one in open_sessions if one[0] == key and one[1] - gap_ms <= time <= one[2] + gap_ms]
        members = [at, *(member for one in touched for member in one[3])]
        open_sessions = [one for one in open_sessions if one not in touched]
        low = min([(time, at), *(one[4] for one in touched)])
        high = max([(time, -at), *((one[5][0], -one[5][1]) for one in touched)])
        open_sessions.append((key, low[0], high[0], members, low, (high[0], -high[1])))
        if len(touched) > 1:
            bridged.update(members)
    theirs = sorted((min(one[3]), one[0], one[1], one[2] + gap_ms, one[4][1], one[5][1]) for one in open_sessions)
    columns = (found.firsts, found.keys, found.starts, found.ends, found.lowest_at, found.highest_at)
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == theirs
    assert found.is_bridged.tolist() == [one[0] in bridged for one in theirs]
    assert found.number.tolist() == [
        next(at for at, one in enumerate(theirs) if one[1] == key and one[2] <= time < one[3])
        for key, (_, time) in zip(keys.tolist(), rows, strict=True)
    ]


@pytest.mark.parametrize("function", [Mean(), lambda a, b: (b[0], a[1] + b[1], a[2] + b[2])])
def test_explain_says_so_and_whole_programs_agree(function, capsys):
    kind = Types.ROW_NAMED(["user", "x", "at"], [Types.STRING(), Types.DOUBLE(), Types.LONG()])
    rows = [Row(user="abc"[n % 3], x=0.1 * n if n % 7 else -0.0, at=n // 8 + n // 900 * 300) for n in range(4000)]

    def results(wrapped):
        in_time = WatermarkStrategy.for_bounded_out_of_orderness(Time.milliseconds(40)).with_timestamp_assigner("at")
        env = local_environment().set_parallelism(2)
        source = in_columns(kind, rows[:1500], rows[1500:], splits=2)
        trades = env.from_source(source, in_time, "rows").map(lambda e: (e.user, e.at, e.x), TRADE)
        windows = trades.key_by(lambda e: e[0]).window(EventTimeSessionWindows.with_gap(Time.milliseconds(100)))
        stream = windows.aggregate(wrapped) if isinstance(function, Mean) else windows.reduce(wrapped)
        stream.explain()
        return sorted(map(repr, stream.execute_and_collect()))

    on_columns = results(function)
    assert "many elements that come as columns are added from left to right" in capsys.readouterr().out
    assert on_columns == results(in_python(function))
    assert "many elements" not in capsys.readouterr().out
