"""Contexts of triggers and assigners, in memory: timers, state by name, a watermark and a clock that the test sets."""

from eventide.common.ms import MIN_MS
from eventide.datastream.state import ReducingState
from eventide.datastream.window import MergingWindowAssigner, Trigger, WindowAssigner


class FakeReducingState(ReducingState):
    def __init__(self, values, window, descriptor):
        self._values = values
        self._slot = (window, descriptor.get_name())
        self._reduce = descriptor.get_reduce_function().reduce

    def get(self):
        return self._values.get(self._slot)

    def add(self, value):
        self._values[self._slot] = self._reduce(self.get(), value) if self._slot in self._values else value

    def clear(self):
        self._values.pop(self._slot, None)


class FakeTriggerContext(Trigger.OnMergeContext):
    """The context of one key: `timers`, `clock_timers` and `values` are there to be looked at."""

    def __init__(self, window):
        self.window = window
        self.watermark = MIN_MS
        self.clock = 0
        self.timers = set()
        self.clock_timers = set()
        self.values = {}
        self.merged_from = []

    def get_current_processing_time(self):
        return self.clock

    def get_current_watermark(self):
        return self.watermark

    def register_processing_time_timer(self, time):
        self.clock_timers.add((self.window, time))

    def register_event_time_timer(self, time):
        self.timers.add((self.window, time))

    def delete_processing_time_timer(self, time):
        self.clock_timers.discard((self.window, time))

    def delete_event_time_timer(self, time):
        self.timers.discard((self.window, time))

    def get_partitioned_state(self, state_descriptor):
        return FakeReducingState(self.values, self.window, state_descriptor)

    def merge_partitioned_state(self, state_descriptor):
        for window in self.merged_from:
            older = FakeReducingState(self.values, window, state_descriptor)
            if older.get() is not None:
                self.get_partitioned_state(state_descriptor).add(older.get())
                older.clear()

    def times(self):
        """Return the times of the timers of all windows, sorted."""
        return sorted(time for _, time in self.timers)

    def clock_times(self):
        """Return the same for the timers of processing time."""
        return sorted(time for _, time in self.clock_timers)

    def add(self, trigger, timestamp):
        """Hand an element to a trigger."""
        return trigger.on_element("element", timestamp, self.window, self)

    def advance(self, trigger, watermark):
        """Set the watermark and fire the timers that are due, in order; return what each gave, by its time."""
        self.watermark = watermark
        return self._fire(self.timers, watermark, trigger.on_event_time)

    def set_clock(self, trigger, clock):
        """Do the same with the clock."""
        self.clock = clock
        return self._fire(self.clock_timers, clock, trigger.on_processing_time)

    def _fire(self, timers, until, on_time):
        results = []
        while due := [timer for timer in timers if timer[1] <= until]:
            timer = min(due, key=lambda one: one[1])
            timers.discard(timer)
            results.append((timer[1], on_time(timer[1], self.window, self)))
        return results

    def merge(self, trigger, windows, result):
        """Do what the window operator does when windows merge; a window that is gone has no timers any more."""
        self.window, self.merged_from = result, list(windows)
        trigger.on_merge(result, self)
        for window in windows:
            self.window = window
            trigger.clear(window, self)
        for timers in (self.timers, self.clock_timers):
            timers -= {timer for timer in timers if timer[0] in windows}
        self.window = result


class RecordingMergeCallback(MergingWindowAssigner.MergeCallback):
    def __init__(self):
        self.merged = {}

    def merge(self, to_be_merged, merge_result):
        self.merged[merge_result] = list(to_be_merged)


class FakeAssignerContext(WindowAssigner.WindowAssignerContext):
    def __init__(self, clock):
        self._clock = clock

    def get_current_processing_time(self):
        return self._clock

    def get_runtime_context(self):
        raise AssertionError("windows of time keep no state")
