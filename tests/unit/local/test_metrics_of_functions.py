"""Metrics of functions in whole programs, without Spark: every kind of function has them, and they come out."""

import pytest

from eventide.common import Types, WatermarkStrategy
from eventide.datastream import (
    AggregateFunction,
    AsyncDataStream,
    AsyncFunction,
    BroadcastProcessFunction,
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    FilterFunction,
    FlatMapFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    Partitioner,
    ProcessAllWindowFunction,
    ProcessFunction,
    ProcessWindowFunction,
    ReduceFunction,
    SourceFunction,
    WindowFunction,
)
from eventide.datastream.functions import (
    AllWindowFunction,
    CoGroupFunction,
    FlatJoinFunction,
    JoinFunction,
    ProcessJoinFunction,
)
from eventide.datastream.state import MapStateDescriptor
from eventide.datastream.window import CountTumblingWindowAssigner, TumblingEventTimeWindows
from eventide.errors import UserFunctionError
from eventide.testing import ScriptedSource, local_environment
from support.twin import by_sink, plan_of, runner, timed

TENS = TumblingEventTimeWindows.of(10)
RULES = MapStateDescriptor("rules", Types.STRING(), Types.LONG())
SOON = 5_000


class Counts:
    """Common behaviour of these functions when they are opened, and when they are called."""

    def open(self, runtime_context):
        self.calls = runtime_context.get_metrics_group().add_group("test").counter("calls")

    def note(self, result=None):
        self.calls.inc()
        return result


class Maps(Counts, MapFunction):
    def map(self, value):
        return self.note(value)


class Filters(Counts, FilterFunction):
    def filter(self, value):
        return self.note(True)


class FlatMaps(Counts, FlatMapFunction):
    def flat_map(self, value):
        yield self.note(value)


class Processes(Counts, ProcessFunction):
    def process_element(self, value, ctx):
        yield self.note(value)


