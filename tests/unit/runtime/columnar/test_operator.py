"""Rows that are aggregated before the shuffle leave as one row for each key and pane, however many they are."""

import pytest

from eventide.aggregates import count, sum_
from eventide.common import Row, Time, Types
from eventide.datastream.window import EventTimeSessionWindows, SlidingEventTimeWindows, TumblingEventTimeWindows
from eventide.errors import EventideError
from eventide.runtime.columnar import operator
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
    monkeypatch.setattr(operator, "_ROWS_AT_ONCE", 8_192)
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
