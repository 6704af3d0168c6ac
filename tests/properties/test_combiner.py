"""The combiner against a model that is written differently, for any order of calls, restarted at any point."""

import json

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from eventide.common.ms import MIN_MS
from eventide.runtime.eventtime.combiner import Members, Progress, WatermarkCombiner

CHANNELS = st.sampled_from("abc")
WATERMARKS = st.integers(0, 12)


class CombinerMachine(RuleBasedStateMachine):
    """The model keeps four dumb collections, and works out the answer from nothing each time."""

    kind: Members

    def __init__(self):
        super().__init__()
        self.combiner = WatermarkCombiner(self.kind, "abc")
        self.said = MIN_MS
        self.said_idle = False
        self.highest = dict.fromkeys("abc", MIN_MS)
        self.idle = set()
        self.behind = set()

    @rule(channel=CHANNELS, watermark=WATERMARKS)
    def update(self, channel, watermark):
        if channel in self.highest:
            self.combiner.update(channel, watermark)
            if self.kind is Members.SPLITS or watermark > self.highest[channel]:
                self.idle.discard(channel)
            self.highest[channel] = max(watermark, self.highest[channel])

    @rule(channel=CHANNELS)
    def mark_idle(self, channel):
        if channel in self.highest:
            self.combiner.mark_idle(channel)
            self.idle.add(channel)
            self.behind.add(channel)

    @rule(channel=CHANNELS)
    def mark_active(self, channel):
        if channel in self.highest:
            self.combiner.mark_active(channel)
            self.idle.discard(channel)

    @rule(channel=CHANNELS)
    def remove(self, channel):
        self.combiner.remove(channel)
        self.highest.pop(channel, None)
        self.idle.discard(channel)
        self.behind.discard(channel)

    @rule()
    def restart(self):
        again = WatermarkCombiner(self.kind, "abc")
        again.restore(json.loads(json.dumps(self.combiner.snapshot())))
        assert again.snapshot() == self.combiner.snapshot()
        self.combiner = again

    @rule()
    def advance(self):
        active = set(self.highest) - self.idle
        self.behind -= {c for c in active if self.highest[c] >= self.said}
        counting = active - self.behind if self.kind is Members.CHANNELS else active
        if active:
            candidate = min((self.highest[c] for c in counting), default=MIN_MS)
        else:
            candidate = max(self.highest.values(), default=MIN_MS)
        watermark = candidate if candidate > self.said else None
        idle = None
        if self.highest and not active and not self.said_idle:
            idle = True
        if active and self.said_idle and (watermark is not None or self.kind is not Members.SPLITS):
            idle = False
        before = self.combiner.watermark
        assert self.combiner.advance() == Progress(watermark, idle)
        self.said = max(self.said, candidate)
        self.said_idle = self.said_idle if idle is None else idle
        assert self.combiner.watermark == self.said >= before
        assert self.combiner.idle == self.said_idle
        if active == set(self.highest) and active and not self.behind:
            assert self.combiner.watermark >= min(self.highest.values())
            assert watermark in {None, min(self.highest.values())}


@pytest.mark.parametrize("kind", list(Members))
def test_the_combiner_does_what_the_model_does(kind):
    machine = type("Machine", (CombinerMachine,), {"kind": kind})
    run_state_machine_as_test(
        machine, settings=settings(max_examples=2 * settings().max_examples, stateful_step_count=30)
    )
