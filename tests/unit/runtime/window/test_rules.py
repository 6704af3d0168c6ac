"""The rules of time at the millisecond before, at, and after."""

import pytest

from eventide.common._ms import MAX_MS
from eventide.runtime.window.rules import cleanup_time, is_element_late, is_window_late


@pytest.mark.parametrize(("watermark", "late"), [(8, False), (9, True), (10, True)])
def test_a_window_is_late_when_the_watermark_is_at_its_last_millisecond(watermark, late):
    assert is_window_late(last_ms=9, lateness_ms=0, watermark_ms=watermark) is late


@pytest.mark.parametrize(("watermark", "late"), [(13, False), (14, True), (15, True)])
def test_allowed_lateness_moves_that_by_as_much(watermark, late):
    assert is_window_late(last_ms=9, lateness_ms=5, watermark_ms=watermark) is late
    assert is_element_late(timestamp_ms=9, lateness_ms=5, watermark_ms=watermark) is late
    assert (watermark >= cleanup_time(last_ms=9, lateness_ms=5)) is late


@pytest.mark.parametrize(("last", "lateness"), [(MAX_MS, 0), (MAX_MS, 1), (MAX_MS - 1, 1), (9, MAX_MS)])
def test_a_window_without_a_cleanup_time_is_late_at_the_end_of_time_only(last, lateness):
    assert cleanup_time(last, lateness) is None
    assert not is_window_late(last, lateness, MAX_MS - 1)
    assert is_window_late(last, lateness, MAX_MS)


def test_the_last_cleanup_time_is_one_before_the_end_of_time():
    assert cleanup_time(MAX_MS - 1, 0) == MAX_MS - 1
