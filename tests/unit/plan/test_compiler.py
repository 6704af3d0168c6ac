"""From a program to stages: what is chained, where it is cut, and that every shape gives the right elements."""

import pytest

from eventide.common import Types, WatermarkStrategy
from eventide.connectors.sink import CollectSink
from eventide.datastream import OutputTag
from eventide.datastream.connectors import CollectionSource, FormatSink
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.errors import TypeMismatch
from eventide.plan.compiler import compile_plan
from eventide.plan.graph import SinkTransformation
from eventide.runtime.elements.elements import Elements
from eventide.runtime.eventtime.valve import ValveEdge
from eventide.runtime.exchange.partitioners import DroppingPartitioner
from eventide.testing import local_environment
from support.twin import BY_SECOND_FIELD, AllContents, Contents, plan_of, run, runner, timed, values

TENS = TumblingEventTimeWindows.of(10)
LATE = OutputTag("late", Types.PICKLED_BYTE_ARRAY())
DATA = [("a", 1), ("b", 2), ("a", 13)]


def windows(stream):
    return stream.key_by(lambda e: e[0]).window(TENS)


def counts(stream):
    return windows(stream).process(Contents()).map(lambda w: (w[0], w[1], len(w[3])))


def steps(node):
    """The names of the steps of a chain, nested as they follow each other."""
    inner = [x for child in node.nodes for x in steps(child)]
    return [(node.operator.name, inner)] if node.operator is not None else inner


def test_functions_are_chained_to_their_source():
    stream = (
        local_environment()
        .from_collection([1, 2, 3])
        .map(lambda x: x + 1)
        .filter(lambda x: x > 2)
        .flat_map(lambda x: [x, x])
    )
    plan = plan_of(stream)
    assert (len(plan.sources), len(plan.operators), len(plan.sinks)) == (1, 0, 1)
    assert steps(plan.sources[0].root) == [("map", [("filter", [("flat_map", [])])])]
    assert values(run(plan)) == [3, 3, 4, 4]


def test_a_stage_begins_at_a_window_and_functions_after_it_are_chained_to_it():
    plan = plan_of(counts(timed(local_environment(), DATA)), parallelism=3)
    (stage,) = plan.operators
    assert (stage.number, stage.name, stage.parallelism) == (1, "TumblingEventTimeWindows.process", 3)
    assert steps(stage.root) == [("map", [])]
    (edge,) = stage.edges
    assert edge == ValveEdge(1, edge.name, ("collection",), is_source=True, producer="collection", assigned_after=True)
    assert sorted(values(run(plan))) == [("a", 0, 1), ("a", 10, 1), ("b", 0, 1)]


def test_several_consumers_of_one_stream_each_get_all():
    stream = local_environment().from_collection([1, 2])
    plan = plan_of(stream, stream.map(lambda x: -x), stream.filter(lambda x: x > 1))
    assert len(plan.sources) == 1
    assert [values(run(plan), sink) for sink in range(3)] == [[1, 2], [-1, -2], [2]]


def test_a_window_with_several_consumers_runs_once():
    results = windows(timed(local_environment(), DATA)).process(Contents())
    plan = plan_of(results, results.map(lambda w: w[1]))
    assert len(plan.operators) == 1
    assert sorted(values(run(plan), 1)) == [0, 0, 10]


def test_a_union_gives_the_elements_of_all_and_a_stream_with_itself_gives_them_twice():
    env = local_environment()
    a, b = env.from_collection([1]), env.from_collection([2, 3])
    assert sorted(values(run(plan_of(a.union(b, a.map(lambda x: -x)))))) == [-1, 1, 2, 3]
    assert values(run(plan_of(a.union(a)))) == [1, 1]


def test_a_window_over_a_union_waits_for_all_inputs():
    env = local_environment()
    plan = plan_of(windows(timed(env, DATA).union(timed(env, [("a", 5)]))).process(Contents()))
    (stage,) = plan.operators
    assert [i.is_source for i in stage.edges] == [True, True]
    assert [i.producer for i in stage.edges] == ["collection", "collection-2"]
    assert sorted(values(run(plan))) == [
        ("a", 0, 10, [("a", 1), ("a", 5)]),
        ("a", 10, 20, [("a", 13)]),
        ("b", 0, 10, [("b", 2)]),
    ]


