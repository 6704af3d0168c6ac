"""Windows on columns give what windows element by element give, on random streams, with and without restarts."""

from collections import Counter
from tempfile import TemporaryDirectory
from unittest import mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eventide.aggregates import collect_list, count, count_distinct, first, last, max_, mean, sum_
from eventide.common import Duration, Row, Types, WatermarkStrategy
from eventide.common.ms import MAX_MS, MIN_MS
from eventide.common.windows import TimeWindow
from eventide.datastream import OutputTag, RuntimeExecutionMode
from eventide.datastream.functions import ProcessWindowFunction, in_python
from eventide.datastream.state import ValueStateDescriptor
from eventide.datastream.window import (
    ContinuousEventTimeTrigger,
    CountEvictor,
    CountTrigger,
    CountTumblingWindowAssigner,
    CumulatingEventTimeWindows,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindows,
    PurgingTrigger,
    SessionWindowTimeGapExtractor,
    SlidingEventTimeWindows,
    TumblingCalendarWindows,
    TumblingEventTimeWindows,
)
from eventide.errors import StateError, UserFunctionError
from eventide.local.host import begun_from, take_savepoint
from eventide.runtime.columnar import keyed_operators, operator, partitioner
from eventide.runtime.metrics import LATE_DROPPED
from eventide.runtime.sources import splits
from eventide.runtime.window import operation
from eventide.savepoint.fitting import check_fit
from eventide.testing import Idle, ScriptedSource, local_environment
from support.examples import examples
from support.twin import by_sink, plan_of, run_with_restarts, runner

LATE = OutputTag("late")
TYPE = Types.ROW_NAMED(["k", "t", "v"], [Types.STRING(), Types.LONG(), Types.LONG()])
AGGREGATES = (
    count(),
    sum_("v").alias("sum"),
    max_("v").alias("max"),
    mean("v").alias("mean"),
    first("v").alias("first"),
    last("v").alias("last"),
    count_distinct("v").alias("distinct"),
)
EVENTS = st.tuples(
    st.sampled_from("st"),
    st.sampled_from(["a", "b", None]),
    st.integers(-15, 60),
    st.one_of(st.none(), st.integers(-5, 5)),
)
BATCHES = st.lists(st.lists(st.one_of(EVENTS, st.sampled_from("st").map(Idle)), max_size=8), max_size=6)
ONE_SPLIT = st.lists(st.lists(EVENTS.map(lambda e: ("s", *e[1:])), max_size=8), max_size=6)
SHORT = st.one_of(
    st.integers(1, 15).map(TumblingEventTimeWindows),
    st.tuples(st.integers(1, 15), st.integers(1, 15)).map(lambda sizes: SlidingEventTimeWindows(*sizes)),
    st.just(SlidingEventTimeWindows(20, 1)),
    st.builds(lambda step, steps: CumulatingEventTimeWindows(step * steps, step), st.integers(1, 7), st.integers(1, 9)),
)
FIXED = st.one_of(SHORT, st.just(TumblingCalendarWindows.of("day")))  # which begins at 0
MODES = st.sampled_from([RuntimeExecutionMode.STREAMING] * 3 + [RuntimeExecutionMode.BATCH])
SESSIONS = st.integers(1, 12).map(EventTimeSessionWindows)
EVERY = st.integers(0, 3)


def unique_times(batches):
    """Give each element a timestamp of its own, so that first and last are defined."""
    seen = set()
    for batch in batches:
        for i, event in enumerate(batch):
            if not isinstance(event, Idle):
                split, key, time, value = event
                while time in seen:
                    time += 1
                seen.add(time)
                batch[i] = (split, key, time, value)
    return batches


