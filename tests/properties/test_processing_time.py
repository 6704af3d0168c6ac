"""Windows by the clock on random micro-batches, against oracles that know all micro-batches beforehand."""

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from eventide.datastream.window import (
    ProcessingTimeSessionWindows,
    SlidingProcessingTimeWindows,
    TumblingProcessingTimeWindows,
)
from eventide.testing import local_environment
from support.micro_batches import MicroBatches
from support.twin import Contents
from support.window_contexts import FakeAssignerContext

END = 1_000
STEPS = st.lists(st.tuples(st.integers(1, 15), st.lists(st.sampled_from("abc"), max_size=4)), max_size=12)
"""Micro-batches: some milliseconds after the last one, with the keys of their elements."""
FIXED = st.one_of(
    st.builds(TumblingProcessingTimeWindows, st.integers(2, 12), st.integers(-1, 1)),
    st.builds(SlidingProcessingTimeWindows, st.integers(1, 12), st.integers(2, 12), st.integers(-1, 1)),
)


def timed(steps):
    """Micro-batches as (clock, elements), each element with a number of its own, and one after the end of all."""
    batches, clock, number = [], 0, 0
    for step, keys in steps:
        clock += step
        batches.append((clock, [(key, number + i) for i, key in enumerate(keys)]))
        number += len(keys)
    return [*batches, (END, [])]


def results(assigner, batches):
    """The results of each micro-batch; nothing is left at the end."""
    stream = local_environment().from_collection([]).key_by(lambda e: e[0]).window(assigner)
    operator = MicroBatches(stream.process(Contents()))
    found = []
    for clock, elements in batches:
        found.append(sorted(operator.run(clock, *elements)))
        assert operator.next_clock is None or operator.next_clock > clock
    assert operator.backend.values == {}
    return found


def fired(batches, windows):
    """Windows, by key, start and end, with their elements, in the micro-batch that reaches their last millisecond."""
    found = [[] for _ in batches]
    for (key, start, end), elements in windows.items():
        place = next(place for place, (clock, _) in enumerate(batches) if clock >= end - 1)
        found[place].append((key, start, end, elements))
    return [sorted(batch) for batch in found]


@given(FIXED, STEPS)
def test_fixed_windows_show_all_elements_of_their_time_when_it_is_over(assigner, steps):
    batches, windows = timed(steps), defaultdict(list)
    for clock, elements in batches:
        for element in elements:
            for window in assigner.assign_windows(element, 0, FakeAssignerContext(clock)):
                windows[element[0], window.start, window.end].append(element)
    assert results(assigner, batches) == fired(batches, windows)


@given(st.integers(1, 20), STEPS)
def test_a_session_holds_what_comes_before_its_key_was_quiet_for_the_gap(gap, steps):
    batches, sessions = timed(steps), defaultdict(list)
    for clock, elements in batches:
        for element in elements:
            of_key = sessions[element[0]]
            if not of_key or of_key[-1][1] <= clock:
                of_key.append([clock, clock + gap, []])
            of_key[-1][1] = clock + gap
            of_key[-1][2].append(element)
    windows = {(key, start, end): content for key, of_key in sessions.items() for start, end, content in of_key}
    assert results(ProcessingTimeSessionWindows.with_gap(gap), batches) == fired(batches, windows)