@pytest.mark.parametrize("first_is_keyed", [True, False])
def test_a_union_forgets_the_keys_of_its_inputs(first_is_keyed):
    env = local_environment()
    keyed, plain = timed(env, [("a", 1)]).key_by(lambda e: e[0]), timed(env, [("b", 2)])
    union = keyed.union(plain) if first_is_keyed else plain.union(keyed)
    ((start, end, elements),) = values(run(plan_of(union.window_all(TENS).process(AllContents()))))
    assert (start, end, sorted(elements)) == (0, 10, [("a", 1), ("b", 2)])


def test_a_function_after_key_by_forgets_the_key_and_a_second_key_replaces_the_first():
    env = local_environment()
    mapped = timed(env, DATA).key_by(lambda e: e[0]).map(lambda e: e)
    assert len(values(run(plan_of(mapped.window_all(TENS).process(AllContents()))))) == 2
    again = timed(env, DATA).key_by(lambda e: e[0]).key_by(lambda e: "all")
    assert [key for key, *_ in values(run(plan_of(again.window(TENS).process(Contents()))))] == ["all", "all"]


def test_windows_over_the_whole_stream_take_all_keys_together_in_one_subtask():
    for stream in (timed(local_environment(), DATA), timed(local_environment(), DATA).key_by(lambda e: e[0])):
        plan = plan_of(stream.window_all(TENS).process(AllContents()), parallelism=3)
        assert plan.operators[0].parallelism == 1
        assert values(run(plan)) == [(0, 10, [("a", 1), ("b", 2)]), (10, 20, [("a", 13)])]


def test_a_diamond_brings_both_ways_together():
    env = local_environment()
    source = timed(env, DATA)
    both = source.map(lambda e: e).union(source.map(lambda e: (e[0].upper(), e[1])))
    plan = plan_of(counts(both))
    assert len(plan.sources) == 1
    assert len(plan.operators[0].edges) == 2
    assert sorted(values(run(plan))) == [("A", 0, 1), ("A", 10, 1), ("B", 0, 1), ("a", 0, 1), ("a", 10, 1), ("b", 0, 1)]


def test_a_diamond_of_a_window_and_its_source():
    source = timed(local_environment(), DATA)
    sums = windows(source).reduce(lambda x, y: (x[0], x[1] + y[1]))
    plan = plan_of(source.union(sums).window_all(TENS).process(AllContents()))
    assert sorted(i.is_source for i in plan.operators[1].edges) == [False, True]
    results = values(run(plan))
    assert [(start, sorted(elements)) for start, _, elements in results] == [
        (0, [("a", 1), ("a", 1), ("b", 2), ("b", 2)]),
        (10, [("a", 13), ("a", 13)]),
    ]


def test_chained_windows_fire_in_the_same_micro_batch():
    first = windows(timed(local_environment(), DATA)).reduce(lambda x, y: x)
    second = first.key_by(lambda e: "all").window(TumblingEventTimeWindows.of(20)).process(Contents())
    third = second.window_all(TumblingEventTimeWindows.of(40)).process(AllContents())
    plan = plan_of(third)
    assert [stage.number for stage in plan.operators] == [1, 2, 3]
    ((batch,),) = [run(plan)]
    (((start, end, (result,)), timestamp),) = batch[0]
    assert (start, end, timestamp) == (0, 40, 39)
    assert (*result[:3], sorted(result[3])) == ("all", 0, 20, [("a", 1), ("a", 13), ("b", 2)])


def test_late_elements_go_their_own_way():
    late_data = [("a", 1), ("a", 25), ("a", 2), ("b", 26)]
    results = windows(timed(local_environment(), late_data)).side_output_late_data(LATE).process(Contents())
    plan = plan_of(results, results.get_side_output(LATE).map(lambda e: e[1]), results.get_side_output(LATE))
    found = run(plan, max_rows=2)
    assert (values(found, 1), values(found, 2)) == ([2], [("a", 2)])
    assert len(values(found)) == 3


def test_new_timestamps_after_a_window_replace_its_watermarks():
    first = windows(timed(local_environment(), DATA)).reduce(lambda x, y: x)
    again = first.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda e, _: e[1] + 100)
    )
    plan = plan_of(again.window_all(TENS).process(AllContents()))
    assert [(start, sorted(elements)) for start, _, elements in values(run(plan))] == [
        (100, [("a", 1), ("b", 2)]),
        (110, [("a", 13)]),
    ]


