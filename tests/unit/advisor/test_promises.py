"""The recommended bound loses what theory says, and what was promised: in a replay through eventide itself, too."""

from __future__ import annotations

import numpy as np
import pytest

from eventide.advisor import Advice
from eventide.common import Duration, Time, WatermarkStrategy
from eventide.datastream import OutputTag
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.runtime.observation.histograms import Ints
from eventide.testing import ScriptedSource, local_environment
from support.disorder_streams import advice_on, delayed

ROWS = 400_000
MEAN_MS = 2_000
RATE = 0.05
SHARES = (0.1, 0.01, 0.001)


def share_behind(bound_ms: float, longer_than: np.ufunc) -> float:
    """The share of elements that are older than the newest one by more than a bound, by theory.

    Elements happen at random, ``RATE`` a millisecond, and each comes by a delay D later. When one comes, the newest
    that has come is G old, where P(G > x) = exp(-RATE * (integral of P(D < u) from 0 to x)). The element is D old, and
    so older than the newest by D - G.
    """
    x = np.arange(0, 20_000)
    g_is_longer = np.exp(-RATE * np.concatenate([[0], np.cumsum(1 - longer_than(x))[:-1]]))
    g = -np.diff(g_is_longer, append=0)
    return float(np.sum(g * longer_than(bound_ms + x + 0.5)))


def exponential(x: Ints) -> Ints:
    return np.exp(-x / MEAN_MS)


def uniform(x: Ints) -> Ints:
    return np.clip(1 - x / (2 * MEAN_MS), 0, 1)


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("longer_than", [exponential, uniform])
def test_the_bound_for_a_share_is_that_of_theory(longer_than: np.ufunc, share: float) -> None:
    rng = np.random.default_rng(3)
    delays = rng.exponential(MEAN_MS, ROWS) if longer_than is exponential else rng.uniform(0, 2 * MEAN_MS, ROWS)
    found = advice_on({"a": delayed(ROWS, RATE, delays.astype(np.int64))}).disorder.own
    deviation = np.sqrt(share * (1 - share) / ROWS)
    assert share_behind(found.within(share), longer_than) == pytest.approx(share, abs=6 * deviation)


def replayed(splits: dict[str, Ints], strategy: WatermarkStrategy) -> int:
    """How many elements the windows of a job lose, all of a millisecond, if each comes in a micro-batch of its own."""
    rows = max(map(len, splits.values()))
    script = [
        [(name, {"split": name, "ts": int(times[i])})]
        for i in range(rows)
        for name, times in splits.items()
        if i < len(times)
    ]
    env, late = local_environment(), OutputTag("late")
    counted = (
        env.from_source(ScriptedSource(list(splits), script), strategy, "elements")
        .key_by(lambda element: element["split"])
        .window(TumblingEventTimeWindows.of(Time.milliseconds(1)))
        .side_output_late_data(late)
        .reduce(lambda one, _: one)
    )
    return len(list(counted.get_side_output(late).execute_and_collect()))


def strategy_of(advice: Advice) -> WatermarkStrategy:
    """The strategy that the line to paste makes."""
    return eval(advice.code, {"WatermarkStrategy": WatermarkStrategy, "Duration": Duration})


@pytest.mark.parametrize("lose", [0.2, 0.05, 0.0])
def test_a_replay_of_one_split_loses_exactly_what_was_said(lose: float) -> None:
    delays = np.random.default_rng(5).exponential(MEAN_MS, 500).astype(np.int64)
    splits = {"a": delayed(500, 0.005, delays)}
    advice = advice_on(splits, lose)
    assert replayed(splits, strategy_of(advice)) == advice.recommended.late <= lose * 500


@pytest.mark.parametrize("lose", [0.1, 0.0])
def test_a_replay_of_several_splits_loses_no_more_than_was_promised(lose: float) -> None:
    rng = np.random.default_rng(6)
    splits = {
        name: delayed(250, 0.005, rng.exponential(MEAN_MS, 250).astype(np.int64)) - behind
        for name, behind in (("a", 0), ("b", 60_000), ("c", 300))
    }
    advice = advice_on(splits, lose)
    assert replayed(splits, strategy_of(advice)) <= advice.recommended.late <= lose * 750
    assert advice.recommended.late_with_one >= 250 * 0.9


def test_one_watermark_for_all_loses_what_is_said_of_it() -> None:
    rng = np.random.default_rng(8)
    splits = {name: delayed(200, 0.005, rng.exponential(MEAN_MS, 200).astype(np.int64)) for name in "abc"}
    splits["b"] -= 10_000
    advice = advice_on(splits, 0.1)
    in_turn = np.stack(list(splits.values()), axis=1).reshape(-1)
    bound = WatermarkStrategy.for_bounded_out_of_orderness(advice.recommended.bound_ms).with_timestamp_assigner("ts")
    assert replayed({"all": in_turn}, bound) == advice.recommended.late_with_one > 0.2 * 600


def test_early_results_with_a_lateness_lose_nothing() -> None:
    delays = np.full(500, 100)
    delays[[100, 300, 400]] = 60_000
    splits = {"a": delayed(500, 0.005, delays)}
    early = advice_on(splits).early
    assert early is not None
    by_both = WatermarkStrategy.for_bounded_out_of_orderness(early.bound_ms + early.lateness_ms)
    by_bound = WatermarkStrategy.for_bounded_out_of_orderness(early.bound_ms)
    assert replayed(splits, by_both.with_timestamp_assigner("ts")) == 0
    assert replayed(splits, by_bound.with_timestamp_assigner("ts")) == early.corrections > 0
