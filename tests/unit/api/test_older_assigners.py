"""Flink's older assigners of timestamps and watermarks do what they did."""

import logging

import pytest

from eventide.common import Time, Watermark, WatermarkStrategy
from eventide.datastream.functions import (
    AscendingTimestampExtractor,
    AssignerWithPeriodicWatermarks,
    AssignerWithPunctuatedWatermarks,
    BoundedOutOfOrdernessTimestampExtractor,
)
from eventide.datastream.output_tag import OutputTag
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.errors import DataError, ProgramError
from eventide.testing import ScriptedSource, local_environment
from support.twin import AllContents, plan_of, run

LATE = OutputTag("late")


class Periodic(AssignerWithPeriodicWatermarks):
    def __init__(self):
        self.highest = None

    def extract_timestamp(self, value, record_timestamp):
        self.highest = value if self.highest is None else max(self.highest, value)
        return value

    def get_current_watermark(self):
        return None if self.highest is None else Watermark(self.highest - 5)


class Punctuated(AssignerWithPunctuatedWatermarks):
    def extract_timestamp(self, value, record_timestamp):
        return value

    def check_and_get_next_watermark(self, last_element, extracted_timestamp):
        return Watermark(extracted_timestamp) if last_element % 10 == 9 else None


class Ascending(AscendingTimestampExtractor):
    def extract_ascending_timestamp(self, element):
        return element


class Bounded(BoundedOutOfOrdernessTimestampExtractor):
    def extract_timestamp(self, element):
        return element


def windows_of(assigner, *batches, replaces, splits=("s",)):
    """The results of windows of 10 ms and the late elements, micro-batch by micro-batch, and the plan."""
    script = [[entry if isinstance(entry, tuple) else ("s", entry) for entry in batch] for batch in batches]
    source = ScriptedSource(list(splits), script, bounded=False)
    stream = local_environment().from_source(source, WatermarkStrategy.no_watermarks(), "source")
    with pytest.warns(DeprecationWarning, match=replaces):
        timed = stream.assign_timestamps_and_watermarks(assigner)
    results = timed.window_all(TumblingEventTimeWindows.of(10)).side_output_late_data(LATE).process(AllContents())
    plan = plan_of(results, results.get_side_output(LATE))
    return [[[value for value, _ in rows] for rows in batch] for batch in run(plan)]


def test_a_periodic_assigner_is_asked_at_the_end_of_a_micro_batch():
    found = windows_of(Periodic(), [1, 14, 2], [15, 3], [4], replaces="Periodic is of Flink's older API.*for_generator")
    assert found == [[[(0, 10, [1, 2])], []], [[], [3]], [[], [4]]]


def test_each_split_has_an_assigner_of_its_own():
    batches = [[("s", 30), ("t", 1)], [("t", 14)]]
    found = windows_of(Periodic(), *batches, replaces="for_generator", splits=("s", "t"))
    assert found == [[[], []], [[(0, 10, [1])], []]]


def test_a_punctuated_assigner_is_asked_after_each_element():
    found = windows_of(Punctuated(), [1, 9, 2], [19], replaces="Punctuated is of Flink's older API.*for_generator")
    assert found == [[[(0, 10, [1, 9])], [2]], [[(10, 20, [19])], []]]


def test_ascending_timestamps_have_watermarks_just_before_the_last(caplog):
    with caplog.at_level(logging.WARNING):
        found = windows_of(Ascending(), [1, 10], [10, 8], replaces="for_monotonous_timestamps")
    assert found == [[[(0, 10, [1])], []], [[], [8]]]
    assert "the timestamp 8 is earlier than the one before it, 10" in caplog.text


def test_a_handler_says_what_happens_when_timestamps_do_not_ascend(caplog):
    failing = Ascending().with_violation_handler(AscendingTimestampExtractor.FailingHandler())
    with pytest.raises(DataError, match="do not ascend: 1 is earlier than the one before it, 5"):
        windows_of(failing, [5, 1], replaces="for_monotonous_timestamps")
    ignoring = Ascending().with_violation_handler(AscendingTimestampExtractor.IgnoringHandler())
    windows_of(ignoring, [5, 1], replaces="for_monotonous_timestamps")
    assert caplog.text == ""
    with pytest.raises(ProgramError, match="needs a MonotonyViolationHandler, not 7"):
        Ascending().with_violation_handler(7)


def test_a_bounded_extractor_reaches_its_bound_a_millisecond_earlier_than_the_strategy():
    found = windows_of(Bounded(Time.milliseconds(5)), [1, 13], [14], replaces="for_bounded_out_of_orderness")
    assert found == [[[], []], [[(0, 10, [1])], []]]


def test_a_bound_is_a_length_of_time():
    assert Bounded(Time.seconds(2)).get_max_out_of_orderness_in_millis() == 2_000
    with pytest.raises(ProgramError, match="expected at least 0 ms, got -1"):
        Bounded(-1)


def test_the_assigner_that_was_given_stays_as_it_was():
    assigner = Periodic()
    windows_of(assigner, [1, 14], replaces="for_generator")
    assert assigner.highest is None


def test_something_else_is_refused():
    with pytest.raises(ProgramError, match=r"needs a WatermarkStrategy, such as .*, not 7"):
        local_environment().from_collection([1]).assign_timestamps_and_watermarks(7)