def program(
    batches,
    windows,
    key,
    bound=2,
    lateness=0,
    trigger=None,
    aggregates=AGGREGATES,
    keep_late=False,
    evictor=None,
    mode=RuntimeExecutionMode.STREAMING,
):
    """A plan whose windows run on columns if the key is named, and element by element if it is a function."""
    script = [
        [event if isinstance(event, Idle) else (event[0], Row(k=event[1], t=event[2], v=event[3])) for event in batch]
        for batch in batches
    ]
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(bound))
    source = ScriptedSource(["s", "t"], script, type_info=TYPE)
    stream = local_environment().from_source(source, strategy.with_timestamp_assigner("t"), "events", TYPE)
    keyed = stream if key is None else stream.key_by(*key) if isinstance(key, tuple) else stream.key_by(key)
    windowed = keyed.window_all(windows) if key is None else keyed.window(windows)
    if windows.is_event_time():
        windowed = windowed.allowed_lateness(lateness)
    if trigger is not None:
        windowed = windowed.trigger(trigger)
    if evictor is not None:
        windowed = windowed.evictor(evictor)
    if keep_late:
        windowed = windowed.side_output_late_data(LATE)
    results = windowed.aggregate(*aggregates)
    return plan_of(results, *([results.get_side_output(LATE)] if keep_late else []), mode=mode)


@in_python
def by_function(element):
    return element["k"]


def texts(rows):
    """Results without the name of the key, which is ``key`` where the key is a function."""
    return [(str(list(row)), timestamp) for row, timestamp in rows]


def run_both(columns, elements):
    """The results of both, batch by batch: results, late elements and the number of late ones."""
    assert columns.operators[0].speed.startswith("columns")
    assert elements.operators[0].speed.startswith("element")
    found = []
    for plan in (columns, elements):
        local = runner(plan)
        batches = [by_sink(plan, batch) for batch in local.batches()]
        late = local.metrics().get(plan.operators[0].name, {}).get(LATE_DROPPED, 0)
        found.append(([[texts(sink) for sink in batch] for batch in batches], late))
    return found


def assert_equal(columns, elements):
    """Equal results in every micro-batch, whatever the order of those of one time."""
    (ours, our_late), (theirs, their_late) = run_both(columns, elements)
    assert [[Counter(sink) for sink in batch] for batch in ours] == [
        [Counter(sink) for sink in batch] for batch in theirs
    ]
    assert our_late == their_late


def test_open_bounds_of_calendar_windows_are_equal_at_every_speed():
    """Elements of the first and the last day that a date can have, which often stand for one that is not known."""
    days = [-62_135_596_800_000, 0, 253_402_214_400_000]
    batches, windows = [[("s", "a", day, 1) for day in days]], TumblingCalendarWindows.of("day", "UTC")
    plans = [program(batches, windows, key, aggregates=(count(),)) for key in ("k", by_function)]
    on_columns, element_by_element = run_both(*plans)
    assert on_columns == element_by_element
    found = [row.window for batch in runner(plans[0]).batches() for row, _ in by_sink(plans[0], batch)[0]]
    assert (found[0].start, found[1], found[2].end) == (MIN_MS, TimeWindow(0, 86_400_000), MAX_MS)


def assert_restarts_change_nothing(plan, every):
    """A new run after every ``every`` micro-batches gives what one run gives; 0: it is not looked at."""
    if every:
        assert run_with_restarts(plan, every) == [by_sink(plan, batch) for batch in runner(plan).batches()]


@examples(150)
@given(BATCHES.map(unique_times), st.one_of(FIXED, SESSIONS), st.integers(0, 20), st.booleans())
def test_windows_without_lateness_are_equal_in_every_batch(batches, windows, bound, keep_late):
    by_name, by_call = (program(batches, windows, key, bound, keep_late=keep_late) for key in ("k", by_function))
    assert_equal(by_name, by_call)


COMPUTED = [
    lambda e: e.t % 3,
    lambda e: (e.k, e.t % 2),
    lambda e: e.k or "none",
    lambda e: 0 if e.v is None else e.v % 3,
    lambda e: (e.v is None, e["k"], e[1]),
    lambda e: e.t * 2**60 % 7,  # beyond 64 bits in between, so Python is called for some micro-batches
    lambda e: e.k.upper() if e.k else None,
]
HOW = [
    {},
    {"keep_late": True},
    {"lateness": 9, "trigger": PurgingTrigger.of(EventTimeTrigger())},
    {"trigger": ContinuousEventTimeTrigger(4)},
    {"trigger": CountTrigger.of(2)},
    {"mode": RuntimeExecutionMode.BATCH},
]


