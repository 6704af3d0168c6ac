"""Windows by the clock on random micro-batches, against oracles that know all micro-batches beforehand."""

from collections import defaultdict

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from eventide.aggregates import count, sum_
from eventide.common import Row, Types
from eventide.common.ms import MIN_MS
from eventide.datastream.window import (
    ProcessingTimeSessionWindows,
    SlidingProcessingTimeWindows,
    TumblingProcessingTimeWindows,
)
from eventide.runtime.elements.elements import Columns, Elements
from eventide.runtime.metrics import Metrics
from eventide.runtime.state.backend import MemoryBackend
from eventide.runtime.tasks.operator import OperatorContext
from eventide.testing import local_environment
from support.micro_batches import MicroBatches
from support.twin import Contents, plan_of
from support.window_contexts import FakeAssignerContext

END = 1_000
NUMBERED = Types.ROW_NAMED(["k", "n"], [Types.STRING(), Types.LONG()])
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


def on_columns(assigner, batches):
    """The results of each micro-batch of a count and a sum on columns; nothing is left at the end."""
    keyed = local_environment().from_collection([], NUMBERED).key_by("k")
    plan = plan_of(keyed.window(assigner).aggregate(count(), sum_("n")))
    (task,), ((edge,),) = plan.operators, [source.root.all_edges() for source in plan.sources]
    assert task.speed == "columns, aggregated before the shuffle"
    assert task.needs_clock
    backend, found = MemoryBackend(), []
    for clock, elements in batches:
        operator = task.open(task.operator, backend, OperatorContext(4, Metrics(), MIN_MS, clock))
        operator.advance_clock(clock - 1)
        writer = edge.partitioner.open("source", 0, 1)
        for part in (elements[::2], elements[1::2]):
            if part:
                values = NUMBERED.to_arrow([Row(k=key, n=number) for key, number in part])
                writer.add(Elements(columns=Columns(NUMBERED, values, None, pa.array(range(len(part)), pa.int64()))))
        payloads = [edge.partitioner.codec.decode(content) for _, content in writer.take()]
        if payloads:
            operator.process(payloads)
        operator.advance_clock(clock)
        next_clock = operator.next_clock_ms
        assert next_clock is None or next_clock > clock
        assert (operator.timers_left() == 0) == (next_clock is None)
        operator.flush()
        rows = operator.take_outputs().get(None, Elements()).values
        found.append(sorted((row.k, row.window.start, row.window.end, row["count"], row["sum(n)"]) for row in rows))
    assert backend.values == {}
    return found


@given(st.builds(TumblingProcessingTimeWindows, st.integers(2, 12), st.integers(-1, 1)), STEPS)
def test_tumbling_windows_on_columns_aggregate_all_elements_of_their_time(assigner, steps):
    batches, windows = timed(steps), defaultdict(list)
    for clock, elements in batches:
        for key, number in elements:
            (window,) = assigner.assign_windows(number, 0, FakeAssignerContext(clock))
            windows[key, window.start, window.end].append(number)
    of_each = [
        [(key, start, end, len(numbers), sum(numbers)) for key, start, end, numbers in batch]
        for batch in fired(batches, windows)
    ]
    assert on_columns(assigner, batches) == of_each


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