def test_operators_of_one_name_are_told_apart_even_from_names_that_look_numbered():
    env = local_environment()
    named = [
        env.from_collection(range(n)).name(name) for n, name in [(1, "s"), (2, "s"), (3, "s-2"), (4, "s"), (5, "s-2")]
    ]
    plan = plan_of(named[0].union(*named[1:]))
    names = [source.name for source in plan.sources]
    assert len(set(names)) == 5
    assert names[0] == "s"
    assert names[2] == "s-2"
    assert len(values(run(plan, max_rows=1))) == 1 + 2 + 3 + 4 + 5


@pytest.mark.parametrize(
    ("wanted", "given", "keys", "got"), [(None, 3, 128, 3), (2, 3, 128, 2), (3, 3, 128, 3), (None, 3, 2, 2)]
)
def test_an_operator_may_have_fewer_subtasks(wanted, given, keys, got):
    stream = windows(timed(local_environment(), DATA)).process(Contents())
    if wanted is not None:
        stream.set_parallelism(wanted)
    plan = plan_of(stream, parallelism=given, max_parallelism=keys)
    assert plan.operators[0].parallelism == got
    assert len(values(run(plan))) == 3


def test_more_subtasks_than_the_environment_has_are_limited_and_the_program_is_told_what_to_do():
    stream = windows(timed(local_environment(), DATA)).process(Contents()).set_parallelism(9)
    with pytest.warns(UserWarning, match=r"gives 'Tumbling.*' 3 subtask\(s\), .*call env.set_parallelism"):
        plan = plan_of(stream, parallelism=3)
    assert plan.operators[0].parallelism == 3


def test_a_program_does_not_change_when_its_windowed_stream_is_set_up_further():
    windowed = windows(timed(local_environment(), DATA))
    before = windowed.reduce(lambda x, y: x)
    windowed.allowed_lateness(5)
    assert plan_of(before).operators[0].operator.lateness_ms == 0
    assert plan_of(windowed.reduce(lambda x, y: x)).operators[0].operator.lateness_ms == 5


def test_types_decide_how_elements_travel():
    env = local_environment()
    typed = env.from_collection(DATA, Types.TUPLE([Types.STRING(), Types.INT()])).assign_timestamps_and_watermarks(
        BY_SECOND_FIELD
    )
    windowed = typed.key_by(lambda e: e[0], Types.STRING()).window(TENS).allowed_lateness(1)
    plan = plan_of(windowed.reduce(lambda x, y: x))
    (codec,) = plan.operators[0].codecs.values()
    assert (codec.columnar, codec.key_type) == (True, Types.STRING())
    assert plan.sinks[0].codec.columnar
    assert sorted(values(run(plan))) == [("a", 1), ("a", 13), ("b", 2)]


@pytest.mark.parametrize("is_windowed", [False, True], ids=["of a source", "of an operator"])
def test_elements_for_a_sink_that_drops_them_leave_no_task(is_windowed):
    def results(sink):
        events = timed(local_environment(), DATA)
        stream = windows(events).reduce(lambda a, b: a) if is_windowed else events
        numbers = stream.map(lambda e: e[1], Types.INT())
        plan = compile_plan([SinkTransformation("sink", numbers._transformation, sink)], 2, 128)
        return [sorted(of_sink) for batch in runner(plan).batches() for of_sink in batch.elements.values()]

    (collected,) = results(CollectSink())
    assert [value for value, _ in collected] == [1, 2, 13]
    assert results(FormatSink("noop")) == []


def test_elements_that_are_dropped_must_be_of_their_type():
    with pytest.raises(TypeMismatch):
        DroppingPartitioner(Types.STRING()).open("map", 0, 1).add(Elements([1], [None], [0]))


def test_a_source_with_a_strategy_is_like_one_that_is_given_times_later():
    env = local_environment()
    stream = env.from_source(CollectionSource(DATA), BY_SECOND_FIELD, "typed")
    assert plan_of(stream).bounded
    assert [timestamp for _, timestamp in run(plan_of(stream))[0][0]] == [1, 2, 13]