@examples(80)
@given(BATCHES.map(unique_times), st.one_of(FIXED, SESSIONS), st.sampled_from(COMPUTED), st.sampled_from(HOW), EVERY)
def test_keys_that_a_function_computes_are_equal_in_every_batch(batches, windows, key, how, every):
    """Also those that are None, and where Python is called for a micro-batch."""
    if isinstance(windows, EventTimeSessionWindows) and "trigger" in how:
        how = HOW[4]
    plans = [program(batches, windows, each, **how) for each in (key, in_python(key))]
    assert_equal(*plans)
    assert_restarts_change_nothing(plans[0], every)


DECLARED = [
    (lambda e: (e.k, e.t % 2), Types.TUPLE([Types.STRING(), Types.INT()])),
    (in_python(lambda e: e.k), Types.STRING()),
    (lambda e: f"{e.t:03}"[-1], Types.STRING()),
    (lambda e: e.t % 3, Types.INT()),
]


@examples(30)
@given(BATCHES.map(unique_times), st.one_of(FIXED, SESSIONS), st.sampled_from(DECLARED), st.booleans())
def test_keys_of_a_declared_type_are_equal_in_every_batch_where_python_finds_them(batches, windows, key, keep_late):
    plans = [program(batches, windows, each, keep_late=keep_late) for each in (key, in_python(key[0]))]
    assert_equal(*plans)


@examples(30)
@given(BATCHES.map(unique_times), st.sampled_from(COMPUTED), st.integers(1, 12))
def test_computed_keys_of_sessions_whose_elements_bring_their_gaps(batches, key, gap):
    windows = EventTimeSessionWindows.with_dynamic_gap(lambda e: e.t % 11 + gap)
    assert_equal(*(program(batches, windows, each, keep_late=True) for each in (key, in_python(key))))


@examples(60)
@given(ONE_SPLIT.map(unique_times), FIXED, st.integers(0, 20), st.integers(1, 3))
def test_rows_that_are_aggregated_a_few_at_a_time_give_the_same(batches, windows, bound, at_once):
    by_name, by_call = (program(batches, windows, key, bound) for key in ("k", by_function))
    with mock.patch.object(splits, "_CHUNK", 1), mock.patch.object(partitioner, "_ROWS_AT_ONCE", at_once):
        assert_equal(by_name, by_call)


@examples(100)
@given(BATCHES.map(unique_times), FIXED, st.integers(0, 20))
def test_late_firings_of_a_batch_come_once_with_the_final_value(batches, windows, lateness):
    plans = [program(batches, windows, key, lateness=lateness) for key in ("k", by_function)]
    (ours, our_late), (theirs, their_late) = run_both(*plans)
    for our_batch, their_batch in zip(ours, theirs, strict=True):
        final = {text.split(", count")[0].split("), ")[0]: (text, time) for text, time in their_batch[0]}
        assert Counter(our_batch[0]) == Counter(final.values())
    assert our_late == their_late


class BySplitOfTime(SessionWindowTimeGapExtractor):
    """A gap that follows from the time, in a way that no trace knows."""

    def extract(self, element):
        return int(f"{element.t % 7 + 1}")


GAPS = [lambda e: e.t % 11 + 1, lambda e: 3 if e.v is None else 9, lambda e: e.v + 8, BySplitOfTime()]


@examples(250)
@given(BATCHES.map(unique_times), st.sampled_from(GAPS), st.integers(0, 20), st.booleans())
def test_sessions_whose_elements_bring_their_gaps_are_equal_in_every_batch(batches, gap, bound, keep_late):
    """An element of which no gap is found ends the job in both; on columns the task of its source says so."""
    plans = [
        program(batches, EventTimeSessionWindows.with_dynamic_gap(each), "k", bound, keep_late=keep_late)
        for each in (gap, in_python(gap))
    ]
    try:
        list(runner(plans[1]).batches())
    except UserFunctionError as error:
        said, _, where = str(error).partition(" (key ")
        cause = where.partition("raised ")[2].partition(". Its traceback")[0]
        with pytest.raises(UserFunctionError) as caught:
            list(runner(plans[0]).batches())
        assert said in str(caught.value)
        assert cause in str(caught.value)
        return
    assert_equal(*plans)


