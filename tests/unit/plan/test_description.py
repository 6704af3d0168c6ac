"""The graph of a job as plain values, for programs of every shape."""

import json

import pytest

from eventide.aggregates import count
from eventide.common import Duration, Types, WatermarkGenerator, WatermarkStrategy
from eventide.datastream import OutputTag
from eventide.datastream.functions import KeyedCoProcessFunction
from eventide.datastream.window import EventTimeSessionWindows, SlidingEventTimeWindows, TumblingEventTimeWindows
from eventide.plan.description import describe
from eventide.testing import ScriptedSource, local_environment
from support.twin import BY_SECOND_FIELD, Contents, plan_of, timed

TENS = TumblingEventTimeWindows.of(10)
ROWS = Types.ROW_NAMED(["city", "at"], [Types.STRING(), Types.LONG()])


class Own(WatermarkGenerator):
    def on_event(self, event, event_timestamp, output):
        pass

    def on_periodic_emit(self, output):
        pass


class Both(KeyedCoProcessFunction):
    def process_element1(self, value, ctx):
        yield value

    process_element2 = process_element1


def source(env, name, strategy=BY_SECOND_FIELD, splits=("a", "b")):
    return env.from_source(ScriptedSource([*splits], []), strategy, name)


def of(*streams):
    described = describe(plan_of(*streams))
    assert json.loads(json.dumps(described)) == described, "JSON gives back what it was given"
    return described


def ways(described):
    return [(edge["from"], edge["to"], edge["input"], edge["through"]) for edge in described["edges"]]


def test_a_window_after_a_source_says_where_its_watermarks_come_from():
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(5).with_idleness(100)
    env = local_environment()
    time = lambda e, _: e[1]  # noqa: E731 - a lambda shows as such
    line = time.__code__.co_firstlineno
    stream = source(env, "trips", strategy.with_timestamp_assigner(time)).map(str, Types.STRING())
    described = of(
        stream.key_by(str).window(TENS).allowed_lateness(3).side_output_late_data(OutputTag("late")).process(Contents())
    )
    assert described["sources"] == [
        {
            "name": "trips",
            "kind": "ScriptedSource",
            "is_bounded": True,
            "splits": ["a", "b"],
            "text": "ScriptedSource",
            "alignment": None,
        }
    ]
    (operator,), (sink,) = described["operators"], described["sinks"]
    assert (operator["kind"], operator["level"], operator["parallelism"]) == ("operator", 1, 2)
    assert operator["windows"] == {
        "text": "TumblingEventTimeWindows(size=10, offset=0)",
        "follows_event_time": True,
        "lateness_ms": 3,
        "late_tag": "late",
        "size_ms": 10,
        "offset_ms": 0,
    }
    into, out = described["edges"]
    assert (into["from"], into["to"], into["input"]) == ("trips", operator["name"], 0)
    assert into["through"] == ["timestamps and watermarks", "map"]
    assert into["in_python"] == [
        f"{name}: in Python, because the type of its elements is not declared{place}"
        for name, place in zip(into["through"], [f" (line {line} of test_description.py)", ""], strict=True)
    ]
    assert into["idle_after_ms"] == 100
    assert into["strategy"] == {
        "name": "timestamps and watermarks",
        "text": "bounded out-of-orderness 5 ms, idle after 100 ms, timestamps from function <lambda>",
        "generator": "bounded",
        "bound_ms": 5,
        "idle_after_ms": 100,
        "missing": "fail",
    }
    assert (out["from"], out["to"], out["name"], out["strategy"]) == (operator["name"], sink["name"], None, None)


def test_the_name_of_an_edge_is_what_the_state_of_the_valve_is_kept_under():
    plan = plan_of(source(local_environment(), "trips").key_by(lambda e: e[0]).window(TENS).process(Contents()))
    (task,) = plan.operators
    assert [e["name"] for e in describe(plan)["edges"] if e["name"]] == [valve.name for valve in task.edges]


