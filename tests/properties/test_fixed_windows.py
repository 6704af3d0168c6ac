"""Work by key and window gives what work on one element after the other gives: the same results in the same order."""

from copy import deepcopy
from tempfile import TemporaryDirectory
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.common import Duration, Row, Types, WatermarkStrategy
from eventide.datastream import OutputTag, ProcessWindowFunction, RuntimeExecutionMode
from eventide.datastream.functions import AggregateFunction, associative
from eventide.datastream.state import ValueStateDescriptor
from eventide.datastream.window import (
    CumulatingEventTimeWindows,
    EventTimeTrigger,
    SlidingEventTimeWindows,
    TumblingCalendarWindows,
    TumblingEventTimeWindows,
)
from eventide.local.host import begun_from, take_savepoint
from eventide.local.runner import LocalCheckpoint, LocalRunner
from eventide.runtime.elements import elements as elements_module
from eventide.runtime.window import element_store, operation, reducing
from eventide.testing import Idle, ScriptedSource, local_environment
from support.examples import examples
from support.twin import AllContents, Contents, by_sink, plan_of, run_with_restarts, runner

EVENT = Types.TUPLE([Types.STRING(), Types.LONG(), Types.STRING()])
PERSON = Types.ROW_NAMED(["key", "time", "text"], [Types.STRING(), Types.LONG(), Types.STRING()])
LATE = OutputTag("late")
ELEMENTS = st.tuples(st.sampled_from("abc"), st.integers(-15, 60), st.text("xyz", min_size=1, max_size=2))
WINDOWS = st.one_of(
    st.builds(TumblingEventTimeWindows, st.integers(4, 12), st.integers(-3, 3)),
    st.builds(SlidingEventTimeWindows, st.integers(1, 12), st.integers(4, 12), st.integers(-3, 3)),
    st.builds(SlidingEventTimeWindows, st.just(12), st.integers(2, 5)),
    st.just(SlidingEventTimeWindows(36, 2)),
    st.builds(lambda steps: CumulatingEventTimeWindows(4 * steps, 4, 3), st.integers(1, 18)),
    st.just(TumblingCalendarWindows.of("day")),  # which begins at 0
)
FIRINGS = ValueStateDescriptor("firings", Types.LONG())
LATENESS = st.sampled_from([0, 0, 1, 4, 30])


class OneByOne(EventTimeTrigger):
    """An equal trigger; but a subclass may do anything, so every element is shown to it."""


class Texts(AggregateFunction):
    """All texts, in the order of arrival."""

    def create_accumulator(self):
        return []

    def add(self, value, accumulator):
        accumulator.append(value[2])
        return accumulator

    def get_result(self, accumulator):
        return list(accumulator)

    def merge(self, acc_a, acc_b):
        raise NotImplementedError


def joined(a, b):
    """Associative, but not commutative."""
    return a[0], min(a[1], b[1]), a[2] + b[2]


def folded(a, b):
    """Right only from the left: the last letter counts the calls."""
    return a[0], max(a[1], b[1]), a[2] + b[2] + chr(ord(a[2][-1]) + 1)


class Counted(ProcessWindowFunction):
    """Counts firings by window and by key."""

    def process(self, key, context, elements):
        counts = []
        for store in (context.window_state(), context.global_state()):
            count = store.get_state(FIRINGS)
            count.update((count.value() or 0) + 1)
            counts.append(count.value())
        yield key, context.window(), [element[2] for element in elements], counts

    def clear(self, context):
        context.window_state().get_state(FIRINGS).clear()


def joined_in_place(a, b):
    """Join two rows by changing the first."""
    a["time"] = min(a.time, b.time)
    a["text"] += b.text
    return a


def scripts(names):
    entry = st.one_of(st.tuples(st.sampled_from(names), ELEMENTS), st.sampled_from(names).map(Idle))
    return st.lists(st.lists(entry, max_size=8), max_size=5)


class AsBatches(ScriptedSource):
    """A scripted source that gives its elements as record batches."""

    def read(self, split, start, end):
        for item in super().read(split, start, end):
            if isinstance(item, tuple):
                yield pa.record_batch([pa.array([cell]) for cell in item], names=["f0", "f1", "f2"])
            else:
                yield item


def results(
    script, windows, build, *, trigger, bound=0, lateness=0, late=None, source=ScriptedSource, splits="s", **how
):
    """The results of a program, micro-batch by micro-batch, and its counts."""
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(bound))
    stream = local_environment().from_source(
        source(list(splits), script, how.get("type_info")),
        strategy.with_timestamp_assigner(how.get("time", lambda e, _: e[1])),
        "script",
    )
    if how.get("mapped"):
        stream = stream.map(*how["mapped"])
    windowed = stream.key_by(how.get("key", lambda e: e[0])).window(windows).trigger(trigger).allowed_lateness(lateness)
    if late is not None:
        windowed = windowed.side_output_late_data(late)
    result = build(windowed)
    sinks = [result] if late is None else [result, result.get_side_output(late)]
    plan = plan_of(*sinks, parallelism=how.get("parallelism", 2))
    ended = runner(plan)
    batches = [by_sink(plan, batch) for batch in ended.batches()]
    counted = ended.metrics()
    return batches, {name: counters for name, counters in counted.items() if name != "script"}


