"""Programs in which no window fires, or too much is lost, each for another reason; run on the twin."""

from eventide.common import Duration, Time, Types, WatermarkStrategy
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.local.host import evidence
from eventide.local.runner import LocalCheckpoint, LocalRunner
from eventide.testing import Idle, ScriptedSource, local_environment
from eventide.why import why
from support.twin import plan_of

NOON = 1_790_000_040_000
"""A whole minute, and the time by the clock of the first micro-batch."""

MINUTE = TumblingEventTimeWindows.of(Time.minutes(1))
ORDER = Types.TUPLE([Types.STRING(), Types.LONG()])


def bounded(seconds=5):
    """The second field is the time, and elements may be some seconds late."""
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(seconds))
    return strategy.with_timestamp_assigner(lambda order, _: order[1])


def windows(batches, strategy=None, splits=("p0", "p1", "p2"), bounded_source=False):
    """The latest order of each shop and minute, from a scripted topic: one inner list is a micro-batch."""
    script = [[one if isinstance(one, Idle) else (one[0], ("shop", one[1])) for one in batch] for batch in batches]
    source = ScriptedSource([*splits], script, type_info=ORDER, bounded=bounded_source)
    orders = local_environment().from_source(source, strategy or bounded(), "orders")
    return orders.key_by(lambda order: order[0]).window(MINUTE).reduce(max).name("latest")


class Story:
    """A program on the twin, run to where its source has nothing more; a micro-batch takes some time by the clock."""

    def __init__(self, stream, clock=NOON, takes_ms=60_000):
        self.plan = plan_of(stream)
        self.clock = clock
        self.checkpoint = LocalCheckpoint()
        self.results = []
        runner = LocalRunner(self.plan, clock=lambda: self.clock, checkpoint=self.checkpoint)
        for batch in runner.batches():
            self.results += [value for rows in batch.elements.values() for value, _ in rows]
            self.clock += takes_ms
        self.clock -= takes_ms

    def evidence(self, asked_ms=None):
        return evidence(self.plan, self.checkpoint, self.clock if asked_ms is None else asked_ms)

    def why(self, asked_ms=None, **about):
        return why(self.evidence(asked_ms), **about)
