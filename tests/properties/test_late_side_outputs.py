"""Late side outputs are what they are without aggregation before the shuffle, and so are results and metrics.

The same program is run with tasks of sources that know at which watermark its windows stand, and with tasks that do
not, which send whole elements: with silent and new splits, restarts, repeated micro-batches, and files that are lost.
"""

from collections import Counter
from copy import deepcopy
from dataclasses import dataclass, replace
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.aggregates import count, count_distinct, first, last, max_, sum_
from eventide.api.source import Beginning
from eventide.common import Duration, Row, Types, WatermarkStrategy
from eventide.datastream import OutputTag
from eventide.datastream.window import (
    CumulatingEventTimeWindows,
    EventTimeTrigger,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TumblingCalendarWindows,
    TumblingEventTimeWindows,
)
from eventide.errors import StateError
from eventide.local.runner import LocalCheckpoint, LocalRunner, PlannedBatch
from eventide.runtime.metrics import LATE_TO_SIDE_OUTPUT
from eventide.runtime.tasks import operator_task
from eventide.testing import Idle, ScriptedSource, local_environment
from support.examples import examples
from support.twin import by_sink, plan_of

TYPE = Types.ROW_NAMED(["k", "t", "v"], [Types.STRING(), Types.LONG(), Types.LONG()])
LATE = OutputTag("late", TYPE)
AGGREGATES = (count(), sum_("v"), max_("v"), first("v"), last("v"), count_distinct("v"))
SPLITS = ["s", "t", "u"]
KEYS = st.sampled_from([None, "k", lambda e: (e["k"], e["t"] % 2)])
WINDOWS = st.one_of(
    st.integers(1, 15).map(TumblingEventTimeWindows),
    st.integers(1, 15).flatmap(lambda size: st.builds(SlidingEventTimeWindows, st.just(size), st.integers(1, size))),
    st.builds(lambda step, steps: CumulatingEventTimeWindows(step * steps, step), st.integers(1, 7), st.integers(1, 5)),
    st.just(TumblingCalendarWindows.of("day")),
)
ENTRIES = st.one_of(
    *[st.tuples(st.sampled_from("sstu"), st.sampled_from(["a", "b", None]), st.integers(-25, 9), st.integers(0, 9))]
    * 9,
    st.sampled_from(SPLITS).map(Idle),
)
SOMETIMES = st.sampled_from([False, False, False, True])


@dataclass(frozen=True)
class Step:
    """A micro-batch: what is read, how much later it is, and what happens after it."""

    entries: list
    later_ms: int
    ticks: bool
    restarts: bool
    repeats: bool
    knows: str


def at_times_of_their_own(steps):
    """Let event time go on by five milliseconds with each micro-batch; no two elements are the first or the last."""
    seen, found = set(), []
    for number, step in enumerate(steps):
        entries = []
        for entry in step.entries:
            if isinstance(entry, Idle):
                entries.append(entry)
                continue
            split, key, time, value = entry
            time += 5 * number
            while time in seen:
                time += 1
            seen.add(time)
            entries.append((split, Row(k=key, t=time, v=value)))
        found.append(replace(step, entries=entries))
    return found


STEPS = st.lists(
    st.builds(
        Step,
        st.one_of(*[st.lists(ENTRIES, min_size=4, max_size=12)] * 4, st.lists(ENTRIES, max_size=2)),
        st.sampled_from([0, 10, 30, 60]),
        SOMETIMES,
        SOMETIMES,
        SOMETIMES,
        st.sampled_from([*["the last"] * 4, "the one before", "nothing"]),
    ),
    min_size=4,
    max_size=8,
).map(at_times_of_their_own)


