"""Watermark strategies by name, and plans in which they have other values."""

import json

import pytest

from eventide.common import BoundedOutOfOrdernessWatermarks, Duration, Time, WatermarkStrategy
from eventide.datastream import KeyedProcessFunction
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.errors import ProgramError, StateError
from eventide.local.runner import LocalRunner
from eventide.plan.description import describe
from eventide.plan.strategies import checked_values
from eventide.spark.checkpoint.strategies import ask_for, strategies_at, values_in_force
from eventide.testing import ScriptedSource, local_environment
from support.twin import AllContents, plan_of

BY_VALUE = WatermarkStrategy.for_bounded_out_of_orderness(5).with_timestamp_assigner(lambda ms, _: ms)
KNOWN = {"orders": {"bound_ms": 5, "idle_after_ms": 100}, "own": {"drift_ms": 7}}


class HandsOn(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield value


def source(env, name, strategy, batches=()):
    return env.from_source(ScriptedSource(["s"], batches), strategy, name)


def windows(stream):
    return stream.window_all(TumblingEventTimeWindows.of(10)).process(AllContents())


def two_aligned():
    """Two sources of a group, of which the first is soon ahead."""
    env = local_environment()
    fast = [[("s", 0)], [("s", 50)], [("s", 1_000)], [("s", 2_000)]]
    slow = [[("s", 0)], [("s", 1)], [("s", 2)], [("s", 3)]]
    aligned = BY_VALUE.with_watermark_alignment("all", 10)
    return plan_of(windows(source(env, "fast", aligned, fast).union(source(env, "slow", aligned, slow))))


def test_a_strategy_has_the_name_of_its_source_and_downstream_of_an_operator_its_own():
    env = local_environment()
    first = source(env, "orders", BY_VALUE.with_idleness(30).with_watermark_alignment("all", 40))
    again = first.key_by(lambda _: 0).process(HandsOn()).assign_timestamps_and_watermarks(BY_VALUE).name("again")
    assert plan_of(windows(again)).strategies == {
        "orders": {"bound_ms": 5, "idle_after_ms": 30, "drift_ms": 40},
        "again": {"bound_ms": 5},
    }


def test_a_generator_of_the_users_has_no_bound_that_could_change():
    own = WatermarkStrategy.for_generator(lambda: BoundedOutOfOrdernessWatermarks(5)).with_idleness(30)
    known = plan_of(
        windows(source(local_environment(), "own", own.with_timestamp_assigner(lambda ms, _: ms)))
    ).strategies
    assert known == {"own": {"idle_after_ms": 30}}
    with pytest.raises(ProgramError, match=r"come from a generator of yours and not from a bound, or there are"):
        checked_values("own", known, 1, None, None)


def test_a_plan_with_other_values_is_of_the_same_program():
    env = local_environment()
    strategy = BY_VALUE.with_idleness(30)
    stream = source(env, "orders", strategy)
    plan = plan_of(windows(stream.union(stream.assign_timestamps_and_watermarks(BY_VALUE).name("again"))))
    changed = plan.with_strategies({"orders": {"bound_ms": 1, "idle_after_ms": None}, "gone": {"bound_ms": 2}})
    assert changed.identity() == plan.identity()
    assert changed.needs_clock, "a query of Spark's keeps its timers"
    assert not changed.has_idleness
    assert changed.strategies == plan.strategies, "what is declared stays"


def test_a_plan_keeps_the_clock_with_which_its_state_began_and_cannot_begin_to_need_it():
    without, having = (
        plan_of(windows(source(local_environment(), "orders", strategy)))
        for strategy in (BY_VALUE, BY_VALUE.with_idleness(30))
    )
    assert [plan.needs_clock for plan in (without, having)] == [False, True]
    assert without.with_clocks([True]).needs_clock
    assert not without.with_clocks([False]).needs_clock
    assert having.with_clocks([True]).needs_clock
    with pytest.raises(StateError, match=r"the state of .* began without timers of processing time, and the program"):
        having.with_clocks([False])
    for began in ([], [False, False]):
        assert having.with_clocks(began) is having, "nothing is known of its stages"


def test_a_bound_and_a_timeout_are_those_of_the_operators_that_hear_the_source():
    plan = plan_of(windows(source(local_environment(), "orders", BY_VALUE.with_idleness(30))))
    [edge] = [
        e
        for e in describe(plan.with_strategies({"orders": {"bound_ms": 1, "idle_after_ms": 2}}))["edges"]
        if e["input"] == 0
    ]
    assert (edge["idle_after_ms"], edge["strategy"]["bound_ms"]) == (2, 1)


def test_a_source_whose_alignment_is_off_neither_waits_nor_is_waited_for():
    plan = two_aligned()
    off = plan.with_strategies({"fast": {"drift_ms": None}})
    assert [spec.alignment and spec.alignment.members for spec in off.sources] == [None, ("slow",)]
    assert off.identity() == plan.identity()
    wide = plan.with_strategies({"fast": {"drift_ms": 5_000}})
    batches = {
        name: len([*LocalRunner(one, 1, lambda: 0).batches()])
        for name, one in {"declared": plan, "off": off, "wide": wide}.items()
    }
    assert batches["declared"] > batches["off"] == batches["wide"]


@pytest.mark.parametrize(
    ("change", "values"),
    [
        (("orders", Duration.of_seconds(1), None, None), {"bound_ms": 1_000}),
        (("orders", 0, Time.seconds(2), None), {"bound_ms": 0, "idle_after_ms": 2_000}),
        (("orders", None, "off", None), {"idle_after_ms": None}),
        (("own", None, None, "off"), {"drift_ms": None}),
        (("own", None, None, 0), {"drift_ms": 0}),
    ],
)
def test_values_are_lengths_of_time_or_off(change, values):
    name, *asked = change
    assert checked_values(name, KNOWN, *asked) == values


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("lines", 1, None, None), "no watermark strategy of the name 'lines'; it has 'orders', 'own'"),
        (("orders", None, None, None), "no new value is given for the watermark strategy of 'orders'"),
        (("orders", "off", None, None), "max out-of-orderness"),
        (("orders", -1, None, None), "max out-of-orderness"),
        (("orders", None, 0, None), "idle timeout"),
        (("orders", None, None, 5), "the program declares no watermark alignment for it"),
        (("own", None, 5, None), "the program declares none for it, and Spark wakes a query"),
    ],
)
def test_what_a_strategy_cannot_have_is_refused(change, said):
    name, *asked = change
    with pytest.raises(ProgramError, match=said):
        checked_values(name, KNOWN, *asked)


