"""Elements are reduced before the shuffle, unless that could change a result; the plan says which, and why."""

import re
from functools import reduce
from typing import Any, ClassVar

import pytest

from eventide.aggregates import count
from eventide.common import Row, Types, WatermarkStrategy
from eventide.datastream import OutputTag
from eventide.datastream.functions import AggregateFunction, ReduceFunction, associative, in_python, not_associative
from eventide.datastream.window import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindows,
    ProcessingTimeSessionWindows,
    ProcessingTimeTrigger,
    PurgingTrigger,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TimeWindow,
    TriggerResult,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from eventide.errors import ProgramError, UserFunctionError
from eventide.runtime.exchange.partitioners import KeyGroupPartitioner
from eventide.runtime.window.reducing import ReducingPartitioner
from eventide.runtime.window.thinning import ThinningPartitioner
from eventide.testing import ScriptedSource, local_environment
from support.twin import Contents, plan_of, run, timed, values

TENS = TumblingEventTimeWindows.of(10)


class Counting(ReduceFunction):
    """Adds, and remembers what happened to all of its objects."""

    is_associative = True
    life: ClassVar[list[Any]] = []

    def open(self, runtime_context):
        self.life.append(("open", runtime_context.get_task_name()))

    def reduce(self, value1, value2):
        return value1[0], value1[1] + value2[1]

    def close(self):
        self.life.append("close")


def reduced(assigner=TENS, change=lambda windowed: windowed):
    keyed = timed(local_environment(), [("a", 1), ("a", 2), ("b", 13)]).key_by(lambda e: e[0], Types.STRING())
    return plan_of(change(keyed.window(assigner)).reduce(associative(lambda a, b: (a[0], a[1] + b[1]))))


A_FUNCTION = r"a function \(line \d+ of [a-z_]+\.py\) is Python"


def edge_of(plan):
    (edge,) = plan.sources[0].root.all_edges()
    return edge


@pytest.mark.parametrize("assigner", [TENS, SlidingEventTimeWindows.of(10, 5), SlidingEventTimeWindows.of(10, 10)])
def test_windows_by_themselves_are_reduced_before_the_shuffle(assigner):
    plan = reduced(assigner)
    assert isinstance(edge_of(plan).partitioner, ReducingPartitioner)
    assert re.search(f"reduced before the shuffle, because {A_FUNCTION};", plan.operators[0].speed)
    assert "reduced before the shuffle to one for each key and pane" in edge_of(plan).partitioner.describe()


@pytest.mark.parametrize(
    ("assigner", "change", "why"),
    [
        (TENS, lambda w: w.allowed_lateness(1), "each late element fires its window; without allowed_lateness"),
        (TENS, lambda w: w.side_output_late_data(OutputTag("late")), "late elements go to a side output as they are"),
        (TENS, lambda w: w.trigger(CountTrigger.of(2)), "with CountTrigger.* looks at single elements"),
        (EventTimeSessionWindows.with_gap(5), lambda w: w, "looks at single elements; tumbling and sliding windows"),
        (SlidingEventTimeWindows.of(5, 10), lambda w: w, "some elements are in no window; a slide of at most the size"),
        (
            TumblingProcessingTimeWindows.of(5),
            lambda w: w,
            "looks at single elements; tumbling and sliding windows of event time",
        ),
    ],
)
def test_windows_that_need_each_element_are_not(assigner, change, why):
    plan = reduced(assigner, change)
    assert isinstance(edge_of(plan).partitioner, KeyGroupPartitioner)
    speed = plan.operators[0].speed
    assert re.match(f"element by element, because {A_FUNCTION}", speed)
    assert "; not reduced before the shuffle, because " in speed
    assert re.search(why, speed)


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (
            lambda a, b: a,
            r"the reduce function does not say that it is associative, and its code does not show it: the type of its "
            r"elements is not declared \(line \d+ of test_operation.py\); if it is, say so: reduce\(associative\(…\)\)",
        ),
        (not_associative(lambda a, b: a), "the reduce function says that it is not associative"),
    ],
)
def test_a_function_that_is_not_said_to_be_associative_is_not_called_before_the_shuffle(function, why):
    keyed = timed(local_environment(), [("a", 1), ("a", 2)]).key_by(lambda e: e[0], Types.STRING())
    plan = plan_of(keyed.window(TENS).reduce(function))
    assert isinstance(edge_of(plan).partitioner, KeyGroupPartitioner)
    assert re.search(f"; not reduced before the shuffle, because {why}", plan.operators[0].speed)


