"""Watermarks on random streams, generated, punctuated, silent and restarted, against models that look at everything."""

import itertools
from collections import defaultdict
from copy import deepcopy

import pyarrow.compute as pc
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.aggregates import count, sum_
from eventide.common import (
    Row,
    Types,
    VectorizedWatermarkGenerator,
    Watermark,
    WatermarkGenerator,
    WatermarkStrategy,
)
from eventide.common.ms import MAX_MS, MIN_MS
from eventide.common.watermark_generators import PunctuatedWatermarks
from eventide.datastream import OutputTag
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.local.runner import LocalCheckpoint, LocalRunner
from eventide.runtime.elements.keys import key_group, subtask_of
from eventide.testing import Idle, ScriptedSource, local_environment
from support.twin import Contents, by_sink, plan_of

BOUND = 3
SPLITS = ["s", "t", "u"]
EVENT = Types.ROW_NAMED(["key", "ts", "says"], [Types.STRING(), Types.LONG(), Types.LONG()])
LATE = OutputTag("late", EVENT)
PARALLELISM = st.sampled_from([1, 3])
IDLE, ACTIVE = 1_000, 1_001
"""Mark of an element that has no watermark."""


def events(says):
    return st.builds(Row, key=st.sampled_from("abc"), ts=st.integers(-5, 40), says=says)


NOTHING = st.none()


def scripts(says=NOTHING):
    """Micro-batches as (milliseconds since the one before, entries), with splits that their source calls idle."""
    split = st.sampled_from(SPLITS)
    entry = st.one_of(*[st.tuples(split, events(says))] * 3, split.map(Idle))
    return st.lists(st.tuples(st.integers(0, 60), st.lists(entry, max_size=6)), max_size=7)


def clocks_of(script):
    """The time of each micro-batch, and of the one that ends the input."""
    clocks = [1_000]
    for step, _ in script[1:]:
        clocks.append(clocks[-1] + step)
    return [*clocks[: len(script)], clocks[-1] + 500]


class Bounded(WatermarkGenerator):
    """As the built-in one, by hand."""

    def __init__(self):
        self.highest = None

    def on_event(self, event, event_timestamp, output):
        self.highest = event_timestamp if self.highest is None else max(self.highest, event_timestamp)

    def on_periodic_emit(self, output):
        if self.highest is not None:
            output.emit_watermark(Watermark(self.highest - BOUND - 1))


class BoundedOnColumns(Bounded, VectorizedWatermarkGenerator):
    """A bounded generator for a batch at once; it refuses to look at an element."""

    def on_batch(self, events, timestamps, output):
        assert events.column("ts").equals(timestamps)
        super().on_event(None, pc.max(timestamps).as_py(), output)

    def on_event(self, event, event_timestamp, output):
        raise AssertionError


class Punctuated(WatermarkGenerator):
    """An element says what its watermark is, or that its split is idle, or active again."""

    def on_event(self, event, event_timestamp, output):
        if event["says"] == IDLE:
            output.mark_idle()
        elif event["says"] == ACTIVE:
            output.mark_active()
        elif event["says"] is not None:
            output.emit_watermark(Watermark(event["says"]))

    def on_periodic_emit(self, output):
        pass


class MarkedOnColumns(Punctuated, VectorizedWatermarkGenerator):
    """As Punctuated, for elements that say watermarks and nothing else."""

    def on_batch(self, events, timestamps, output):
        says = events.column("says")
        rows = pc.indices_nonzero(pc.is_valid(says))
        output.emit_watermarks(rows, says.take(rows))

    def on_event(self, event, event_timestamp, output):
        raise AssertionError


BUILT_IN = WatermarkStrategy.for_bounded_out_of_orderness(BOUND)
BY_HAND = WatermarkStrategy.for_generator(Bounded)
ON_COLUMNS = WatermarkStrategy.for_generator(BoundedOnColumns)
EACH = WatermarkStrategy.for_generator(lambda: PunctuatedWatermarks(lambda element, timestamp: timestamp))
GENERATED = st.sampled_from([BUILT_IN, BY_HAND, ON_COLUMNS])