def test_a_change_counts_until_the_program_declares_another_value(tmp_path):
    place, declared = str(tmp_path), {"orders": {"bound_ms": 5, "idle_after_ms": 100}}
    with pytest.raises(StateError, match="no job with watermark strategies has started on the checkpoint"):
        strategies_at(place)
    assert values_in_force(place, declared, takes=True) == {}
    ask_for(place, "orders", 9, "off", None)
    assert values_in_force(place, declared, takes=False) == {}, "a run that finishes a micro-batch takes nothing"
    assert values_in_force(place, declared, takes=True) == {"orders": {"bound_ms": 9, "idle_after_ms": None}}
    assert values_in_force(place, {"orders": {"bound_ms": 6, "idle_after_ms": 100}}, takes=True) == {
        "orders": {"idle_after_ms": None}
    }
    ask_for(place, "orders", None, 100, None)
    assert values_in_force(place, {"orders": {"bound_ms": 6, "idle_after_ms": 100}}, takes=True) == {}


def test_changes_that_are_taken_twice_end_as_if_they_were_taken_once(tmp_path):
    """A run that is killed after it wrote the values in force leaves changes that its successor takes again."""
    place, declared = str(tmp_path), {"orders": {"bound_ms": 5}}
    values_in_force(place, declared, takes=True)
    for bound_ms in (9, 5, 7):
        ask_for(place, "orders", bound_ms, None, None)
    folder = tmp_path / "eventide-watermarks"
    kept = {file.name: file.read_bytes() for file in folder.glob("waiting-*")}
    assert values_in_force(place, declared, takes=True) == {"orders": {"bound_ms": 7}}
    for name in sorted(kept)[1:]:
        (folder / name).write_bytes(kept[name])
    assert values_in_force(place, declared, takes=True) == {"orders": {"bound_ms": 7}}
    assert json.dumps(strategies_at(place).waiting) == "[]"


def test_a_change_of_what_the_program_no_longer_has_is_not_taken(tmp_path, caplog):
    place = str(tmp_path)
    values_in_force(place, {"orders": {"bound_ms": 5}}, takes=True)
    ask_for(place, "orders", 9, None, None)
    assert values_in_force(place, {"rides": {"bound_ms": 5}}, takes=True) == {}
    assert "the watermark strategy 'orders' has changed: the value bound_ms is not taken" in caplog.text


def test_a_start_that_may_be_refused_changes_nothing(tmp_path):
    place, declared = str(tmp_path), {"orders": {"bound_ms": 5}}
    values_in_force(place, declared, takes=True)
    ask_for(place, "orders", 9, None, None)
    before = {file.name: file.read_bytes() for file in (tmp_path / "eventide-watermarks").iterdir()}
    assert values_in_force(place, {"rides": {"bound_ms": 5}}, takes=True, keeps=False) == {}
    assert values_in_force(place, declared, takes=True, keeps=False) == {"orders": {"bound_ms": 9}}
    assert {file.name: file.read_bytes() for file in (tmp_path / "eventide-watermarks").iterdir()} == before
    assert values_in_force(place, declared, takes=True) == {"orders": {"bound_ms": 9}}


def test_the_change_that_was_asked_for_last_counts_whatever_the_clocks_say(tmp_path, monkeypatch):
    place, declared = str(tmp_path), {"orders": {"bound_ms": 5}}
    values_in_force(place, declared, takes=True)
    for bound_ms, clock_ns in ((9, 2_000), (7, 1_000)):
        monkeypatch.setattr("time.time_ns", lambda now=clock_ns: now)
        ask_for(place, "orders", bound_ms, None, None)
    assert values_in_force(place, declared, takes=True) == {"orders": {"bound_ms": 7}}