@pytest.mark.parametrize(
    ("function", "way"),
    [
        (lambda a, b: (a[0], a[1] + b[1]), ReducingPartitioner),
        (lambda a, b: (a[0], max(a[1], b[1])), ReducingPartitioner),
        (lambda a, b: (a[0], a[1] + 1), KeyGroupPartitioner),
        # All that its elements differ in is the highest value.
        (lambda a, b: a if a[1] >= b[1] else b, ReducingPartitioner),
        (lambda a, b: b, ThinningPartitioner),
        (in_python(lambda a, b: b), KeyGroupPartitioner),
        (in_python(lambda a, b: (a[0], a[1] + b[1])), KeyGroupPartitioner),
    ],
)
def test_a_function_is_seen_to_be_associative_where_the_order_of_elements_does_not_show(function, way):
    kind = Types.TUPLE([Types.STRING(), Types.LONG()])
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda e, _: e[1])
    stream = local_environment().from_collection([("a", 1), ("a", 2), ("b", 3)], kind)
    keyed = stream.assign_timestamps_and_watermarks(strategy).key_by(lambda e: e[0], Types.STRING())
    plan = plan_of(keyed.window(TENS).reduce(function))
    assert isinstance(edge_of(plan).partitioner, way)
    left = {key: reduce(function, of) for key, of in {"a": [("a", 1), ("a", 2)], "b": [("b", 3)]}.items()}
    assert sorted(values(run(plan))) == sorted(left.values())


@pytest.mark.parametrize("lateness", [0, 1])
def test_a_fold_means_the_same_with_and_without_lateness(lateness):
    stream = timed(local_environment(), [("a", 1, 1), ("a", 2, 1), ("a", 3, 1), ("a", 4, 1)])
    windowed = stream.key_by(lambda e: e[0]).window(TENS).allowed_lateness(lateness)
    counting = windowed.reduce(lambda a, b: (a[0], a[1], a[2] + 1))
    assert values(run(plan_of(counting), max_rows=1)) == [("a", 1, 4)]
    assert values(run(plan_of(counting))) == [("a", 1, 4)]


ROW = Types.ROW_NAMED(["user", "amount"], [Types.STRING(), Types.LONG()])


def counted(assigner, trigger=None, lateness=0):
    """The speed of windows that count by column."""
    rows = (
        local_environment()
        .from_collection([], ROW)
        .assign_timestamps_and_watermarks(
            WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("amount")
        )
    )
    windowed = rows.key_by("user").window(assigner).allowed_lateness(lateness)
    return plan_of((windowed if trigger is None else windowed.trigger(trigger)).aggregate(count())).operators[0]


def test_tumbling_windows_by_the_clock_run_on_columns():
    stage = counted(TumblingProcessingTimeWindows.of(5))
    assert stage.speed == "columns, aggregated before the shuffle"
    assert ("late", "nothing: these windows do not follow event time") in stage.operator.describe()
    continuous = counted(TumblingProcessingTimeWindows.of(5), ContinuousProcessingTimeTrigger.of(5))
    assert continuous.speed.startswith("element by element, because the trigger ContinuousProcessingTimeTrigger")


@pytest.mark.parametrize(
    "assigner", [SlidingProcessingTimeWindows.of(10, 5), ProcessingTimeSessionWindows.with_dynamic_gap(len)]
)
def test_other_windows_by_the_clock_work_element_by_element_and_the_plan_says_why(assigner):
    stage = counted(assigner)
    assert stage.speed.startswith("element by element, because the windows ")
    assert "follow processing time; use tumbling windows of processing time, or windows of event time" in stage.speed
    assert ("late", "nothing: these windows do not follow event time") in stage.operator.describe()
    plan = reduced(assigner)
    because = f"because {A_FUNCTION}, and the windows follow processing time"
    assert re.match(f"element by element, {because}", plan.operators[0].speed)