class Appearing(ScriptedSource):
    """Names a split from the micro-batch on that has its first entry, and the first one from the start."""

    def __init__(self, splits, batches, holds):
        super().__init__(splits, batches, TYPE)
        self._holds = holds
        self._at = 0

    def splits(self):
        return [split for split in self._splits if split == self._splits[0] or self._has_begun(split)]

    def _has_begun(self, split):
        return any(split in script for script in self._script[: self._at + 1])

    def parts(self, known):
        self._at = max((position for position in known.values() if position is not None), default=0)
        return [*dict.fromkeys([*known, *self.splits()])]

    def beginnings(self, parts):
        return {part: Beginning(self._at) for part in parts}

    def holds_when_new(self):
        return self._holds


def scripted(steps, splits, grows):
    """A source of some of the splits."""
    batches = [
        [entry for entry in step.entries if (entry.split if isinstance(entry, Idle) else entry[0]) in splits]
        for step in steps
    ]
    return ScriptedSource(splits, batches, TYPE) if grows is None else Appearing(splits, batches, grows)


def program(
    steps,
    windows,
    key,
    *,
    bound=2,
    lateness=0,
    purges=False,
    grows=None,
    idles=False,
    splits=SPLITS,
    parts=1,
    subtasks=2,
):
    """The plan of windows with a late side output, over one source or a union of two."""
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(bound)).with_timestamp_assigner("t")
    strategy = strategy.with_idleness(Duration.of_millis(40)) if idles else strategy
    env = local_environment()
    named = [splits[number::parts] for number in range(parts)]
    streams = [
        env.from_source(scripted(steps, splits, grows), strategy, f"events {number}", TYPE)
        for number, splits in enumerate(named)
    ]
    stream = streams[0].union(*streams[1:])
    windowed = stream.window_all(windows) if key is None else stream.key_by(key).window(windows)
    if purges:
        windowed = windowed.trigger(PurgingTrigger.of(EventTimeTrigger()))
    results = windowed.allowed_lateness(lateness).side_output_late_data(LATE).aggregate(*AGGREGATES)
    return plan_of(results, results.get_side_output(LATE), parallelism=subtasks)


def untold(plan):
    """The plan with sources whose tasks know nothing, so that they send whole elements."""
    return replace(plan, sources=tuple(replace(source, telling={}) for source in plan.sources))


class Job:
    """A job that is restarted, repeats micro-batches, and loses what it knows."""

    def __init__(self, plan):
        self._plan = plan
        self.now = 0
        self.results = []
        self._begin(LocalCheckpoint())

    def _begin(self, checkpoint):
        self.runner = LocalRunner(self._plan, clock=lambda: self.now, checkpoint=checkpoint, run="run")
        self._batches = self.runner.batches()

    def step(self, step):
        """Run a micro-batch with all that belongs to it; say whether there was one."""
        self.now += step.later_ms
        before = deepcopy(self.runner.checkpoint)
        result = next(self._batches, None)
        if result is None:
            return False
        results = by_sink(self._plan, result)
        if step.repeats:
            after, number = self.runner.checkpoint, before.batch
            known = before.reached if step.knows == "the last" else after.reached
            planned = PlannedBatch(after.offsets, self.now, "run")
            self._begin(replace(before, planned=planned, reached=known))
            assert by_sink(self._plan, next(self._batches)) == results
            assert self.runner.checkpoint.batch == number + 1
        self._take(results)
        if step.ticks and (ticked := self.runner.tick()) is not None:
            self._take(by_sink(self._plan, ticked))
        known = {"the last": self.runner.checkpoint.reached, "the one before": before.reached, "nothing": None}
        self.runner.checkpoint.reached = known[step.knows]
        if step.restarts:
            self._begin(deepcopy(self.runner.checkpoint))
        return True

    def _take(self, results):
        found, late = results
        self.results.append((Counter((str(list(row)), time) for row, time in found), late))


def run(plan, steps):
    """The results of each micro-batch, with its late elements in order; the metrics after each; and the timers."""
    job, counted, ended = Job(plan), [], [*steps, Step([], 0, False, False, False, "the last")]
    for step in ended:
        if not job.step(step):
            break
        counted.append({name: dict(of) for name, of in job.runner.metrics().items()})
    return job.results, counted, job.runner.checkpoint.timers


