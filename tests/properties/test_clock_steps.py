"""A clock that is set forward and back, between micro-batches and restarts: each timer and window comes once."""

from collections import Counter
from copy import deepcopy

from hypothesis import given
from hypothesis import strategies as st

from eventide.common import Time, WatermarkStrategy
from eventide.datastream import KeyedProcessFunction
from eventide.datastream.window import ProcessingTimeSessionWindows, TumblingProcessingTimeWindows
from eventide.local.runner import LocalCheckpoint, LocalRunner
from eventide.testing import ScriptedSource, local_environment
from support.twin import Values, plan_of

HOUR_MS = 3_600_000
_MOVES = st.sampled_from([0, 1, 200, 4_000, 11_000, HOUR_MS, -HOUR_MS, -2 * HOUR_MS, -4_000])
_STEPS = st.lists(st.tuples(_MOVES, st.integers(0, 2), st.booleans()), min_size=1, max_size=12)


class WaitsForTheClock(KeyedProcessFunction):
    """Gives each element again 5 seconds after it has come, by the clock."""

    def process_element(self, value, ctx):
        ctx.timer_service().register_processing_time_timer(ctx.timer_service().current_processing_time() + 5_000)

    def on_timer(self, timestamp, ctx):
        yield "timer", ctx.get_current_key()


def program(batches):
    source = ScriptedSource(["s"], [[("s", value) for value in batch] for batch in batches], bounded=False)
    stream = local_environment().from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    timers = stream.key_by(lambda n: n).process(WaitsForTheClock())
    by_rest = stream.key_by(lambda n: n % 2)
    windows = [
        TumblingProcessingTimeWindows.of(Time.seconds(10)),
        ProcessingTimeSessionWindows.with_gap(Time.seconds(3)),
    ]
    return plan_of(timers, *(by_rest.window(one).process(Values()) for one in windows))


def given_out(plan, batch):
    """The results of timers, tumbling windows, and sessions."""
    timers, *windows = ([value for value, _ in batch.elements.get(sink.number, ())] for sink in plan.sinks)
    return [[key for _, key in timers], *([n for _, numbers in fired for n in numbers] for fired in windows)]


@given(_STEPS)
def test_each_element_comes_once_out_of_what_waits_for_the_clock(steps):
    count, batches = 0, []
    for _, size, _ in steps:
        batches.append(list(range(count, count + size)))
        count += size
    plan, checkpoint, now = program(batches), LocalCheckpoint(), [10 * HOUR_MS]
    found = [Counter(), Counter(), Counter()]

    def start():
        runner = LocalRunner(plan, clock=lambda: now[0], checkpoint=checkpoint)
        return runner, runner.batches()

    def take(batch):
        for counter, numbers in zip(found, given_out(plan, batch), strict=True):
            counter.update(numbers)

    runner, running = start()
    for move, _, restarts in steps:
        now[0] += move
        if restarts:
            checkpoint = deepcopy(runner.checkpoint)
            runner, running = start()
        batch = next(running, None) or runner.tick()
        if batch is not None:
            take(batch)
    for batch in running:
        take(batch)
    now[0] = 100 * HOUR_MS
    while (batch := runner.tick()) is not None:
        take(batch)
        now[0] += 1
    assert found == [Counter(range(count))] * 3
    assert runner.checkpoint.timers == {}