def test_a_union_and_windows_in_a_row():
    env = local_environment()
    first = source(env, "trips").union(source(env, "meters")).key_by(lambda e: e[0]).window(TENS).process(Contents())
    second = first.window_all(SlidingEventTimeWindows.of(20, 10)).reduce(max)
    described = of(second)
    one, other = (operator["name"] for operator in described["operators"])
    assert [operator["level"] for operator in described["operators"]] == [1, 2]
    given = ["timestamps and watermarks"]
    assert ways(described) == [
        ("trips", one, 0, given),
        ("meters", one, 0, ["timestamps and watermarks-2"]),
        (one, other, 0, []),
        (other, "collect", None, []),
    ]
    assert described["operators"][1]["windows"]["slide_ms"] == 10
    assert described["operators"][1]["parallelism"] == 1


def test_connected_streams_lead_to_two_inputs():
    env = local_environment()
    both = source(env, "left").connect(source(env, "right")).key_by(lambda e: e[0], lambda e: e[0]).process(Both())
    described = of(both)
    (operator,) = described["operators"]
    ends = [(edge["from"], edge["input"]) for edge in described["edges"]]
    assert ends == [("left", 0), ("right", 1), (operator["name"], None)]
    assert operator["windows"] is None


def test_a_generator_of_the_users_is_an_operator_on_splits():
    strategy = WatermarkStrategy.for_generator(Own).with_timestamp_assigner(lambda e, _: e[1])
    stream = source(local_environment(), "trips", strategy)
    described = of(stream.key_by(lambda e: e[0]).window(TENS).process(Contents()))
    splits, window = described["operators"]
    assert (splits["kind"], window["kind"]) == ("splits", "operator")
    ways = {edge["from"]: edge for edge in described["edges"] if edge["to"] == window["name"]}
    assert {way: (e["strategy"]["generator"], e["strategy"]["bound_ms"]) for way, e in ways.items()} == {
        "trips": ("own", None),
        splits["name"]: ("own", None),
    }
    assert ways[splits["name"]]["travels"] == "watermarks alone"


def test_sources_that_wait_for_each_other_name_their_group():
    env, strategy = local_environment(), BY_SECOND_FIELD.with_watermark_alignment("city", Duration.of_seconds(2))
    described = of(source(env, "trips", strategy).union(source(env, "meters", strategy)))
    group = {"group": "city", "drift_ms": 2_000, "sources": ["trips", "meters"]}
    assert [one["alignment"] for one in described["sources"]] == [group, group]
    assert [operator["kind"] for operator in described["operators"]] == ["alignment"]
    assert [e["takes_elements"] for e in described["edges"] if e["to"] == "watermark alignment"] == [False, False]


def test_windows_on_columns_and_sessions():
    stream = local_environment().from_collection([("a", 1)], ROWS)
    by_column = stream.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("at")
    ).key_by("city")
    described = of(by_column.window(EventTimeSessionWindows.with_gap(7)).aggregate(count()))
    (operator,) = described["operators"]
    assert operator["windows"]["session_gap_ms"] == 7
    assert operator["speed"].startswith("columns")


def test_side_outputs_are_on_the_way_in_brackets():
    late = OutputTag("late")
    window = timed(local_environment(), [("a", 1)]).key_by(lambda e: e[0]).window(TENS).side_output_late_data(late)
    described = of(window.process(Contents()).get_side_output(late).map(str))
    assert ways(described)[-1][2:] == (None, ["[late]", "map"])


@pytest.mark.parametrize(
    ("strategy", "generator", "missing"),
    [
        (WatermarkStrategy.no_watermarks().with_timestamp_assigner(lambda e, _: e[1]), "none", "fail"),
        (BY_SECOND_FIELD.with_null_timestamps(OutputTag("t")), "bounded", "to side output 't'"),
        (WatermarkStrategy.for_generator(Own).with_timestamp_assigner(lambda e, _: e[1]), "own", "fail"),
    ],
)
def test_a_strategy_says_what_it_does(strategy, generator, missing):
    described = of(local_environment().from_collection([("a", 1)]).assign_timestamps_and_watermarks(strategy))
    said = described["edges"][-1]["strategy"]
    assert (said["generator"], said["missing"]) == (generator, missing)


def test_the_same_program_has_the_same_description_though_its_objects_lie_elsewhere():
    def program():
        stream = timed(local_environment(), [("a", 1)]).key_by(lambda e: e[0]).window(TENS)
        return of(stream.process(Contents()))

    assert program() == program()
    assert " at 0x" not in json.dumps(program())
