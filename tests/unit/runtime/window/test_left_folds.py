"""Sums of reduce and aggregate functions on columns, after the shuffle, equal those of one call after the other."""

import math
import struct
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.common import Row, Time, Types, WatermarkStrategy
from eventide.datastream import OutputTag
from eventide.datastream.functions import AggregateFunction, ReduceFunction, in_python
from eventide.datastream.window import EventTimeTrigger, SlidingEventTimeWindows, TumblingEventTimeWindows
from eventide.runtime.columnar.panes import RegularPanes
from eventide.runtime.elements.elements import Columns, Elements
from eventide.runtime.metrics import BATCHES_IN_PYTHON, Metrics
from eventide.runtime.state.backend import MemoryBackend
from eventide.runtime.tasks.operator import OperatorContext
from eventide.runtime.tracing.admission import NotTraceable
from eventide.runtime.tracing.folds import How, aggregate_fold_of, fold_of
from eventide.runtime.window import fixed_operator
from eventide.runtime.window.contents import Aggregated, Reduced
from eventide.runtime.window.fixed_operator import FixedWindowOperator
from eventide.runtime.window.functions import FiringFunction, WindowSpec
from eventide.runtime.window.reducing_columns import added_by_key, reduced_columns
from eventide.testing import local_environment
from support.columns import in_columns

TRADE = Types.TUPLE([Types.STRING(), Types.LONG(), Types.DOUBLE(), Types.FLOAT()])


class _Aggregate(AggregateFunction):
    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        raise NotImplementedError


class Mean(_Aggregate):
    def create_accumulator(self):
        return 0.0, 0

    def add(self, value, accumulator):
        return accumulator[0] + value[2], accumulator[1] + 1


class Several(_Aggregate):
    def create_accumulator(self):
        return {"spent": 0.0, "whole": 0, "highest": -1, "named": "", "same": "x"}

    def add(self, value, accumulator):
        return {
            **accumulator,
            "spent": value[2] * value[1] + accumulator["spent"] if value[1] > 2 else accumulator["spent"],
            "whole": accumulator["whole"] + value[1],
            "highest": max(accumulator["highest"], value[1]),
            "named": max(accumulator["named"], value[0]),
        }


class Extremes(_Aggregate):
    def create_accumulator(self):
        return -math.inf, math.inf, 0.0

    def add(self, value, accumulator):
        highest, lowest, dearest = accumulator
        return (
            max(highest, value[2]),
            value[2] if value[2] < lowest else lowest,
            value[2] * 2 if value[2] * 2 >= dearest else dearest,
        )


class Mixed(_Aggregate):
    def create_accumulator(self):
        return 0.0

    def add(self, value, accumulator):
        return accumulator + (value[1] if value[1] % 2 else value[3])


FUNCTIONS = [
    Aggregated(Mean()),
    Aggregated(Several()),
    Aggregated(Mixed()),
    Aggregated(Extremes()),
    Reduced(ReduceFunction.of(lambda a, b: (a[0], a[1] + b[1], a[2] + b[2], b[3]))),
    Reduced(ReduceFunction.of(lambda a, b: (b[0], max(a[1], b[1]), b[2] + a[2], a[3]))),
    Reduced(ReduceFunction.of(lambda a, b: a if a[2] >= b[2] else b)),
    Reduced(ReduceFunction.of(lambda a, b: (a[0], b[1], min(a[2], b[2]), b[3] if b[3] > a[3] else a[3]))),
]
FLOATS = st.floats(-1e3, 1e3) | st.sampled_from([0.1, -0.0, 0.0, math.nan, math.inf, -math.inf, 1e308, 5e-324, 2.0**53])
WHOLE = st.integers(-5, 5) | st.sampled_from([2**53 + 1, 2**62, -(2**62)])
BATCHES = st.lists(
    st.tuples(
        st.lists(
            st.tuples(
                st.tuples(st.sampled_from("abß"), WHOLE, FLOATS, st.sampled_from([0.5, -0.0, math.nan, None])),
                st.integers(0, 30),
            ),
            max_size=20,
        ),
        st.none() | st.integers(0, 35),
        st.booleans(),
    ),
    min_size=1,
    max_size=5,
)