def program(script, strategy, parallelism=1, size=10, behind=None):
    """Windows of one source with their late elements; or, with a strategy ``behind``, with windows after them."""
    source = ScriptedSource(SPLITS, [entries for _, entries in script], EVENT)
    stream = local_environment().from_source(source, strategy.with_timestamp_assigner("ts"), "script")
    windows = stream.key_by(lambda e: e["key"]).window(TumblingEventTimeWindows.of(size))
    if behind is None:
        first = windows.side_output_late_data(LATE).process(Contents()).name("first")
        sinks = [first, first.get_side_output(LATE)]
    else:
        first = windows.process(Contents()).name("first")
        sinks = [first]
        again = first.assign_timestamps_and_watermarks(behind.with_timestamp_assigner(lambda e, _: e[1]))
        second = again.key_by(lambda e: e[0]).window(TumblingEventTimeWindows.of(2 * size))
        sinks.append(second.process(Contents()).name("second"))
    return plan_of(*sinks, parallelism=parallelism)


def played(plan, script, restarted_every=None):
    """The elements that reached each sink in each micro-batch, and the watermarks that each operator passed in it.

    All restarts belong to one run: timeouts of idleness would begin anew with another one.
    """
    clocks, checkpoint, found = clocks_of(script), LocalCheckpoint(), []
    while len(found) < len(clocks):
        one = LocalRunner(plan, clock=lambda: clocks[len(found)], checkpoint=deepcopy(checkpoint), run="one")
        for batch in one.batches():
            found.append((by_sink(plan, batch), of_all_subtasks(batch)))
            if restarted_every is not None and len(found) % restarted_every == 0:
                break
        checkpoint = one.checkpoint
    return found


def of_all_subtasks(batch):
    """The watermarks that each operator passed: the same in each of its subtasks."""
    for marks in batch.passed.values():
        assert len({tuple(of_one) for of_one in marks.values()}) == 1
    return {name: next(iter(marks.values())) for name, marks in batch.passed.items() if any(marks.values())}


def watermarks(found, operator="first"):
    return [passed.get(operator, []) for _, passed in found]


def combined(script, timeout=10**9):
    """The watermark after each micro-batch: the lowest of the active splits, the highest of all if none is.

    A source that was idle as a whole counts again with a watermark that is higher than its last, not before. A split
    that falls idle is not asked for its watermark in that micro-batch.
    """
    marks, idle, heard, said, asleep = dict.fromkeys(SPLITS, MIN_MS), set(), {}, MIN_MS, False
    seen = dict.fromkeys(SPLITS, MIN_MS)
    for clock, (_, entries) in zip(clocks_of(script), script, strict=False):
        for split in SPLITS:
            heard.setdefault(split, clock)
        for split, event in (e for e in entries if not isinstance(e, Idle)):
            seen[split], heard[split] = max(seen[split], event["ts"] - BOUND - 1), clock
        at_end = {e.split if isinstance(e, Idle) else e[0]: isinstance(e, Idle) for e in entries}
        for split, is_idle in at_end.items():
            marks[split] = marks[split] if is_idle else seen[split]
            (idle.add if is_idle else idle.discard)(split)
        idle |= {split for split, last in heard.items() if clock - last > timeout}
        candidate = min((marks[s] for s in marks if s not in idle), default=max(marks.values()))
        yield [candidate] if candidate > said else []
        asleep = len(idle) == len(SPLITS) or (asleep and candidate <= said)
        said = max(said, candidate)
    yield [] if asleep else [MAX_MS]


@given(scripts(), GENERATED, PARALLELISM)
def test_the_combined_watermark_is_the_lowest_of_the_active_splits(script, strategy, parallelism):
    found = played(program(script, strategy, parallelism), script)
    assert watermarks(found) == list(combined(script))


@given(scripts(), GENERATED, PARALLELISM, st.integers(1, 150))
def test_a_split_that_is_silent_for_too_long_holds_nothing_back(script, strategy, parallelism, timeout):
    found = played(program(script, strategy.with_idleness(timeout), parallelism), script)
    assert watermarks(found) == list(combined(script, timeout))


