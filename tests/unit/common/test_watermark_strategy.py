import pickle
from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.common import Duration, TimestampAssigner, WatermarkStrategy
from eventide.common.ms import MAX_MS, MIN_MS
from eventide.common.watermark_generators import BoundedOutOfOrderness, NoWatermarks
from eventide.errors import ProgramError


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Column:
    """As Spark's Column: it answers to every attribute, and is known by its name alone."""

    def __getattr__(self, name):
        return Column()

    def __call__(self, *args):
        raise TypeError("'Column' object is not callable")


def third_field(value, record_timestamp):
    return value[2]


def test_a_bounded_watermark_trails_the_maximum_by_the_bound_and_one():
    assert [BoundedOutOfOrderness(5).watermark_for(t) for t in (5, 6, 7)] == [-1, 0, 1]


def test_a_monotonous_watermark_is_one_below_the_maximum():
    assert WatermarkStrategy.for_monotonous_timestamps().generator.watermark_for(10) == 9


@pytest.mark.parametrize("timestamp", [MIN_MS, MIN_MS + 5])
def test_a_watermark_saturates_below(timestamp):
    assert BoundedOutOfOrderness(5).watermark_for(timestamp) == MIN_MS


@given(st.integers(0, MAX_MS), st.integers(MIN_MS, MAX_MS), st.integers(MIN_MS, MAX_MS))
def test_watermarks_never_fall_when_the_maximum_rises(bound, one, other):
    generator = BoundedOutOfOrderness(bound)
    assert generator.watermark_for(min(one, other)) <= generator.watermark_for(max(one, other))


def test_no_watermarks_gives_none():
    assert NoWatermarks().watermark_for(MAX_MS) is None


def test_a_negative_bound_is_refused():
    with pytest.raises(ProgramError, match="-1"):
        WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(-1))
    assert WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(0))


@pytest.mark.parametrize("assigner", [SecondField(), third_field, "ts", Column()])
@pytest.mark.parametrize("before", [None, SecondField(), third_field, "other"])
def test_the_last_assigner_counts_and_the_generator_stays(before, assigner):
    start = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1))
    if before is not None:
        start = start.with_timestamp_assigner(before)
    strategy = start.with_timestamp_assigner(assigner)
    assert strategy.generator == BoundedOutOfOrderness(1000)
    assert (strategy.timestamp_assigner is None) != (strategy.timestamp_column is None)


def test_with_timestamp_assigner_leaves_the_strategy_it_is_called_on_alone():
    strategy = WatermarkStrategy.no_watermarks()
    strategy.with_timestamp_assigner(SecondField())
    assert strategy == WatermarkStrategy.no_watermarks()
    with pytest.raises(FrozenInstanceError):
        strategy.generator = NoWatermarks()


def test_a_function_becomes_an_assigner():
    strategy = WatermarkStrategy.no_watermarks().with_timestamp_assigner(third_field)
    assert strategy.timestamp_assigner.extract_timestamp((0, 1, 2), MIN_MS) == 2
    assert pickle.loads(pickle.dumps(strategy)) == strategy


def test_a_column_is_not_taken_for_a_function():
    column = Column()
    assert WatermarkStrategy.no_watermarks().with_timestamp_assigner(column).timestamp_column is column


def test_what_cannot_give_a_timestamp_is_refused():
    with pytest.raises(ProgramError, match="17"):
        WatermarkStrategy.no_watermarks().with_timestamp_assigner(17)


@pytest.mark.parametrize(
    ("assigner", "text"),
    [
        (SecondField(), "monotonous timestamps, timestamps from SecondField"),
        (third_field, "monotonous timestamps, timestamps from function third_field"),
        ("ts", "monotonous timestamps, timestamps from column 'ts'"),
    ],
)
def test_a_strategy_describes_itself(assigner, text):
    assert WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(assigner).describe() == text
    assert WatermarkStrategy.no_watermarks().describe() == "no watermarks, timestamps of the source"
