"""Rows that are aggregated before the shuffle leave as one row for each key and pane, however many they are."""

import pyarrow as pa
import pytest

from eventide.aggregates import collect_list, count, sum_
from eventide.common import Row, Time, Types, WatermarkGenerator, WatermarkStrategy
from eventide.datastream import OutputTag, RuntimeExecutionMode
from eventide.datastream.window import EventTimeSessionWindows, SlidingEventTimeWindows, TumblingEventTimeWindows
from eventide.errors import EventideError
from eventide.runtime.columnar import operator, partitioner
from eventide.runtime.columnar.aggregation import TIMESTAMP
from eventide.runtime.columnar.layout import VALUE
from eventide.testing import local_environment
from support.twin import BY_SECOND_FIELD, plan_of, run, values

ROW = Types.ROW_NAMED(["user", "time", "amount"], [Types.STRING(), Types.LONG(), Types.LONG()])
SECONDS = Time.seconds


def results(windows):
    rows = [Row(user="a", time=i, amount=1) for i in range(20_000)]
    stream = local_environment().from_collection(rows, ROW).assign_timestamps_and_watermarks(BY_SECOND_FIELD)
    plan = plan_of(stream.key_by("user").window(windows).aggregate(count(), sum_("amount")))
    assert plan.operators[0].operator.aggregates_first
    return values(run(plan))


@pytest.mark.parametrize(
    "windows",
    [TumblingEventTimeWindows.of(SECONDS(100)), SlidingEventTimeWindows.of(SECONDS(100), SECONDS(30))],
)
def test_a_key_and_window_have_one_result_where_rows_are_aggregated_several_times_before_they_leave(
    windows, monkeypatch
):
    at_once = results(windows)
    monkeypatch.setattr(partitioner, "_ROWS_AT_ONCE", 8_192)
    assert results(windows) == at_once


@pytest.mark.parametrize(
    "windows", [TumblingEventTimeWindows.of(SECONDS(100)), EventTimeSessionWindows.with_gap(SECONDS(5))]
)
@pytest.mark.parametrize("key", ["user", lambda row: row.user])
def test_an_element_that_is_none_has_no_key(windows, key):
    rows = [Row(user="a", time=1, amount=1), Row(user="b", time=2, amount=0)]
    stream = local_environment().from_collection(rows, ROW).assign_timestamps_and_watermarks(BY_SECOND_FIELD)
    some = stream.map(lambda row: row if row.amount else None, ROW)
    plan = plan_of(some.key_by(key).window(windows).aggregate(count()))
    assert plan.operators[0].speed.startswith("columns")
    with pytest.raises(EventideError, match="NoneType"):
        run(plan)


STREAMING = RuntimeExecutionMode.STREAMING
SENDS_SOME = "columns, aggregated before the shuffle, but for rows that may be late"
SENDS_ALL = "columns, rows go through the shuffle"


@pytest.mark.parametrize(
    ("change", "mode", "aggregate", "speed"),
    [
        (lambda stream: stream, STREAMING, count(), SENDS_SOME),
        (lambda stream: stream.filter(lambda row: row.amount > 0), STREAMING, count(), SENDS_SOME),
        (lambda stream: stream.union(beside(stream, BY_SECOND_FIELD)), STREAMING, count(), SENDS_SOME),
        (lambda stream: stream.union(beside(stream, SUPPLIED)), STREAMING, count(), SENDS_ALL),
        (lambda stream: stream.key_by("user").sum("amount"), STREAMING, count(), SENDS_ALL),
        (lambda stream: stream, RuntimeExecutionMode.BATCH, count(), SENDS_ALL),
        (lambda stream: stream, STREAMING, collect_list("amount"), SENDS_ALL),
    ],
)
def test_explain_says_whether_elements_are_aggregated_before_the_shuffle_where_late_ones_are_wanted(
    change, mode, aggregate, speed
):
    stream = local_environment().from_collection([], ROW).assign_timestamps_and_watermarks(BY_SECOND_FIELD)
    windowed = change(stream).key_by("user").window(TumblingEventTimeWindows.of(SECONDS(5)))
    plan = plan_of(windowed.side_output_late_data(OutputTag("late", ROW)).aggregate(aggregate), mode=mode)
    window = plan.operators[-1]
    assert window.speed.startswith(speed)
    edges = [edge for part in (*plan.sources, *plan.operators) for edge in part.root.all_edges()]
    said = [edge.partitioner.describe() for edge in edges if edge.target == window.number]
    (says,) = {text for text in said if text != "watermarks alone"}
    assert "as columns of whole elements, because late ones go to a side output" in says
    assert ("aggregated before the shuffle" in says) == (speed == SENDS_SOME)
    telling = {name for source in plan.sources for name in source.telling.values()}
    assert telling == ({window.id} if speed == SENDS_SOME else set())