@given(scripts(), st.sampled_from([BY_HAND, ON_COLUMNS]), PARALLELISM, st.none() | st.integers(1, 150))
def test_a_generator_written_by_hand_gives_what_the_built_in_one_gives(script, strategy, parallelism, timeout):
    built_in = BUILT_IN
    if timeout is not None:
        built_in, strategy = built_in.with_idleness(timeout), strategy.with_idleness(timeout)
    by_hand = played(program(script, strategy, parallelism), script)
    assert by_hand == played(program(script, built_in, parallelism), script)


class PeriodicOnColumns(BoundedOnColumns):
    """Says of itself that it speaks at the end of a batch only, so that elements are aggregated before the shuffle."""

    is_periodic = True


@given(scripts(), st.sampled_from([Bounded, BoundedOnColumns, PeriodicOnColumns]), PARALLELISM)
def test_after_a_generator_aggregates_of_columns_are_those_after_the_built_in_one(script, generator, parallelism):
    by_hand, built_in = (
        [(sorted(map(repr, results)), passed) for (results,), passed in aggregated(script, each, parallelism)]
        for each in (generator, None)
    )
    assert by_hand == built_in


def aggregated(script, generator, parallelism, keeps_late=False):
    """The results of windows on columns, after a generator or, without one, after built-in watermarks."""
    strategy = BUILT_IN if generator is None else WatermarkStrategy.for_generator(generator)
    source = ScriptedSource(SPLITS, [entries for _, entries in script], EVENT)
    stream = local_environment().from_source(source, strategy.with_timestamp_assigner("ts"), "script")
    windows = stream.key_by("key").window(TumblingEventTimeWindows.of(10))
    if keeps_late:
        windows = windows.side_output_late_data(LATE)
    results = windows.aggregate(count().alias("n"), sum_("ts").alias("sum"))
    sinks = [results, results.get_side_output(LATE)] if keeps_late else [results]
    return played(plan_of(*sinks, parallelism=parallelism), script)


class ElementByElement:
    """Splits with a generator each, and windows after them: what one place of all splits says counts together."""

    def __init__(self, size, timeout=10**9):
        self.size, self.timeout, self.heard, self.said = size, timeout, {}, MIN_MS
        self.marks, self.idle, self.asleep = dict.fromkeys(SPLITS, MIN_MS), set(), False
        self.open = defaultdict(list)
        self.fired, self.late, self.passed = [], [], []

    def batch(self, entries, clock):
        self.fired, self.late, self.passed = [], [], []
        for split in SPLITS:
            self.heard.setdefault(split, clock)
        self.heard |= {entry[0]: clock for entry in entries if not isinstance(entry, Idle)}
        of_split = {split: [e[1] for e in entries if not isinstance(e, Idle) and e[0] == split] for split in SPLITS}
        for place in range(max(map(len, of_split.values()))):
            at_place = {split: of_split[split][place] for split in SPLITS if place < len(of_split[split])}
            for event in at_place.values():
                start = event["ts"] // self.size * self.size
                if start + self.size - 1 <= self.said:
                    self.late.append(event)
                else:
                    self.open[start + self.size, event["key"]].append(event)
            for split, event in at_place.items():
                self.say(split, event["says"])
            self.advance()
        at_end = {e.split if isinstance(e, Idle) else e[0]: isinstance(e, Idle) for e in entries}
        self.idle |= {split for split, is_idle in at_end.items() if is_idle}
        self.idle |= {split for split, last in self.heard.items() if clock - last > self.timeout}
        self.advance()

    def say(self, split, what):
        if what == IDLE:
            self.idle.add(split)
        elif what is not None:
            self.idle.discard(split)
            self.marks[split] = max(self.marks[split], what if what < IDLE else MIN_MS)

    def advance(self):
        candidate = min((self.marks[s] for s in SPLITS if s not in self.idle), default=max(self.marks.values()))
        self.asleep = len(self.idle) == len(SPLITS) or (self.asleep and candidate <= self.said)
        self.rise(candidate)

    def rise(self, candidate):
        if candidate > self.said:
            self.said = candidate
            self.passed.append(candidate)
            for end, key in sorted(at for at in self.open if at[0] - 1 <= candidate):
                self.fired.append((key, end - self.size, end, self.open.pop((end, key))))

    def end(self):
        self.fired, self.late, self.passed = [], [], []
        if not self.asleep:
            self.rise(MAX_MS)


