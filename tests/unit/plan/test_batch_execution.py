"""In batch execution no watermark comes before the end of the input, and nothing waits for the clock."""

from eventide.common import Watermark, WatermarkGenerator, WatermarkStrategy
from eventide.datastream import RuntimeExecutionMode
from eventide.datastream.window import TumblingEventTimeWindows, TumblingProcessingTimeWindows
from eventide.testing import local_environment
from support.twin import AllContents, by_sink, plan_of, run, runner, values


class Ascending(WatermarkGenerator):
    def on_event(self, event, event_timestamp, output):
        output.emit_watermark(Watermark(event_timestamp))

    def on_periodic_emit(self, output):
        output.emit_watermark(Watermark(10**6))
        output.mark_idle()


def test_what_generators_say_is_not_heard_so_that_nothing_is_late():
    strategy = WatermarkStrategy.for_generator(Ascending).with_timestamp_assigner(lambda e, _: e)
    stream = local_environment().from_collection([25, 3, 14]).assign_timestamps_and_watermarks(strategy)
    windows = stream.window_all(TumblingEventTimeWindows.of(10)).process(AllContents())
    assert values(run(plan_of(windows))) == [(20, 30, [25])]
    in_batch = plan_of(windows, mode=RuntimeExecutionMode.BATCH)
    assert values(run(in_batch)) == [(0, 10, [3]), (10, 20, [14]), (20, 30, [25])]


def test_windows_of_processing_time_fire_at_the_end():
    stream = local_environment().from_collection([1, 2])
    windows = stream.window_all(TumblingProcessingTimeWindows.of(10)).process(AllContents())
    plan = plan_of(windows)
    streaming = runner(plan)
    assert [by_sink(plan, batch) for batch in streaming.batches()] == [[[]]]
    (counters,) = [c for name, c in streaming.metrics().items() if "Windows" in name]
    assert counters["numTimersNotFired"] == 1, "what is not fired when a stream ends is counted"
    assert values(run(plan_of(windows, mode=RuntimeExecutionMode.BATCH))) == [(0, 10, [1, 2])]
