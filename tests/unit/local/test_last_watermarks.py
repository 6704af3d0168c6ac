"""The last watermark of a source, at a strategy that comes after the source: it goes through, idle or not.

Flink: ``TimestampsAndWatermarksOperator.processWatermark``. The strategy of a source itself has none if it is idle.
"""

import pytest

from eventide.common import WatermarkGenerator, WatermarkStrategy
from eventide.datastream import RuntimeExecutionMode, SourceFunction
from eventide.datastream.functions import ProcessWindowFunction
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.testing import Idle, ScriptedSource, local_environment
from support.twin import plan_of, run_with_restarts, values

DATA = [("a", 1), ("a", 12), ("a", 25)]
BY_TIME = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda e, _: e[1])
NONE = WatermarkStrategy.no_watermarks()


class IdleAtLast(WatermarkGenerator):
    def on_event(self, event, event_timestamp, output):
        output.mark_idle()

    def on_periodic_emit(self, output):
        pass


IDLE_GENERATOR = WatermarkStrategy.for_generator(IdleAtLast).with_timestamp_assigner(lambda e, _: e[1])


class Times(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield [time for _, time in elements]


def windows(stream):
    return stream.key_by(lambda e: e[0]).window(TumblingEventTimeWindows.of(10)).process(Times())


def fired(stream):
    return list(windows(stream).execute_and_collect())


def scripted(strategy, *last):
    source = ScriptedSource(["s"], [[("s", element) for element in DATA], *last])
    return local_environment().from_source(source, strategy, "script")


@pytest.mark.parametrize("through", [lambda s: s, lambda s: s.map(lambda e: e), lambda s: s.rebalance()])
def test_it_ends_the_windows_of_a_strategy_that_counts_as_idle(through):
    stream = through(scripted(NONE)).assign_timestamps_and_watermarks(IDLE_GENERATOR)
    assert fired(stream) == [[1], [12], [25]]
    collection = through(local_environment().from_collection(DATA)).assign_timestamps_and_watermarks(IDLE_GENERATOR)
    assert fired(collection) == [[1], [12], [25]]


def test_the_strategy_of_an_idle_source_has_none():
    assert fired(scripted(IDLE_GENERATOR)) == []


class IdleWhenItReturns(SourceFunction):
    def run(self, ctx):
        for element in DATA:
            ctx.collect(element)
        ctx.mark_as_temporarily_idle()

    def cancel(self):
        pass


@pytest.mark.parametrize("through", [lambda s: s, lambda s: s.map(lambda e: e), lambda s: s.rebalance()])
def test_a_source_that_says_that_it_is_idle_sends_none_to_a_strategy_after_it(through):
    stream = through(local_environment().add_source(IdleWhenItReturns())).assign_timestamps_and_watermarks(BY_TIME)
    assert [25] not in fired(stream)


def test_a_split_that_says_that_it_is_idle_sends_none_to_a_strategy_after_it():
    assert [25] not in fired(scripted(NONE, [Idle("s")]).assign_timestamps_and_watermarks(BY_TIME))


def test_after_a_restart_a_split_is_idle_that_said_so_before():
    stream = scripted(NONE, [Idle("s")], []).assign_timestamps_and_watermarks(BY_TIME)
    assert [25] not in values(run_with_restarts(plan_of(windows(stream)), 1))


def test_in_batch_mode_all_windows_fire_after_a_strategy_that_counts_as_idle():
    env = local_environment().set_runtime_mode(RuntimeExecutionMode.BATCH)
    stream = env.from_collection(DATA).assign_timestamps_and_watermarks(IDLE_GENERATOR)
    assert fired(stream) == [[1], [12], [25]]
