"""One of several sources ends: what that brings out moves the watermarks of strategies after the operator, too."""

from eventide.common import WatermarkStrategy
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.testing import End, ScriptedSource, local_environment
from support.twin import BY_SECOND_FIELD, AllContents, plan_of, run

TENS = TumblingEventTimeWindows.of(10)


def test_a_strategy_after_an_operator_sees_what_comes_out_when_one_of_its_sources_ends():
    env = local_environment()
    ends = ScriptedSource(["a"], [[("a", ("a", 1)), End("a")]])
    goes_on = ScriptedSource(["b"], [[("b", ("b", 15)), ("b", ("b", 25))], [], []])
    one, other = (env.from_source(source, BY_SECOND_FIELD, "script") for source in (ends, goes_on))
    last = one.union(other).window_all(TENS).reduce(lambda a, b: b)
    again = last.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
    first, *rest = [batch[0] for batch in run(plan_of(again.window_all(TENS).process(AllContents())))]
    assert first == [((0, 10, [("a", 1)]), 9)]
    assert [result for batch in rest for result in batch] == [
        ((10, 20, [("b", 15)]), 19),
        ((20, 30, [("b", 25)]), 29),
    ]
