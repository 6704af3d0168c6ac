"""The ends of sources before a restart are known to operators that the program has only since then."""

from copy import deepcopy
from typing import ClassVar

import pytest

from eventide.common import PunctuatedWatermarks, Time, WatermarkStrategy
from eventide.datastream.connectors import Source
from eventide.datastream.window import SlidingEventTimeWindows, TumblingEventTimeWindows
from eventide.testing import End, ScriptedSource, local_environment
from support.twin import BY_SECOND_FIELD, Contents, plan_of, run, runner

TUMBLING = TumblingEventTimeWindows.of(Time.milliseconds(10))
SLIDING = SlidingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(10))
GENERATED = WatermarkStrategy.for_generator(lambda: PunctuatedWatermarks(lambda element, _: element[1]))
GENERATED = GENERATED.with_timestamp_assigner(lambda element, _: element[1])
LATER = [[("b", ("k", 15))], [("b", ("k", 25))], [("b", ("k", 35))]]


def windows(stream, assigner=TUMBLING):
    return stream.key_by(lambda element: element[0]).window(assigner).process(Contents())


def one_of_two_splits_ends(strategy):
    script = [[("a", ("k", 1)), ("b", ("k", 1)), End("a")], *LATER]
    stream = local_environment().from_source(ScriptedSource(["a", "b"], script, bounded=False), strategy, "source")
    return windows(stream), windows(stream, SLIDING)


def one_of_two_sources_ends(strategy):
    env = local_environment()
    ends = ScriptedSource(["a"], [[("a", ("k", 1)), End("a")]], bounded=False)
    lasts = ScriptedSource(["b"], [[("b", ("k", 1))], *LATER], bounded=False)
    both = env.from_source(ends, strategy, "ends").union(env.from_source(lasts, strategy, "lasts"))
    return windows(both), windows(both, SLIDING)


def the_input_of_an_operator_ends(strategy):
    env = local_environment()
    ends = ScriptedSource(["a"], [[("a", ("k", 1)), End("a")]], bounded=False)
    lasts = ScriptedSource(["b"], [[("b", ("k", 1))], *LATER], bounded=False)
    ended = windows(env.from_source(ends, strategy, "ends"))
    other = env.from_source(lasts, strategy, "lasts")
    old = windows(windows(other).map(lambda result: ("old", result[1])), SLIDING)
    return old, windows(ended.map(lambda result: ("ended", result[1])).union(windows(other, SLIDING)), SLIDING), ended


@pytest.mark.parametrize("strategy", [BY_SECOND_FIELD, GENERATED])
@pytest.mark.parametrize("build", [one_of_two_splits_ends, one_of_two_sources_ends, the_input_of_an_operator_ends])
def test_a_new_operator_does_not_wait_for_what_has_ended(build, strategy):
    old, _, *others = build(strategy)
    before = runner(plan_of(old, *others))
    batches = before.batches()
    next(batches)
    checkpoint = deepcopy(before.checkpoint)
    batches.close()
    old, new, *others = build(strategy)
    plan = plan_of(old, *others, new)
    after = [batch.elements for batch in runner(plan, checkpoint=checkpoint).batches()]
    fired = [result[1] for elements in after for result, _ in elements.get(plan.sinks[-1].number, ())]
    assert [start for start in fired if start >= 10] == [10, 20]


class Days(Source):
    """One split that lives, and one that comes later, ends, and is still named."""

    positions: ClassVar = {}

    def splits(self):
        return [*Days.positions]

    def latest_position(self, split):
        return Days.positions[split]

    def has_ended(self, split, position):
        return split == "day" and position == 2

    def is_bounded(self):
        return False

    def read(self, split, start, end):
        yield from (("k", 10 * position + 1) for position in range(start, end))


@pytest.mark.parametrize("strategy", [BY_SECOND_FIELD, GENERATED])
def test_a_split_that_came_and_ended_in_the_run_before_holds_nobody_behind_it(strategy, monkeypatch):
    def program():
        return plan_of(windows(local_environment().from_source(Days(), strategy, "days")))

    def results(plan, one):
        return [
            start for batch in one.batches() for (_, start, _, _), _ in batch.elements.get(plan.sinks[0].number, [])
        ]

    monkeypatch.setattr(Days, "positions", {"live": 1})
    plan = program()
    one = runner(plan)
    starts = results(plan, one)
    Days.positions = {"live": 2, "day": 2}
    starts += results(plan, one)
    Days.positions = {"live": 9, "day": 2}
    plan = program()
    starts += results(plan, runner(plan, checkpoint=deepcopy(one.checkpoint)))
    assert starts == [*range(0, 80, 10)]


def test_what_has_not_changed_is_not_said_again():
    old, new = one_of_two_splits_ends(BY_SECOND_FIELD)
    plan = plan_of(old, new)
    one = runner(plan)
    number = sum(1 for _ in one.batches())
    assert number == len(run(plan))
    assert [*runner(plan, checkpoint=deepcopy(one.checkpoint)).batches()] == []