SAYS = st.one_of(st.none(), st.none(), st.integers(0, 40), st.just(IDLE), st.just(ACTIVE))
MARKS = st.one_of(st.none(), st.integers(0, 40))


@settings(max_examples=3 * settings().max_examples)
@given(scripts(SAYS), PARALLELISM, st.just(10**9) | st.integers(1, 150))
def test_punctuated_watermarks_count_at_their_place_in_the_middle_of_a_batch(script, parallelism, timeout):
    agrees(script, WatermarkStrategy.for_generator(Punctuated), parallelism, timeout)


@given(scripts(MARKS), PARALLELISM)
def test_so_do_those_that_are_found_in_columns(script, parallelism):
    agrees(script, WatermarkStrategy.for_generator(MarkedOnColumns), parallelism)


def agrees(script, strategy, parallelism, timeout=10**9):
    model = ElementByElement(10, timeout)
    found = played(program(script, strategy.with_idleness(timeout), parallelism), script)
    for place, ((results, late), passed) in enumerate(found):
        model.batch(script[place][1], clocks_of(script)[place]) if place < len(script) else model.end()
        assert passed.get("first", []) == model.passed
        assert sorted(value for value, _ in results) == sorted(model.fired)
        assert sorted(map(repr, (value for value, _ in late))) == sorted(map(repr, model.late))


@given(scripts(MARKS), st.sampled_from([Punctuated, MarkedOnColumns]), PARALLELISM, st.booleans())
def test_windows_on_columns_mind_the_place_of_a_watermark_too(script, generator, parallelism, keeps_late):
    model = ElementByElement(10)
    for place, (sinks, passed) in enumerate(aggregated(script, generator, parallelism, keeps_late)):
        model.batch(script[place][1], clocks_of(script)[place]) if place < len(script) else model.end()
        expected = [(key, start, len(es), sum(e["ts"] for e in es)) for key, start, _, es in model.fired]
        found = [(row["key"], row["window"].start, row["n"], row["sum"]) for row, _ in sinks[0]]
        assert list(passed.values()) == ([model.passed] if model.passed else [])
        assert sorted(found) == sorted(expected)
        assert [sorted(repr(value) for value, _ in late) for late in sinks[1:]] in ([], [sorted(map(repr, model.late))])


def in_other_batches(script, cuts):
    """Deal the elements of each split, in their order, out to other micro-batches, each saying what is yet to come."""
    entries = [entry for _, entries in script for entry in entries if not isinstance(entry, Idle)]
    lowest, said = dict.fromkeys(SPLITS, 100), []
    for split, event in reversed(entries):
        said.append((split, Row(key=event["key"], ts=event["ts"], says=lowest[split] - 1)))
        lowest[split] = min(lowest[split], event["ts"])
    bounds = [0, *sorted(min(cut, len(entries)) for cut in cuts), len(entries)]
    return [(1, said[::-1][a:b]) for a, b in itertools.pairwise(bounds)]


class Foreseeing(Punctuated):
    """Says at the end of a batch what its last element knew."""

    def __init__(self):
        self.last = None

    def on_event(self, event, event_timestamp, output):
        self.last = event

    def on_periodic_emit(self, output):
        if self.last is not None:
            super().on_event(self.last, 0, output)


def disorder(script):
    """By how much elements are older than the newest one before them in their split."""
    highest, most = dict.fromkeys(SPLITS, MIN_MS), 0
    for split, event in (entry for _, entries in script for entry in entries):
        most = max(most, highest[split] - event["ts"])
        highest[split] = max(highest[split], event["ts"])
    return most


