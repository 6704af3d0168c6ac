"""The window operator on random streams, against oracles that keep every element and look again at every watermark."""

import itertools
import pickle
from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from eventide.common import Duration, WatermarkStrategy
from eventide.common.ms import MAX_MS, MIN_MS
from eventide.datastream import OutputTag
from eventide.datastream.window import (
    CumulatingEventTimeWindows,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingCalendarWindows,
    TumblingEventTimeWindows,
)
from eventide.runtime.observation.event_time_log import REMEMBERED
from eventide.runtime.state.backend import value_of
from eventide.testing import Idle, OperatorHarness, ScriptedSource, local_environment
from support.twin import AllContents, Contents, plan_of, run, run_with_restarts, runner, timed, values

ELEMENTS = st.tuples(st.sampled_from("abc"), st.integers(-15, 60))
STEPS = st.lists(st.one_of(ELEMENTS, st.integers(-20, 70)), max_size=25)
LATENESS = st.sampled_from([0, 1, 4, 30])


class FixedOracle:
    """Windows of one size: for each, the elements that came before it was late."""

    def __init__(self, size, slide, lateness):
        self.size, self.slide, self.lateness = size, slide, lateness
        self.watermark = MIN_MS
        self.taken = []

    def element(self, key, timestamp):
        starts = [s for s in range(timestamp - self.size + 1, timestamp + 1) if s % self.slide == 0]
        starts = [s for s in starts if s + self.size - 1 + self.lateness > self.watermark]
        self.taken += [(key, s, timestamp) for s in starts]
        fired = [self._result(key, s) for s in starts if s + self.size - 1 <= self.watermark]
        return fired, not starts and timestamp + self.lateness <= self.watermark

    def advance(self, watermark):
        passed = {(k, s) for k, s, _ in self.taken if self.watermark < s + self.size - 1 <= watermark}
        self.watermark = watermark
        return [self._result(key, start) for key, start in passed]

    def _result(self, key, start):
        return key, start, start + self.size, sorted(t for k, s, t in self.taken if (k, s) == (key, start))


class CumulatingOracle:
    """Windows that begin together: those of each length are sliding windows that begin where the longest do."""

    def __init__(self, size, step, lateness):
        self.lateness = lateness
        self.each = [FixedOracle(length, size, lateness) for length in range(step, size + 1, step)]

    @property
    def watermark(self):
        return self.each[0].watermark

    def element(self, key, timestamp):
        found = [oracle.element(key, timestamp) for oracle in self.each]
        return [result for fired, _ in found for result in fired], found[-1][1]

    def advance(self, watermark):
        return [result for oracle in self.each for result in oracle.advance(watermark)]


class SessionOracle:
    """Sessions: sorted timestamps of a key, cut where two are more than a gap apart."""

    def __init__(self, gap, lateness):
        self.gap, self.lateness = gap, lateness
        self.watermark = MIN_MS
        self.taken = defaultdict(list)

    def sessions(self, key):
        found = []
        for timestamp in sorted(self.taken[key]):
            if found and timestamp - found[-1][-1] <= self.gap:
                found[-1].append(timestamp)
            else:
                found.append([timestamp])
        return found

    def last(self, session):
        return session[-1] + self.gap - 1

    def element(self, key, timestamp):
        self.taken[key].append(timestamp)
        (session,) = [s for s in self.sessions(key) if timestamp in s]
        if self.last(session) + self.lateness <= self.watermark:
            self.taken[key].remove(timestamp)
            return [], timestamp + self.lateness <= self.watermark
        return [self._result(key, session)] if self.last(session) <= self.watermark else [], False

    def advance(self, watermark):
        fired = []
        for key in self.taken:
            for session in self.sessions(key):
                if self.watermark < self.last(session) <= watermark:
                    fired.append(self._result(key, session))
                if self.last(session) + self.lateness <= watermark:
                    self.taken[key] = [t for t in self.taken[key] if t not in session]
        self.watermark = watermark
        return fired

    def _result(self, key, session):
        return key, session[0], session[-1] + self.gap, session


def result(entry):
    key, start, end, elements = entry
    return key, start, end, sorted(timestamp for _, timestamp in elements)


def agrees(assigner, lateness, oracle, steps):
    windowed = timed(local_environment(), []).key_by(lambda e: e[0]).window(assigner)
    stream = windowed.allowed_lateness(lateness).side_output_late_data(OutputTag("late")).process(Contents())
    with OperatorHarness(stream) as harness:
        for step in [*steps, MAX_MS]:
            if isinstance(step, tuple):
                harness.process(step, timestamp=step[1])
                fired, late = oracle.element(*step)
                assert harness.late() == ([step] if late else [])
            elif step > oracle.watermark:
                harness.advance_watermark(step)
                fired = oracle.advance(step)
            else:
                continue
            outputs = harness.outputs_with_timestamps()
            assert sorted(result(value) for value, _ in outputs) == sorted(fired)
            assert all(timestamp == value[2] - 1 for value, timestamp in outputs)
            if isinstance(step, int):
                assert [timestamp for _, timestamp in outputs] == sorted(timestamp for _, timestamp in outputs)


