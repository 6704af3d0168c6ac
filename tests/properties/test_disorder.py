"""The measured disorder of a split is what a brute-force look at all of its timestamps says."""

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from eventide.common.ms import MAX_MS, MIN_MS
from eventide.runtime.observation.event_time_log import EventTimeLog, Lateness, SplitRecord
from eventide.runtime.observation.histograms import (
    BLOCK,
    EIGHTHS,
    FIRST,
    DurationHistogram,
    TimeCounts,
    TimestampSummary,
)

DISTANCES = st.lists(st.integers(0, 2**45) | st.integers(0, 40))
TIMES = st.lists(st.integers(0, 10**6), max_size=90)


def lengths_of(distances):
    lengths = DurationHistogram(EIGHTHS)
    lengths.add(np.array(distances, np.int64))
    return lengths


def behind_of(times):
    """How far each time is below the highest before it."""
    highest, found = None, []
    for time in times:
        highest = time if highest is None else max(highest, time)
        found.append(highest - time)
    return found


@given(DISTANCES, st.floats(0, 1))
def test_a_quantile_is_at_most_an_eighth_too_large(distances, share):
    lengths = lengths_of(distances)
    assert lengths.total == len(distances)
    assert lengths.longest_ms == max(distances, default=0)
    found = lengths.within(share)
    if distances:
        allowed = int(share * len(distances))
        exact = 0 if allowed == len(distances) else sorted(distances, reverse=True)[allowed]
        assert exact <= found <= exact + exact // 8 + 1
    assert sum(count for _, count in lengths.steps()) == len(distances)


@given(DISTANCES, DISTANCES, st.integers(0, 10**6))
def test_lengths_add_up(some, others, further):
    both = lengths_of(some)
    both.merge(lengths_of(others), further)
    at_once = lengths_of([*some, *(one + further for one in others)])
    assert (both.total, both.longest_ms) == (at_once.total, at_once.longest_ms)
    if not further:
        assert both.snapshot() == at_once.snapshot()
    assert DurationHistogram.of(both.snapshot()).snapshot() == both.snapshot()


@given(st.lists(TIMES, max_size=5))
def test_disorder_over_micro_batches_is_that_of_all_times(batches):
    record = SplitRecord(since=0)
    for times in batches:
        summary = TimestampSummary()
        for begin in range(0, len(times), 7):
            summary.see(np.array(times[begin : begin + 7], np.int64))
        if summary.rows:
            record.take(TimestampSummary.of(summary.snapshot()), record.newest, MIN_MS)
    everything = [time for times in batches for time in times]
    exact = behind_of(everything)
    assert record.rows == len(everything)
    assert record.behind.total <= record.rows
    assert record.newest == max(everything, default=MIN_MS)
    assert record.behind.longest_ms == max(exact, default=0)
    if all(len(times) <= FIRST for times in batches):
        assert record.behind.snapshot() == lengths_of(exact).snapshot()


def test_times_at_the_ends_of_the_range_do_no_harm():
    record = SplitRecord(since=0)
    for times in ([MAX_MS], [MIN_MS + 1] * (FIRST + 1), [MAX_MS, MIN_MS + 1]):
        summary = TimestampSummary()
        summary.see(np.array(times, np.int64))
        record.take(summary, record.newest, MAX_MS)
    assert (record.rows, record.newest) == (FIRST + 4, MAX_MS)
    assert SplitRecord.of(record.snapshot()).snapshot() == record.snapshot()


@given(st.lists(TIMES, min_size=1), st.integers(-5, 10**6 + 5))
def test_counts_of_times_are_too_large_or_too_small_by_one_cell(batches, until):
    counts = TimeCounts()
    for times in filter(None, batches):
        counts.add(np.array(times, np.int64))
    counts = TimeCounts.of(json.loads(json.dumps(counts.snapshot())))
    everything = [time for times in batches for time in times]
    exact = sum(time <= until for time in everything)
    _, cells, numbers = counts.snapshot()
    assert len(cells) <= 128
    assert counts.total == len(everything)
    assert abs(counts.until(until) - exact) <= max(numbers, default=0)
    assert counts.until(10**7) == len(everything)
    if len({*everything}) <= 128 and max(everything, default=0) < 8_192:
        assert counts.until(until) == exact


@given(st.integers(0, 2**32), st.integers(1, 5), st.sampled_from([1, 50, 5_000]), st.floats(0, 1))
def test_how_many_of_very_many_are_at_a_time_is_known_to_some_percent(seed, blocks, delay, share):
    random = np.random.default_rng(seed)
    times = np.arange(blocks * BLOCK) * 3 - random.exponential(delay, blocks * BLOCK).astype(np.int64)
    summary = TimestampSummary()
    summary.see(random.permutation(times))
    until = int(np.quantile(times, share))
    exact = int((times <= until).sum())
    found = TimestampSummary.of(json.loads(json.dumps(summary.snapshot()))).until(until)
    assert abs(found - exact) <= 0.05 * len(times)
    assert (found > 0) == (exact > 0)


@given(st.integers(0, 2**32), st.integers(1, 5), st.sampled_from([1, 50, 5_000]))
def test_the_most_of_very_many_is_too_small_by_what_the_newest_rises_in_a_block(seed, blocks, delay):
    random = np.random.default_rng(seed)
    times = np.arange(blocks * BLOCK + 17) * 3 - random.exponential(delay, blocks * BLOCK + 17).astype(np.int64)
    summary = TimestampSummary()
    summary.see(times)
    exact = int((np.maximum.accumulate(times) - times).max())
    newest = np.maximum.accumulate(times)
    rise = max(newest[min(at + BLOCK, len(times)) - 1] - newest[max(at - 1, 0)] for at in range(0, len(times), BLOCK))
    assert exact - rise <= summary.largest <= exact
    assert (summary.rows, summary.newest, summary.oldest) == (len(times), times.max(), times.min())
    assert 0 < summary.behind.total <= len(times)


@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(1, 5)), min_size=1), st.integers(1000, 2000))
def test_sums_of_late_elements_count_as_the_elements(panes, watermark):
    summed, single = Lateness(), Lateness()
    summed.add([time for time, _ in panes], watermark, 0, [count for _, count in panes])
    single.add([time for time, count in panes for _ in range(count)], watermark, 0)
    assert summed.behind.snapshot() == single.behind.snapshot()
    assert Lateness.of(summed.snapshot()).snapshot() == summed.snapshot()
    assert (summed.from_panes, single.from_panes) == (True, False)


@given(st.lists(st.tuples(st.sampled_from("ab"), TIMES), max_size=6))
def test_a_split_that_ends_leaves_what_it_had_and_nothing_else(batches):
    log = EventTimeLog()
    for clock, (split, times) in enumerate(batches):
        summary = TimestampSummary()
        summary.see(np.array(times, np.int64))
        arrived = [("edge", split, summary)] if times else []
        log.end_batch([("edge", "a")], [("edge", split)], arrived, clock, MIN_MS)
        log = EventTimeLog.of(log.snapshot())
    assert {split for _, split in log.splits} <= {"a"}
    kept = sum(record.rows for record in (*log.splits.values(), *log.ended.values()))
    assert kept == sum(len(times) for _, times in batches)
    assert log.ended_count.get("edge", 0) == sum(split == "b" for split, _ in batches)
