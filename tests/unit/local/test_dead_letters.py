"""Elements that cannot be handled stop the job, or become dead letters where the program says so."""

import asyncio
import itertools
import threading

import pytest

from eventide.api.functions.output_tag import DeadLetterLimits
from eventide.common import Row, Time, Types, WatermarkGenerator, WatermarkStrategy
from eventide.common.words import summary
from eventide.datastream import (
    AggregateFunction,
    AsyncDataStream,
    AsyncFunction,
    KeyedProcessFunction,
    OutputTag,
    ProcessFunction,
    ProcessWindowFunction,
)
from eventide.datastream.connectors import Source, Unreadable
from eventide.datastream.functions import AllWindowFunction, ProcessJoinFunction
from eventide.datastream.state import ValueStateDescriptor
from eventide.datastream.window import (
    CountTrigger,
    SlidingEventTimeWindows,
    TimeWindow,
    TriggerResult,
    TumblingEventTimeWindows,
)
from eventide.errors import DataError, ProgramError, StateError, UserFunctionError
from eventide.local.host import evidence
from eventide.local.runner import LocalCheckpoint
from eventide.plan.description import explain
from eventide.testing import local_environment
from eventide.why import why
from support.twin import BY_SECOND_FIELD, by_sink, plan_of, run, runner, timed, values

BAD = OutputTag("bad")
TENS = TumblingEventTimeWindows.of(10)
NO_WATERMARKS = WatermarkStrategy.no_watermarks()


def both(stream):
    """The output, the dead letters, and the counters."""
    plan = plan_of(stream, stream.get_side_output(BAD))
    one = runner(plan)
    batches = [by_sink(plan, batch) for batch in one.batches()]
    return values(batches), values(batches, sink=1), one.metrics()


def collection(*elements, type_info=None):
    return local_environment().from_collection(list(elements), type_info)


def test_a_letter_says_what_was_bad_where_and_why():
    good, letters, metrics = both(collection("1", "two", "3").map(int).name("parse").side_output_dead_letters(BAD))
    assert good == [1, 3]
    assert letters == [
        Row(
            operator="parse",
            during="while it handled an element",
            error_type="ValueError",
            error="invalid literal for int() with base 10: 'two'",
            element="two",
            text="two",
            key=None,
            timestamp=None,
            split=None,
            position=None,
        )
    ]
    assert metrics["parse"] == {"numDeadLetters": 1}


def test_without_it_the_job_stops_and_says_what_would_let_it_go_on():
    with pytest.raises(
        UserFunctionError, match=r"in operator 'map', while it handled an element \(element 'two'\)"
    ) as e:
        run(plan_of(collection("1", "two").map(int)))
    assert "side_output_dead_letters(OutputTag(...)), called on the stream that this operator gives" in str(e.value)


def test_they_are_counted_though_they_are_not_taken():
    plan = plan_of(collection("1", "two").map(int).side_output_dead_letters(BAD))
    one = runner(plan)
    assert [batch.elements[plan.sinks[0].number] for batch in one.batches() if batch.elements] == [[(1, None)]]
    assert one.metrics()["map"] == {"numDeadLetters": 1}


def test_a_letter_has_the_event_time_of_its_element_and_is_an_element_of_that_time_itself():
    stream = timed(local_environment(), [("a", 1), ("b", 12), ("c", 13)]).map(lambda e: e[0].index("b"))
    letters = stream.side_output_dead_letters(BAD).get_side_output(BAD)

    class Counts(AllWindowFunction):
        def apply(self, window, inputs):
            yield window.start, [letter.timestamp for letter in inputs]

    assert values(run(plan_of(letters.window_all(TENS).apply(Counts())))) == [(0, [1]), (10, [13])]


def test_the_element_is_as_it_was_though_the_function_changed_it():
    def spoil(row):
        row["n"] = None
        raise KeyError("gone")

    row = {"n": 1}
    _, [letter], _ = both(collection(row).map(spoil).side_output_dead_letters(BAD))
    assert (letter.element, letter.text, letter.error) == ({"n": 1}, "{'n': 1}", "'gone'")