class ProcessesKeyed(Counts, KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield self.note(value)


class CoMaps(Counts, CoMapFunction):
    def map1(self, value):
        return self.note(value)

    map2 = map1


class CoFlatMaps(Counts, CoFlatMapFunction):
    def flat_map1(self, value):
        yield self.note(value)

    flat_map2 = flat_map1


class CoProcesses(Counts, CoProcessFunction):
    def process_element1(self, value, ctx):
        yield self.note(value)

    process_element2 = process_element1


class CoProcessesKeyed(Counts, KeyedCoProcessFunction):
    def process_element1(self, value, ctx):
        yield self.note(value)

    process_element2 = process_element1


class Broadcasts(Counts, BroadcastProcessFunction):
    def process_element(self, value, ctx):
        yield self.note(value)

    process_broadcast_element = process_element


class BroadcastsKeyed(Counts, KeyedBroadcastProcessFunction):
    def process_element(self, value, ctx):
        yield self.note(value)

    process_broadcast_element = process_element


class Reduces(Counts, ReduceFunction):
    def reduce(self, value1, value2):
        return self.note(value1)


class ReducesInParts(Reduces):
    is_associative = True


class Aggregates(Counts, AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return self.note(accumulator + 1)

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


class Windows(Counts, WindowFunction):
    def apply(self, key, window, inputs):
        yield self.note(key)


class AllWindows(Counts, AllWindowFunction):
    def apply(self, window, inputs):
        yield self.note(window)


class ProcessesWindows(Counts, ProcessWindowFunction):
    def process(self, key, context, elements):
        yield self.note(key)


class ProcessesAllWindows(Counts, ProcessAllWindowFunction):
    def process(self, context, elements):
        yield self.note(1)


class Joins(Counts, JoinFunction):
    def join(self, first, second):
        return self.note(first)


class FlatJoins(Counts, FlatJoinFunction):
    def join(self, first, second):
        yield self.note(first)


class CoGroups(Counts, CoGroupFunction):
    def co_group(self, first, second):
        yield self.note(1)


class JoinsIntervals(Counts, ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        yield self.note(left)


class Waits(Counts, AsyncFunction):
    async def async_invoke(self, value):
        return [self.note(value)]


class Partitions(Counts, Partitioner):
    def partition(self, key, num_partitions):
        return self.note(0)


class Selects(Counts, KeySelector):
    def get_key(self, value):
        return self.note(value[0])


def by_first(element):
    return element[0]


def keyed(stream):
    return stream.key_by(by_first)


def joined(one, other):
    return one.join(other).where(by_first).equal_to(by_first).window(TENS)


# Three elements, ("a", 1), ("a", 2) and ("b", 3), in both streams; the number is how often the function is called.
PROGRAMS = {
    "map": (lambda one, _: one.map(Maps()), 3),
    "map behind an operator": (lambda one, _: keyed(one).process(ProcessesKeyed()).name("before").map(Maps()), 3),
    "filter": (lambda one, _: one.filter(Filters()), 3),
    "flat_map": (lambda one, _: one.flat_map(FlatMaps()), 3),
    "process": (lambda one, _: one.process(Processes()), 3),
    "keyed process": (lambda one, _: keyed(one).process(ProcessesKeyed()), 3),
    "keyed map": (lambda one, _: keyed(one).map(Maps()), 3),
    "rolling reduce": (lambda one, _: keyed(one).reduce(Reduces()), 1),
    "co map": (lambda one, other: one.connect(other).map(CoMaps()), 6),
    "co flat map": (lambda one, other: one.connect(other).flat_map(CoFlatMaps()), 6),
    "co process": (lambda one, other: one.connect(other).process(CoProcesses()), 6),
    "keyed co process": (lambda one, other: keyed(one).connect(keyed(other)).process(CoProcessesKeyed()), 6),
    # A broadcast element comes to each of the two subtasks.
    "broadcast": (lambda one, other: one.connect(other.broadcast(RULES)).process(Broadcasts()), 9),
    "keyed broadcast": (lambda one, other: keyed(one).connect(other.broadcast(RULES)).process(BroadcastsKeyed()), 9),
    "window reduce": (lambda one, _: keyed(one).window(TENS).reduce(Reduces()), 1),
    "window reduce in parts": (lambda one, _: keyed(one).window(TENS).reduce(ReducesInParts()), 1),
    "window aggregate": (lambda one, _: keyed(one).window(TENS).aggregate(Aggregates()), 3),
    "two functions of a window": (
        lambda one, _: keyed(one).window(TENS).aggregate(Aggregates(), ProcessesWindows()),
        5,
    ),
    "window apply": (lambda one, _: keyed(one).window(TENS).apply(Windows()), 2),
    "window process": (lambda one, _: keyed(one).window(TENS).process(ProcessesWindows()), 2),
    "count window": (lambda one, _: keyed(one).window(CountTumblingWindowAssigner.of(1)).apply(Windows()), 3),
    "window_all apply": (lambda one, _: one.window_all(TENS).apply(AllWindows()), 1),
    "window_all process": (lambda one, _: one.window_all(TENS).process(ProcessesAllWindows()), 1),
    "join": (lambda one, other: joined(one, other).apply(Joins()), 5),
    "flat join": (lambda one, other: joined(one, other).apply(FlatJoins()), 5),
    "co group": (
        lambda one, other: one.co_group(other).where(by_first).equal_to(by_first).window(TENS).apply(CoGroups()),
        2,
    ),
    "interval join": (
        lambda one, other: keyed(one).interval_join(keyed(other)).between(0, 5).process(JoinsIntervals()),
        4,
    ),
    "async": (lambda one, _: AsyncDataStream.unordered_wait(one, Waits(), SOON), 3),
}


@pytest.mark.parametrize(("build", "calls"), PROGRAMS.values(), ids=PROGRAMS)
def test_every_function_with_a_context_has_metrics_and_they_come_out(build, calls):
    env = local_environment()
    elements = [("a", 1), ("a", 2), ("b", 3)]
    one = timed(env, elements)
    build(one, timed(env, elements)).name("mine").print()
    assert env.execute().metrics["mine"]["test.calls"] == calls


def test_a_partitioner_has_metrics():
    env = local_environment()
    env.from_collection([1, 2, 3]).partition_custom(Partitions(), lambda value: value).print()
    assert env.execute().metrics["partitioner"] == {"test.calls": 3}


class Sums(ReduceFunction):
    is_associative = True

    def reduce(self, first, second):
        return first[0], first[1] + second[1]


SELECTED = {
    "key_by": lambda stream: stream.key_by(Selects()).process(ProcessesKeyed()),
    "windows": lambda stream: stream.key_by(Selects()).window(TENS).apply(Windows()),
    "windows that reduce before the shuffle": lambda stream: stream.key_by(Selects()).window(TENS).reduce(Sums()),
    "partition_custom": lambda stream: stream.partition_custom(lambda key, n: 0, Selects()),
    "a join": lambda stream: stream.join(stream).where(by_first).equal_to(Selects()).window(TENS).apply(lambda a, b: a),
}


@pytest.mark.parametrize("build", SELECTED.values(), ids=SELECTED)
def test_a_key_selector_has_metrics(build):
    env = local_environment()
    build(timed(env, [("a", 1), ("a", 2), ("b", 3)])).print()
    assert env.execute().metrics["key selector"] == {"test.calls": 3}


class Emits(SourceFunction):
    """Has counted something when it emits nothing more."""

    def open(self, runtime_context):
        group = runtime_context.get_metrics_group()
        self.emitted, self.sizes = group.counter("emitted"), group.distribution("sizes")
        group.gauge("of", lambda: 3)

    def run(self, ctx):
        for number in range(3):
            ctx.collect(number)
            self.emitted.inc()
            self.sizes.update(number)
        self.emitted.inc(10)

    def cancel(self):
        pass


@pytest.mark.parametrize("max_rows", [None, 1])
def test_what_a_source_function_counts_comes_out_with_what_it_emits(max_rows):
    env = local_environment()
    if max_rows is not None:
        env.set_max_rows_per_batch(max_rows)
    env.add_source(Emits(), "numbers", Types.LONG()).print()
    assert env.execute().metrics["numbers"] == {
        "numRecordsOut": 3,
        "emitted": 13,
        "of": {0: 3},
        "sizes": {"count": 3, "sum": 3, "min": 0, "max": 2, "mean": 1.0},
    }


class Measures(KeyedProcessFunction):
    """Has one metric of each kind."""

    def open(self, runtime_context):
        group = runtime_context.get_metrics_group()
        self.seen, self.last = group.counter("seen"), 0
        self.sizes, self.events = group.distribution("sizes"), group.meter("events", time_span_in_seconds=10)
        group.gauge("last", lambda: self.last)

    def process_element(self, value, ctx):
        self.last = value[1]
        self.seen.inc()
        self.events.mark_event(2)
        self.sizes.update(value[1])
        if value[1] < 0:
            raise ValueError("below zero")


def measuring(*batches):
    source = ScriptedSource(["s"], [[("s", event) for event in batch] for batch in batches])
    stream = local_environment().from_source(source, WatermarkStrategy.no_watermarks(), "script")
    return plan_of(keyed(stream).process(Measures()).name("measures"), parallelism=1)


def shown(run):
    return {name: value for name, value in run.metrics()["measures"].items() if not name.startswith("num")}


def test_metrics_go_on_over_micro_batches_and_begin_anew_with_a_run():
    plan = measuring([("a", 5)], [("a", 1), ("a", 3)], [])
    first = runner(plan)
    batches = first.batches()
    next(batches)
    assert shown(first) == {
        "events": {"count": 2, "rate": 0.2},
        "last": {0: 5},
        "seen": 1,
        "sizes": {"count": 1, "sum": 5, "min": 5, "max": 5, "mean": 5.0},
    }
    next(batches)
    assert shown(first) == {
        "events": {"count": 6, "rate": 0.6},
        "last": {0: 3},
        "seen": 3,
        "sizes": {"count": 3, "sum": 9, "min": 1, "max": 5, "mean": 3.0},
    }
    again = runner(plan)
    next(again.batches())
    assert shown(again)["seen"] == 1


def test_a_micro_batch_that_failed_and_is_run_again_counts_once():
    plan = measuring([("a", 5)], [("a", 1), ("a", -1)])
    first = runner(plan)
    batches = first.batches()
    next(batches)
    with pytest.raises(UserFunctionError, match="below zero"):
        next(batches)
    assert shown(first)["seen"] == 1
    assert shown(first)["sizes"]["min"] == 5


def test_the_number_of_subtasks_shows_in_gauges_alone():
    def metrics(parallelism):
        stream = local_environment().from_collection([(key, key) for key in range(20)])
        run = runner(plan_of(keyed(stream).process(Measures()).name("measures"), parallelism=parallelism))
        list(run.batches())
        return shown(run)

    one, three = metrics(1), metrics(3)
    assert [*one.pop("last")] == [0]
    assert [*three.pop("last")] == [0, 1, 2]
    assert one == three
    assert one["seen"] == 20


class Where(MapFunction):
    """Gives where it works."""

    def open(self, runtime_context):
        self.where = (
            runtime_context.get_task_name_with_subtasks(),
            runtime_context.get_number_of_parallel_subtasks(),
            runtime_context.get_max_number_of_parallel_subtasks(),
        )

    def map(self, value):
        return self.where


def test_functions_that_are_chained_know_their_parallelism():
    numbers = local_environment().from_collection([1])
    keyed_numbers = keyed(numbers.map(lambda n: (n, n)))
    behind_operator = keyed_numbers.map(Where()).map(Where()).name("behind")
    plan = plan_of(numbers.map(Where()).name("before"), behind_operator, parallelism=3)
    [(result, _)], [(behind, _)] = next(by_sink(plan, batch) for batch in runner(plan).batches())
    assert result == ("before (1/3)", 3, 128)
    assert behind == ("behind (1/3)", 3, 128)
