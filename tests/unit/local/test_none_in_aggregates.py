"""None that an aggregate function is given: as in Flink, it drops the accumulator, and the function is not called."""

import pytest

from eventide.common import Time, Types, WatermarkStrategy
from eventide.datastream import AggregateFunction, KeyedProcessFunction
from eventide.datastream.state import AggregatingStateDescriptor
from eventide.datastream.window import EventTimeSessionWindows, SlidingEventTimeWindows, TumblingEventTimeWindows
from eventide.testing import ScriptedSource, local_environment

AT_ONE = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda element, _: 1)
TUMBLING = TumblingEventTimeWindows.of(Time.milliseconds(10))
SESSIONS = EventTimeSessionWindows.with_gap(Time.milliseconds(10))
SLIDING = SlidingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(5))


class Count(AggregateFunction):
    """A fold: elements are counted on columns, before the shuffle."""

    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + 1

    def get_result(self, accumulator):
        return accumulator

    def merge(self, a, b):
        return a + b


class Both(AggregateFunction):
    """No fold that is known: elements are added one by one, in their order."""

    def create_accumulator(self):
        return []

    def add(self, value, accumulator):
        return [*accumulator, value]

    def get_result(self, accumulator):
        return len(accumulator)

    def merge(self, a, b):
        return a + b


@pytest.mark.parametrize("function", [Count, Both])
@pytest.mark.parametrize("kind", [Types.LONG(), Types.PICKLED_BYTE_ARRAY()], ids=str)
@pytest.mark.parametrize("windows", [TUMBLING, SLIDING, SESSIONS], ids=["tumbling", "sliding", "sessions"])
@pytest.mark.parametrize(
    ("batches", "gives"),
    [
        ([[1, 2, None, 3]], [1]),
        ([[1, 2], [None, 3]], [1]),
        ([[1], [None]], []),
        ([[None], [1], [2, None, 5, 6]], [2]),
        ([[1, None], [2], [3]], [2]),
        ([[1, 2], [3]], [3]),
    ],
)
def test_windows_begin_anew_after_none(function, kind, windows, batches, gives):
    env = local_environment().set_parallelism(2)
    source = ScriptedSource(["s"], [[("s", value) for value in batch] for batch in batches], kind)
    keyed = env.from_source(source, AT_ONE, "script").key_by(lambda value: "k", Types.STRING())
    results = keyed.window(windows).aggregate(function(), output_type=Types.LONG())
    assert list(results.execute_and_collect()) == gives * (2 if windows is SLIDING else 1)


class Counts(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_aggregating_state(AggregatingStateDescriptor("n", Count(), Types.LONG()))

    def process_element(self, value, ctx):
        self.count.add(value)
        yield value, self.count.get()


def test_state_is_cleared_by_none():
    stream = local_environment().from_collection([1, 2, None, 3])
    results = stream.key_by(lambda value: "k", Types.STRING()).process(Counts()).execute_and_collect()
    assert list(results) == [(1, 1), (2, 2), (None, None), (3, 1)]


@pytest.mark.parametrize("in_python", [False, True], ids=["columns", "python"])
@pytest.mark.parametrize(
    ("reduce", "values", "gives"),
    [
        (lambda a, b: None if b < 0 else b, [1, -1, -2, 3], [1, None, -2, 3]),
        (lambda a, b: b if b > 0 else None, [1, -1, -2, 3, -4, -5], [1, None, -2, 3, None, -5]),
        (lambda a, b: a and b, [None, 0], [None, 0]),
    ],
)
def test_a_rolling_reduce_begins_anew_after_none(in_python, reduce, values, gives):
    env = local_environment()
    env.get_config().set_functions_in_python(in_python)
    keyed = env.from_collection(values, type_info=Types.LONG()).key_by(lambda element: 1, Types.LONG())
    assert list(keyed.reduce(reduce).execute_and_collect()) == gives


class Capped(AggregateFunction):
    """A sum with two conditions, of which the second is asked in some cases only."""

    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + value if value > 0 and accumulator < 10 else accumulator

    def get_result(self, accumulator):
        return accumulator

    def merge(self, a, b):
        return a + b


@pytest.mark.parametrize("windows", [TUMBLING, SESSIONS], ids=["tumbling", "sessions"])
def test_a_condition_on_the_accumulator_keeps_a_function_in_python(windows):
    stream = local_environment().from_collection([7, 8, 9], type_info=Types.LONG())
    keyed = stream.assign_timestamps_and_watermarks(AT_ONE).key_by(lambda element: "k", Types.STRING())
    assert list(keyed.window(windows).aggregate(Capped()).execute_and_collect()) == [15]
