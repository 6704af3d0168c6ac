import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.common import Duration, Time
from eventide.common.ms import MAX_MS, MIN_MS, add_ms, to_ms, to_positive_ms, window_bounds, window_start
from eventide.errors import ProgramError

times = st.integers(MIN_MS, MAX_MS)
sizes = st.integers(1, 10**6)


@pytest.mark.parametrize(
    ("a", "b", "total"),
    [
        (MAX_MS, -1, MAX_MS - 1),
        (MAX_MS, 0, MAX_MS),
        (MAX_MS, 1, MAX_MS),
        (MIN_MS, 1, MIN_MS + 1),
        (MIN_MS, 0, MIN_MS),
        (MIN_MS, -1, MIN_MS),
        (MIN_MS, MIN_MS, MIN_MS),
        (MAX_MS, MIN_MS, -1),
    ],
)
def test_addition_saturates_at_the_ends_of_the_range(a, b, total):
    assert add_ms(a, b) == total


@given(times, times)
def test_addition_is_exact_or_at_an_end(a, b):
    assert add_ms(a, b) == a + b or add_ms(a, b) in {MIN_MS, MAX_MS}


@pytest.mark.parametrize(("timestamp", "start"), [(-11, -20), (-10, -10), (-1, -10), (0, 0), (9, 0), (10, 10)])
def test_windows_start_at_multiples_of_their_size_below_zero_too(timestamp, start):
    assert window_start(timestamp, 0, 10) == start


@pytest.mark.parametrize("timestamp", [MIN_MS, MIN_MS + 1])
def test_a_window_start_below_the_range_saturates(timestamp):
    assert window_start(timestamp, 0, 10) == MIN_MS


@given(times, st.integers(-(10**6), 10**6), sizes)
def test_a_window_start_is_at_or_before_the_timestamp_by_less_than_the_size(timestamp, offset, size):
    start = window_start(timestamp, offset, size)
    assert start <= timestamp < start + size
    assert (start - offset) % size == 0 or start == MIN_MS


@given(times, sizes, st.integers(1, 50))
def test_a_timestamp_has_size_by_slide_different_windows_at_the_ends_too(timestamp, slide, count):
    bounds = window_bounds(timestamp, 0, slide * count, slide)
    assert len(set(bounds)) == count
    assert all(start <= timestamp and (timestamp < end or end == MAX_MS) for start, end in bounds)


@pytest.mark.parametrize("value", [Time.seconds(0.5), Duration.of_seconds(0.5), Time(500.0)])
def test_a_part_of_a_second_is_a_whole_number_of_milliseconds(value):
    assert (to_ms(value, "size"), type(to_ms(value, "size"))) == (500, int)


@pytest.mark.parametrize("value", [Time.milliseconds(0.5), Time(1e-9), Time(-0.5)])
def test_a_part_of_a_millisecond_is_refused(value):
    with pytest.raises(ProgramError, match=r"size: .* is not a whole number of milliseconds"):
        to_ms(value, "size")


@pytest.mark.parametrize("value", [1500, Time(1500), Duration.of_millis(1500)])
def test_a_length_of_time_may_be_a_duration_a_time_or_milliseconds(value):
    assert to_ms(value, "gap") == 1500


@pytest.mark.parametrize("value", ["5", 1.5, True, None, 2**63, Duration.of_days(2**50)])
def test_what_is_no_length_of_time_is_refused_by_name(value):
    with pytest.raises(ProgramError, match="session gap"):
        to_ms(value, "session gap")


@pytest.mark.parametrize("value", [-1, 0, Time(0)])
def test_zero_and_less_is_not_positive(value):
    with pytest.raises(ProgramError, match="more than 0 ms"):
        to_positive_ms(value, "gap")
    assert to_positive_ms(1, "gap") == 1
