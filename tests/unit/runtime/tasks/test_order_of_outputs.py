"""The results of an operator go on in their order, however they came out and however their frames arrive."""

import pytest

from eventide.aggregates import collect_list
from eventide.common import PunctuatedWatermarks, Row, Time, Types, WatermarkStrategy
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.runtime.tasks.stage import StageRun
from eventide.testing import local_environment
from support.twin import Contents, Values, plan_of, run, values

EACH_FIRES_THE_ONE_BEFORE = [("y", 3, None), ("y", 11, 10), ("y", 22, 20), ("z", 31, 30)]
MONOTONOUS = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda row, _: row.start)


class Starts(Values):
    def process(self, key, context, elements):
        yield [row.start for row in elements]


def windows():
    """The starts of three windows, each of which fires by a watermark of its own in one micro-batch."""
    strategy = WatermarkStrategy.for_generator(lambda: PunctuatedWatermarks(lambda element, _: element[2]))
    elements = local_environment().from_collection(EACH_FIRES_THE_ONE_BEFORE)
    timed = elements.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(lambda element, _: element[1]))
    fired = timed.key_by(lambda element: element[0]).window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    row_type = Types.ROW_NAMED(["key", "start"], [Types.STRING(), Types.LONG()])
    return fired.process(Contents()).map(lambda result: Row(key=result[0], start=result[1]), row_type)


def on_elements():
    return windows().key_by(lambda row: row.key).count_window(2).process(Starts())


def behind_an_assigner():
    timed = windows().assign_timestamps_and_watermarks(MONOTONOUS)
    return timed.key_by(lambda row: row.key).count_window(2).process(Starts())


def on_columns():
    counted = windows().key_by("key").count_window(2).aggregate(collect_list("start").alias("starts"))
    return counted.map(lambda row: list(row.starts))


@pytest.mark.parametrize("reverses", [False, True])
@pytest.mark.parametrize("build", [on_elements, behind_an_assigner, on_columns])
def test_results_of_several_watermarks_keep_their_order(build, reverses, monkeypatch):
    handle = StageRun.run
    if reverses:
        monkeypatch.setattr(StageRun, "run", lambda stage, frames: handle(stage, [*frames][::-1]))
    assert values(run(plan_of(build()))) == [[0, 10]]
