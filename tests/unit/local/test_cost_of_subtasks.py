"""The cost of a micro-batch that has next to nothing to do: calls of state, rows between tasks, and bytes."""

from collections import defaultdict
from copy import deepcopy
from dataclasses import dataclass, field

import pytest

import eventide.local.runner as local
from eventide.common import Row, Time, Types, WatermarkStrategy
from eventide.datastream import KeyedProcessFunction
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.local.runner import LocalCheckpoint
from eventide.runtime.exchange.frames import METRICS
from eventide.runtime.state.operators import HEAD
from eventide.runtime.tasks.operator_task import OperatorTaskSpec
from eventide.runtime.tasks.stage import StageRun
from eventide.testing import local_environment
from support.counting_backend import CountingBackend
from support.twin import by_sink, plan_of, runner

ELEMENT = Types.ROW_NAMED(["key", "at", "value"], [Types.STRING(), Types.LONG(), Types.LONG()])
BY_AT = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("at")
UNTOUCHED = [("get", HEAD), ("put", HEAD)]


def elements(batches=8, step=10):
    """One element in a micro-batch, each further on."""
    return [Row(key="a", at=step * i, value=i) for i in range(batches)]


def two_stages(rows):
    """Sums of windows, and sums of these in larger ones."""
    stream = local_environment().from_collection(rows, ELEMENT).assign_timestamps_and_watermarks(BY_AT)
    sums = (
        stream.key_by("key")
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .reduce(lambda one, other: Row(key=one.key, at=other.at, value=one.value + other.value))
    )
    windows = sums.key_by(lambda row: row.key).window(TumblingEventTimeWindows.of(Time.milliseconds(20)))
    return windows.reduce(lambda one, other: Row(key=one.key, at=other.at, value=one.value + other.value))


@dataclass
class Cost:
    """Cost of one subtask of a stage in a micro-batch."""

    calls: list = field(default_factory=list)
    head_bytes: int = 0
    rows_in: int = 0
    rows_out: int = 0


class Counted:
    """Runs a plan, and counts what each micro-batch costs, by stage and subtask."""

    def __init__(self, monkeypatch, plan):
        self._plan = plan
        self._batch = {}
        self._backends = []
        run, at = StageRun.run, self

        class Backend(CountingBackend):
            def __init__(self, values=None):
                super().__init__(values)
                at._backends.append(self)

        def counted(stage_run, frames):
            frames = [*frames]
            out = [*run(stage_run, frames)]
            backend = at._backends[-1]
            at._batch[stage_run._stage.number, stage_run._subtask] = Cost(
                backend.calls, len(backend.values[HEAD]), len(frames), len(out)
            )
            at.metrics += sum(frame.target == METRICS for frame in out)
            return iter(out)

        monkeypatch.setattr(local, "MemoryBackend", Backend)
        monkeypatch.setattr(StageRun, "run", counted)
        self.metrics = 0

    def batches(self):
        """The costs of one micro-batch after the other."""
        for _ in runner(self._plan, max_rows=1).batches():
            yield self._batch
            self._batch, self._backends, self.metrics = {}, [], 0


@pytest.fixture
def steady(monkeypatch):
    """The costs of the seventh micro-batch, in which the watermark moves and one key is touched."""

    def of(parallelism, rows=None):
        plan = plan_of(two_stages(rows or elements()), parallelism=parallelism, max_parallelism=512)
        counted = Counted(monkeypatch, plan)
        for number, batch in enumerate(counted.batches()):
            if number == 6:
                return batch, counted.metrics
        raise AssertionError("there are too few micro-batches")

    return of


@pytest.mark.parametrize("parallelism", [2, 64, 200])
def test_a_subtask_that_is_not_touched_has_one_row_and_two_calls_however_many_there_are(steady, parallelism):
    batch, metrics = steady(parallelism)
    untouched = [cost for cost in batch.values() if cost.rows_in == 1]
    assert {number for number, _ in batch} == {1, 2}
    assert len(batch) == 2 * parallelism
    assert len(untouched) >= 2 * parallelism - 4
    for cost in untouched:
        assert cost.calls == UNTOUCHED
        assert cost.rows_out <= 1
        assert cost.head_bytes < 1_100
    assert metrics <= 4


@pytest.mark.parametrize("parallelism", [2, 64, 200])
def test_rows_between_stages_grow_with_the_subtasks_and_not_with_their_square(steady, parallelism):
    batch, _ = steady(parallelism)
    rows = defaultdict(int)
    for (stage, _), cost in batch.items():
        rows[stage] += cost.rows_in
    assert parallelism <= rows[1] <= parallelism + 3
    assert parallelism <= rows[2] <= parallelism + 3


@pytest.mark.parametrize("parallelism", [2, 200])
def test_a_subtask_that_is_touched_costs_the_same_however_many_there_are(steady, parallelism):
    batch, _ = steady(parallelism)
    touched = max(batch.values(), key=lambda cost: len(cost.calls))
    assert len(touched.calls) <= 7


@pytest.mark.parametrize("parallelism", [2, 200])
def test_nothing_is_written_where_no_watermark_moves(steady, parallelism):
    batch, metrics = steady(parallelism, elements(step=0))
    assert {number for number, _ in batch} == {1}
    written = [subtask for (_, subtask), cost in batch.items() if any(what == "put" for what, _ in cost.calls)]
    assert len(written) <= 2  # the one of the key, and the first, which keeps the log
    assert all(cost.calls == [("get", HEAD)] for (_, at), cost in batch.items() if at not in written)
    assert metrics <= 2


class Met(KeyedProcessFunction):
    """Gives each element with the watermark that it meets."""

    def process_element(self, value, ctx):
        yield value.key, value.at, ctx.timer_service().current_watermark()


def watermarks_met():
    """The plan of a process function on the sums of windows, which gives the watermarks that they meet."""
    rows = [Row(key=key, at=at, value=1) for at in range(0, 90, 7) for key in "abc"]
    stream = local_environment().from_collection(rows, ELEMENT).assign_timestamps_and_watermarks(BY_AT)
    sums = (
        stream.key_by("key")
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .reduce(lambda one, other: Row(key=one.key, at=other.at, value=one.value + other.value))
    )
    return plan_of(sums.key_by(lambda row: row.key).process(Met()), parallelism=3)


def go_on(speaking, monkeypatch):
    """All results where each run ends after two micro-batches, and the first subtask speaks for all in some runs."""
    checkpoint, results = LocalCheckpoint(), []
    for number in range(40):
        for_all = speaking(number)
        monkeypatch.setattr(OperatorTaskSpec, "first_speaks_for_all", property(lambda _, for_all=for_all: for_all))
        plan = watermarks_met()
        one = runner(plan, 5, deepcopy(checkpoint))
        done = 0
        for batch in one.batches():
            results += [value for value, _ in by_sink(plan, batch)[0]]
            done += 1
            if done == 2:
                break
        if done < 2:
            return sorted(results)
        checkpoint = one.checkpoint
    raise AssertionError("the job does not end")


def test_a_checkpoint_in_which_each_subtask_spoke_for_itself_goes_on_and_the_other_way_round(monkeypatch):
    each = go_on(lambda number: False, monkeypatch)
    assert len({value[:2] for value in each}) == len(each) > 20
    assert go_on(lambda number: True, monkeypatch) == each
    assert go_on(lambda number: number > 1, monkeypatch) == each
    assert go_on(lambda number: number % 2 == 0, monkeypatch) == each
