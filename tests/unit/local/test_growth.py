"""A job for which keys, splits, sessions and timers come and go for ever keeps no more of them in the end."""

from collections import Counter

import pytest

from eventide.aggregates import collect_set, count
from eventide.common import Duration, Row, Time, Types, Watermark, WatermarkGenerator, WatermarkStrategy
from eventide.datastream import KeyedProcessFunction
from eventide.datastream.connectors import Source
from eventide.datastream.state import MapStateDescriptor, StateTtlConfig, ValueStateDescriptor
from eventide.datastream.window import EventTimeSessionWindows, SlidingEventTimeWindows
from eventide.joins import left, right
from eventide.local.runner import LocalRunner
from eventide.testing import local_environment
from support.twin import Contents, plan_of

EVENT = Types.ROW_NAMED(["key", "n", "ms"], [Types.STRING(), Types.LONG(), Types.LONG()])
PER_BATCH = 12
BATCHES = 200
MARGIN = 1.2


class Passing(Source):
    """In each micro-batch a split that was not there before, and is gone two later, with keys that were not there."""

    def __init__(self):
        self.batch = 0

    def splits(self):
        return [f"split-{n}" for n in range(max(0, self.batch - 2), self.batch + 1)]

    def latest_position(self, split):
        return PER_BATCH if f"split-{self.batch}" != split else PER_BATCH // 2

    def has_ended(self, split, position):
        return position == PER_BATCH

    def is_bounded(self):
        return False

    def holds_when_new(self):
        return False

    def get_produced_type(self):
        return EVENT

    def read(self, split, start, end):
        for place in range(start, end):
            n = int(split.removeprefix("split-")) * PER_BATCH + place
            late = 60_000 if n % 50 == 0 else 0
            yield Row(key=f"key-{n // 48}-{n % 2}", n=n, ms=100_000 + 80 * n - n * 7_919 % 1_000 - late)


class Behind(WatermarkGenerator):
    def __init__(self):
        self.highest = 0

    def on_event(self, event, event_timestamp, output):
        self.highest = max(self.highest, event_timestamp)

    def on_periodic_emit(self, output):
        output.emit_watermark(Watermark(self.highest - 1_000))


class Remembers(KeyedProcessFunction):
    """Clears some of its state by a timer, and leaves the rest to its time to live."""

    def open(self, runtime_context):
        passing = ValueStateDescriptor("passing", Types.LONG())
        passing.enable_time_to_live(StateTtlConfig.new_builder(Time.seconds(20)).build())
        self.passing = runtime_context.get_state(passing)
        self.seen = runtime_context.get_map_state(MapStateDescriptor("seen", Types.LONG(), Types.LONG()))

    def process_element(self, value, ctx):
        self.passing.update(value["n"])
        self.seen.put(value["n"] % 3, value["n"])
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 3_000)

    def on_timer(self, timestamp, ctx):
        self.seen.clear()
        yield timestamp


def job():
    env = local_environment()
    generated = WatermarkStrategy.for_generator(Behind).with_timestamp_assigner("ms")
    bounded = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1)).with_timestamp_assigner("ms")
    quiet = Duration.of_seconds(5)
    some = env.from_source(Passing(), generated.with_idleness(quiet), "some")
    others = env.from_source(Passing(), bounded.with_idleness(quiet), "others")
    sliding = SlidingEventTimeWindows.of(Time.seconds(4), Time.seconds(2))
    by_key = some.union(others).key_by(lambda e: e["key"], Types.STRING())
    near = some.key_by("key").interval_join(others.key_by("key")).between(Time.seconds(-1), Time.seconds(1))
    return plan_of(
        others.key_by("key").window(sliding).allowed_lateness(quiet).aggregate(count(), collect_set("n")),
        by_key.window(EventTimeSessionWindows.with_gap(Time.seconds(2))).allowed_lateness(quiet).process(Contents()),
        by_key.process(Remembers(), Types.LONG()),
        near.select(left("key"), right("n")),
    )


def kept(runner, progress):
    """How much there is of what could grow."""
    counts = Counter(splits=len(progress.splits), values=0, bytes=0, parts=0)
    for values in runner.checkpoint.state.values():
        counts["values"] += len(values)
        counts["bytes"] += sum(map(len, values.values()))
    counts["parts"] = sum(map(len, runner.checkpoint.offsets.values()))
    for held in progress.held.values():
        counts.update(held)
    return counts


@pytest.mark.long
def test_what_comes_and_goes_leaves_nothing_behind():
    series = []
    runner = LocalRunner(job(), clock=lambda: 1_000 * len(series))
    sources = [spec.source for spec in runner._sources]
    for result in runner.batches():
        series.append(kept(runner, result.progress))
        for source in sources:
            source.batch += 1
        if len(series) == BATCHES:
            break
    tenth = BATCHES // 10
    before = {name: max(of[name] for of in series[3 * tenth : 6 * tenth]) for name in series[-1]}
    behind = {name: max(of[name] for of in series[-3 * tenth :]) for name in series[-1]}
    assert set(before) >= {"numKeys", "numTimers", "numOpenWindows", "splits", "values"}
    assert all(before.values())
    assert {name: number for name, number in behind.items() if number > before[name] * MARGIN} == {}