@given(STEPS, st.integers(1, 12), LATENESS)
def test_tumbling_windows_agree_with_the_oracle(steps, size, lateness):
    agrees(TumblingEventTimeWindows.of(size), lateness, FixedOracle(size, size, lateness), steps)


@given(STEPS, st.integers(1, 12), st.integers(1, 12), LATENESS)
def test_sliding_windows_agree_with_the_oracle(steps, size, slide, lateness):
    agrees(SlidingEventTimeWindows.of(size, slide), lateness, FixedOracle(size, slide, lateness), steps)


@given(STEPS, st.integers(1, 5), st.integers(1, 5), LATENESS)
def test_cumulating_windows_agree_with_the_oracle(steps, step, count, lateness):
    size = step * count
    agrees(CumulatingEventTimeWindows.of(size, step), lateness, CumulatingOracle(size, step, lateness), steps)


@given(STEPS, st.integers(1, 12), LATENESS)
def test_sessions_agree_with_the_oracle(steps, gap, lateness):
    agrees(EventTimeSessionWindows.with_gap(gap), lateness, SessionOracle(gap, lateness), steps)


ASSIGNERS = st.sampled_from(
    [
        TumblingEventTimeWindows.of(10),
        SlidingEventTimeWindows.of(10, 4),
        CumulatingEventTimeWindows.of(12, 4),
        TumblingCalendarWindows.of("day"),
        EventTimeSessionWindows.with_gap(5),
    ]
)
BOUND = 100


def scripts(split_names):
    """Micro-batches of elements of several splits, with splits that fall silent now and then."""
    entry = st.one_of(
        st.tuples(st.sampled_from(split_names), ELEMENTS),
        st.tuples(st.sampled_from(split_names), ELEMENTS),
        st.sampled_from(split_names).map(Idle),
    )
    return st.lists(st.lists(entry, max_size=5), max_size=6)


def program(assigner, script, *, bound, lateness=0, parallelism=2):
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(bound))
    source = ScriptedSource(["s", "t"], script)
    stream = local_environment().from_source(source, strategy.with_timestamp_assigner(lambda e, _: e[1]), "script")
    late = OutputTag("late")
    windows = stream.key_by(lambda e: e[0]).window(assigner).allowed_lateness(lateness)
    first = windows.side_output_late_data(late).process(Contents())
    second = first.window_all(TumblingEventTimeWindows.of(20)).process(AllContents())
    return plan_of(first, second, first.get_side_output(late), parallelism=parallelism)


def rebatched(script, cuts):
    """Deal the elements of each split, in their order, out to other micro-batches."""
    elements = [entry for batch in script for entry in batch if not isinstance(entry, Idle)]
    bounds = [0, *sorted(min(cut, len(elements)) for cut in cuts), len(elements)]
    return [elements[a:b] for a, b in itertools.pairwise(bounds)]


@given(ASSIGNERS, scripts(["s", "t"]), st.lists(st.integers(0, 30), max_size=4), st.integers(1, 4))
def test_neither_batching_nor_parallelism_matters_when_nothing_is_late(assigner, script, cuts, parallelism):
    one = program(assigner, rebatched(script, []), bound=BOUND, parallelism=1)
    many = program(assigner, rebatched(script, cuts), bound=BOUND, parallelism=parallelism)
    assert unordered(values(run(many), 0)) == unordered(values(run(one), 0))
    assert second_stage(many) == second_stage(one)
    assert values(run(many), 2) == []


def unordered(results):
    """Windows with sorted elements, sorted: splits and subtasks have no common order."""
    return sorted((*head, sorted(elements)) for *head, elements in results)


def second_stage(plan):
    return [(start, end, unordered(windows)) for start, end, windows in values(run(plan), 1)]


@given(ASSIGNERS, scripts(["s", "t"]), LATENESS, st.integers(1, 3))
def test_no_element_is_left_in_state_when_the_stream_has_ended(assigner, script, lateness, parallelism):
    plan = program(assigner, rebatched(script, [3]), bound=0, lateness=lateness, parallelism=parallelism)
    ended = runner(plan)
    for _ in ended.batches():
        pass
    for state in ended.checkpoint.state.values():
        assert set(state) == {"head", "program"}
        for small in pickle.loads(value_of(state["head"], "head"))["small"].values():
            assert {"gate"} <= set(small) <= {"gate", *REMEMBERED}


@given(ASSIGNERS, scripts(["s", "t"]), st.integers(0, 8), LATENESS, st.integers(1, 3))
def test_a_restart_after_any_micro_batch_changes_nothing(assigner, script, bound, lateness, every):
    plan = program(assigner, script, bound=bound, lateness=lateness)
    assert run_with_restarts(plan, every) == run(plan)


@given(ASSIGNERS, scripts(["s", "t"]), st.integers(0, 8), LATENESS)
def test_the_same_run_twice_gives_the_same_in_the_same_order(assigner, script, bound, lateness):
    plan = program(assigner, script, bound=bound, lateness=lateness)
    assert run(plan) == run(plan)
