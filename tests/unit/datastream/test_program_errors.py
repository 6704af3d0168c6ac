"""Errors of a program or its data name the operator and what to do."""

import pytest

from eventide.common import Duration, Row, Time, Types, WatermarkStrategy
from eventide.datastream import OutputTag
from eventide.datastream.connectors import CollectSink
from eventide.datastream.functions import (
    AggregateFunction,
    KeySelector,
    MapFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    ReduceFunction,
)
from eventide.datastream.window import (
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindows,
    NeverTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from eventide.errors import DataError, ProgramError, UserFunctionError
from eventide.testing import ScriptedSource, local_environment
from support.twin import Contents, timed

TENS = TumblingEventTimeWindows.of(10)
LATE = OutputTag("late")


def keyed():
    return timed(local_environment(), [("a", 1), ("b", 2)]).key_by(lambda e: e[0])


def collect(stream):
    return list(stream.execute_and_collect())


class CannotMerge(EventTimeTrigger):
    def can_merge(self):
        return False


class EvictorThatCannotMerge(CountEvictor):
    def can_merge(self):
        return False


class OverAll(ProcessAllWindowFunction):
    def process(self, context, elements):
        return elements


class Total(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + value[1]

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


def without_times():
    return local_environment().from_collection([1]).name("numbers")


REFUSED = {
    "a window on a stream without timestamps": (
        lambda: without_times().window_all(TENS),
        (
            "TumblingEventTimeWindows needs event time, but the elements of 'numbers' have no "
            "timestamps; call assign_timestamps_and_watermarks"
        ),
    ),
    "a keyed window on a stream without timestamps": (
        lambda: without_times().key_by(lambda e: e).window(EventTimeSessionWindows.with_gap(5)),
        "EventTimeSessionWindows needs event time.*call assign_timestamps_and_watermarks",
    ),
    "a window on a union with a stream without timestamps": (
        lambda: (stream := without_times()).union(timed(stream.get_execution_environment(), [])).window_all(TENS),
        "TumblingEventTimeWindows needs event time, but the elements of 'union' have no timestamps",
    ),
    "watermarks without timestamps": (
        lambda: without_times().assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps()),
        r"'numbers' have no timestamps, and the strategy .* does not give them any; add with_timestamp_assigner",
    ),
    "no strategy": (
        lambda: without_times().assign_timestamps_and_watermarks(5),
        r"needs a WatermarkStrategy, such as .*, not 5",
    ),
    "a source that is none": (
        lambda: local_environment().from_source([1], WatermarkStrategy.no_watermarks(), "s"),
        r"from_source needs a Source of eventide.datastream.connectors, not \[1\]",
    ),
    "a window of no size": (
        lambda: TumblingEventTimeWindows.of(Time.milliseconds(0)),
        "window size: expected more than 0 ms",
    ),
    "a window of negative size": (
        lambda: SlidingEventTimeWindows.of(-5, 5),
        "window size: expected more than 0 ms, got -5",
    ),
    "a window with no slide": (
        lambda: SlidingEventTimeWindows.of(5, 0),
        "window slide: expected more than 0 ms, got 0",
    ),
    "an offset that is too large": (
        lambda: TumblingEventTimeWindows.of(5, 5),
        "window offset: expected less than the window size of 5 ms",
    ),
    "a gap of nothing": (
        lambda: EventTimeSessionWindows.with_gap(Duration.of_millis(0)),
        "session gap: expected more than 0 ms",
    ),
    "a size in words": (
        lambda: TumblingEventTimeWindows.of("5 s"),
        "window size: expected a Duration, a Time or an int of milliseconds, got '5 s'",
    ),
    "a count of nothing": (lambda: keyed().count_window(0), "count window size: expected a positive int, got 0"),
    "a negative slide": (lambda: keyed().count_window(5, -1), "count window slide: expected a positive int, got -1"),
    "a negative lateness": (
        lambda: keyed().window(TENS).allowed_lateness(-1),
        "allowed lateness: expected at least 0 ms, got -1",
    ),
    "a lateness that is none": (
        lambda: keyed().window(TENS).allowed_lateness("5"),
        "allowed lateness: expected a Duration",
    ),
    "a window assigner that is none": (
        lambda: keyed().window(10),
        "a window needs a window assigner, such as TumblingEventTimeWindows, not 10",
    ),
    "a trigger that cannot merge": (
        lambda: keyed().window(EventTimeSessionWindows.with_gap(5)).trigger(CannotMerge()),
        (
            r"the windows of EventTimeSessionWindows merge, but CannotMerge cannot; use a trigger "
            r"whose can_merge\(\) is True"
        ),
    ),
    "an evictor that cannot merge": (
        lambda: keyed().window(EventTimeSessionWindows.with_gap(5)).evictor(EvictorThatCannotMerge(1)),
        r"the windows of EventTimeSessionWindows merge, but EvictorThatCannotMerge cannot; use an evictor",
    ),
    "a trigger that is none": (lambda: keyed().window(TENS).trigger(EventTimeTrigger), "trigger needs a Trigger, not"),
    "an evictor that is none": (lambda: keyed().window(TENS).evictor(5), "evictor needs an Evictor, not 5"),
    "late elements where nothing can be late": (
        lambda: keyed().window(GlobalWindows.create()).side_output_late_data(LATE),
        "no element can be late for GlobalWindows.*leave side_output_late_data out",
    ),
    "late elements by the clock": (
        lambda: keyed().window(TumblingProcessingTimeWindows.of(5)).side_output_late_data(LATE),
        "no element can be late for TumblingProcessingTimeWindows.*leave side_output_late_data out",
    ),
    "a side output without a tag": (
        lambda: keyed().window(TENS).side_output_late_data("late"),
        "needs an OutputTag, not 'late'",
    ),
    "global windows without a trigger": (
        lambda: keyed().window(GlobalWindows.create()).reduce(max),
        (
            r"GlobalWindows never fires by itself.*set a trigger, such as "
            r"trigger\(CountTrigger.of\(100\)\), or NeverTrigger\(\)"
        ),
    ),
    "a program without a sink": (
        lambda: local_environment().execute(),
        r"the program has no sink and no operator, .*; add one, such as print\(\)",
    ),
    "a job whose elements are collected by nobody": (
        lambda: (
            (env := local_environment()).from_collection([1]).sink_to(CollectSink()),
            env.execute(),
        ),
        r"execute\(\) would block until the caller reads the elements of a CollectSink; call execute_and_collect\(\)",
    ),
    "a union of different types": (
        lambda: (
            (env := local_environment())
            .from_collection([1], Types.INT())
            .union(env.from_collection(["a"], Types.STRING()))
        ),
        r"union needs streams of one type; these have \['INT', 'STRING'\]",
    ),
    "a union over environments": (
        lambda: local_environment().from_collection([1]).union(local_environment().from_collection([2])),
        "union needs streams of one environment",
    ),
    "a side output of a filter": (
        lambda: local_environment().from_collection([1]).filter(abs).name("abs").get_side_output(LATE),
        "'abs' has no side outputs; call get_side_output on the result of a map, a flat_map, a process function or a "
        "window itself",
    ),
    **{
        f"a side output after {name}": (
            lambda name=name: getattr(local_environment().from_collection([1]), name)().get_side_output(LATE),
            f"'{name.strip('_')}' has no side outputs; call get_side_output on the result of a map",
        )
        for name in ("rebalance", "broadcast", "shuffle", "rescale", "global_")
    },
    "a side output after partition_custom": (
        lambda: (
            local_environment()
            .from_collection([1])
            .partition_custom(lambda key, number: key % number, abs)
            .get_side_output(LATE)
        ),
        "'partition_custom' has no side outputs; call get_side_output on the result of a map",
    ),
    "a map of no function": (lambda: without_times().map(5), "map needs a function or a function object, not 5"),
    "a filter of no function": (lambda: without_times().filter("x"), "filter needs a function"),
    "a flat_map of no function": (lambda: without_times().flat_map(None), "flat_map needs a function"),
    "a key of no function": (lambda: without_times().key_by(7), "key_by needs a function"),
    "a sink that is none": (lambda: without_times().sink_to(5), "sink_to needs a function"),
    "a sink that is none, by the older name": (lambda: without_times().add_sink(None), "add_sink needs a function"),
    "a reduce of no function": (
        lambda: keyed().window(TENS).reduce(5),
        "expected a ReduceFunction or a function of two values, got 5",
    ),
    "an aggregate of no function": (
        lambda: keyed().window(TENS).aggregate(sum),
        "aggregate needs an AggregateFunction or aggregates of columns, not",
    ),
    "a function for all windows on a keyed one": (
        lambda: keyed().window(TENS).process(OverAll()),
        "process on this stream takes a WindowFunction or ProcessWindowFunction, not",
    ),
    "a keyed function on all windows": (
        lambda: keyed().window_all(TENS).process(Contents()),
        "process on this stream takes a AllWindowFunction or ProcessAllWindowFunction, not",
    ),
    "a parallelism of nothing": (
        lambda: local_environment().set_parallelism(0),
        "a parallelism must be a whole number from 1 to 32768, not 0",
    ),
    "a limit of no rows": (
        lambda: local_environment().set_max_rows_per_batch(0),
        "limit of rows per micro-batch must be 1 or more, not 0",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_program_is_refused_when_it_is_built_that_has(what):
    build, message = REFUSED[what]
    with pytest.raises(ProgramError, match=message):
        build()


def test_global_windows_may_be_told_never_to_fire():
    assert collect(keyed().window(GlobalWindows.create()).trigger(NeverTrigger()).reduce(max)) == []


@pytest.mark.parametrize(
    ("timestamp", "said"),
    [
        (None, "the timestamp is None"),
        (float("nan"), "the timestamp is NaN"),
        (float("inf"), "is out of range"),
        ("1", "is a str, not a number"),
        (True, "is a bool, not a number"),
        (2**63, "is out of range"),
    ],
)
def test_a_bad_timestamp_is_told_with_its_split_and_element(timestamp, said):
    source = ScriptedSource(["left", "right"], [[("left", ("a", 1)), ("right", ("b", timestamp))]])
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda e, _: e[1])
    stream = local_environment().from_source(source, strategy, "clicks")
    with pytest.raises(
        DataError,
        match=r"in operator 'clicks', after the source \(split 'right'\): in operator 'timestamps and watermarks'",
    ) as raised:
        collect(stream)
    assert said in str(raised.value)
    assert repr(("b", timestamp)) in str(raised.value)
    assert "milliseconds since the epoch as an int" in str(raised.value)


def test_a_column_of_timestamps_that_is_not_there_is_told():
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("at")
    with pytest.raises(ProgramError, match=r"timestamps and watermarks.*there is no field 'at'; there are time"):
        collect(local_environment().from_collection([Row(time=1)]).assign_timestamps_and_watermarks(strategy))


def test_an_element_that_does_not_have_its_declared_type_is_told_with_operator_field_and_value():
    typed = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
    stream = local_environment().from_collection([1]).map(lambda _: Row(name="Ann", age="old"), typed).name("people")
    with pytest.raises(
        DataError, match=r"in operator 'people', .*declared type: element 0, field age: expected INT, got 'old' \(str\)"
    ):
        collect(stream)


def test_a_result_of_a_window_that_does_not_have_its_declared_type_is_told():
    stream = keyed().window(TENS).process(Contents(), Types.STRING()).name("windows")
    with pytest.raises(DataError, match=r"in operator 'windows', .*expected STRING, got"):
        collect(stream)


def test_a_generator_instead_of_an_element_is_told():
    with pytest.raises(DataError, match=r"in operator 'lazy'.*cannot be pickled.*generator"):
        collect(local_environment().from_collection([1]).map(lambda x: (i for i in [x])).name("lazy"))


def test_state_that_cannot_be_stored_is_told():
    class Lazy(Total):
        def create_accumulator(self):
            return (i for i in "ab")

        def add(self, value, accumulator):
            return accumulator

    source = ScriptedSource(["s"], [[("s", ("a", 1))]], bounded=False)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda e, _: e[1])
    stream = local_environment().from_source(source, strategy, "s").key_by(lambda e: e[0])
    with pytest.raises(UserFunctionError, match=r"in operator 'lazy', when its state was stored.*generator"):
        collect(stream.window(TENS).aggregate(Lazy()).name("lazy"))


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (["a"], "is a list that cannot be hashed"),
        (object(), "is a object, which has no hash that is the same in every process"),
    ],
)
def test_a_bad_key_is_told_with_advice(key, said):
    stream = timed(local_environment(), [("a", 1)]).key_by(lambda e: key).window(TENS).reduce(max)
    with pytest.raises(
        DataError, match=rf"when a key was extracted \(element \('a', 1\)\): .*{said}.*let the key selector return"
    ):
        collect(stream)


