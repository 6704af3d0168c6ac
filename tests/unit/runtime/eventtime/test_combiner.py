"""How watermarks combine; what holds for both policies is run with both."""

import json

import pytest

from eventide.common.ms import MAX_MS, MIN_MS
from eventide.runtime.eventtime.combiner import Members, Progress, WatermarkCombiner

both = pytest.mark.parametrize("kind", list(Members))
NOTHING = Progress()


@both
def test_without_channels_nothing_is_said(kind):
    combiner = WatermarkCombiner(kind)
    assert combiner.advance() == NOTHING
    assert (combiner.watermark, combiner.idle) == (MIN_MS, False)


@both
def test_a_channel_that_has_not_spoken_holds_all(kind):
    combiner = WatermarkCombiner(kind, ["a", "b"])
    combiner.update("a", 10)
    assert combiner.advance() == NOTHING


@both
def test_the_minimum_comes_out_and_only_when_it_rises(kind):
    combiner = WatermarkCombiner(kind, ["a", "b"])
    combiner.update("a", 10)
    combiner.update("b", 7)
    assert combiner.advance() == Progress(7)
    assert combiner.advance() == NOTHING
    combiner.update("a", 20)
    assert combiner.advance() == NOTHING
    combiner.update("b", 12)
    assert combiner.advance() == Progress(12)


@both
def test_a_lower_watermark_of_a_channel_changes_nothing(kind):
    combiner = WatermarkCombiner(kind, ["a"])
    combiner.update("a", 10)
    assert combiner.advance() == Progress(10)
    combiner.update("a", 5)
    assert combiner.advance() == NOTHING
    assert combiner.watermarks() == {"a": 10}


@both
def test_an_idle_channel_does_not_hold_the_others(kind):
    combiner = WatermarkCombiner(kind, ["a", "b"])
    combiner.update("a", 10)
    combiner.mark_idle("b")
    assert combiner.advance() == Progress(10)


@both
@pytest.mark.parametrize("order", [("a", "b", "c"), ("c", "b", "a"), ("b", "c", "a")])
def test_when_all_become_idle_the_maximum_comes_first_whatever_their_order(kind, order):
    combiner = WatermarkCombiner(kind, ["a", "b", "c"])
    for channel, watermark in {"a": 3, "b": 9, "c": 6}.items():
        combiner.update(channel, watermark)
    assert combiner.advance() == Progress(3)
    for channel in order:
        combiner.mark_idle(channel)
    assert combiner.advance() == Progress(9, idle=True)
    assert combiner.advance() == NOTHING


@both
def test_channels_that_become_idle_without_a_watermark_say_idle_alone(kind):
    combiner = WatermarkCombiner(kind, ["a"])
    combiner.mark_idle("a")
    assert combiner.advance() == Progress(None, idle=True)


def test_a_split_that_comes_back_behind_counts_at_once():
    combiner = WatermarkCombiner(Members.SPLITS, ["a", "b"])
    combiner.update("a", 10)
    combiner.mark_idle("b")
    assert combiner.advance() == Progress(10)
    combiner.update("b", 4)
    combiner.update("a", 20)
    assert combiner.advance() == NOTHING
    combiner.update("b", 15)
    assert combiner.advance() == Progress(15)


@pytest.mark.parametrize(("caught_up", "after"), [(9, Progress(20)), (10, NOTHING), (11, Progress(11))])
def test_an_input_that_comes_back_behind_is_left_out_until_it_reaches_what_was_put_out(caught_up, after):
    combiner = WatermarkCombiner(Members.CHANNELS, ["a", "b"])
    combiner.update("a", 10)
    combiner.mark_idle("b")
    assert combiner.advance() == Progress(10)
    combiner.mark_active("b")
    assert combiner.advance() == NOTHING
    combiner.update("b", caught_up)
    assert combiner.advance() == NOTHING
    combiner.update("a", 20)
    assert combiner.advance() == after


