"""Sessions and windows of processing time and of counts: groups of elements give what each element by itself gives."""

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.common import Row, Time, Types, WatermarkStrategy
from eventide.datastream.functions import AggregateFunction, ProcessWindowFunction, ReduceFunction, in_python
from eventide.datastream.window import (
    CountTumblingWindowAssigner,
    EventTimeSessionWindows,
    ProcessingTimeSessionWindows,
    SlidingProcessingTimeWindows,
    TumblingProcessingTimeWindows,
)
from eventide.errors import UserFunctionError
from eventide.runtime.elements.elements import Columns, Elements
from eventide.runtime.metrics import Metrics
from eventide.runtime.state.backend import MemoryBackend
from eventide.runtime.state.keyed import KeyedState
from eventide.runtime.tasks.operator import OperatorContext
from eventide.runtime.window import grouping_operator
from eventide.runtime.window.contents import Aggregated, AllElements, Reduced
from eventide.runtime.window.functions import FiringFunction, WindowSpec
from eventide.runtime.window.grouping_operator import GroupingWindowOperator, intervals_of
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


class Texts(AggregateFunction):
    """No fold that is known, and it changes its accumulator."""

    def create_accumulator(self):
        return []

    def add(self, value, accumulator):
        accumulator.append(str(value))
        return accumulator

    def get_result(self, accumulator):
        return ", ".join(accumulator)

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


FOLDS = [
    Aggregated(Mean()),
    Reduced(ReduceFunction.of(lambda a, b: (a[0], a[1] + b[1], a[2] + b[2]))),
    Reduced(ReduceFunction.of(lambda a, b: (b[0], max(a[1], b[1]), b[2]))),
    Reduced(ReduceFunction.of(lambda a, b: a if a[2] >= b[2] else b)),
]
OTHERS = [Reduced(ReduceFunction.of(lambda a, b: b if b[1] % 2 else a)), Aggregated(Texts()), AllElements()]
WINDOWS = [
    (EventTimeSessionWindows.with_gap(Time.milliseconds(5)), 0),
    (EventTimeSessionWindows.with_gap(Time.milliseconds(3)), 6),
    (TumblingProcessingTimeWindows.of(Time.milliseconds(10)), 0),
    (SlidingProcessingTimeWindows.of(Time.milliseconds(10), Time.milliseconds(4)), 0),
    (ProcessingTimeSessionWindows.with_gap(Time.milliseconds(5)), 0),
    (EventTimeSessionWindows.with_dynamic_gap(lambda e: 2 + e[1] % 7), 3),
    (ProcessingTimeSessionWindows.with_dynamic_gap(lambda e: 2 + e[1] % 7), 0),
    (CountTumblingWindowAssigner.of(7), 0),
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
        trigger = assigner.get_default_trigger()
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
        entries = sorted((repr(of), sorted(kept.items())) for of, kept in self.operator.all_entries().items())
        self.operator.flush()
        return repr((outputs, timers, entries, self.metrics.counters().get("w", {}).get("numLateRecordsDropped")))


def columns_of(rows):
    values, times = [row[:3] for row in rows], [row[3] for row in rows]
    numbers = pa.array(range(len(rows)), pa.int64())
    return Columns(TRADE, TRADE.to_arrow(values), pa.array(times, pa.int64()), numbers)


@pytest.mark.parametrize(("assigner", "lateness_ms"), WINDOWS)
@pytest.mark.parametrize("contents", [*FOLDS, *OTHERS])
@settings(max_examples=8)
@given(batches=BATCHES, as_columns=st.booleans())
def test_groups_give_what_calls_with_each_element_give(contents, assigner, lateness_ms, batches, as_columns):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grouping_operator, "_WORTH_IT", 1)
        patch.setattr(grouping_operator, "_FEWEST_BY_GROUP", 0)
        ours, theirs = (
            Driven(kind, contents, assigner, lateness_ms) for kind in (GroupingWindowOperator, WindowOperator)
        )
        for rows, watermark, waits_ms, restarts in batches:
            keys, columns = [row[0] for row in rows], columns_of(rows)
            times, numbers = [row[3] for row in rows], list(range(len(rows)))
            mine, their = (TRADE.from_arrow(columns.values) for _ in range(2))
            expected = theirs.batch(Elements(their, times, numbers, keys), watermark, waits_ms)
            elements = Elements(keys=keys, columns=columns) if as_columns else Elements(mine, times, numbers, keys)
            assert ours.batch(elements, watermark, waits_ms) == expected
            if restarts:
                ours.open()
                theirs.open()