def agree(script, windows, build, **how):
    fast = results(script, windows, build, trigger=EventTimeTrigger(), **how)
    assert fast == results(script, windows, build, trigger=OneByOne(), **how)


@given(scripts("s"), WINDOWS, st.integers(0, 8), st.integers(1, 4), st.integers(1, 6), st.booleans())
def test_a_split_reduced_before_the_shuffle_gives_the_same(script, windows, bound, handy, at_once, as_columns):
    how = {"type_info": EVENT, "source": AsBatches} if as_columns else {}
    with (
        mock.patch.object(elements_module, "_HANDY", handy),
        mock.patch.object(reducing, "_VALUES_AT_ONCE", at_once),
    ):
        agree(script, windows, lambda windowed: windowed.reduce(associative(joined)), bound=bound, **how)


@given(scripts("st"), WINDOWS, st.integers(0, 8), st.integers(1, 3))
def test_several_splits_reduced_before_the_shuffle_give_the_same_but_for_their_order(
    script, windows, bound, parallelism
):
    def sorted_texts(found):
        batches, counted = found
        rows = [[(k, t, sorted(text), at) for (k, t, text), at in batch[0]] for batch in batches]
        return [sorted(batch) for batch in rows], counted

    how = {"bound": bound, "parallelism": parallelism, "splits": "st"}
    fast, slow = (
        results(script, windows, lambda windowed: windowed.reduce(associative(joined)), trigger=trigger, **how)
        for trigger in (EventTimeTrigger(), OneByOne())
    )
    assert sorted_texts(fast) == sorted_texts(slow)


@given(scripts("s"), WINDOWS, st.integers(0, 8), st.booleans())
def test_a_function_may_change_its_first_argument(script, windows, bound, declared):
    row = lambda e: Row(key=e[0], time=e[1], text=e[2])  # noqa: E731
    how = {"mapped": (row, PERSON if declared else None), "key": lambda e: e["key"], "bound": bound}
    agree(script, windows, lambda windowed: windowed.reduce(associative(joined_in_place)), **how)


@pytest.mark.parametrize("late", [None, LATE])
@examples(100)
@given(script=scripts("st"), windows=WINDOWS, bound=st.integers(0, 8), lateness=LATENESS)
def test_elements_that_travel_give_the_same_with_lateness_and_late_elements(late, script, windows, bound, lateness):
    for build in (
        lambda windowed: windowed.process(Contents()),
        lambda windowed: windowed.aggregate(Texts()),
        lambda windowed: windowed.allowed_lateness(max(lateness, 1)).reduce(associative(joined)),
        lambda windowed: windowed.reduce(folded),
        lambda windowed: windowed.process(Counted()),
    ):
        agree(script, windows, build, bound=bound, lateness=lateness, late=late, splits="st")


@given(scripts("st"), st.integers(0, 8))
def test_windows_without_keys_are_reduced_before_the_shuffle_too(script, bound):
    def reduced(trigger):
        strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(bound))
        source = ScriptedSource(["s", "t"], script)
        stream = local_environment().from_source(source, strategy.with_timestamp_assigner(lambda e, _: e[1]), "script")
        windowed = stream.window_all(TumblingEventTimeWindows.of(10)).trigger(trigger)
        plan = plan_of(windowed.reduce(associative(lambda a, b: ("", max(a[1], b[1]), ""))))
        return [by_sink(plan, batch) for batch in runner(plan).batches()]

    def times(batches):
        return [[(value[1], at) for value, at in batch[0]] for batch in batches]

    assert times(reduced(EventTimeTrigger())) == times(reduced(OneByOne()))


NESTED = Types.ROW_NAMED(
    ["key", "time", "text", "tags"],
    [Types.STRING(), Types.LONG(), Types.STRING(), Types.LIST(Types.DOUBLE())],
)
KEYS = {
    "a field": ("key",),
    "two fields": ("key", "text"),
    "a function that returns a field": (lambda e: e.key,),
    "a function that computes": (lambda e: (e.text, e.time % 3), Types.TUPLE([Types.STRING(), Types.LONG()])),
    "no key": None,
}
TAGS = st.lists(st.one_of(st.none(), st.sampled_from([0.0, -0.0, 1.5])), max_size=2)
ROWS = st.tuples(
    st.one_of(st.none(), st.sampled_from("abc")),
    st.integers(-15, 60),
    st.one_of(st.none(), st.sampled_from("xy")),
    TAGS,
)


class Changed(ProcessWindowFunction):
    """Changes the elements that it is given, and the list of them, after it has emitted copies."""

    def process(self, key, context, elements):
        yield key, context.window(), deepcopy(elements)
        for element in elements:
            element["text"] = "changed"
            element.tags.append(9.0)
        elements.clear()


