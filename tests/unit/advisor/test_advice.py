"""Recommendations beside the bound, only where the data show that it is needed; and what is odd about them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventide.advisor import Advice, advise
from eventide.errors import ProgramError
from support.disorder_streams import START_MS, advice_on

SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
TEXT = """\
2,000 elements, at most 3.5 s out of order

  to lose at most   bound   late   results after
  1 %               3.5 s      0           3.5 s
  0.1 %             3.5 s      0           3.5 s
  0.01 %            3.5 s      0           3.5 s
  nothing           3.5 s      0           3.5 s

To paste; it loses at most 0.1 %
  WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(3500)).with_timestamp_assigner("ts")"""
STEADY = START_MS + np.arange(2_000) * SECOND


def test_a_stream_in_order_needs_no_bound() -> None:
    advice = advice_on({"a": STEADY})
    assert advice.code == 'WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("ts")'
    assert (advice.idleness_ms, advice.drift_ms, advice.early, advice.notes) == (None, None, None, [])


def test_splits_that_go_hand_in_hand_need_no_idleness_and_no_alignment() -> None:
    advice = advice_on({"a": STEADY, "b": STEADY + 7})
    assert (advice.idleness_ms, advice.drift_ms, advice.notes) == (None, None, [])


def test_a_split_that_falls_silent_calls_for_idleness_after_its_usual_gaps() -> None:
    silent = np.concatenate([STEADY[:500], STEADY[1_700:]])
    advice = advice_on({"a": STEADY, "b": silent}, arrived={"a": STEADY + 50, "b": silent + 60})
    assert advice.idleness_ms == 20 * SECOND
    assert advice.silence == ("b", 1_201 * SECOND)
    assert ".with_idleness(Duration.of_seconds(20))" in advice.code


def test_a_split_that_is_silent_at_the_end_is_silent() -> None:
    advice = advice_on({"a": STEADY, "b": STEADY[:100]}, arrived={"a": STEADY, "b": STEADY[:100]})
    assert advice.idleness_ms is not None
    assert advice.silence == ("b", 1_900 * SECOND)


def test_a_split_that_is_slow_by_habit_is_not_idle() -> None:
    slow = STEADY[::100]
    advice = advice_on({"a": STEADY, "b": slow}, arrived={"a": STEADY, "b": slow})
    assert advice.idleness_ms is None


def test_a_split_that_never_spoke_calls_for_idleness() -> None:
    advice = advice_on({"a": STEADY})
    advice.disorder.named.add("b")
    assert advice.idleness_ms is not None
    assert advice.notes == ["b had nothing to read: without idleness, a split that has never spoken holds all windows"]


def test_splits_that_are_hours_apart_call_for_an_alignment() -> None:
    advice = advice_on({"a": STEADY, "b": STEADY - 5 * HOUR - 17 * MINUTE})
    assert advice.drift_ms == MINUTE
    assert '.with_watermark_alignment("a group", Duration.of_minutes(1))' in advice.code
    assert Advice(advice.disorder, advice.columns, can_align=False).drift_ms is None
    assert advice.notes == []


@pytest.mark.parametrize("hours", [1, 5])
def test_a_split_that_is_behind_by_whole_hours_may_have_another_time_zone(hours: int) -> None:
    (note,) = advice_on({"a": STEADY, "b": STEADY - hours * HOUR}).notes
    assert note.startswith(f"the split b is {hours} h behind the others, no more and no less: is that a time zone?")


def test_an_element_from_far_ahead_is_named_where_it_makes_the_bound() -> None:
    times = STEADY.copy()
    times[100] += 24 * 365 * HOUR
    (note,) = advice_on({"a": times}).notes
    assert note.startswith("an element of the split a is 365 d ahead of all before it")


def test_elements_without_a_time_and_from_the_future_are_named() -> None:
    advice = advice_on({"a": STEADY}, arrived={"a": STEADY - 5 * SECOND})
    advice.disorder.nulls = 3
    first, second = advice.notes
    assert first.startswith("2,000 elements happened after they arrived, by up to 5 s")
    assert second.startswith("3 elements without a time")


def test_numbers_of_another_unit_are_converted_in_the_line_to_paste(tmp_path: Path) -> None:
    pq.write_table(pa.table({"at": STEADY // SECOND}), tmp_path / "a.parquet")
    advice = advise(tmp_path, time="at", unit="s")
    assert '.with_timestamp_assigner(lambda row, _: row["at"] * 1_000)' in advice.code


def test_it_is_less_than_a_screen_and_json_says_the_same() -> None:
    rng = np.random.default_rng(1)
    behind = {"a": STEADY - rng.integers(0, 9_000, len(STEADY)), "b": STEADY - 6 * HOUR}
    advice = advice_on(behind, arrived={"a": STEADY, "b": STEADY + 5})
    assert len(str(advice).splitlines()) <= 24
    document = json.loads(json.dumps(advice.to_json()))
    assert document["code"] == advice.code
    assert [choice["lose"] for choice in document["choices"]] == [0.01, 0.001, 0.0001, 0.0]
    assert document["recommended"]["bound_ms"] == advice.recommended.bound_ms
    assert document["slowest_split"] == {"name": "b", "behind_ms": advice.wait_ms}


def test_the_text_of_a_small_stream() -> None:
    times = STEADY.copy()
    times[10::20] -= 4_500
    assert str(advice_on({"all": times})) == TEXT


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_the_picture_is_written_as_its_name_says(ending: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    advice = advice_on({"a": STEADY, "b": STEADY - 6 * HOUR})
    advice.plot(tmp_path / f"curve.{ending}")
    head = (tmp_path / f"curve.{ending}").read_bytes()[:100]
    assert head.startswith(b"\x89PNG" if ending == "png" else b"<?xml")


def test_a_picture_of_an_unknown_kind_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    with pytest.raises(ProgramError, match="cannot be written"):
        advice_on({"a": STEADY}).plot(tmp_path / "curve.nonsense")
