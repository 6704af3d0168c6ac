"""A generator's watermarks become reports, each at its place."""

import numpy as np
import pyarrow as pa
import pytest

from eventide.common import Watermark
from eventide.common.ms import MIN_MS
from eventide.errors import DataError
from eventide.runtime.chain.watermarks import Emitter
from eventide.runtime.exchange.frames import END_OF_BATCH, START_OF_BATCH, WatermarkReport


def at_work(*, is_split=True, watermark=MIN_MS, idle=False):
    """An emitter whose channel was said to be active in this micro-batch before, unless it is idle."""
    emitter = Emitter("s", is_split=is_split, watermark=watermark, idle=idle)
    if not idle:
        emitter.mark_active()
        emitter.reports().clear()
    emitter.point = 4
    return emitter


def test_a_watermark_is_reported_at_its_place_and_only_when_it_rises():
    emitter = at_work()
    emitter.hear()
    for place, time_ms in [(4, 10), (5, 10), (6, 9), (7, 11)]:
        emitter.point = place
        emitter.emit_watermark(Watermark(time_ms))
    assert emitter.reports() == [WatermarkReport("s", 4, 10, spoke=True), WatermarkReport("s", 7, 11, spoke=True)]
    assert emitter.watermark == 11


@pytest.mark.parametrize(("is_split", "said"), [(True, [WatermarkReport("s", 4, 10, idle=False)]), (False, [])])
def test_with_its_first_watermark_of_a_batch_a_split_counts_again_though_it_does_not_rise(is_split, said):
    emitter = Emitter("s", is_split=is_split, watermark=10)
    emitter.point = 4
    emitter.emit_watermark(Watermark(3))
    emitter.emit_watermark(Watermark(4))
    assert emitter.reports() == said


@pytest.mark.parametrize(("is_split", "said"), [(True, [WatermarkReport("s", 4, 10, idle=False)]), (False, [])])
def test_one_that_marked_itself_idle_counts_again_with_a_watermark_if_it_is_a_split(is_split, said):
    emitter = at_work(is_split=is_split, watermark=10, idle=True)
    emitter.emit_watermark(Watermark(10))
    assert (emitter.reports(), emitter.idle) == (said, not is_split)


def test_idle_and_active_are_said_when_they_change():
    emitter = at_work()
    emitter.mark_active()
    emitter.mark_idle()
    emitter.mark_idle()
    emitter.point = 5
    emitter.mark_active()
    emitter.mark_active()
    assert emitter.reports() == [WatermarkReport("s", 4, idle=True), WatermarkReport("s", 5, idle=False)]


def test_that_a_channel_is_active_is_said_once_in_each_batch_for_its_source_may_have_said_idle():
    emitter = Emitter("s", is_split=True)
    emitter.mark_active()
    emitter.mark_active()
    assert emitter.reports() == [WatermarkReport("s", START_OF_BATCH, idle=False)]


def test_at_the_end_of_a_batch_it_says_whether_there_were_elements():
    silent, heard = at_work(), at_work()
    heard.hear()
    silent.end_batch()
    heard.end_batch()
    assert silent.reports() == [WatermarkReport("s", END_OF_BATCH)]
    assert heard.reports() == [WatermarkReport("s", END_OF_BATCH, spoke=True)]


@pytest.mark.parametrize("column", [list, np.array, pa.array])
def test_watermarks_of_rows_are_reported_at_the_places_of_the_rows(column):
    emitter = at_work()
    emitter.points, emitter.point = np.array([2, 3, 5, 8]), 8
    emitter.emit_watermarks(column([0, 1, 2]), column([10, 9, 20]))
    emitter.emit_watermark(Watermark(30))
    assert emitter.reports() == [WatermarkReport("s", 2, 10), WatermarkReport("s", 5, 20), WatermarkReport("s", 8, 30)]


@pytest.mark.parametrize(("rows", "times"), [([0, 1], [5]), ([1, 0], [5, 6])])
def test_rows_that_do_not_ascend_or_lack_a_timestamp_are_refused(rows, times):
    emitter = at_work()
    emitter.points = np.array([0, 1])
    with pytest.raises(DataError, match=r"rows in ascending order, and a timestamp for each; it got \d rows"):
        emitter.emit_watermarks(rows, times)
    assert emitter.reports() == []


@pytest.mark.parametrize("wrong", [10, None, "10"])
def test_what_is_no_watermark_is_refused(wrong):
    with pytest.raises(DataError, match=rf"takes a Watermark, such as .*, not {wrong!r}"):
        at_work().emit_watermark(wrong)


@pytest.mark.parametrize("speak", [lambda e: e.emit_watermark(Watermark(1)), Emitter.mark_idle, Emitter.mark_active])
def test_one_that_is_periodic_may_speak_at_the_end_of_a_batch_only(speak):
    emitter = at_work()
    emitter.is_periodic = True
    with pytest.raises(DataError, match="is_periodic"):
        speak(emitter)
    emitter.point = END_OF_BATCH
    speak(emitter)