def test_what_is_wrong_with_the_program_is_no_dead_letter():
    def wrong(value):
        raise ProgramError("this needs another setting")

    with pytest.raises(ProgramError, match=r"in operator 'map'.*this needs another setting"):
        run(plan_of(collection(1).map(wrong).side_output_dead_letters(BAD)))


class Misconfigured(KeyedProcessFunction, AggregateFunction):
    """Finds with the first element that the program is wrong."""

    def process_element(self, value, ctx):
        raise ProgramError("this needs another setting")

    def create_accumulator(self):
        raise ProgramError("this needs another setting")

    add = get_result = merge = None


@pytest.mark.parametrize(
    "wrong", [lambda s: s.process(Misconfigured()), lambda s: s.window(TENS).aggregate(Misconfigured())]
)
def test_what_is_wrong_with_the_program_is_told_of_once_with_key_and_element(wrong):
    stream = wrong(timed(local_environment(), [("a", 1)]).key_by(lambda e: e[0])).name("wrong")
    with pytest.raises(ProgramError) as e:
        run(plan_of(stream.side_output_dead_letters(BAD)))
    assert str(e.value) == (
        "in operator 'wrong', while it handled an element (key 'a', element ('a', 1)): this needs another setting"
    )


def test_a_result_that_is_not_of_the_declared_type_makes_its_element_bad():
    stream = collection(1, 2, 3).map(lambda n: 1 << 40 if n == 2 else n, Types.INT())
    good, [letter], _ = both(stream.side_output_dead_letters(BAD))
    assert (good, letter.element, letter.error_type) == ([1, 3], 2, "TypeMismatch")


