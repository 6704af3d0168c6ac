"""A program that has grown goes on from its checkpoint as if it had always been so."""

from copy import deepcopy
from itertools import islice

import pytest

from eventide.common import Watermark, WatermarkGenerator, WatermarkStrategy
from eventide.datastream import ProcessAllWindowFunction
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.errors import StateError
from eventide.local.runner import LocalCheckpoint
from eventide.plan.identity import check_identity
from eventide.testing import ScriptedSource, local_environment
from support.twin import BY_SECOND_FIELD, by_sink, plan_of, run, runner

TENS = TumblingEventTimeWindows.of(10)
MONOTONOUS = WatermarkStrategy.for_monotonous_timestamps()


def continued(before, after, batches=1):
    """The elements of the first sink: in some micro-batches of one plan, and then in those of another."""
    first = runner(before, checkpoint=LocalCheckpoint())
    results = [by_sink(before, batch)[0] for batch in islice(first.batches(), batches)]
    check_identity("/there", before.identity(), after.identity())
    rest = runner(after, checkpoint=deepcopy(first.checkpoint))
    return results + [by_sink(after, batch)[0] for batch in rest.batches()]


class AllContents(ProcessAllWindowFunction):
    """Gives (start, elements in their order by value): that of two branches depends on which was made first."""

    def process(self, context, elements):
        yield context.window().start, sorted(elements)


class EverySecond(WatermarkGenerator):
    """Speaks after every second element that it sees."""

    def __init__(self):
        self.seen = 0

    def on_event(self, event, event_timestamp, output):
        self.seen += 1
        if self.seen % 2 == 0:
            output.emit_watermark(Watermark(event_timestamp))

    def on_periodic_emit(self, output):
        pass


class OfSplits(EverySecond):
    pass


class Silent(EverySecond):
    def on_event(self, event, event_timestamp, output):
        pass


@pytest.mark.parametrize(("is_behind_operator", "batches"), [(True, 2), (False, 1)])
def test_a_generator_goes_on_from_what_it_has_learnt_when_a_branch_is_made_before_it(is_behind_operator, batches):
    source = ScriptedSource(["s"], [[("s", ("a", at))] for at in (1, 11, 21, 31, 41)])

    def plan(has_branch):
        env = local_environment()
        if is_behind_operator:
            stream = env.from_source(source, BY_SECOND_FIELD, "script").window_all(TENS).reduce(lambda a, b: b)
        else:
            strategy = WatermarkStrategy.for_generator(OfSplits).with_timestamp_assigner(lambda e, _: e[1])
            stream = env.from_source(source, strategy, "script")
        branch = [stream.assign_timestamps_and_watermarks(MONOTONOUS).map(lambda e: e)] if has_branch else []
        again = stream.assign_timestamps_and_watermarks(WatermarkStrategy.for_generator(EverySecond))
        return plan_of(again.window_all(TENS).process(AllContents()), *branch)

    expected = [batch[0] for batch in run(plan(has_branch=False))]
    assert continued(plan(has_branch=False), plan(has_branch=True), batches) == expected


def test_a_generator_that_is_not_there_any_more_does_not_fit_the_checkpoint():
    def identity(*generators):
        stream = local_environment().from_source(ScriptedSource(["s"], []), BY_SECOND_FIELD, "script")
        window = stream.window_all(TENS).reduce(lambda a, b: b)
        strategies = map(WatermarkStrategy.for_generator, generators)
        return plan_of(*(window.assign_timestamps_and_watermarks(one).map(str) for one in strategies)).identity()

    check_identity("/there", identity(EverySecond, OfSplits), identity(OfSplits, EverySecond))
    with pytest.raises(StateError, match="watermark generators was"):
        check_identity("/there", identity(EverySecond), identity(OfSplits))


STRATEGIES = {
    "bounds": (MONOTONOUS, WatermarkStrategy.for_bounded_out_of_orderness(100)),
    "kinds": (MONOTONOUS, WatermarkStrategy.no_watermarks()),
    "generators": (MONOTONOUS, WatermarkStrategy.for_generator(Silent)),
}


def branches(order, strategies, script=(), uids=(None, None)):
    """A window over two branches of one source, which are made in an order."""
    stream = local_environment().from_source(ScriptedSource(["s"], script), BY_SECOND_FIELD, "script")
    stream = stream.window_all(TumblingEventTimeWindows.of(1)).reduce(lambda a, b: b)
    made = {}
    for number in order:
        made[number] = stream.assign_timestamps_and_watermarks(strategies[number])
        made[number]._transformation.uid = uids[number]
    both = made[0].map(lambda e: (*e, 0)).union(made[1].map(lambda e: (*e, 1)))
    return plan_of(both.window_all(TENS).process(AllContents()))


@pytest.mark.parametrize("which", STRATEGIES)
def test_two_branches_of_one_origin_keep_their_watermarks_when_they_are_made_in_another_order(which):
    script = [[("s", ("a", at)) for at in (1, 15, 40)], [], [("s", ("a", 41)), ("s", ("a", 42))]]
    strategies = STRATEGIES[which]
    expected = [batch[0] for batch in run(branches((0, 1), strategies, script))]
    before, after = branches((0, 1), strategies, script), branches((1, 0), strategies, script)
    assert {edge.name for edge in before.operators[1].edges} == {edge.name for edge in after.operators[1].edges}
    assert continued(before, after) == continued(before, before) == expected


def test_branches_with_other_strategies_do_not_fit_the_checkpoint():
    one, other = STRATEGIES["bounds"]
    before = branches((0, 1), (one, other)).identity()
    changed = branches((0, 1), (one, WatermarkStrategy.for_bounded_out_of_orderness(200))).identity()
    with pytest.raises(StateError, match=r"strategies .* was 'bounded out-of-orderness 100 ms.* and is now"):
        check_identity("/there", before, changed)
    uids = ("one", "other")
    check_identity(
        "/there",
        branches((0, 1), (one, other), uids=uids).identity(),
        branches((1, 0), (other, one), uids=uids).identity(),
    )
