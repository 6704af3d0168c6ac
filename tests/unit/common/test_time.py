import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.common import MAX_WATERMARK, Duration, Instant, Time, Watermark
from eventide.common.ms import MAX_MS


@pytest.mark.parametrize("kind", [Duration, Time])
def test_units_are_multiples_of_each_other(kind):
    if kind is Duration:
        units = [Duration.of_days(1), Duration.of_hours(24), Duration.of_minutes(1440), Duration.of_seconds(86_400)]
    else:
        units = [Time.days(1), Time.hours(24), Time.minutes(1440), Time.seconds(86_400), Time.milliseconds(86_400_000)]
    assert len(set(units)) == 1


def test_durations_order_and_pickle():
    assert Duration.of_millis(999) < Duration.of_seconds(1) < Duration.of_millis(1001)
    assert pickle.loads(pickle.dumps(Duration.of_nanos(5))) == Duration.of_nanos(5)
    assert repr(Duration.of_seconds(1)) == "Duration(1000 ms)"


def test_a_time_reads_and_compares_by_its_milliseconds():
    assert str(Time(5)) == "5 ms"
    assert Time(5) == Time.milliseconds(5) != Time(6)
    assert pickle.loads(pickle.dumps(Time(5))) == Time(5)


@given(st.integers(-(2**63), 2**63 - 1))
def test_an_instant_keeps_its_milliseconds(epoch_milli):
    assert Instant.of_epoch_milli(epoch_milli).to_epoch_milli() == epoch_milli


def test_watermarks_order_by_their_timestamp():
    assert Watermark(-1) < Watermark(0) < Watermark(1) < MAX_WATERMARK == Watermark(MAX_MS)