@pytest.mark.parametrize("trigger", [ProcessingTimeTrigger(), ContinuousProcessingTimeTrigger.of(5)])
def test_triggers_by_the_clock_work_element_by_element_and_the_plan_says_why(trigger):
    assert re.search(r"the trigger .* waits for processing time; use the windows' own", counted(TENS, trigger).speed)
    assert counted(TENS).speed.startswith("columns")


GAP = EventTimeSessionWindows.with_gap(5)
SLIDING = SlidingEventTimeWindows.of(10, 5)
GLOBAL = GlobalWindows.create()
BY_COUNT, AT_INTERVALS = CountTrigger.of(2), ContinuousEventTimeTrigger.of(3)


@pytest.mark.parametrize("assigner", [TENS, SLIDING, GAP, GLOBAL])
@pytest.mark.parametrize("wraps", [lambda trigger: trigger, PurgingTrigger.of])
def test_windows_that_fire_by_counts_run_on_columns(assigner, wraps):
    assert counted(assigner, wraps(BY_COUNT)).speed.startswith(
        "columns, rows go through the shuffle, because their order"
    )


@pytest.mark.parametrize(
    ("assigner", "trigger", "lateness", "speed"),
    [
        (TENS, PurgingTrigger.of(EventTimeTrigger()), 0, "columns, aggregated before the shuffle"),
        (GAP, PurgingTrigger.of(EventTimeTrigger()), 0, "columns, rows go through the shuffle, because their order"),
        (TENS, PurgingTrigger.of(EventTimeTrigger()), 1, "columns, rows .* because each late element fires alone"),
        (
            GAP,
            PurgingTrigger.of(EventTimeTrigger()),
            1,
            "element by element, because .* leaves sessions that are empty",
        ),
        (SLIDING, PurgingTrigger.of(AT_INTERVALS), 1, "columns, rows .* because the trigger follows from the first"),
        (
            GAP,
            AT_INTERVALS,
            0,
            "element by element, because a ContinuousEventTimeTrigger does not run on columns with sessions",
        ),
    ],
)
def test_the_plan_says_which_triggers_run_on_columns(assigner, trigger, lateness, speed):
    assert re.match(speed, counted(assigner, trigger, lateness).speed)


class Total(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + value[1]

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


def _with_partials(function, assigner, *batches):
    """The results with elements that come in micro-batches: reduced before the shuffle, if the function allows it."""
    kind = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()])
    source = ScriptedSource(["s"], [[("s", element) for element in batch] for batch in batches], kind)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda e, _: e[2])
    stream = local_environment().from_source(source, strategy, "events").key_by(lambda e: e[0], Types.STRING())
    windowed = stream.window(assigner)
    stream = windowed.aggregate(function) if isinstance(function, AggregateFunction) else windowed.reduce(function)
    assert isinstance(edge_of(plan_of(stream)).partitioner, ReducingPartitioner)
    return list(stream.execute_and_collect())


