"""Elements whose timestamp is missing: they fail the job, are left out and counted, or have an output of their own."""

import pytest

from eventide.aggregates import count
from eventide.common import NullTimestamps, Row, Types, WatermarkGenerator, WatermarkStrategy
from eventide.datastream import OutputTag
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.errors import DataError, ProgramError
from eventide.testing import local_environment
from support.twin import AllContents, plan_of, run, runner, values

EVENT = Types.ROW_NAMED(["user", "at"], [Types.STRING(), Types.LONG()])
ROWS = [Row(user="a", at=1), Row(user="b", at=None), Row(user="c", at=3), Row(user="d", at=None)]
TENS = TumblingEventTimeWindows.of(10)
NOWHEN = OutputTag("no time", EVENT)


class Watched(WatermarkGenerator):
    """Sees elements with a timestamp only."""

    def on_event(self, event, event_timestamp, output):
        assert event_timestamp is not None

    def on_periodic_emit(self, output):
        pass


STRATEGIES = {
    "column": WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("at"),
    "function": WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda e, _: e["at"]),
    "generator": WatermarkStrategy.for_generator(Watched).with_timestamp_assigner("at"),
}


@pytest.fixture(params=STRATEGIES)
def strategy(request):
    return STRATEGIES[request.param]


def stream(strategy, rows=ROWS):
    return local_environment().from_collection(rows, EVENT).assign_timestamps_and_watermarks(strategy)


def test_by_default_the_job_fails_and_says_what_would_let_it_go_on(strategy):
    plan = plan_of(stream(strategy).window_all(TENS).process(AllContents()))
    with pytest.raises(DataError, match=r"the timestamp is None.*with_null_timestamps\(NullTimestamps.DROP\)"):
        run(plan)


def test_they_are_left_out_and_counted(strategy):
    timed = stream(strategy.with_null_timestamps(NullTimestamps.DROP))
    plan = plan_of(timed.window_all(TENS).process(AllContents()))
    one = runner(plan)
    ((_, _, rows),) = [value for batch in one.batches() for value, _ in batch.elements.get(plan.sinks[0].number, [])]
    assert [row["user"] for row in rows] == ["a", "c"]
    assert one.metrics()["timestamps and watermarks"] | {"numRecordsIn": 0, "numRecordsOut": 0} == {
        "numRecordsWithoutTimestamp": 2,
        "numRecordsIn": 0,
        "numRecordsOut": 0,
    }


def test_they_have_an_output_of_their_own(strategy):
    timed = stream(strategy.with_null_timestamps(NOWHEN))
    plan = plan_of(timed.get_side_output(NOWHEN), timed.window_all(TENS).process(AllContents()))
    found = run(plan)
    assert [row["user"] for row in values(found)] == ["b", "d"]
    assert [[row["user"] for row in rows] for _, _, rows in values(found, 1)] == [["a", "c"]]


def test_on_columns_too_and_where_all_are_missing():
    timed = stream(STRATEGIES["column"].with_null_timestamps(NOWHEN), ROWS[1:2])
    counted = timed.key_by("user").window(TENS).aggregate(count())
    plan = plan_of(counted, timed.get_side_output(NOWHEN))
    assert plan.operators[0].speed.startswith("columns")
    found = run(plan)
    assert (values(found), [row["user"] for row in values(found, 1)]) == ([], ["b"])


def test_nan_is_missing_too():
    typed = Types.ROW_NAMED(["at"], [Types.DOUBLE()])
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda e, _: e["at"] if e["at"] != e["at"] else int(e["at"])
    )
    rows = local_environment().from_collection([Row(at=float("nan")), Row(at=2.0)], typed)
    timed = rows.assign_timestamps_and_watermarks(strategy.with_null_timestamps(NullTimestamps.DROP))
    assert [e["at"] for e in values(run(plan_of(timed)))] == [2.0]


def test_another_answer_is_refused_and_so_is_an_output_that_was_not_asked_for():
    with pytest.raises(ProgramError, match=r"null timestamps: expected NullTimestamps.FAIL, .* got 'drop'"):
        STRATEGIES["column"].with_null_timestamps("drop")
    with pytest.raises(ProgramError, match=r"has no side outputs"):
        stream(STRATEGIES["column"]).get_side_output(NOWHEN)


def test_they_have_no_event_time_for_windows():
    nowhen = stream(STRATEGIES["column"].with_null_timestamps(NOWHEN)).get_side_output(NOWHEN)
    with pytest.raises(ProgramError, match=r"the elements of 'side output .*' have no timestamps"):
        nowhen.window_all(TENS)
    nowhen.assign_timestamps_and_watermarks(STRATEGIES["column"]).window_all(TENS)
