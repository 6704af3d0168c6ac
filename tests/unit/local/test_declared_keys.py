"""Keys are values of their declared type before they are hashed: what is one key to that type is one key."""

import datetime

import pytest

from eventide.common import Row, Time, Types, WatermarkStrategy
from eventide.datastream.functions import AggregateFunction, KeyedProcessFunction, WindowFunction
from eventide.datastream.state import ValueStateDescriptor
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.errors import EventideError
from eventide.testing import ScriptedSource, local_environment

YX = Types.ROW_NAMED(["y", "x"], [Types.INT(), Types.STRING()])
UTC = datetime.UTC
NOON = datetime.datetime(2026, 9, 21, 12)  # noqa: DTZ001 - SQL_TIMESTAMP has no zone
ALIKE = [
    (YX, [Row(y=1, x="a"), Row(1, "a"), (1, "a"), {"x": "a", "y": 1}], Row(y=1, x="a")),
    (Types.ROW([Types.INT(), Types.STRING()]), [(1, "a"), Row(1, "a")], Row(f0=1, f1="a")),
    (Types.SQL_TIMESTAMP(), [NOON, NOON.replace(tzinfo=UTC)], NOON),
]


class Collects(WindowFunction):
    """Gives the key, and the elements of the window."""

    def apply(self, key, window, inputs):
        return [(key, list(inputs))]


class Counts(KeyedProcessFunction):
    """Gives the key, and how many elements it has had."""

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        yield ctx.get_current_key(), self.count.value()


@pytest.mark.parametrize(("kind", "keys", "key"), ALIKE)
@pytest.mark.parametrize("of_elements", [None, Types.INT()])
@pytest.mark.parametrize("parallelism", [1, 4])
def test_what_is_one_key_to_its_type_is_one_key(kind, keys, key, of_elements, parallelism):
    numbers = [*range(len(keys))]
    env = local_environment().set_parallelism(parallelism)
    keyed = env.from_collection(numbers, type_info=of_elements).key_by(lambda number: keys[number], kind)
    assert list(keyed.count_window(len(keys)).apply(Collects()).execute_and_collect()) == [(key, numbers)]
    counted = keyed.process(Counts()).execute_and_collect()
    assert list(counted) == [(key, number) for number in range(1, len(keys) + 1)]


@pytest.mark.parametrize("of_elements", [None, Types.INT()])
def test_a_key_of_another_type_is_an_error_that_names_its_element(of_elements):
    stream = local_environment().from_collection([1, 2, 3], type_info=of_elements)
    keyed = stream.key_by(lambda number: "two" if number == 2 else number, Types.INT())
    with pytest.raises(EventideError, match=r"element 2\).*expected INT, got 'two'"):
        list(keyed.process(Counts()).execute_and_collect())


KIND = Types.TUPLE([Types.STRING(), Types.DOUBLE()])
NAN = float("nan")


@pytest.mark.parametrize(
    "select", [lambda e: (e[0],), lambda e: Row(k=e[0]), lambda e: Row(b=e[0], a=e[0] + "x"), lambda e: (e[0].upper(),)]
)
@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_rolling_aggregation_finds_its_value_on_columns_and_in_python(select, parallelism):
    """Columns refuse NaN in the third micro-batch, and upper case of another length in the fourth."""
    batches = [[("a", 1.0), ("b", 1.0)], [("a", 2.0)], [("a", NAN)], [("ß", 1.0), ("b", 2.0)], [("a", 4.0), ("b", 1.0)]]
    source = ScriptedSource(["p"], [[("p", element) for element in batch] for batch in batches], KIND)
    env = local_environment().set_parallelism(parallelism)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "s")
    out = stream.key_by(select).reduce(lambda x, y: x if x[1] >= y[1] else y).execute_and_collect()
    found = {}
    for key, value in out:
        found.setdefault(key, []).append(repr(value))
    assert found == {"a": ["1.0", "2.0", "nan", "4.0"], "b": ["1.0", "2.0", "2.0"], "ß": ["1.0"]}


class Sum(AggregateFunction):
    """Adds up."""

    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + value[1]

    def get_result(self, accumulator):
        return accumulator

    def merge(self, accumulator, other):
        return accumulator + other


@pytest.mark.parametrize("kind", [Types.TUPLE([Types.DOUBLE(), Types.LONG()]), None])
def test_a_key_that_is_none_is_named_with_its_element_though_elements_are_added_up_before_the_shuffle(kind):
    by_value = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda e, _: e[1])
    stream = local_environment().from_collection([(1.0, 5), (NAN, 7), (NAN, 8)], kind)
    keyed = stream.assign_timestamps_and_watermarks(by_value).key_by(lambda e: e[0])
    sums = keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(10))).aggregate(Sum())
    with pytest.raises(EventideError, match=r"element \(nan, 7\)\): the key nan is not equal to itself"):
        list(sums.execute_and_collect())
