"""The time that a program works with: what it means for windows that do not name their time, and for sources."""

import pytest

from eventide.common import Time, Types, WatermarkStrategy
from eventide.datastream import StreamExecutionEnvironment, TimeCharacteristic
from eventide.datastream.connectors import CollectionSource
from eventide.datastream.window import (
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from eventide.errors import ProgramError
from eventide.local.host import LocalHost
from eventide.local.runner import LocalRunner
from eventide.testing import ScriptedSource, local_environment
from support.twin import AllContents, Contents, by_sink, plan_of, run, timed, values


def assigner_of(stream):
    return stream._transformation.operation.windows.assigner


@pytest.mark.parametrize(
    ("characteristic", "tumbling", "sliding"),
    [
        (TimeCharacteristic.ProcessingTime, TumblingProcessingTimeWindows, SlidingProcessingTimeWindows),
        (TimeCharacteristic.IngestionTime, TumblingEventTimeWindows, SlidingEventTimeWindows),
        (TimeCharacteristic.EventTime, TumblingEventTimeWindows, SlidingEventTimeWindows),
    ],
)
def test_time_windows_follow_the_time_of_the_program(characteristic, tumbling, sliding):
    env = local_environment().set_stream_time_characteristic(characteristic)
    stream = timed(env, [])
    by_key = stream.key_by(lambda e: e[0])
    assert assigner_of(by_key.time_window(Time.seconds(1)).process(Contents())) == tumbling.of(1_000)
    assert assigner_of(by_key.time_window(10, 5).process(Contents())) == sliding.of(10, 5)
    assert assigner_of(stream.time_window_all(Time.seconds(1)).process(AllContents())) == tumbling.of(1_000)
    assert assigner_of(by_key.time_window_all(size=10, slide=5).process(AllContents())) == sliding.of(10, 5)


def test_event_time_is_the_default_and_needs_timestamps():
    env = local_environment()
    assert env.get_stream_time_characteristic() is TimeCharacteristic.EventTime
    stream = env.from_collection([("a", 1)])
    with pytest.raises(ProgramError, match="TumblingEventTimeWindows needs event time"):
        stream.time_window_all(10)
    env.set_stream_time_characteristic(TimeCharacteristic.ProcessingTime)
    assert env.get_stream_time_characteristic() is TimeCharacteristic.ProcessingTime
    stream.time_window_all(10)


def test_with_ingestion_time_elements_have_timestamps_from_the_source_on():
    env = local_environment()
    before = env.from_collection([1])
    env.set_stream_time_characteristic(TimeCharacteristic.IngestionTime)
    added = [
        env.from_collection([1]),
        env.from_source(CollectionSource([1], None), WatermarkStrategy.no_watermarks(), "source"),
    ]
    env.set_stream_time_characteristic(TimeCharacteristic.EventTime)
    after = env.from_collection([1])
    for stream, has_it in [(before, False), *((stream, True) for stream in added), (after, False)]:
        assert stream._transformation.has_timestamps == has_it
    added[0].map(lambda x: x).window_all(TumblingEventTimeWindows.of(10)).process(AllContents())


@pytest.mark.parametrize("type_info", [None, Types.INT()], ids=["as objects", "as columns"])
def test_with_ingestion_time_an_element_has_the_time_of_its_micro_batch_and_watermarks_follow(type_info):
    env = local_environment()
    env.set_stream_time_characteristic(TimeCharacteristic.IngestionTime)
    source = ScriptedSource(["a"], [[("a", 1), ("a", 2)], [("a", 3)], []], type_info, bounded=False)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "source")
    plan = plan_of(stream.time_window_all(10).process(AllContents()))
    times = iter([103, 109, 110])
    batches = [by_sink(plan, batch) for batch in LocalRunner(plan, clock=lambda: next(times)).batches()]
    assert batches == [[[]], [[]], [[((100, 110, [1, 2, 3]), 109)]]]


def test_a_strategy_takes_the_place_of_ingestion_time():
    env = local_environment()
    env.set_stream_time_characteristic(TimeCharacteristic.IngestionTime)
    plan = plan_of(timed(env, [("a", 1), ("a", 12)]).time_window_all(10).process(AllContents()))
    assert values(run(plan)) == [(0, 10, [("a", 1)]), (10, 20, [("a", 12)])]


class Reader:
    """Source that a host makes of a DataFrame."""

    type_info = None


class HostOfDataFrames(LocalHost):
    def read_data_frame(self, *how):
        return Reader()


def test_ingestion_time_holds_for_data_frames_too():
    env = StreamExecutionEnvironment(HostOfDataFrames())
    for characteristic, has_it in [(TimeCharacteristic.EventTime, False), (TimeCharacteristic.IngestionTime, True)]:
        env.set_stream_time_characteristic(characteristic)
        assert env.from_data_frame(None)._transformation.has_timestamps == has_it


def test_a_time_characteristic_is_one_of_three():
    with pytest.raises(ProgramError, match="needs a TimeCharacteristic, not 'EventTime'"):
        local_environment().set_stream_time_characteristic("EventTime")