def beside(stream, strategy):
    """A stream from another source."""
    return stream.get_execution_environment().from_collection([], ROW).assign_timestamps_and_watermarks(strategy)


class Silent(WatermarkGenerator):
    is_periodic = True

    def on_event(self, event, event_timestamp, output):
        pass

    def on_periodic_emit(self, output):
        pass


SUPPLIED = WatermarkStrategy.for_generator(Silent).with_timestamp_assigner(lambda row, _: row.time)


@pytest.mark.parametrize("late", [None, OutputTag("late", ROW)])
def test_explain_says_where_late_elements_of_sorting_go_at_both_speeds(late):
    stream = local_environment().from_collection([], ROW).assign_timestamps_and_watermarks(BY_SECOND_FIELD)
    keys = "user", lambda row: row.user or row.user
    plans = [plan_of(stream.key_by(key).sorted_by_event_time(late)) for key in keys]
    gone = "to side output 'late'" if late else "dropped and counted"
    for plan, speed in zip(plans, ("columns", "element by element"), strict=True):
        assert plan.operators[0].speed.startswith(speed)
        assert dict(plan.operators[0].describe())["late"] == f"elements whose time the watermark has passed: {gone}"


@pytest.mark.parametrize("key", ["user", lambda row: row.user, lambda row: row.user or row.user])
def test_an_element_that_is_none_is_not_sorted(key):
    rows = [Row(user="a", time=1, amount=1), Row(user="b", time=2, amount=0)]
    stream = local_environment().from_collection(rows, ROW).assign_timestamps_and_watermarks(BY_SECOND_FIELD)
    some = stream.map(lambda row: row if row.amount else None, ROW)
    with pytest.raises(EventideError, match="NoneType"):
        run(plan_of(some.key_by(key).sorted_by_event_time()))


def test_late_elements_that_come_one_after_the_other_are_numbered_through():
    kind, gathered = Types.TUPLE([Types.LONG()]), operator.Gathered()
    for elements in ([(1,), (2,)], [(3,)]):
        rows = {VALUE: kind.to_arrow(elements), TIMESTAMP: pa.array([5] * len(elements))}
        gathered.add_to_side("late", pa.table(rows), kind)
    late = gathered.take()["late"]
    assert (late.values, late.sequence) == ([(1,), (2,), (3,)], [0, 1, 2])


def test_late_elements_fire_the_windows_of_their_keys_and_no_others():
    """More keys than Arrow groups in the order in which it sees them."""
    users = [f"u{number}" for number in range(300)]
    rows = [Row(user=user, time=time, amount=1) for time in (1, 11) for user in users]
    rows += [Row(user="z", time=50, amount=1)]
    rows += [Row(user=user, time=2, amount=10) for user in users[::3]]
    rows += [Row(user=user, time=12, amount=100) for user in users[1::3]]
    stream = local_environment().from_collection(rows, ROW).assign_timestamps_and_watermarks(BY_SECOND_FIELD)
    windowed = stream.key_by("user").window(TumblingEventTimeWindows.of(Time.milliseconds(10))).allowed_lateness(1_000)
    _, again, *_ = run(plan_of(windowed.aggregate(sum_("amount"))), max_rows=601)
    expected = [*((user, 0, 11) for user in users[::3]), *((user, 10, 101) for user in users[1::3]), ("z", 50, 1)]
    assert sorted((row[0], row[1].start, row[2]) for row, _ in again[0]) == sorted(expected)