OVERDUE = [[("s", "b", 16, 0), Idle("t")], [("s", "a", 5, 1)], [("s", "b", 20, 0)], [("s", "b", 40, 0)]]
"""The first multiple of 10 after 5 has been passed when that element comes, and its micro-batch moves no watermark."""


@examples(120)
@given(BATCHES.map(unique_times), SHORT, st.integers(1, 9), st.booleans(), st.integers(0, 20), st.integers(0, 3), MODES)
@example(OVERDUE, TumblingEventTimeWindows(20), 10, False, 0, 1, RuntimeExecutionMode.STREAMING)
@example(OVERDUE, TumblingEventTimeWindows(20), 10, True, 0, 1, RuntimeExecutionMode.STREAMING)
def test_windows_that_fire_at_intervals_are_equal_in_every_batch(
    batches, windows, interval, purges, lateness, every, mode
):
    trigger = ContinuousEventTimeTrigger(interval)
    how = {"trigger": trigger, "mode": mode}
    if purges:  # so that each late element fires alone
        how |= {"trigger": PurgingTrigger.of(trigger), "lateness": lateness}
    plans = [program(batches, windows, key, **how) for key in ("k", by_function)]
    assert_equal(*plans)
    assert_restarts_change_nothing(plans[0], every)


@examples(120)
@given(
    BATCHES.map(unique_times), st.one_of(FIXED, SESSIONS), st.integers(0, 20), st.booleans(), st.integers(0, 3), MODES
)
def test_windows_that_are_purged_when_they_fire_are_equal_in_every_batch(
    batches, windows, lateness, keep_late, every, mode
):
    lateness = 0 if isinstance(windows, EventTimeSessionWindows) else lateness
    how = {"trigger": PurgingTrigger.of(EventTimeTrigger()), "lateness": lateness, "keep_late": keep_late, "mode": mode}
    plans = [program(batches, windows, key, **how) for key in ("k", by_function)]
    assert_equal(*plans)
    assert_restarts_change_nothing(plans[0], every)


@examples(80)
@given(ONE_SPLIT.map(unique_times), st.integers(1, 5))
def test_windows_of_a_number_of_elements_are_equal_in_every_batch(batches, size):
    aggregates = (*AGGREGATES, collect_list("t").alias("times"))
    windows = CountTumblingWindowAssigner(size)
    assert_equal(*(program(batches, windows, key, aggregates=aggregates) for key in ("k", by_function)))


@examples(120)
@given(BATCHES.map(unique_times), st.integers(1, 7), st.integers(1, 7), st.integers(1, 20), st.integers(0, 2))
def test_the_last_elements_after_every_few_are_equal_in_every_batch(batches, size, slide, at_once, every):
    aggregates = (*AGGREGATES, collect_list("t").alias("times"))
    how = {"trigger": CountTrigger.of(slide), "evictor": CountEvictor.of(size), "aggregates": aggregates}
    by_name, by_call = (program(batches, GlobalWindows.create(), key, **how) for key in ("k", by_function))
    with mock.patch.object(keyed_operators, "_ROWS_AT_ONCE", at_once):
        columns, elements = run_both(by_name, by_call)
        assert columns == elements
        assert_restarts_change_nothing(by_name, every)


