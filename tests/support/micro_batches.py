"""A window operator by hand, micro-batch by micro-batch."""

from eventide.common.ms import MIN_MS
from eventide.runtime.elements.elements import Elements
from eventide.runtime.metrics import Metrics
from eventide.runtime.state.backend import MemoryBackend
from eventide.runtime.tasks.operator import OperatorContext
from eventide.runtime.window.operation import open_windows


class MicroBatches:
    """A window operator that is opened for each micro-batch anew, as a stage does."""

    def __init__(self, stream):
        self._spec = stream._transformation.operation.spec("w")
        self.backend = MemoryBackend()
        self.next_clock = None

    def run(self, clock, *values):
        """The results of a micro-batch."""
        operator = open_windows(self._spec, self.backend, OperatorContext(4, Metrics(), MIN_MS, clock))
        operator.advance_clock(clock - 1)
        operator.process(
            [Elements(list(values), [None] * len(values), list(range(len(values))), [v[0] for v in values])]
        )
        operator.advance_clock(clock)
        self.next_clock = operator.next_clock_ms
        operator.flush()
        wakes_ms = operator.next_clock_ms
        for time_ms, *_ in operator.all_processing_timers():
            assert wakes_ms <= time_ms
        return operator.take_outputs().get(None, Elements()).values
