"""Progress of a job after each micro-batch."""

import pytest

from eventide.aggregates import count
from eventide.common import Types, WatermarkStrategy
from eventide.common.job import LastBatches
from eventide.common.ms import MAX_MS
from eventide.common.words import summary
from eventide.datastream.functions import KeyedProcessFunction
from eventide.datastream.window import (
    CountTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from eventide.joins import left, right
from eventide.runtime.metrics import told_splits
from eventide.testing import ScriptedSource, local_environment
from support.twin import BY_SECOND_FIELD, Contents, plan_of, runner

TENS = TumblingEventTimeWindows.of(10)
ROWS = Types.ROW_NAMED(["city", "at"], [Types.STRING(), Types.LONG()])
BY_COLUMN = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("at")

STEPS = [
    [("s", ("x", 1)), ("s", ("y", 12)), ("s", ("x", 13))],  # up to 12
    [("s", ("x", 25)), ("s", ("x", 3))],  # up to 24; one is late
]


class SetsTimers(KeyedProcessFunction):
    """Sets two timers for each element, far ahead."""

    def process_element(self, value, ctx):
        for ahead in (100, 200):
            ctx.timer_service().register_event_time_timer(value[1] + ahead)


def script(steps=STEPS, splits=("s",), name="script", strategy=BY_SECOND_FIELD, type_info=None):
    source = ScriptedSource([*splits], steps)
    return local_environment().from_source(source, strategy, name, type_info)


def keyed(type_info=None):
    stream = script(strategy=BY_SECOND_FIELD if type_info is None else BY_COLUMN, type_info=type_info)
    return stream.key_by(lambda e: e[0]) if type_info is None else stream.key_by("city")


def progress_of(*streams):
    return [batch.progress for batch in runner(plan_of(*streams)).batches()]


def test_each_micro_batch_says_what_was_counted_in_it_and_since_the_start():
    first, second, end = progress_of(keyed().window(TENS).process(Contents()))
    name = "TumblingEventTimeWindows.process"
    assert [one.rows_in for one in (first, second, end)] == [3, 2, 0]
    assert second.counted == {"script": {"numRecordsOut": 2}, name: _counts(2, 2, 1)}
    assert second.counters == {"script": {"numRecordsOut": 5}, name: _counts(5, 3, 1)}
    assert end.counted == {name: {"numRecordsOut": 1}}
    assert (second.watermarks, second.splits) == ({name: 24}, {"s": 24})
    assert end.watermarks == {name: MAX_MS}


def _counts(come, gone, late):
    return {"numRecordsIn": come, "numRecordsOut": gone, "numLateRecordsDropped": late}


HOLDS = {
    "tumbling windows of objects": (
        lambda: keyed().window(TENS).process(Contents()),
        [{"numOpenWindows": 1}, {"numOpenWindows": 1}, {"numOpenWindows": 0}],
    ),
    "tumbling windows on columns": (
        lambda: keyed(ROWS).window(TENS).aggregate(count()),
        [{"numOpenWindows": 1}, {"numOpenWindows": 1}, {"numOpenWindows": 0}],
    ),
    "sliding windows on columns": (
        lambda: keyed(ROWS).window(SlidingEventTimeWindows.of(20, 10)).aggregate(count()),
        [{"numOpenWindows": 2}, {"numOpenWindows": 2}, {"numOpenWindows": 0}],
    ),
    "sessions on columns": (
        lambda: keyed(ROWS).window(EventTimeSessionWindows.with_gap(5)).aggregate(count()),
        [{"numOpenSessions": 2}, {"numOpenSessions": 1}, {"numOpenSessions": 0}],
    ),
    "sessions of objects": (
        lambda: keyed().window(EventTimeSessionWindows.with_gap(5)).process(Contents()),
        [{"numKeys": 2, "numTimers": 2}, {"numKeys": 1, "numTimers": 1}, {"numKeys": 0, "numTimers": 0}],
    ),
    "windows that only a count fires": (
        lambda: keyed().window(GlobalWindows.create()).trigger(CountTrigger.of(9)).reduce(max),
        [{"numKeys": 2, "numTimers": 0}] * 3,
    ),
    "timers of a function": (
        lambda: keyed().process(SetsTimers()),
        [{"numKeys": 2, "numTimers": 6}, {"numKeys": 2, "numTimers": 10}, {"numKeys": 0, "numTimers": 0}],
    ),
}


@pytest.mark.parametrize(("program", "expected"), HOLDS.values(), ids=HOLDS.keys())
def test_operators_say_what_they_hold(program, expected):
    held = [one.held for one in progress_of(program())]
    assert [*(next(iter(one.values())) for one in held)] == expected


def test_a_join_on_columns_says_how_many_elements_it_keeps():
    env = local_environment()
    steps = [[("s", ("x", 1)), ("s", ("y", 2))]]
    sides = [
        env.from_source(ScriptedSource(["s"], steps), BY_COLUMN, name, ROWS).key_by("city") for name in ("one", "other")
    ]
    joined = sides[0].interval_join(sides[1]).between(-5, 5).select(left("city"), right("at"))
    assert next(iter(progress_of(joined)[0].held.values())) == {"numElements": 4}


def test_what_a_subtask_holds_counts_until_it_says_something_else():
    """Keys of one subtask stay as they are while only the other has elements; windows of time are counted once."""
    steps = [[("s", (key, 1)) for key in "abcdefgh"], [("s", ("a", 2))]]
    first, second, _ = progress_of(script(steps).key_by(lambda e: e[0]).process(SetsTimers()))
    assert [one.held["keyed process"]["numKeys"] for one in (first, second)] == [8, 8]
    windows = progress_of(script(steps).key_by(lambda e: e[0]).window(TENS).process(Contents()))
    assert next(iter(windows[0].held.values())) == {"numOpenWindows": 1}


def test_splits_of_several_sources_have_the_names_of_these():
    env = local_environment()
    one, other = (
        env.from_source(ScriptedSource(["0"], [[("0", ("x", at))]]), BY_SECOND_FIELD, name)
        for name, at in (("trips", 5), ("meters", 9))
    )
    first = progress_of(one.union(other).key_by(lambda e: e[0]).window(TENS).process(Contents()))[0]
    assert first.splits_of == {"trips": {"0": 4}, "meters": {"0": 8}}
    assert first.splits == {"trips/0": 4, "meters/0": 8}


def test_the_client_of_a_job_without_spark_has_its_micro_batches():
    env = local_environment()
    stream = env.from_source(ScriptedSource(["s"], STEPS), BY_SECOND_FIELD, "script")
    stream.key_by(lambda e: e[0]).window(TENS).process(Contents()).print()
    progress = env.execute_async().get_progress()
    assert [one.batch for one in progress] == [0, 1, 2]
    assert progress[0].began_ms <= progress[-1].ended_ms


def test_a_person_is_told_who_holds_all_others():
    steps = [[("a", ("x", 1_000)), ("b", ("x", 8_000))], [("c", ("x", 500))]]
    stream = script(steps, splits=("a", "b", "c")).key_by(lambda e: e[0]).window(TENS).process(Contents())
    first, second, _ = progress_of(stream)
    assert dict(summary([first]))["slowest split"] == "c of script has not spoken yet"
    assert (
        dict(summary([first, second]))["slowest split"] == "c of script at 1970-01-01 00:00:00, 500 ms behind the next"
    )
    assert dict(summary([first]))["watermark"].startswith("the beginning (Tumbling")
    assert summary([]) == [("micro-batch", "the first has not ended yet")]


def test_the_watermarks_of_many_splits_are_told_in_few_bytes_and_come_back():
    names = [f"orders-{n:04}" for n in range(2_000)]
    steps = [[(name, ("x", n)) for n, name in enumerate(names)]]
    windows = script(steps, names, "orders").key_by(lambda e: e[0]).window(TENS).process(Contents())
    plan = plan_of(windows)
    first = next(iter(runner(plan).batches())).progress
    assert first.splits == {name: n - 1 for n, name in enumerate(names)}
    assert plan.num_splits == 2_000
    assert plan_of(script(steps, names, "orders")).num_splits == 2_000
    assert len(told_splits(first.splits_of)) < 10 * len(names)


def test_of_a_job_with_many_splits_fewer_micro_batches_are_kept():
    last = LastBatches()
    for batch in range(2_000):
        last.append(batch, splits=100)
    assert [*last] == [*range(1_000, 2_000)]
    for batch in range(2_000, 2_030):
        last.append(batch, splits=10_000)
    assert [*last] == [*range(2_010, 2_030)]
    last.append(2_030, splits=1_000_000)
    assert ([*last], last.last()) == ([2_030], 2_030)