@pytest.mark.parametrize(
    ("function", "assigner", "bad", "results"),
    [
        (lambda a, b: (a[0], a[1] + b[1], max(a[2], b[2])), TENS, None, [("a", 1, 5), ("a", 3, 51)]),
        (Total(), TENS, None, [1, 3]),
        (
            lambda a, b: (a[0], a[1] + b[1], max(a[2], b[2])),
            SlidingEventTimeWindows.of(10, 5),
            None,
            [("a", 1, 5), ("a", 1, 5), ("a", 3, 51), ("a", 3, 51)],
        ),
        (associative(lambda a, b: (a[0], a[1] // b[1], a[2])), TENS, 0, [("a", 1, 5), ("a", 0, 50)]),
    ],
)
def test_a_function_cannot_fail_at_a_late_element(function, assigner, bad, results):
    """The task that calls it before the shuffle does not know what is late; the operator tells the other errors.

    Flink drops late elements without calling the function.
    """
    good = [("a", 1, 5), ("a", 1, 50)]
    late = [("a", bad, 6), ("a", bad, 7)]
    assert _with_partials(function, assigner, good, late, [("a", 2, 51)]) == results
    said = r"while it handled an element \(key 'a', element \('a', (None|0), 5[23]\)\): .*(Type|ZeroDivision)Error"
    with pytest.raises(UserFunctionError, match=said):
        _with_partials(function, assigner, good, [("a", bad, 52), ("a", bad, 53)])


def _or_zero(a, b):
    return (a or 0) + (b or 0)


@pytest.mark.parametrize("function", [associative(_or_zero), not_associative(_or_zero)])
@pytest.mark.parametrize(
    ("assigner", "windows"),
    [(TENS, 1), (SlidingEventTimeWindows.of(10, 5), 2), (EventTimeSessionWindows.with_gap(9), 1)],
)
@pytest.mark.parametrize(
    "batches",
    [[[1, 2, None, 3]], [[1, 2], [None, 3]], [[1, 2], [None], [3]], [[None, 3]], [[7], [1, None, 2, None], [1, 2]]],
)
@pytest.mark.parametrize("kind", [Types.LONG(), None])
def test_an_element_that_is_none_clears_what_a_reduce_function_made_before_it(
    function, assigner, windows, batches, kind
):
    """None is an element that clears the state in Flink, too: ``HeapReducingState.add``."""
    assert _of_none(function, assigner, batches, kind) == [3] * windows
    assert _of_none(function, assigner, [*batches, [None]], kind) == []


def _of_none(function, assigner, batches, kind):
    script = [[("s", element) for element in batch] for batch in batches]
    source = ScriptedSource(["s"], script, kind) if kind else ScriptedSource(["s"], script)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda e, _: 6)
    stream = local_environment().from_source(source, strategy, "numbers").key_by(lambda e: "k", Types.STRING())
    return list(stream.window(assigner).reduce(function).execute_and_collect())


def test_with_an_evictor_a_reduce_function_is_called_with_none():
    """None is an element like any other there. Flink: ``ReduceApplyWindowFunction``."""
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda e, _: 6)
    source = ScriptedSource(["s"], [[("s", element) for element in (1, 2, None, 3)]])
    stream = local_environment().from_source(source, strategy, "numbers").key_by(lambda e: "k", Types.STRING())
    results = stream.window(TENS).evictor(CountEvictor.of(9)).reduce(_or_zero).execute_and_collect()
    assert list(results) == [6]


def test_a_rolling_reduce_function_is_called_with_none():
    stream = timed(local_environment(), [("a", 1), ("a", 2)]).map(lambda e: None if e[1] == 2 else 1)
    results = stream.key_by(lambda e: "k", Types.STRING()).reduce(lambda a, b: (a, b)).execute_and_collect()
    assert list(results) == [1, (1, None)]


def test_a_reduce_function_that_works_on_both_sides_of_a_shuffle_is_opened_and_closed_on_each():
    Counting.life.clear()
    function = Counting()
    stream = timed(local_environment(), [("a", 1), ("a", 2)])
    plan = plan_of(stream.key_by(lambda e: e[0]).window(TENS).reduce(function))
    assert values(run(plan)) == [("a", 3)]
    assert function.life == [("open", "TumblingEventTimeWindows.reduce")] * 3 + ["close"] * 3, (
        "one before it, two behind"
    )


class EachElement(EventTimeTrigger):
    """Fires with each element, too."""

    def on_element(self, element, timestamp, window, ctx):
        super().on_element(element, timestamp, window, ctx)
        return TriggerResult.FIRE


class Shifted(TumblingEventTimeWindows):
    """Windows that begin five milliseconds later."""

    def assign_windows(self, element, timestamp, context):
        return [TimeWindow(w.start + 5, w.end + 5) for w in super().assign_windows(element, timestamp, context)]


@pytest.mark.parametrize(
    ("assigner", "trigger", "ends"), [(TENS, EachElement(), [10, 10, 10, 20, 20]), (Shifted(10, 0), None, [15, 25])]
)
def test_what_a_subclass_overrides_holds_for_aggregates_of_columns_too(assigner, trigger, ends):
    rows = (
        local_environment()
        .from_collection([Row(user="a", amount=1), Row(user="a", amount=2), Row(user="a", amount=13)], ROW)
        .assign_timestamps_and_watermarks(
            WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("amount")
        )
    )
    windowed = rows.key_by("user").window(assigner)
    plan = plan_of((windowed if trigger is None else windowed.trigger(trigger)).aggregate(count()))
    assert plan.operators[0].speed.startswith("element by element, because the ")
    assert sorted(row["window"].end for row in values(run(plan))) == ends


class Ends(ContinuousEventTimeTrigger):
    """Does not wait for the next multiple."""

    def on_event_time(self, time, window, ctx):
        return TriggerResult.FIRE


class EmptiesAtTheEnd(PurgingTrigger):
    """Fires with each element, and asks for nothing."""

    def on_element(self, element, timestamp, window, ctx):
        return TriggerResult.FIRE


@pytest.mark.parametrize("trigger", [Ends(5), PurgingTrigger.of(Ends(5)), EmptiesAtTheEnd(Ends(5))])
def test_a_subclass_of_a_trigger_that_goes_on_for_ever_may_end(trigger):
    keyed = timed(local_environment(), [("a", 1), ("a", 2)]).key_by(lambda e: e[0])
    assert plan_of(keyed.window(GlobalWindows.create()).trigger(trigger).reduce(lambda a, b: b)).operators


@pytest.mark.parametrize("wraps", [lambda trigger: trigger, PurgingTrigger.of])
def test_a_continuous_trigger_whose_windows_have_no_end_is_refused(wraps):
    windows = timed(local_environment(), [("a", 1)]).key_by(lambda e: e[0]).window(GlobalWindows.create())
    with pytest.raises(ProgramError, match="would not end with its input: its windows have no end"):
        plan_of(windows.trigger(wraps(ContinuousEventTimeTrigger.of(5))).reduce(lambda a, b: b))


PAIR = Types.TUPLE([Types.STRING(), Types.LONG()])
PRICED = Types.TUPLE([Types.STRING(), Types.BIG_DEC()])
BY_TEXT = (lambda e: e[0], Types.STRING())


def listed(kind=PAIR, key=BY_TEXT, windows=TENS, change=lambda windowed: windowed):
    stream = timed(local_environment(), [("a", 1)])
    stream = stream if kind is None else stream.map(lambda e: e, kind)
    (task,) = plan_of(change(stream.key_by(*key).window(windows)).process(Contents())).operators
    return task


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"kind": None}, "their type is not declared; declare the output_type"),
        ({"kind": PRICED}, "columns do not keep the digits of their decimal numbers"),
        ({"key": (lambda e: e[1] / 2,)}, r"keys of type PICKLED_BYTE_ARRAY apart .*or declare the key_type"),
        ({"key": (lambda e: e[1] / 2, Types.DOUBLE())}, "keys of type DOUBLE apart as Python does"),
        (
            {"windows": EventTimeSessionWindows.with_gap(5)},
            "looks at single elements; tumbling and sliding windows of event",
        ),
        ({"change": lambda w: w.trigger(CountTrigger.of(2))}, "looks at single elements; tumbling and sliding windows"),
    ],
)
def test_elements_of_windows_are_kept_as_objects_where_columns_would_not_do(how, why):
    task = listed(**how)
    assert re.search(f"^element by element, because .*; elements are kept as objects, because .*{why}", task.speed)
    assert task.operator.tables is None


@pytest.mark.parametrize(
    "key", [BY_TEXT, ("f0",), ("f0", "f1"), (lambda e: e[0],), (lambda e: e[1] // 2, Types.LONG())]
)
def test_elements_of_windows_are_kept_on_columns(key):
    task = listed(key=key)
    because = r"because Contents \(line \d+ of twin.py\) is Python"
    assert re.match(f"element by element when a window fires, on columns until then, {because}", task.speed)
    assert task.operator.tables is not None
