"""Sorting by event time: what an oracle gives that keeps all elements, on columns and element by element."""

from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.common import Row, Types, WatermarkStrategy
from eventide.common.watermark_generators import PunctuatedWatermarks
from eventide.datastream import OutputTag, RuntimeExecutionMode
from eventide.errors import DataError, ProgramError
from eventide.joins import left
from eventide.testing import ScriptedSource, local_environment
from support.twin import by_sink, plan_of, run, run_with_restarts, runner

EVENT = Types.ROW_NAMED(["key", "at", "text"], [Types.STRING(), Types.LONG(), Types.STRING()])
LATE = OutputTag("late", EVENT)
ELEMENTS = st.builds(
    Row,
    key=st.sampled_from(["a", "b", "", None]),
    at=st.integers(-10, 40),
    text=st.one_of(st.none(), st.text("xyz", max_size=2)),
)
BATCHES = st.lists(st.lists(st.tuples(st.sampled_from("st"), ELEMENTS), max_size=8), max_size=6)
MODES = st.sampled_from([RuntimeExecutionMode.STREAMING] * 3 + [RuntimeExecutionMode.BATCH])


def program(batches, key, *, mode=RuntimeExecutionMode.STREAMING, bound=0, wants_late=True):
    by_time = WatermarkStrategy.for_bounded_out_of_orderness(bound).with_timestamp_assigner("at")
    source = ScriptedSource(["s", "t"], batches, EVENT)
    stream = local_environment().from_source(source, by_time, "events", EVENT)
    ordered = stream.key_by(key).sorted_by_event_time(LATE if wants_late else None)
    sinks = [ordered, ordered.get_side_output(LATE)] if wants_late else [ordered]
    return plan_of(*sinks, mode=mode)


def by_key(results):
    """The elements of each key with their timestamps, in their order."""
    found = defaultdict(list)
    for value, timestamp in results:
        assert value.at == timestamp
        found[value.key].append(value)
    return found


def sorted_by_both(batches, **how):
    plans = [program(batches, key, **how) for key in ("key", lambda event: event.key or event.key)]
    speeds = [plan.operators[0].speed for plan in plans]
    assert speeds[0].startswith("columns")
    because = "because the key selector is Python: it does not return fields (line "
    assert speeds[1].startswith(f"element by element, {because}")
    return plans


@settings(max_examples=60)
@given(BATCHES, st.sampled_from([0, 5, 100]), MODES, st.integers(1, 3))
def test_columns_give_what_elements_give(batches, bound, mode, every):
    on_columns, in_python = sorted_by_both(batches, bound=bound, mode=mode)
    ours, theirs = ([by_sink(plan, batch) for batch in runner(plan).batches()] for plan in (on_columns, in_python))
    assert [[by_key(sink) for sink in batch] for batch in ours] == [
        [by_key(sink) for sink in batch] for batch in theirs
    ]
    for plan in (on_columns, in_python):
        if mode is RuntimeExecutionMode.STREAMING:
            assert run_with_restarts(plan, every) == run(plan)


@given(BATCHES, st.sampled_from([0, 5, 100]))
def test_all_elements_come_out_once_in_their_order(batches, bound):
    plan = program(batches, "key", bound=bound)
    found = [by_sink(plan, batch) for batch in runner(plan).batches()]
    results = [result for batch in found for result in batch[0]]
    late = [result for batch in found for result in batch[1]]
    given_all = [element for batch in batches for _, element in batch]
    assert sorted(map(str, given_all)) == sorted(str(value) for value, _ in [*results, *late])
    for elements in by_key(results).values():
        assert [element.at for element in elements] == sorted(element.at for element in elements)


def test_an_element_comes_out_with_the_watermark_that_reaches_it_and_is_late_from_then_on():
    times = [[("s", 5), ("s", 3)], [("t", 4)], [("t", 9), ("s", 6)], [("s", 5)]]
    batches = [[(split, Row(key="a", at=at, text=None)) for split, at in batch] for batch in times]
    for plan in sorted_by_both(batches):
        results, late = zip(*(by_sink(plan, batch) for batch in runner(plan).batches()), strict=True)
        assert [[at for _, at in batch] for batch in results if batch] == [[3], [4, 5], [6, 9]]
        assert [at for batch in late for _, at in batch] == [5]


def test_late_elements_are_counted_where_they_are_dropped():
    batches = [[("s", Row(key="a", at=9, text=None)), ("t", Row(key="a", at=9, text=None))],
               [("s", Row(key="a", at=3, text=None))]]  # fmt: skip
    for plan in sorted_by_both(batches, wants_late=False):
        one = runner(plan)
        assert [value.at for batch in one.batches() for value, _ in by_sink(plan, batch)[0]] == [9, 9]
        assert one.metrics()["sort by event time"]["numLateRecordsDropped"] == 1


def test_where_a_watermark_may_follow_each_element_they_are_taken_one_by_one():
    by_time = WatermarkStrategy.for_generator(lambda: PunctuatedWatermarks(lambda element, _: element.at))
    source = ScriptedSource(["s"], [], EVENT)
    stream = local_environment().from_source(source, by_time.with_timestamp_assigner("at"), "events", EVENT)
    keyed = stream.key_by("key")
    for sorted_or_joined in (keyed.sorted_by_event_time(), keyed.as_of_join(keyed).select(left("text"))):
        *_, last = plan_of(sorted_or_joined).operators
        assert last.speed.startswith("element by element, because a watermark may come between any two elements")


def test_what_has_no_time_cannot_be_sorted():
    stream = local_environment().from_collection([("a", 1)]).key_by(lambda e: e[0]).sorted_by_event_time()
    with pytest.raises(DataError, match="has no timestamp"):
        list(stream.execute_and_collect())
    with pytest.raises(ProgramError, match="late elements go to an OutputTag, not 'late'"):
        stream.key_by(lambda e: e[0]).sorted_by_event_time("late")