@pytest.mark.parametrize(("assigner", "lateness_ms"), WINDOWS)
@pytest.mark.parametrize("contents", FOLDS)
def test_they_run_on_columns(contents, assigner, lateness_ms, monkeypatch):
    def never(*arguments):
        raise AssertionError(arguments)

    monkeypatch.setattr(GroupingWindowOperator, "_process_one", never)
    monkeypatch.setattr(GroupingWindowOperator, "_add_each", never)
    driven = Driven(GroupingWindowOperator, contents, assigner, lateness_ms)
    for start in (0.1, 0.7):
        rows = [("ab"[number % 2], number, start * number, number // 10) for number in range(600)]
        driven.batch(Elements(keys=[row[0] for row in rows], columns=columns_of(rows)), None, 1)
    assert driven.metrics.counters() == {}
    assert {key for key, _ in driven.operator.all_entries()} == {"a", "b"}


def test_few_elements_of_each_key_are_handled_one_by_one(monkeypatch):
    monkeypatch.setattr(GroupingWindowOperator, "_put", None)
    driven = Driven(GroupingWindowOperator, FOLDS[1], WINDOWS[0][0], 0)
    rows = [("ab"[number % 2], number, 0.5, 10 * number) for number in range(600)]
    driven.batch(Elements(keys=[row[0] for row in rows], columns=columns_of(rows)), None, 1)
    assert len(driven.operator.all_timers()) == 600


def test_an_element_without_a_timestamp_is_an_error_with_its_sentence():
    driven = Driven(GroupingWindowOperator, FOLDS[1], WINDOWS[0][0], 0)
    rows = [("a", 1, 0.5, None if number == 7 else number) for number in range(600)]
    with pytest.raises(Exception, match="has no timestamp"):
        driven.batch(Elements(keys=["a"] * 600, columns=columns_of(rows)), None, 1)


@pytest.mark.parametrize("windows", [EventTimeSessionWindows.with_gap(Time.milliseconds(50)), 300], ids=repr)
def test_an_error_names_the_key_and_the_element(windows):
    def checked(a, b):
        if b.x == 777:
            raise ValueError("not this one")
        return b

    kind = Types.ROW_NAMED(["user", "x", "at"], [Types.STRING(), Types.LONG(), Types.LONG()])
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("at")
    rows = [Row(user="abc"[n % 3], x=n, at=n // 8) for n in range(2000)]
    keyed = local_environment().from_source(in_columns(kind, rows), strategy, "rows").key_by("user")
    windowed = keyed.count_window(windows) if isinstance(windows, int) else keyed.window(windows)
    with pytest.raises(UserFunctionError, match=r"key 'a'.*x=777") as raised:
        [*windowed.reduce(checked).execute_and_collect()]
    assert "not this one" in str(raised.value)


class Largest(ProcessWindowFunction):
    """One line for each firing, and a failure for one of them."""

    def process(self, key, context, elements):
        if any(element.x == 777 for element in elements):
            raise ValueError("not this one")
        return [(key, len(elements), max(element.x for element in elements))]


def test_functions_of_count_windows_get_all_elements_and_their_errors_name_the_last_one():
    kind = Types.ROW_NAMED(["user", "x"], [Types.STRING(), Types.LONG()])

    def results(function, *batches):
        keyed = (
            local_environment()
            .set_parallelism(1)
            .from_source(in_columns(kind, *batches), WatermarkStrategy.no_watermarks(), "rows")
            .key_by("user")
        )
        return [*keyed.count_window(100).process(function).execute_and_collect()]

    rows = [Row(user="abc"[n % 3], x=n) for n in range(700)]
    fired = [("abc"[k], 100, n) for n in range(700) for k in range(3) if n % 3 == k and (n // 3 + 1) % 100 == 0]
    assert results(Largest(), rows[:400], rows[400:]) == fired
    rows += [Row(user="abc"[n % 3], x=n) for n in range(700, 1000)]
    with pytest.raises(UserFunctionError, match=r"key 'a'.*x=897"):  # the hundredth one after 300 others
        results(Largest(), rows)


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
