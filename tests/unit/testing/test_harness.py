"""The harness shows one operator, step by step, and tells what is left."""

from typing import ClassVar

import pytest

from eventide.common import Types, WatermarkStrategy
from eventide.datastream import OutputTag, StreamExecutionEnvironment
from eventide.datastream.functions import ReduceFunction
from eventide.datastream.window import TimeWindow, TumblingEventTimeWindows, TumblingProcessingTimeWindows
from eventide.errors import ProgramError
from eventide.local.host import LocalHost
from eventide.testing import Idle, OperatorHarness, ScriptedSource, local_environment
from support.twin import Contents, timed

LATE = OutputTag("late")


def windows(late=None):
    windowed = timed(local_environment(), []).key_by(lambda e: e[0]).window(TumblingEventTimeWindows.of(10))
    return windowed.process(Contents()) if late is None else windowed.side_output_late_data(late).process(Contents())


def leave_outputs(harness):
    harness.process(("a", 1), timestamp=1)
    harness.advance_watermark(9)


def leave_late(harness):
    harness.advance_watermark(9)
    harness.process(("a", 1), timestamp=1)


def leave_timers_and_state(harness):
    harness.process(("a", 1), timestamp=1)


def leave_timer_of_processing_time(harness):
    leave_timers_and_state(harness)
    harness._operator._keyed.processing_timers.register(7, "a", TimeWindow(0, 10))


@pytest.mark.parametrize(
    ("leave", "late", "told"),
    [
        (leave_outputs, None, r"left over: \{'outputs': \[\(\('a', 0, 10, \[\('a', 1\)\]\), 9\)\]\}"),
        (leave_late, None, r"left over: \{'late elements': \[\('a', 1\)\]\}"),
        (leave_late, LATE, r"left over: \{'side outputs': \{'late': \[\(\('a', 1\), 1\)\]\}\}"),
        (leave_timer_of_processing_time, None, r"'timers of processing time': \[\(7, 'a', TimeWindow"),
        (
            leave_timers_and_state,
            None,
            r"left over: \{'timers': \[\(9, 'a', TimeWindow\(start=0, end=10\)\)\], 'state': .*contents",
        ),
    ],
)
def test_what_is_left_is_told(leave, late, told):
    with pytest.raises(AssertionError, match=told), OperatorHarness(windows(late)) as harness:
        leave(harness)


def test_an_error_of_the_test_is_not_hidden_by_what_is_left():
    with pytest.raises(ZeroDivisionError), OperatorHarness(windows()) as harness:  # noqa: PT012 - both belong together
        leave_outputs(harness)
        raise ZeroDivisionError


def test_each_answer_is_given_once():
    harness = OperatorHarness(windows(LATE))
    leave_outputs(harness)
    harness.process(("a", 2), timestamp=2)
    assert harness.outputs_with_timestamps() == [(("a", 0, 10, [("a", 1)]), 9)]
    assert harness.side_output(LATE) == [("a", 2)]
    assert (harness.outputs(), harness.side_output(LATE), harness.late()) == ([], [], [])
    harness.assert_nothing_left()


def test_timers_and_state_can_be_looked_at():
    harness = OperatorHarness(windows())
    leave_timers_and_state(harness)
    assert harness.timers() == [(9, "a", TimeWindow(0, 10))]
    assert harness.state_entries() == {("a", TimeWindow(0, 10)): {"contents": [("a", 1)]}}


def test_a_clock_that_is_set_back_loses_nothing():
    stream = timed(local_environment(), []).key_by(lambda e: e[0])
    harness = OperatorHarness(stream.window(TumblingProcessingTimeWindows.of(10)).process(Contents()))
    harness.set_processing_time(25)
    harness.process(("a", 1))
    harness.set_processing_time(3)
    harness.process(("a", 2))
    assert harness.outputs() == []
    harness.set_processing_time(9)
    assert harness.outputs() == [("a", 0, 10, [("a", 2)])]
    harness.set_processing_time(29)
    assert harness.outputs() == [("a", 20, 30, [("a", 1)])]
    harness.assert_nothing_left()


def test_only_window_operators_fit():
    stream = local_environment().from_collection([1]).map(lambda x: x).name("doubler")
    with pytest.raises(
        ProgramError, match=r"'doubler' is not a window operator; give the harness the result of a window"
    ):
        OperatorHarness(stream)


class Opened(ReduceFunction):
    """Writes down the life of all of its kind."""

    life: ClassVar[list[tuple[str, ...]]] = []

    def open(self, runtime_context):
        self.life.append(("open", runtime_context.get_task_name()))

    def close(self):
        self.life.append(("close",))

    def reduce(self, value1, value2):
        self.life.append(("reduce",))
        return value1


def test_functions_are_opened_and_closed():
    Opened.life.clear()
    stream = timed(local_environment(), []).window_all(TumblingEventTimeWindows.of(10)).reduce(Opened()).name("w")
    with OperatorHarness(stream) as harness:
        harness.process(("a", 1), timestamp=1)
        harness.process(("a", 2), timestamp=2)
        harness.advance_watermark(9)
        assert harness.outputs() == [("a", 1)]
    assert Opened.life == [("open", "w"), ("reduce",), ("close",)]


def test_the_local_environment_refuses_data_frames():
    env = local_environment()
    with pytest.raises(
        ProgramError,
        match=r"from_data_frame needs Spark; .*use from_collection or a ScriptedSource",
    ):
        env.from_data_frame(object())
    with pytest.raises(ProgramError, match=r"to_data_frame needs Spark; .*use execute_and_collect"):
        env.from_collection([1], Types.INT()).to_data_frame()


def test_a_script_plays_as_written_and_splits_fall_silent():
    source = ScriptedSource(["a", "b"], [[("a", ("x", 5)), Idle("b")], [("a", ("x", 15))], [("b", ("x", 16))]])
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda e, _: e[1])
    host = LocalHost()
    env = StreamExecutionEnvironment(host)
    stream = env.from_source(source, strategy, "script").key_by(lambda e: e[0])
    stream.window(TumblingEventTimeWindows.of(10)).process(Contents()).print()
    env.execute()
    per_batch = [[value[1:3] for rows in batch.elements.values() for value, _ in rows] for batch in host.last_run]
    assert per_batch == [[], [(0, 10)], [], [(10, 20)]]
