"""The fluent API: names, types, settings, and functions given as objects or plain functions."""

from dataclasses import dataclass

import pyarrow.compute as pc
import pytest

from eventide.common import SimpleStringSchema, Time, Types, WatermarkStrategy
from eventide.datastream import OutputTag
from eventide.datastream.connectors import CollectionSource
from eventide.datastream.functions import FilterFunction, FlatMapFunction, KeySelector, MapFunction, in_python
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.errors import ProgramError
from eventide.testing import local_environment
from support.twin import BY_SECOND_FIELD, AllContents, Contents, plan_of, timed

TENS = TumblingEventTimeWindows.of(Time.milliseconds(10))
PAIR = Types.TUPLE([Types.STRING(), Types.INT()])


class Double(MapFunction):
    def map(self, value):
        return 2 * value


@in_python
class Stripped(MapFunction):
    def map(self, value):
        return value.strip()


class Odd(FilterFunction):
    def filter(self, value):
        return value % 2


class Twice(FlatMapFunction):
    def flat_map(self, value):
        yield value
        yield value


@dataclass
class Word:
    text: str


class First(KeySelector):
    def get_key(self, value):
        return value[0]


def collect(stream):
    return list(stream.execute_and_collect())


def test_functions_may_be_objects_or_plain():
    numbers = local_environment().from_collection([1, 2, 3])
    assert collect(numbers.map(Double()).filter(Odd())) == []
    assert collect(numbers.filter(Odd()).flat_map(Twice()).map(Double())) == [2, 2, 6, 6]
    assert collect(numbers.map(lambda x: -x).filter(lambda x: x < -1).flat_map(lambda x: range(-x))) == [0, 1, 0, 1, 2]


def test_functions_of_any_kind_may_be_called_with_each_element():
    env = local_environment()
    env.get_config().set_functions_in_python()
    texts = env.from_collection([" 1", "2 "])
    assert collect(texts.map(int).map(Double())) == [2, 4]
    assert collect(texts.map(str.strip).map(SimpleStringSchema().serialize)) == [b"1", b"2"]
    assert [word.text for word in collect(texts.map(Word))] == [" 1", "2 "]
    assert not hasattr(Word, "runs_in_python")
    assert collect(texts.map(Stripped())) == ["1", "2"]
    pairs = env.from_collection([("a", 1), ("b", 2), ("a", 3)], PAIR)
    by_expression = pairs.key_by(pc.utf8_upper(pc.field("f0")))
    assert sorted(collect(by_expression.reduce(lambda x, y: (x[0], x[1] + y[1])))) == [("a", 1), ("a", 4), ("b", 2)]
    with pytest.raises(ProgramError, match="map needs a function"):
        texts.map(5)


def test_a_key_selector_may_be_an_object():
    stream = timed(local_environment(), [("a", 1), ("b", 2), ("a", 3)]).key_by(First(), Types.STRING())
    assert sorted(collect(stream.window(TENS).reduce(lambda x, y: (x[0], x[1] + y[1])))) == [("a", 4), ("b", 2)]


def test_operators_have_names_that_can_be_changed():
    stream = local_environment().from_collection([1])
    assert stream.get_name() == "collection"
    assert stream.map(Double()).name("doubled").get_name() == "doubled"
    assert (
        timed(stream.get_execution_environment(), []).window_all(TENS).reduce(max).get_name()
        == "TumblingEventTimeWindows.reduce"
    )


def test_types_are_kept_by_filter_and_by_windows_that_reduce_and_forgotten_by_map():
    stream = local_environment().from_collection([("a", 1)], PAIR)
    assert stream.get_type() == stream.filter(bool).get_type() == PAIR
    assert stream.map(lambda e: e).get_type() == Types.PICKLED_BYTE_ARRAY()
    assert stream.map(len, Types.INT()).get_type() == Types.INT()
    windowed = stream.assign_timestamps_and_watermarks(BY_SECOND_FIELD).key_by(First()).window(TENS)
    assert windowed.get_input_type() == windowed.reduce(max).get_type() == PAIR
    assert windowed.process(Contents()).get_type() == Types.PICKLED_BYTE_ARRAY()