@pytest.mark.parametrize(
    ("windows", "how"),
    [
        (GlobalWindows.create(), {"trigger": CountTrigger.of(2), "evictor": CountEvictor.of(3)}),
        (TumblingEventTimeWindows(10), {"trigger": CountTrigger.of(2)}),
        (EventTimeSessionWindows(10), {"trigger": CountTrigger.of(2)}),
        (SlidingEventTimeWindows(10, 5), {"trigger": ContinuousEventTimeTrigger(2)}),
        (TumblingEventTimeWindows(10), {"trigger": PurgingTrigger.of(EventTimeTrigger())}),
    ],
)
def test_a_checkpoint_of_windows_that_were_objects_is_refused(windows, how):
    with mock.patch.object(operation, "_obstacle", return_value="it was not known"):
        before = program([[("s", "a", 1, 1)]], windows, "k", **how)
    one = runner(before)
    next(one.batches())
    now = program([[("s", "a", 1, 1)]], windows, "k", **how)
    with pytest.raises(StateError, match="stored form"):
        list(runner(now, checkpoint=one.checkpoint).batches())


@examples(40)
@given(BATCHES.map(unique_times), st.integers(1, 5))
def test_global_windows_that_are_purged_after_some_elements_are_equal_in_every_batch(batches, size):
    how = {"trigger": PurgingTrigger.of(CountTrigger.of(size))}
    assert_equal(*(program(batches, GlobalWindows.create(), key, **how) for key in ("k", by_function)))


@examples(100)
@given(BATCHES, st.integers(1, 15).map(TumblingEventTimeWindows), st.booleans())
def test_a_list_is_in_the_order_of_arrival_whatever_the_speed(batches, windows, keep_late):
    lists = (collect_list("t").alias("times"), collect_list("v").alias("values"))
    plans = [program(batches, windows, key, aggregates=lists, keep_late=keep_late) for key in ("k", by_function)]
    assert_equal(*plans)


@examples(60)
@given(BATCHES.map(unique_times), st.one_of(FIXED, SESSIONS))
def test_windows_over_all_elements_are_those_over_one_key(batches, windows):
    one_key = [[e if isinstance(e, Idle) else (e[0], "a", *e[2:]) for e in batch] for batch in batches]
    (alone, _), (keyed, _) = (
        ([by_sink(plan, b) for b in runner(plan).batches()], None)
        for plan in (program(one_key, windows, None), program(one_key, windows, "k"))
    )
    assert [[list(row) for row, _ in batch[0]] for batch in alone] == [
        [list(row)[1:] for row, _ in batch[0]] for batch in keyed
    ]


@examples(60)
@given(
    ONE_SPLIT.map(unique_times),
    st.one_of(FIXED, SESSIONS, st.integers(1, 4).map(CountTumblingWindowAssigner)),
    st.integers(1, 3),
    st.booleans(),
)
def test_a_restart_after_any_batch_changes_nothing(batches, windows, every, keep_late):
    keep_late = keep_late and windows.is_event_time()
    plan = program(batches, windows, "k", keep_late=keep_late)
    assert run_with_restarts(plan, every) == [by_sink(plan, batch) for batch in runner(plan).batches()]


@examples(150)
@given(
    BATCHES.map(unique_times),
    st.one_of(FIXED, SESSIONS, st.just(GlobalWindows.create())),
    st.integers(1, 5),
    st.booleans(),
    st.integers(0, 20),
    st.booleans(),
    st.integers(0, 3),
    MODES,
)
def test_windows_that_fire_by_counts_fire_with_the_same_elements_in_the_same_order(
    batches, windows, number, purges, lateness, keep_late, every, mode
):
    trigger = CountTrigger.of(number)
    lists = () if isinstance(windows, EventTimeSessionWindows) else (collect_list("t").alias("times"),)
    how = {
        "trigger": PurgingTrigger.of(trigger) if purges else trigger,
        "lateness": lateness,
        "keep_late": keep_late and windows.is_event_time(),
        "aggregates": (*AGGREGATES, *lists),
        "mode": mode,
    }
    by_name, by_call = (program(batches, windows, key, **how) for key in ("k", by_function))
    with mock.patch.object(operator, "_IN_WINDOWS_AT_ONCE", 8):
        columns, elements = run_both(by_name, by_call)
        assert columns == elements
        assert_restarts_change_nothing(by_name, every)