def windows_of(found):
    return sorted((*head, sorted(map(repr, content))) for (results, _), _ in found for (*head, content), _ in results)


@given(
    scripts(), st.lists(st.integers(0, 40), max_size=6), st.sampled_from([None, Punctuated, Foreseeing]), PARALLELISM
)
def test_however_the_input_is_cut_into_batches_the_windows_are_the_same_when_nothing_is_late(
    script, cuts, generator, parallelism
):
    whole, cut = in_other_batches(script, []), in_other_batches(script, cuts)
    bounded = WatermarkStrategy.for_bounded_out_of_orderness(disorder(whole))
    strategy = bounded if generator is None else WatermarkStrategy.for_generator(generator)
    in_one, in_several = (played(program(each, strategy, parallelism), each) for each in (whole, cut))
    assert windows_of(in_several) == windows_of(in_one)
    assert [late for (_, late), _ in in_several if late] == []


@given(
    scripts(SAYS),
    st.sampled_from([BUILT_IN, BY_HAND, ON_COLUMNS, WatermarkStrategy.for_generator(Punctuated)]),
    PARALLELISM,
    st.none() | st.integers(1, 150),
    st.sampled_from([None, BUILT_IN.with_idleness(80), BY_HAND.with_idleness(80), EACH]),
    st.integers(1, 3),
)
def test_a_restart_after_any_batch_changes_nothing(script, strategy, parallelism, timeout, behind, every):
    if timeout is not None:
        strategy = strategy.with_idleness(timeout)
    plan = program(script, strategy, parallelism, behind=behind)
    assert played(plan, script, restarted_every=every) == played(plan, script)


def subtasks(results, parallelism):
    """The results of each subtask in a micro-batch."""
    given = [[] for _ in range(parallelism)]
    for (key, *rest), _ in results:
        given[subtask_of(key_group(key, 128), 128, parallelism)].append((key, *rest))
    return given


@given(scripts(), st.sampled_from([BUILT_IN, BY_HAND]), PARALLELISM)
def test_after_an_operator_the_watermark_is_the_lowest_of_its_subtasks(script, strategy, parallelism):
    found = played(program(script, BUILT_IN, parallelism, size=5, behind=strategy), script)
    marks, said = [MIN_MS] * parallelism, MIN_MS
    for (results, _), passed in found:
        is_last = passed.get("first") == [MAX_MS]
        if not is_last:
            given = subtasks(results, parallelism)
            marks = [max([mark, *(r[1] - BOUND - 1 for r in rows)]) for mark, rows in zip(marks, given, strict=True)]
        candidate = MAX_MS if is_last else min(marks)
        assert passed.get("second", []) == ([candidate] if candidate > said else [])
        said = max(said, candidate)


@given(scripts(MARKS), st.sampled_from([BUILT_IN, WatermarkStrategy.for_generator(Punctuated)]), PARALLELISM)
def test_after_an_operator_punctuated_watermarks_count_at_the_place_of_a_result(script, strategy, parallelism):
    found = played(program(script, strategy, parallelism, size=5, behind=EACH), script)
    marks, said = [MIN_MS] * parallelism, MIN_MS
    for (results, _), passed in found:
        expected = []
        for at_place in itertools.zip_longest(*subtasks(results, parallelism)):
            marks = [max(mark, mark if r is None else r[1]) for mark, r in zip(marks, at_place, strict=True)]
            expected += [min(marks)] if min(marks) > said else []
            said = max(said, min(marks))
        assert passed.get("second", []) == expected + [mark for mark in passed.get("first", []) if mark == MAX_MS]


@given(scripts(), st.integers(1, 150), PARALLELISM)
def test_after_an_operator_too_a_generator_by_hand_gives_what_the_built_in_one_gives(script, timeout, parallelism):
    built_in, by_hand = (
        played(program(script, BUILT_IN, parallelism, size=5, behind=strategy.with_idleness(timeout)), script)
        for strategy in (BUILT_IN, BY_HAND)
    )
    assert by_hand == built_in