@pytest.mark.parametrize(("kind", "after"), [(Members.SPLITS, NOTHING), (Members.CHANNELS, Progress(20))])
def test_a_watermark_that_does_not_rise_wakes_a_split_and_no_input(kind, after):
    combiner = WatermarkCombiner(kind, ["a", "b"])
    combiner.update("a", 10)
    combiner.update("b", 10)
    combiner.mark_idle("a")
    assert combiner.advance() == Progress(10)
    combiner.update("a", 10)
    combiner.update("b", 20)
    assert combiner.advance() == after


def test_an_input_is_active_as_soon_as_it_says_so_a_source_with_its_next_watermark():
    for kind, first in [(Members.CHANNELS, Progress(None, idle=False)), (Members.SPLITS, NOTHING)]:
        combiner = WatermarkCombiner(kind, ["a"])
        combiner.update("a", 10)
        combiner.mark_idle("a")
        assert combiner.advance() == Progress(10, idle=True)
        combiner.mark_active("a")
        assert combiner.advance() == first
        combiner.update("a", 11)
        assert combiner.advance() == Progress(11, idle=False if first == NOTHING else None)


@both
def test_a_removed_channel_holds_nothing_back(kind):
    combiner = WatermarkCombiner(kind, ["a", "b"])
    combiner.update("a", 10)
    combiner.update("b", 5)
    assert combiner.advance() == Progress(5)
    combiner.remove("b")
    assert combiner.advance() == Progress(10)
    combiner.remove("a")
    assert combiner.advance() == NOTHING


@both
def test_a_removed_channel_stays_removed_after_a_restart(kind):
    combiner = WatermarkCombiner(kind, ["a", "b"])
    combiner.update("a", 10)
    combiner.remove("b")
    assert combiner.advance() == Progress(10)
    again = WatermarkCombiner(kind, ["a", "b"])
    again.restore(json.loads(json.dumps(combiner.snapshot())))
    again.update("a", 11)
    assert again.advance() == Progress(11)
    assert again.watermarks() == {"a": 11}


@both
def test_a_channel_that_was_not_expected_leaves_no_trace(kind):
    combiner = WatermarkCombiner(kind, ["a"])
    empty = combiner.snapshot()
    for channel in ("x", "y"):
        combiner.update(channel, 1)
        combiner.remove(channel)
        assert combiner.snapshot() == empty


@both
def test_what_is_not_expected_any_more_leaves_no_trace(kind):
    combiner = WatermarkCombiner(kind, ["a", "b", "c"])
    combiner.remove("b")
    combiner.update("x", 7)
    again = WatermarkCombiner(kind, ["a"])
    again.restore(json.loads(json.dumps(combiner.snapshot())))
    assert again.watermarks() == {"a": MIN_MS, "x": 7}
    again.update("a", 10)
    assert again.advance() == Progress(7)
    assert "b" not in json.dumps(again.snapshot())


@both
def test_the_channel_that_is_furthest_ahead_is_active_and_was_not_expected(kind):
    combiner = WatermarkCombiner(kind, ["a"])
    for channel, watermark in {"a": 9, "x": 3, "y": 5, "z": 7}.items():
        combiner.update(channel, watermark)
    combiner.mark_idle("z")
    assert combiner.furthest(["a", "x", "y", "z", "unheard"]) == "y"
    assert combiner.furthest(["a", "z"]) is None


@both
def test_a_channel_that_is_new_at_a_restart_holds_until_it_speaks(kind):
    combiner = WatermarkCombiner(kind, ["a"])
    combiner.update("a", 10)
    assert combiner.advance() == Progress(10)
    again = WatermarkCombiner(kind, ["a", "b"])
    again.restore(combiner.snapshot())
    again.update("a", 20)
    assert again.advance() == NOTHING
    again.update("b", 15)
    assert again.advance() == Progress(15)


@both
def test_the_largest_watermark_passes(kind):
    combiner = WatermarkCombiner(kind, ["a"])
    combiner.update("a", MAX_MS)
    assert combiner.advance() == Progress(MAX_MS)