def test_late_elements_have_the_type_of_the_stream_and_other_side_outputs_that_of_their_tag():
    windowed = timed(local_environment(), []).map(lambda e: e, PAIR).key_by(First()).window(TENS)
    results = windowed.side_output_late_data(OutputTag("late", Types.INT())).process(Contents())
    assert results.get_side_output(OutputTag("late", Types.STRING())).get_type() == PAIR
    assert results.get_side_output(OutputTag("other", Types.INT())).get_type() == Types.INT()


@pytest.mark.parametrize("bounded_by", [None, 1, 2])
def test_a_limit_of_rows_changes_no_result(bounded_by):
    env = local_environment().set_max_rows_per_batch(bounded_by)
    data = [("a", t) for t in range(0, 40, 3)]
    assert [len(elements) for *_, elements in collect(timed(env, data).window_all(TENS).process(AllContents()))] == [
        4,
        3,
        3,
        4,
    ]


def test_a_source_may_bring_its_strategy_or_none():
    env = local_environment()
    times = env.from_source(CollectionSource([("a", 1)]), BY_SECOND_FIELD, "clicks", PAIR)
    assert times.get_type() == PAIR
    assert [source.name for source in plan_of(times).sources] == ["clicks"]
    assert collect(times.window_all(TENS).reduce(max)) == [("a", 1)]
    plain = env.from_source(CollectionSource([1]), WatermarkStrategy.no_watermarks(), "plain")
    assert collect(plain.key_by(lambda e: e).count_window(1).reduce(max)) == [1]


def test_a_source_without_a_strategy_is_refused():
    with pytest.raises(ProgramError, match=r"the source 'plain' needs a WatermarkStrategy, such as .*, not None"):
        local_environment().from_source(CollectionSource([1]), None, "plain")


def test_a_strategy_without_times_over_a_source_without_times_makes_no_watermarks():
    """As in Flink, where such a program runs as long as the time is not asked for."""
    env = local_environment()
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    with pytest.warns(UserWarning, match="the watermark strategy of 'plain' has no effect: the elements have no times"):
        plain = env.from_source(CollectionSource([1, 2]), strategy, "plain")
    assert collect(plain.map(lambda e: e * 10)) == [10, 20]
    with pytest.raises(ProgramError, match="'plain' have no timestamps"):
        plain.window_all(TENS)


def test_without_watermarks_windows_close_when_the_stream_ends():
    strategy = WatermarkStrategy.no_watermarks().with_timestamp_assigner(lambda e, _: e[1])
    env = local_environment().set_max_rows_per_batch(1)
    stream = env.from_collection([("a", 35), ("a", 1)]).assign_timestamps_and_watermarks(strategy)
    assert [start for start, *_ in collect(stream.window_all(TENS).process(AllContents()))] == [0, 30]


def test_settings_are_kept():
    env = local_environment()
    assert (env.get_parallelism(), env.get_max_parallelism()) == (2, 32_768)
    assert (env.set_parallelism(3).get_parallelism(), env.set_max_parallelism(16).get_max_parallelism()) == (3, 16)


def test_a_key_of_the_programs_own_class_travels_beside_typed_elements():
    @dataclass(frozen=True)
    class Station:
        name: str

    typed = (
        local_environment()
        .from_collection([("a", 1), ("a", 2)], PAIR)
        .assign_timestamps_and_watermarks(BY_SECOND_FIELD)
    )
    ((key, *_, elements),) = collect(typed.key_by(lambda e: Station(e[0])).window(TENS).process(Contents()))
    assert (key, elements) == (Station("a"), [("a", 1), ("a", 2)])


def test_a_warning_of_force_non_parallel_stands_in_the_program():
    mapped = local_environment().set_parallelism(2).from_collection([1]).map(abs)
    with pytest.warns(UserWarning, match=r"set_parallelism\(1\) has no effect") as caught:
        mapped.force_non_parallel()
    assert [warning.filename for warning in caught] == [__file__]