def in_bits(value):
    """A value in which nothing is equal that is another number of bits."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else struct.pack("d", value)
    if isinstance(value, dict):
        return [(name, in_bits(part)) for name, part in value.items()]
    return tuple(map(in_bits, value)) if isinstance(value, tuple) else (type(value), value)


class Driven:
    """A window operator, which is opened anew for each micro-batch that begins with a restart."""

    def __init__(self, contents, assigner, lateness_ms):
        self.spec = WindowSpec("w", assigner, EventTimeTrigger(), contents, FiringFunction(), lateness_ms=lateness_ms)
        self.backend, self.metrics, self.watermark = MemoryBackend(), Metrics(), -(2**63)
        self.open()

    def open(self):
        context = OperatorContext(4, self.metrics, self.watermark, 0)
        self.operator = FixedWindowOperator(
            self.spec, self.backend, fixed_operator.KeyedState(self.backend, 4), context
        )

    def batch(self, elements, watermark, *, restarts):
        try:
            self.operator.process([elements])
            if watermark is not None and watermark > self.watermark:
                self.watermark = watermark
                self.operator.advance(watermark)
            found = self.operator.take_outputs().get(None, Elements())
            self.operator.flush()
        except Exception as error:
            return type(error), str(error).split(". Its traceback")[0]
        if restarts:
            self.open()
        return [(in_bits(value), time) for value, time in zip(found.values, found.timestamps, strict=True)]


@pytest.mark.parametrize(
    ("assigner", "lateness_ms"),
    [
        (TumblingEventTimeWindows.of(10), 0),
        (TumblingEventTimeWindows.of(10), 8),
        (SlidingEventTimeWindows.of(10, 5), 0),
        (SlidingEventTimeWindows.of(5, 8), 3),
        (SlidingEventTimeWindows.of(40, 1), 0),
    ],
)
@settings(max_examples=8)
@pytest.mark.parametrize("contents", FUNCTIONS)
@given(batches=BATCHES)
def test_columns_give_what_calls_with_each_element_give(contents, assigner, lateness_ms, batches):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fixed_operator, "_WORTH_COLUMNS", 0)
        on_columns, one_by_one = (Driven(contents, assigner, lateness_ms) for _ in range(2))
        for rows, watermark, restarts in batches:
            values, times, keys = [v for v, _ in rows], [t for _, t in rows], [v[0] for v, _ in rows]
            numbers = list(range(len(rows)))
            columns = Columns(TRADE, TRADE.to_arrow(values), pa.array(times, pa.int64()), pa.array(numbers, pa.int64()))
            given_values = TRADE.from_arrow(columns.values)
            theirs = one_by_one.batch(
                Elements(given_values, list(times), numbers, list(keys)), watermark, restarts=restarts
            )
            ours = on_columns.batch(Elements(keys=list(keys), columns=columns), watermark, restarts=restarts)
            assert ours == theirs
            if isinstance(ours, tuple):
                return
        assert sorted(on_columns.operator.all_entries(), key=repr) == sorted(
            one_by_one.operator.all_entries(), key=repr
        )


@pytest.mark.parametrize("contents", FUNCTIONS)
def test_they_run_on_columns(contents, monkeypatch):
    def nothing(self, kept, keys, values, timestamps):
        assert not keys

    monkeypatch.setattr(type(contents), "add_each", nothing)
    driven = Driven(contents, TumblingEventTimeWindows.of(10), 0)
    for start in (0.1, 0.7):
        rows = [("ab"[number % 2], number, start * number, 0.5) for number in range(600)]
        columns = Columns(TRADE, TRADE.to_arrow(rows), pa.array([5] * 600), pa.array(range(600)))
        elements = Elements(keys=[row[0] for row in rows], columns=columns)
        assert driven.batch(elements, None, restarts=True) == []
    assert len(driven.batch(Elements(), 9, restarts=False)) == 2


def test_a_state_that_columns_do_not_hold_is_left_to_the_function():
    driven = Driven(Aggregated(Mean()), TumblingEventTimeWindows.of(10), 0)
    driven.operator.process([Elements([("a", 1, 1, None)], [3], [0], ["a"])])  # an int, where floats are declared
    driven.operator._store._added[0][0]["a"] = [(1, 1)]
    rows = [("a", 1, 0.5, None)] * 600
    columns = Columns(TRADE, TRADE.to_arrow(rows), pa.array([5] * 600), pa.array(range(600)))
    driven.operator.process([Elements(keys=["a"] * 600, columns=columns)])
    assert driven.operator._store._added[0][0]["a"] == [(301.0, 601)]
    assert driven.metrics.counters()["w"][BATCHES_IN_PYTHON] == 1


class FromOne(Mean):
    def create_accumulator(self):
        return 1.0, 0


class FromNegativeZero(Mean):
    def create_accumulator(self):
        return -0.0, 0


class FromWhole(Mean):
    def create_accumulator(self):
        return 0, 0


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (FromOne(), "a sum that starts with 1.0, not with 0.0"),
        (FromNegativeZero(), "a sum that starts with -0.0, not with 0.0"),
        (FromWhole(), "it starts with"),
    ],
)
def test_sums_that_do_not_begin_with_zero_of_their_type_are_none(function, why):
    with pytest.raises(NotTraceable, match=why):
        aggregate_fold_of(function, TRADE, in_order=True)


def test_a_sum_of_floats_is_one_in_order_alone():
    assert aggregate_fold_of(Mean(), TRADE, in_order=True).fold.fields == (How.SUM_IN_ORDER, How.SUM)
    with pytest.raises(NotTraceable, match="a sum of floating-point numbers depends on their order"):
        aggregate_fold_of(Mean(), TRADE)


@pytest.mark.parametrize("late", [False, True])
def test_explain_says_so_and_whole_programs_agree(late, capsys):
    kind = Types.ROW_NAMED(["user", "x", "at"], [Types.STRING(), Types.DOUBLE(), Types.LONG()])
    rows = [Row(user="abc"[n % 3], x=0.1 * n if n % 7 else -0.0, at=n // 8) for n in range(4000)]

    class Total(_Aggregate):
        def create_accumulator(self):
            return 0.0

        def add(self, value, accumulator):
            return accumulator + value.x

    def results(function):
        in_time = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("at")
        env = local_environment().set_parallelism(2)
        source = in_columns(kind, rows[:1500], rows[1500:], splits=2)
        keyed = env.from_source(source, in_time, "rows").key_by(lambda e: e.user)
        windows = keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(100)))
        windows = windows.side_output_late_data(OutputTag("late", kind)) if late else windows
        stream = windows.aggregate(function)
        if not isinstance(function, in_python_type):
            stream.explain()
        return sorted(map(repr, stream.execute_and_collect()))

    in_python_type = type("Never", (), {})
    on_columns = results(Total())
    assert "many elements that come as columns are added from left to right" in capsys.readouterr().out
    assert on_columns == results(in_python(Total()))


def test_many_keys_in_several_panes_have_values_of_their_own():
    """More keys than Arrow groups in the order in which it sees them."""
    kind, random = Types.TUPLE([Types.STRING(), Types.DOUBLE()]), Random(1)
    values = [(f"u{random.randrange(2_000)}", random.random()) for _ in range(10_000)]
    times = [random.randrange(50) for _ in values]
    columns = Columns(kind, kind.to_arrow(values), pa.array(times), pa.array(range(len(values))))
    for function in (lambda a, b: (a[0], a[1] + b[1]), lambda a, b: a if a[1] >= b[1] else b):
        expected = {}
        for value, time in zip(values, times, strict=True):
            group = value[0], time // 10 * 10
            expected[group] = function(expected[group], value) if group in expected else value
        found = reduced_columns(fold_of(function, kind), RegularPanes(10, 10), lambda e: e[0], columns)
        groups = zip(found.keys, found.panes.tolist(), strict=True)
        assert list(zip(groups, found.values, strict=True)) == list(expected.items())


def test_what_began_anew_still_says_so_after_columns_were_added():
    fold, kept = fold_of(lambda a, b: a + b, Types.LONG()), {"a": [None, True], "b": [5, True], "c": [1]}
    added = added_by_key(fold, ["a", "b", "a", "c"], pa.array([1, 2, 3, 4]), kept)
    assert added == {"a": [4, True], "b": [7, True], "c": [5]}