class BrokenMap(MapFunction):
    def map(self, value):
        raise RuntimeError("broken")


class BrokenKey(KeySelector):
    def get_key(self, value):
        raise RuntimeError("broken")


class BrokenReduce(ReduceFunction):
    def reduce(self, value1, value2):
        raise RuntimeError("broken")


class BrokenAggregate(Total):
    def add(self, value, accumulator):
        raise RuntimeError("broken")


class BrokenResult(Total):
    def get_result(self, accumulator):
        raise RuntimeError("broken")


class BrokenProcess(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield 1
        raise RuntimeError("broken")


class BrokenClear(Contents):
    def clear(self, context):
        raise RuntimeError("broken")


class BrokenTrigger(CountTrigger):
    def on_element(self, element, timestamp, window, ctx):
        raise RuntimeError("broken")


class BrokenOnTime(EventTimeTrigger):
    def on_event_time(self, time, window, ctx):
        raise RuntimeError("broken")


class BrokenAssigner(TumblingEventTimeWindows):
    def assign_windows(self, element, timestamp, context):
        raise RuntimeError("broken")


class BrokenEvictor(CountEvictor):
    def evict_before(self, elements, size, window, ctx):
        raise RuntimeError("broken")


def fail(*_):
    raise RuntimeError("broken")


def one_key():
    return timed(local_environment(), [("a", 1), ("a", 2)]).key_by(lambda e: e[0])


ELEMENT = r"while it handled an element \(key 'a', element \('a', \d\)\)"
FIRING = r"when a window fired \(key 'a', window TimeWindow\(start=0, end=10\)\)"
CHAINED = r"while it handled an element \(element \('a', 1\)\)"

BROKEN = {
    "map": (lambda: one_key().map(fail), CHAINED),
    "MapFunction": (lambda: one_key().map(BrokenMap()), CHAINED),
    "filter": (lambda: one_key().filter(fail), CHAINED),
    "flat_map": (lambda: one_key().flat_map(fail), CHAINED),
    "reduce": (lambda: one_key().window(TENS).reduce(BrokenReduce()), ELEMENT),
    "aggregate": (lambda: one_key().window(TENS).aggregate(BrokenAggregate()), ELEMENT),
    "aggregate result": (lambda: one_key().window(TENS).aggregate(BrokenResult()), FIRING),
    "process": (lambda: one_key().window(TENS).process(BrokenProcess()), FIRING),
    "clear": (lambda: one_key().window(TENS).process(BrokenClear()), FIRING),
    "trigger": (lambda: one_key().window(TENS).trigger(BrokenTrigger(2)).process(Contents()), ELEMENT),
    "trigger on time": (lambda: one_key().window(TENS).trigger(BrokenOnTime()).process(Contents()), FIRING),
    "assigner": (lambda: one_key().window(BrokenAssigner(10)).process(Contents()), ELEMENT),
    "evictor": (lambda: one_key().window(TENS).evictor(BrokenEvictor(2)).process(Contents()), FIRING),
    "map behind a window": (
        lambda: one_key().window(TENS).process(Contents()).map(fail),
        r"while it handled an element \(element \('a', 0, 10, .*",
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_function_that_raises_is_told_with_operator_place_and_traceback(what):
    build, place = BROKEN[what]
    with pytest.raises(
        UserFunctionError, match=rf"in operator 'mine', {place}: the user's function raised RuntimeError\('broken'\)"
    ) as raised:
        collect(build().name("mine"))
    assert "Its traceback:\nTraceback (most recent call last):" in str(raised.value)
    assert 'raise RuntimeError("broken")' in str(raised.value)


def test_a_key_selector_that_raises_is_told_with_the_element():
    stream = (
        timed(local_environment(), [("a", 1)])
        .map(lambda e: e)
        .name("mine")
        .assign_timestamps_and_watermarks(
            WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda e, _: e[1])
        )
    )
    with pytest.raises(
        UserFunctionError,
        match=r"when a key was extracted \(element \('a', 1\)\): the user's function raised RuntimeError",
    ):
        collect(stream.key_by(BrokenKey()).window(TENS).reduce(max))


def test_a_timestamp_assigner_that_raises_is_told_with_the_element():
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(fail)
    with pytest.raises(
        UserFunctionError, match=r"in operator 'times', while it handled an element \(element 1\): .*RuntimeError"
    ):
        collect(local_environment().from_collection([1]).assign_timestamps_and_watermarks(strategy).name("times"))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda stream: stream.map(str, str), "'map' have a type such as Types.STRING\\(\\), not <class 'str'>"),
        (lambda stream: stream.flat_map(lambda n: [n], [Types.INT()]), "'flat_map' have a type such as"),
        (lambda stream: stream.key_by(abs, int), "a key_type is a type such as Types.STRING"),
        (lambda stream: stream.get_execution_environment().from_collection([1], int), "'collection' have a type"),
    ],
)
def test_a_class_in_place_of_a_type_is_refused_where_it_is_given(build, message):
    with pytest.raises(ProgramError, match=message):
        build(local_environment().from_collection([1]))


@pytest.mark.parametrize(
    "key_type",
    [Types.FLOAT(), Types.LIST(Types.INT()), Types.TUPLE([Types.INT(), Types.MAP(Types.INT(), Types.INT())])],
)
def test_a_key_type_that_rounds_or_cannot_be_hashed_is_refused(key_type):
    with pytest.raises(ProgramError, match="cannot be the type of a key"):
        local_environment().from_collection([1]).key_by(lambda n: n, key_type)


def test_a_parallelism_above_the_number_of_key_groups_is_refused():
    env = local_environment().set_parallelism(9).set_max_parallelism(8)
    with pytest.raises(ProgramError, match="parallelism 9 is above the max parallelism 8"):
        env.from_collection([1]).execute_and_collect()


@pytest.mark.parametrize("limit", [0, -1, 1.5])
def test_a_limit_of_collected_elements_is_positive(limit):
    with pytest.raises(ProgramError, match=f"needs a limit of 1 element or more, or none, not {limit}"):
        local_environment().from_collection([1]).execute_and_collect(limit=limit)
