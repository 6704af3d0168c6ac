"""Watermark strategies that change between micro-batches, with restarts and repeated micro-batches, against a model."""

from copy import deepcopy
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.common import WatermarkStrategy
from eventide.common.ms import MIN_MS
from eventide.datastream import KeyedProcessFunction
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.local.runner import LocalCheckpoint, LocalRunner
from eventide.spark.checkpoint.strategies import ask_for, values_in_force, waiting_changes
from eventide.testing import ScriptedSource, local_environment
from support.twin import AllContents, plan_of

SPLITS = ("a", "b")
BOUND_MS, IDLE_MS = 5, 40

_ELEMENTS = st.lists(st.tuples(st.sampled_from(SPLITS), st.integers(0, 60)), min_size=1, max_size=4)
_BOUND = st.sampled_from([None, 0, 3, BOUND_MS, 20])
_CHANGES = st.one_of(
    st.none(),
    st.tuples(st.just("numbers"), _BOUND, st.sampled_from([None, "off", 15, IDLE_MS])),
    st.tuples(st.just("again"), _BOUND, st.none()),
).filter(lambda change: change is None or {*change[1:]} != {None})
_STEPS = st.lists(
    st.tuples(_ELEMENTS, st.integers(1, 50), _CHANGES, st.sampled_from(["", "restarts", "is killed"])),
    min_size=1,
    max_size=8,
)


class HandsOn(KeyedProcessFunction):
    """Gives each element as it is."""

    def process_element(self, value, ctx):
        yield value


def program(batches):
    """A source with one strategy, an operator, and another strategy downstream of it."""
    by_value = WatermarkStrategy.for_bounded_out_of_orderness(BOUND_MS).with_timestamp_assigner(lambda ms, _: ms)
    source = ScriptedSource(SPLITS, batches, bounded=False)
    stream = local_environment().from_source(source, by_value.with_idleness(IDLE_MS), "numbers")
    first = stream.key_by(lambda _: 0).process(HandsOn()).name("first")
    again = first.assign_timestamps_and_watermarks(by_value).name("again")
    windows = again.window_all(TumblingEventTimeWindows.of(10)).process(AllContents()).name("second")
    return plan_of(windows, parallelism=1)


class Model:
    """The watermarks of both operators, micro-batch by micro-batch."""

    def __init__(self):
        self.bound, self.idle_after = {"numbers": BOUND_MS, "again": BOUND_MS}, IDLE_MS
        self.of_split = dict.fromkeys(SPLITS, MIN_MS)
        self.idle, self.silent, self.heard_at = set(), set(), {}
        self.first = self.second = MIN_MS

    def begin_run(self):
        """Timeouts start anew; without one, what was idle stays so until it speaks."""
        if self.idle_after is not None:
            self.idle -= self.silent
        self.silent, self.heard_at = set(), {}

    def change(self, name, bound, idle_after):
        if bound is not None:
            self.bound[name] = bound
        if idle_after is not None:
            self.idle_after = None if idle_after == "off" else idle_after

    def batch(self, elements, now):
        for split, at in elements:
            self.of_split[split] = max(self.of_split[split], at - self.bound["numbers"] - 1)
            self.idle.discard(split)
            self.heard_at[split] = now
        if self.idle_after is not None:
            last = {split: self.heard_at.setdefault(split, now) for split in SPLITS}
            self.silent = {split for split in SPLITS if now - last[split] > self.idle_after}
            self.idle |= self.silent
        active = [ms for split, ms in self.of_split.items() if split not in self.idle]
        self.first = max(self.first, min(active, default=max(self.of_split.values())))
        highest = max(at for _, at in elements)
        self.second = max(self.second, highest - self.bound["again"] - 1)
        return {"first": self.first, "second": self.second}


class Runs:
    """Runs of one program on one checkpoint, whose logs are those of Spark."""

    def __init__(self, batches, location):
        self.plan, self.location, self.now = program(batches), location, 1_000
        self.checkpoint, self.names = LocalCheckpoint(), map(str, count())
        self.start()

    def start(self):
        values = values_in_force(str(self.location), self.plan.strategies, takes=True)
        plan, run = self.plan.with_strategies(values), next(self.names)
        self.runner = LocalRunner(plan, clock=lambda: self.now, checkpoint=deepcopy(self.checkpoint), run=run)

    def begin(self):
        """Plan a micro-batch, and write that down."""
        self.runner._next_batch()
        self.checkpoint.planned = self.runner.checkpoint.planned
        self.log("offsets")

    def finish(self):
        """Run the micro-batch that is begun, and return the watermarks after it."""
        watermarks = self.runner._run_batch(self.runner.checkpoint.planned).watermarks
        self.log("commits")
        self.checkpoint = deepcopy(self.runner.checkpoint)
        return watermarks

    def log(self, folder):
        (self.location / folder).mkdir(exist_ok=True)
        (self.location / folder / str(self.checkpoint.batch)).touch()


@settings(max_examples=12)
@given(_STEPS)
def test_a_change_counts_from_one_micro_batch_on_whoever_runs_or_repeats_it(steps):
    batches = [[(split, number * 10 + at) for split, at in elements] for number, (elements, *_) in enumerate(steps)]
    with TemporaryDirectory() as folder:
        runs, model, waiting, began = Runs(batches, Path(folder)), Model(), [], False
        for elements, (_, passes, change, event) in zip(batches, steps, strict=True):
            runs.now += passes
            if event == "restarts":
                runs.start()
            if event == "restarts" or began:
                model.begin_run()
            began = False
            runs.begin()
            if change is not None:
                ask_for(folder, *change, None)
                waiting.append(change)
            if event == "is killed":
                before = deepcopy(runs.runner)._run_batch(runs.checkpoint.planned).watermarks
                runs.start()
            found = runs.finish()
            assert found == model.batch(elements, runs.now)
            if event == "is killed":
                assert found == before, "a repeated micro-batch gives what it gave"
                began = True
            if waiting_changes(folder):
                runs.start()
                assert not waiting_changes(folder)
                for one in waiting:
                    model.change(*one)
                waiting, began = [], True