def kept(script, windows, key, function, *, trigger, bound, late, lateness, as_columns, every, batch):
    """The results of a program whose windows keep all elements, and whether they are kept on columns."""
    source = RowBatches if as_columns else ScriptedSource
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(bound))
    stream = local_environment().from_source(
        source(["s", "t"], script, NESTED), strategy.with_timestamp_assigner("time"), "script", NESTED
    )
    windowed = stream.window_all(windows) if key is None else stream.key_by(*key).window(windows)
    windowed = windowed.trigger(trigger).allowed_lateness(lateness)
    windowed = windowed if late is None else windowed.side_output_late_data(late)
    result = windowed.process(AllContents() if key is None else function)
    sinks = [result] if late is None else [result, result.get_side_output(late)]
    mode = RuntimeExecutionMode.BATCH if batch else RuntimeExecutionMode.STREAMING
    plan = plan_of(*sinks, mode=mode)
    (task,) = plan.operators
    found = run_with_restarts(plan, every) if every else [by_sink(plan, one) for one in runner(plan).batches()]
    return repr(found), task.operator.tables is not None


class RowBatches(ScriptedSource):
    """A scripted source that gives its elements as record batches."""

    def read(self, split, start, end):
        for item in super().read(split, start, end):
            yield item if not isinstance(item, Row) else pa.RecordBatch.from_struct_array(NESTED.to_arrow([item]))


@examples(100)
@given(
    st.lists(
        st.lists(st.one_of(st.tuples(st.sampled_from("st"), ROWS), st.sampled_from("st").map(Idle)), max_size=8),
        max_size=5,
    ),
    WINDOWS,
    st.sampled_from(sorted(KEYS)),
    st.integers(0, 8),
    st.sampled_from([None, LATE]),
    LATENESS,
    st.booleans(),
    st.sampled_from([0, 0, 1, 2]),
    st.booleans(),
    st.integers(1, 4),
    st.sampled_from([Contents, Counted, Changed]),
)
def test_elements_that_are_kept_on_columns_give_the_same(
    script, windows, key, bound, late, lateness, as_columns, every, batch, at_once, function
):
    script = [
        [one if isinstance(one, Idle) else (one[0], Row(key=one[1][0], time=one[1][1], text=one[1][2], tags=one[1][3]))
         for one in some]
        for some in script
    ]  # fmt: skip
    how = {
        "bound": bound,
        "late": late,
        "lateness": lateness,
        "as_columns": as_columns,
        "every": 0 if batch else every,
        "batch": batch,
    }
    with (
        mock.patch.object(element_store, "_OBJECTS_AT_ONCE", at_once),
        mock.patch.object(elements_module, "_SMALL_BYTES", 0 if at_once == 1 else 1 << 30),
    ):
        fast, on_columns = kept(script, windows, KEYS[key], function(), trigger=EventTimeTrigger(), **how)
        slow, as_objects = kept(script, windows, KEYS[key], function(), trigger=OneByOne(), **how)
    assert (on_columns, as_objects) == (True, False)
    assert fast == slow


@settings(max_examples=15)
@given(
    st.lists(st.lists(st.tuples(st.just("s"), ELEMENTS), max_size=8), min_size=4, max_size=4),
    WINDOWS,
    st.sampled_from(["a field", "a function that computes"]),
    st.integers(0, 8),
    LATENESS,
)
def test_state_of_objects_goes_on_on_columns_after_a_restart_and_in_a_savepoint(script, windows, key, bound, lateness):
    rows = [[(split, Row(key=e[0], time=e[1], text=e[2], tags=[])) for split, e in some] for some in script]

    def planned(parallelism=2):
        strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(bound))
        stream = local_environment().from_source(
            ScriptedSource(["s"], rows, NESTED), strategy.with_timestamp_assigner("time"), "script", NESTED
        )
        windowed = stream.key_by(*KEYS[key]).window(windows).allowed_lateness(lateness)
        return plan_of(windowed.process(Counted()).uid("w"), parallelism=parallelism)

    def run_on(plan, checkpoint, batches):
        one = LocalRunner(plan, clock=lambda: 0, checkpoint=checkpoint)
        for batch in one.batches():
            found.extend(value for value, _ in by_sink(plan, batch)[0])
            batches -= 1
            if not batches:
                break
        return one.checkpoint

    found = []
    run_on(planned(), LocalCheckpoint(), -1)
    expected, found = sorted(map(repr, found)), []
    with mock.patch.object(operation, "_kept_as_objects", return_value="an earlier version did"):
        before = planned()
    plan = planned()
    assert before.operators[0].operator.tables is None
    assert plan.operators[0].operator.tables is not None
    assert before.identity() == plan.identity()
    checkpoint = run_on(before, LocalCheckpoint(), 2)
    checkpoint = run_on(plan, checkpoint, 1)
    with TemporaryDirectory() as directory:
        savepoint = take_savepoint(plan, checkpoint, directory)
        dealt_out = planned(parallelism=3)
        run_on(dealt_out, begun_from(savepoint, dealt_out), -1)
    assert sorted(map(repr, found)) == expected