def test_letters_of_several_operators_go_together():
    first = collection("1", "two", "0").map(int).name("parse").side_output_dead_letters(BAD)
    second = first.map(lambda n: 1 // n).name("divide").side_output_dead_letters(BAD)
    letters = first.get_side_output(BAD).union(second.get_side_output(BAD))
    told = letters.map(lambda letter: (letter.operator, letter.text))
    assert values(run(plan_of(told))) == [("divide", "0"), ("parse", "two")]


class Waits(AsyncFunction):
    async def async_invoke(self, value):
        await asyncio.sleep(0)
        if value == 2:
            raise ConnectionError("no answer")
        return [value]


def test_an_element_without_an_answer():
    stream = AsyncDataStream.unordered_wait(collection(1, 2, 3), Waits(), Time.seconds(5))
    good, [letter], _ = both(stream.side_output_dead_letters(BAD))
    assert (good, letter.element, letter.error_type) == ([1, 3], 2, "ConnectionError")


@pytest.mark.parametrize("assigner", [lambda e, _: e["at"], "at"])
def test_a_timestamp_that_cannot_be_found(assigner):
    event = Types.ROW_NAMED(["at"], [Types.LONG()])
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(assigner)
    rows = [Row(at=1), Row(at=None), Row(at=-(2**63)), Row(at=4)]
    stream = collection(*rows, type_info=event).assign_timestamps_and_watermarks(strategy)
    good, letters, metrics = both(stream.side_output_dead_letters(BAD))
    assert [row["at"] for row in good] == [1, 4]
    assert [letter.element["at"] for letter in letters] == [None, -(2**63)]
    assert ["is None" in letters[0].error, "out of range" in letters[1].error] == [True, True]
    assert metrics["timestamps and watermarks"] == {"numDeadLetters": 2}


def test_missing_timestamps_go_where_the_strategy_says_and_bad_ones_become_letters():
    aside = OutputTag("no time")
    strategy = BY_SECOND_FIELD.with_null_timestamps(aside)
    stream = collection(("a", 1), ("b", None), ("c", "x")).assign_timestamps_and_watermarks(strategy)
    stream.side_output_dead_letters(BAD)
    found = run(plan_of(stream, stream.get_side_output(aside), stream.get_side_output(BAD)))
    assert [values(found), values(found, 1)] == [[("a", 1)], [("b", None)]]
    assert [letter.element for letter in values(found, 2)] == [("c", "x")]


class Reuses(ProcessFunction):
    """Gives one dict, which it changes, with each element and while it gives it."""

    def open(self, runtime_context):
        self.sums = {"sum": 0}

    def process_element(self, value, ctx):
        for _ in range(2):
            self.sums["sum"] += value
            yield self.sums


def test_good_data_give_the_same_with_dead_letters_and_without():
    plain = collection(1, 2).process(Reuses())
    assert both(plain.side_output_dead_letters(BAD))[:2] == (values(run(plan_of(plain))), [])
    tagged = collection(1, 2).map(lambda n: (OutputTag("other"), n)).side_output_dead_letters(BAD)
    assert values(run(plan_of(tagged.get_side_output(OutputTag("other"))))) == [1, 2]


def test_text_that_is_none_in_unicode_is_written_out():
    good, [letter], _ = both(collection("1", "\ud83d").map(int).side_output_dead_letters(BAD))
    assert (good, letter.element, letter.text) == ([1], "\ud83d", "\\ud83d")


def test_what_cannot_be_copied_or_pickled_is_no_reason_to_stop():
    def nested(depth):
        found = [1]
        for _ in range(depth):
            found = [found]
        return found

    good, letters, _ = both(collection(0, 700).map(nested).map(len).side_output_dead_letters(BAD))
    assert (good, letters) == ([1, 1], [])
    locks = collection(1, 2).map(lambda n: [n, threading.Lock()]).map(lambda pair: 1 // (pair[0] - 1))
    good, [letter], _ = both(locks.side_output_dead_letters(BAD))
    assert (good, letter.element, letter.error_type) == ([1], None, "ZeroDivisionError")
    assert letter.text.startswith("[1, <unlocked")


class NoText(Exception):
    """Cannot be shown."""

    def __str__(self):
        raise self

    __repr__ = __str__


def test_an_error_that_cannot_be_shown_is_told_of_all_the_same():
    def fails(value):
        raise NoText

    _, [letter], _ = both(collection(1).map(fails).side_output_dead_letters(BAD))
    assert letter.error == "<a NoText whose text raised NoText>"
    with pytest.raises(UserFunctionError, match="the user's function raised NoText"):
        run(plan_of(collection(1).map(fails)))


class ClientCancels(AsyncFunction):
    async def async_invoke(self, value):
        value["seen"] = True
        if value["n"] == 2:
            raise asyncio.CancelledError
        return [value["n"]]


def test_a_client_that_cancels_itself_makes_its_element_bad_which_is_as_it_was():
    def stream():
        return AsyncDataStream.unordered_wait(collection({"n": 1}, {"n": 2}), ClientCancels(), Time.seconds(5))

    good, [letter], _ = both(stream().side_output_dead_letters(BAD))
    assert (good, letter.element, letter.error_type) == ([1], {"n": 2}, "CancelledError")
    with pytest.raises(UserFunctionError, match=r"\(element \{'n': 2.*CancelledError"):
        run(plan_of(stream()))


def test_the_element_is_as_it_was_though_a_timestamp_assigner_changed_it():
    def spoils(row, _):
        row.clear()
        return row["at"]

    strategy = NO_WATERMARKS.with_timestamp_assigner(spoils)
    stream = collection({"at": 1}).assign_timestamps_and_watermarks(strategy)
    _, [letter], _ = both(stream.side_output_dead_letters(BAD))
    assert letter.element == {"at": 1}


def test_a_key_that_cannot_be_one():
    stream = timed(local_environment(), [("a", 1), ([], 2), ("b", 3)]).key_by(lambda e: e[0]).name("by name")
    stream.side_output_dead_letters(BAD)
    counts = stream.window(TENS).reduce(lambda one, other: one)
    found = run(plan_of(counts, stream.get_side_output(BAD)))
    [letter] = values(found, 1)
    assert values(found) == [("a", 1), ("b", 3)]
    assert (letter.operator, letter.element, letter.during) == ("by name", ([], 2), "when a key was extracted")


class Lines(Source):
    """Numbers, as lines of which some are none."""

    def __init__(self, *lines):
        self.lines = lines

    def splits(self):
        return ["lines"]

    def latest_position(self, split):
        return len(self.lines)

    def read(self, split, start, end):
        for position, line in enumerate(self.lines[start:end], start):
            try:
                yield int(line)
            except ValueError as error:
                yield Unreadable(error, line, split, position)

    def get_produced_type(self):
        return Types.INT()


def test_what_a_source_cannot_read_stops_the_job_with_its_place():
    stream = local_environment().from_source(Lines("1", "two"), NO_WATERMARKS, "numbers")
    with pytest.raises(
        DataError, match=r"record 1 of lines cannot be read: ValueError\(.*side_output_dead_letters"
    ) as e:
        run(plan_of(stream))
    assert "in operator 'numbers', while it read its source (split 'lines', start 0, end 2)" in str(e.value)


def test_a_source_and_its_strategy_have_their_letters_together():
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda n, _: 1 // n)
    stream = local_environment().from_source(Lines("1", "two", "0", str(1 << 40), "3"), strategy, "numbers")
    good, letters, metrics = both(stream.side_output_dead_letters(BAD))
    assert good == [1, 3]
    told = [(one.operator, one.element, one.error_type, one.split, one.position) for one in letters]
    assert sorted(told, key=repr) == [
        ("numbers", "two", "ValueError", "lines", 1),
        ("numbers", 1 << 40, "TypeMismatch", "lines", None),
        ("timestamps and watermarks", 0, "ZeroDivisionError", None, None),
    ]
    assert metrics["numbers"]["numDeadLetters"] == 2


class Counts(KeyedProcessFunction):
    """Counts the elements of a key; the timer of each adds ten, and one of them fails after that."""

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        ctx.timer_service().register_event_time_timer(value[1] + 5)

    def on_timer(self, timestamp, ctx):
        self.count.update(self.count.value() + 10)
        ctx.timer_service().register_event_time_timer(timestamp + 100)
        if timestamp > 100:
            return []
        yield timestamp, self.count.value()
        if timestamp == 7:
            raise ArithmeticError("seven")


class CountsOnce(Counts):
    def on_timer(self, timestamp, ctx):
        if timestamp < 100:
            yield from super().on_timer(timestamp, ctx)


def test_a_timer_that_fails_changes_nothing_and_does_not_fire_again():
    stream = timed(local_environment(), [("a", 1), ("a", 2), ("a", 3)]).key_by(lambda e: e[0]).process(CountsOnce())
    good, [letter], metrics = both(stream.name("counts").side_output_dead_letters(BAD))
    assert good == [(6, 13), (8, 23)]
    assert (letter.key, letter.timestamp, letter.element, letter.text) == ("a", 7, None, None)
    assert (letter.during, letter.error) == ("when a timer fired", "seven")
    assert metrics["counts"]["numDeadLetters"] == 1


class Fragile(ProcessWindowFunction):
    """Gives the elements of a window, but not of the key b; it counts firings in the state of the key."""

    def process(self, key, context, elements):
        state = context.global_state().get_state(ValueStateDescriptor("fired", Types.LONG()))
        state.update((state.value() or 0) + 1)
        yield key, context.window(), list(elements), state.value()
        if key == "b" and context.window().start == 0:
            raise LookupError("b")


def test_a_window_that_cannot_fire_is_a_letter_and_the_others_fire():
    elements = [("a", 1), ("b", 2), ("b", 12)]
    stream = timed(local_environment(), elements).key_by(lambda e: e[0]).window(TENS).process(Fragile())
    good, [letter], metrics = both(stream.name("windows").side_output_dead_letters(BAD))
    windows = TimeWindow(0, 10), TimeWindow(10, 20)
    assert good == [("a", windows[0], [("a", 1)], 1), ("b", windows[1], [("b", 12)], 1)]
    assert (letter.key, letter.timestamp, letter.element) == ("b", 9, None)
    assert letter.during == "when the window TimeWindow(start=0, end=10) fired"
    assert metrics["windows"]["numDeadLetters"] == 1


class CannotClear(Fragile):
    def process(self, key, context, elements):
        context.window_state().get_state(ValueStateDescriptor("seen", Types.LONG())).update(1)
        yield key

    def clear(self, context):
        raise OSError("the file is gone")


class Refuses(ProcessWindowFunction):
    """Counts firings in its state, and fails where a window has 'bad' in it."""

    def process(self, key, context, elements):
        fired = context.global_state().get_state(ValueStateDescriptor("fired", Types.LONG()))
        fired.update((fired.value() or 0) + 1)
        context_elements = [element[0] for element in elements]
        yield fired.value(), context_elements
        if "bad" in context_elements:
            raise ValueError("bad")


def test_an_element_that_sets_off_a_window_which_cannot_fire_is_not_the_bad_one():
    """The window has a letter, the element stays; where the trigger purges, what is bad goes with the others."""
    names = ["a", "bad", "c", "d", "e", "f"]
    by_one_key = timed(local_environment(), [(name, n) for n, name in enumerate(names)]).key_by(lambda e: 0)
    good, letters, _ = both(by_one_key.count_window(2).process(Refuses()).side_output_dead_letters(BAD))
    assert good == [(1, ["c", "d"]), (2, ["e", "f"])]
    assert [(letter.element, letter.key, letter.error) for letter in letters] == [(None, 0, "bad")]

    windows = by_one_key.window(TENS).trigger(CountTrigger.of(2))
    good, letters, metrics = both(windows.process(Refuses()).name("windows").side_output_dead_letters(BAD))
    assert (good, [letter.timestamp for letter in letters]) == ([], [9, 9, 9])
    assert metrics["windows"]["numRecordsIn"] == 6


class FailsBehind(CountTrigger):
    """Fails with an element, when a later window that it is in has fired."""

    def on_element(self, element, timestamp, window, ctx):
        if element[0] == "bad" and window.end == 10:
            raise ValueError("bad")
        return TriggerResult.FIRE


def test_what_fired_before_an_element_was_found_to_be_bad_is_taken_back_with_it():
    """A sliding window fires, and the next one has a trigger that fails: the element is in neither."""
    elements = timed(local_environment(), [("a", 7), ("bad", 8), ("c", 9)]).key_by(lambda e: 0)
    windows = elements.window(SlidingEventTimeWindows.of(10, 5)).trigger(FailsBehind(1))
    good, [letter], _ = both(windows.process(Counted()).side_output_dead_letters(BAD))
    assert letter.element == ("bad", 8)
    assert good == [(1, ["a"]), (2, ["a"]), (3, ["a", "c"]), (4, ["a", "c"])]


class Counted(Refuses):
    """A copy that takes bad elements."""

    def process(self, key, context, elements):
        fired = context.global_state().get_state(ValueStateDescriptor("fired", Types.LONG()))
        fired.update((fired.value() or 0) + 1)
        yield fired.value(), [element[0] for element in elements]


def test_a_window_that_cannot_be_cleared_goes_with_all_that_was_kept_for_it():
    stream = (
        timed(local_environment(), [("a", 1)])
        .key_by(lambda e: e[0])
        .window(TENS)
        .process(CannotClear())
        .name("windows")
    )
    plan = plan_of(stream.side_output_dead_letters(BAD), stream.get_side_output(BAD))
    one = runner(plan)
    batches = list(one.batches())
    found = [by_sink(plan, batch) for batch in batches]
    assert values(found) == ["a"]
    assert [letter.error_type for letter in values(found, 1)] == ["OSError"]
    assert batches[-1].progress.held["windows"] == {"numKeys": 0, "numTimers": 0}


class Sums(AggregateFunction):
    def create_accumulator(self):
        return [0]

    def add(self, value, accumulator):
        accumulator[0] += value[1]
        if value[1] == 2:
            raise ValueError("two")
        return accumulator

    def get_result(self, accumulator):
        return accumulator[0]

    def merge(self, acc_a, acc_b):
        return [acc_a[0] + acc_b[0]]


def test_letters_of_windows_are_counted_in_the_checkpoint_and_come_once_over_a_restart():
    stream = timed(local_environment(), [("a", n) for n in range(6)]).key_by(lambda e: e[0])
    result = stream.window(TENS).aggregate(Sums()).name("sums").side_output_dead_letters(BAD)
    plan, checkpoint, found = plan_of(result, result.get_side_output(BAD)), LocalCheckpoint(), []
    while True:
        one = runner(plan, max_rows=1, checkpoint=checkpoint)
        for batch in one.batches():
            found.append(by_sink(plan, batch))
            break
        else:
            break
        checkpoint = one.checkpoint
    assert values(found) == [0 + 1 + 3 + 4 + 5]
    assert [letter.element for letter in values(found, 1)] == [("a", 2)]


def test_windows_by_key_are_stored_otherwise_than_fixed_ones_so_that_a_checkpoint_does_not_fit():
    def plan(*, wants_letters):
        result = timed(local_environment(), [("a", 1), ("a", 2)]).key_by(lambda e: e[0]).window(TENS).reduce(max)
        return plan_of(result.side_output_dead_letters(BAD) if wants_letters else result)

    before = runner(plan(wants_letters=False), max_rows=1)
    next(before.batches())
    with pytest.raises(StateError, match="stored form"):
        list(runner(plan(wants_letters=True), checkpoint=before.checkpoint).batches())


class Divides(ProcessJoinFunction):
    """Counts the pairs of a key, and then divides."""

    def open(self, runtime_context):
        self.pairs = runtime_context.get_state(ValueStateDescriptor("pairs", Types.LONG()))

    def process_element(self, left, right, ctx):
        self.pairs.update((self.pairs.value() or 0) + 1)
        yield left[2] // right[2], self.pairs.value()


def two_streams():
    env = local_environment()
    return timed(env, [("a", 1, 6), ("b", 1, 8)]), timed(env, [("a", 2, 3), ("b", 2, 0), ("b", 3, 4)])


def test_a_pair_that_cannot_be_joined_leaves_both_to_meet_others():
    left, right = (stream.key_by(lambda e: e[0]) for stream in two_streams())
    joined = left.interval_join(right).between(-5, 5).process(Divides()).side_output_dead_letters(BAD)
    good, [letter], _ = both(joined)
    assert good == [(2, 1), (2, 1)], "the pair that failed was not counted"
    assert (letter.element, letter.key, letter.timestamp) == ((("b", 1, 8), ("b", 2, 0)), "b", 2)
    assert (letter.during, letter.error_type) == ("while it joined an element", "ZeroDivisionError")


def test_a_window_join_whose_function_raises_has_no_result_for_that_key_and_window():
    left, right = two_streams()
    windows = left.join(right).where(lambda e: e[0]).equal_to(lambda e: e[0]).window(TENS)
    good, [letter], _ = both(windows.apply(lambda one, other: one[2] // other[2]).side_output_dead_letters(BAD))
    assert (good, letter.key, letter.timestamp, letter.element) == ([2], "b", 9, None)


def test_how_many_there_were_is_told_by_why_and_in_the_summary():
    counts = timed(local_environment(), [("a", 1), ("b", 2)]).key_by(lambda e: e[0]).window(TENS).reduce(max)
    plan = plan_of(counts.map(lambda e: 1 // (e[1] - 2)).name("divide").side_output_dead_letters(BAD))
    one = runner(plan)
    progress = [batch.progress for batch in one.batches()]
    assert dict(summary(progress))["rows"].endswith("; 0 late, 1 dead letter")
    answer = why(evidence(plan, one.checkpoint, asked_ms=0))
    assert [one["dead_letters"] for one in answer.to_json()["operators"]] == [{"divide": 1}]
    assert "dead letters  1 of 'divide'" in str(answer)


def test_a_plan_says_where_what_is_bad_goes():
    left, right = (stream.key_by(lambda e: e[0]) for stream in two_streams())
    streams = [
        left.process(CountsOnce()),
        left.window(TENS).reduce(max),
        left.interval_join(right).between(-5, 5).process(Divides()),
    ]
    plan = plan_of(*(stream.side_output_dead_letters(BAD) for stream in streams))
    assert explain(plan).count("  bad data   to side output 'bad', as dead letters") == 3


class OnEvents(WatermarkGenerator):
    """A user-defined generator works in tasks after the source."""

    def on_event(self, event, event_timestamp, output):
        pass

    def on_periodic_emit(self, output):
        pass


@pytest.mark.parametrize("own_generator", [False, True])
def test_those_of_sources_are_remembered_by_the_first_operator_over_restarts(own_generator):
    strategy = WatermarkStrategy.for_generator(OnEvents) if own_generator else NO_WATERMARKS
    strategy = strategy.with_timestamp_assigner(lambda n, _: 6 // n)
    stream = local_environment().from_source(Lines("1", "two", "0", "x", "3"), strategy, "numbers")
    halves = (
        stream.side_output_dead_letters(BAD).map(lambda n: 6 // (n - 1)).name("divide").side_output_dead_letters(BAD)
    )
    plan, checkpoint = plan_of(*(halves.key_by(int).window(TENS).reduce(max) for _ in range(2))), LocalCheckpoint()
    while list(itertools.islice((one := runner(plan, max_rows=2, checkpoint=checkpoint)).batches(), 1)):
        checkpoint = one.checkpoint
    known = evidence(plan, checkpoint, asked_ms=0)
    counted = {name: of["numDeadLetters"] for name, of in known.counters().items() if "numDeadLetters" in of}
    assert counted == {"numbers": 2, "timestamps and watermarks": 1, "divide": 1}


REFUSED = {
    "no tag": (lambda: collection(1).map(int).side_output_dead_letters("bad"), "needs an OutputTag"),
    "no function": (
        lambda: timed(local_environment(), [("a", 1)]).rebalance().side_output_dead_letters(BAD),
        "'rebalance' cannot have dead letters: it passes elements on unchanged",
    ),
    "keys that are fields": (
        lambda: collection((1,), type_info=Types.TUPLE([Types.LONG()])).key_by("f0").side_output_dead_letters(BAD),
        "its keys are the fields f0",
    ),
    "a tag that is taken": (
        lambda: (
            timed(local_environment(), [("a", 1)])
            .window_all(TENS)
            .side_output_late_data(BAD)
            .reduce(max)
            .side_output_dead_letters(BAD)
        ),
        "has another side output 'bad'",
    ),
    "no letters that are asked for": (lambda: collection(1).filter(int).get_side_output(BAD), "has no side outputs"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_it_is_refused_with(what):
    build, message = REFUSED[what]
    with pytest.raises(ProgramError, match=message):
        build()


def limited(plan, letters=None, stop_above=None):
    return plan.with_dead_letter_limits(DeadLetterLimits(letters, stop_above))


class Failing(KeyedProcessFunction):
    """Counts the elements of a key, and raises for all but the first."""

    def open(self, runtime_context):
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.LONG()))

    def process_element(self, value, ctx):
        if self.seen.value():
            raise ValueError(f"no {value}")
        self.seen.update(1)
        yield value


def of_functions():
    return collection(*map(str, range(5)), "x", "y", "z").map(int)


def of_state():
    return collection(*"abcd").key_by(lambda value: 0).process(Failing())


def of_timestamps():
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda e, _: int(e))
    return collection("1", "x", "y", "z").assign_timestamps_and_watermarks(strategy)


def of_sources():
    return local_environment().from_source(Lines("1", "x", "y", "z"), NO_WATERMARKS, "numbers")


@pytest.mark.parametrize("stream", [of_functions, of_state, of_timestamps, of_sources])
def test_letters_above_the_limit_are_counted_and_not_put_out(stream):
    letters = stream().side_output_dead_letters(BAD).get_side_output(BAD)
    one = runner(limited(plan_of(letters), letters=2))
    assert sum(len(of) for batch in one.batches() for of in batch.elements.values()) == 2
    counted = [counters for counters in one.metrics().values() if "numDeadLetters" in counters]
    assert [(of["numDeadLetters"], of["numDeadLettersLeftOut"]) for of in counted] == [(3, 1)]


@pytest.mark.parametrize("stream", [of_functions, of_state, of_timestamps, of_sources])
def test_a_job_stops_above_so_many_letters_whether_they_are_put_out_or_not(stream):
    letters = stream().name("parse").side_output_dead_letters(BAD)
    assert values(run(limited(plan_of(letters), stop_above=3)))
    for given in (None, 0, 2):
        with pytest.raises(DataError, match=r"'parse' had 3 dead letters .* above 2; the last one: ValueError: .*"):
            run(limited(plan_of(letters), given, stop_above=2))


def test_the_limits_of_the_environment_are_those_of_the_plan():
    env = local_environment()
    env.get_config().set_dead_letter_limits(letters=0, stop_above=9)
    stream = env.from_collection(["1", "x"]).map(int).side_output_dead_letters(BAD)
    assert [*stream.get_side_output(BAD).execute_and_collect()] == []
    with pytest.raises(ProgramError, match="a limit of dead letters must be a number"):
        env.get_config().set_dead_letter_limits(stop_above=-1)