class Reporting(ProcessWindowFunction):
    """Gives all that it sees, and how often it was called for the key, and for the window."""

    def open(self, runtime_context):
        self.calls = runtime_context.get_state(COUNT)

    def process(self, key, context, elements):
        (row,) = elements
        of_window = context.window_state().get_state(COUNT)
        for calls in (self.calls, of_window):
            calls.update((calls.value() or 0) + 1)
        seen = {name: (type(value).__name__, value) for name, value in row.as_dict().items()}
        yield key, context.window(), context.current_watermark(), self.calls.value(), of_window.value(), seen


class Clearing(Reporting):
    """Clears the state of the window."""

    def clear(self, context):
        context.window_state().get_state(COUNT).clear()


COUNT = ValueStateDescriptor("count", Types.LONG())
ON_ROWS = st.sampled_from(
    [
        (*AGGREGATES, Reporting()),
        (*AGGREGATES, Clearing()),
        (*AGGREGATES, collect_list("t").alias("times"), Reporting(), Types.PICKLED_BYTE_ARRAY()),
    ]
)


@examples(120)
@given(BATCHES.map(unique_times), FIXED, ON_ROWS, st.booleans(), st.integers(0, 2), st.integers(0, 3), MODES)
def test_a_window_function_on_aggregates_sees_the_same_at_both_speeds(
    batches, windows, aggregates, keep_late, lateness, every, mode
):
    how = {"aggregates": aggregates, "keep_late": keep_late, "lateness": lateness, "mode": mode}
    plans = [program(batches, windows, key, **how) for key in ("k", by_function)]
    on_columns, objects = (plan.operators[0].speed for plan in plans)
    assert "on columns until then" not in objects
    assert ("on columns until then" in on_columns) == (lateness == 0)
    assert ("aggregated before the shuffle" in on_columns) == aggregates_first(windows, keep_late, lateness, how)
    ours, theirs = ([by_sink(plan, batch) for batch in runner(plan).batches()] for plan in plans)
    assert [[Counter(map(str, sink)) for sink in batch] for batch in ours] == [
        [Counter(map(str, sink)) for sink in batch] for batch in theirs
    ]
    assert_restarts_change_nothing(plans[0], every)


def aggregates_first(windows, keep_late, lateness, how):
    """Whether only aggregates travel to windows with a function on top."""
    has_gaps = isinstance(windows, SlidingEventTimeWindows) and windows.slide > windows.size
    in_batch = how["mode"] is RuntimeExecutionMode.BATCH
    has_list = any(getattr(each, "function", "") == "collect_list" for each in how["aggregates"])
    return not (has_gaps or keep_late or lateness or in_batch or has_list)


SAVED = st.sampled_from(
    [
        (SlidingEventTimeWindows(9, 4), {"trigger": CountTrigger.of(2), "lateness": 5}),
        (EventTimeSessionWindows(6), {"trigger": PurgingTrigger.of(CountTrigger.of(2)), "lateness": 5}),
        (EventTimeSessionWindows(6), {"trigger": CountTrigger.of(3)}),
        (SlidingEventTimeWindows(9, 4), {"trigger": PurgingTrigger.of(ContinuousEventTimeTrigger(3)), "lateness": 5}),
        (SlidingEventTimeWindows(20, 1), {"aggregates": (*AGGREGATES, Reporting())}),
    ]
)


@examples(30)
@given(BATCHES.map(unique_times), SAVED, st.integers(1, 3), st.sampled_from(["k", COMPUTED[1]]))
def test_a_savepoint_goes_on_where_it_was_taken(batches, saved, until, key):
    windows, how = saved
    plan = program(batches, windows, key, **how)
    whole = [by_sink(plan, batch) for batch in runner(plan).batches()]
    before, found = runner(plan), []
    for batch in before.batches():
        found.append(by_sink(plan, batch))
        if len(found) == until:
            break
    with TemporaryDirectory() as directory:
        savepoint = take_savepoint(plan, before.checkpoint, f"{directory}/saved")
        check_fit(savepoint, plan.identity(), plan.operators, allow_non_restored=False)
        found += [by_sink(plan, batch) for batch in runner(plan, checkpoint=begun_from(savepoint, plan)).batches()]
    together, expected = (Counter(str(each) for batch in run for each in batch[0]) for run in (found, whole))
    assert together == expected