@examples(200)
@given(
    STEPS,
    WINDOWS,
    KEYS,
    st.integers(0, 6),
    st.sampled_from([0, 0, 3, 12]),
    st.sampled_from([None, None, True, False]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([(["s"], 1), (["s", "t"], 1), (SPLITS, 1), (SPLITS, 2)]),
    st.integers(1, 3),
    st.sampled_from([operator_task.PIECE_BYTES, 1_000]),
)
def test_what_is_aggregated_before_the_shuffle_does_not_show(
    steps, windows, key, bound, lateness, grows, idles, purges, where, subtasks, piece
):
    how = {"bound": bound, "lateness": lateness, "purges": purges and not lateness, "grows": grows, "idles": idles}
    splits, parts = where
    plan = program(steps, windows, key, **how, splits=splits, parts=parts, subtasks=subtasks)
    assert plan.operators[0].speed.startswith("columns, aggregated before the shuffle, but for rows that may be late")
    # A window that late elements fire again fires again with each piece.
    with mock.patch.object(operator_task, "PIECE_BYTES", operator_task.PIECE_BYTES if lateness else piece):
        assert run(plan, steps) == run(untold(plan), steps)


def of_times(*batches):
    """Micro-batches with elements of one split."""
    entries = [[("s", Row(k="a", t=time, v=1)) for time in batch] for batch in batches]
    return [Step(batch, 10, False, False, False, "the last") for batch in entries]


def test_late_elements_are_found_beside_what_is_aggregated():
    steps = of_times([1, 12, 25], [3, 14, 26, 27, 28], [24, 2, 41], [29, 45, 1])
    plan = program(steps, TumblingEventTimeWindows(10), "k", bound=0, splits=["s"])
    results, counted, _ = run(plan, steps)
    assert [[row["t"] for row, _ in late] for _, late in results] == [[], [3, 14], [2], [29, 1], []]
    assert counted[-1][plan.operators[0].name][LATE_TO_SIDE_OUTPUT] == 5


def test_what_has_lost_its_elements_does_not_get_lost_as_well():
    """A file that says less than what was reached is an error, because a late element would be missing."""
    steps = of_times([1, 25], [3])
    plan = program(steps, TumblingEventTimeWindows(10), "k", bound=0, splits=["s"])
    job = Job(plan)
    assert job.step(steps[0])
    reached = job.runner.checkpoint.reached
    job.runner.checkpoint.reached = replace(reached, watermarks=dict.fromkeys(reached.watermarks, 5))
    with pytest.raises(StateError, match="Delete the folder eventide-reached there, and start the job again"):
        job.step(steps[1])


def test_only_what_was_reached_in_the_micro_batch_before_counts():
    """Late elements are found where an older file says that less was reached; and with it, elements travel whole."""
    steps = of_times([1, 25], [40], [30, 41], [35, 42])
    plan = program(steps, TumblingEventTimeWindows(5), "k", bound=0, splits=["s"])
    job = Job(plan)
    assert job.step(steps[0])
    older = job.runner.checkpoint.reached
    for step in steps[1:]:
        job.step(step)
        job.runner.checkpoint.reached = older
    assert [[row["t"] for row, _ in late] for _, late in job.results] == [[], [], [30], [35]]


def test_late_elements_of_several_splits_are_in_order_however_the_input_is_cut():
    times = [1, 25, *range(2, 6), 26]
    entries = [[(split, Row(k="a", t=time, v=1)) for split in "st" for time in some] for some in (times[:2], times[2:])]
    steps = [Step(batch, 10, False, False, False, "the last") for batch in entries]
    plan = program(steps, TumblingEventTimeWindows(10), "k", bound=0, splits=["s", "t"], subtasks=1)
    for piece in range(500, 5_000, 500):
        with mock.patch.object(operator_task, "PIECE_BYTES", piece):
            results, _, _ = run(plan, steps)
        assert [row["t"] for row, _ in results[1][1]] == [2, 2, 3, 3, 4, 4, 5, 5]
