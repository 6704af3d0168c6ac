"""The inputs of a subtask: splits through a multiplexer, sources and subtasks through the valve; silent ones."""

import json
from dataclasses import replace

import pytest

from eventide.common.ms import MAX_MS, MIN_MS
from eventide.runtime.eventtime.combiner import Progress
from eventide.runtime.eventtime.valve import Idleness, ValveEdge, WatermarkValve
from eventide.runtime.exchange.frames import END_OF_INPUT, WatermarkReport

NOTHING = Progress()
SOURCE = ValveEdge(1, "1", ("s", "t"), is_source=True)
OTHER_SOURCE = ValveEdge(2, "2", ("u",), is_source=True)
STAGE = ValveEdge(3, "3", ("0", "1"), is_source=False)


class Told:
    """A valve that hears of a micro-batch at its end, all at once."""

    def __init__(self, inputs):
        self.edges = inputs
        self.valve = WatermarkValve(inputs)
        self.reports = []

    def report(self, edge, channel, watermark=None, *, idle=None, spoke=True, ended=False):
        self.reports.append((edge, WatermarkReport(channel, watermark=watermark, idle=idle, spoke=spoke, ended=ended)))

    def end_batch(self, clock=0, ending=()):
        reports, self.reports = self.reports, []
        return self.valve.end_batch(reports, clock, ending)

    def end(self, *edges):
        return self.valve.end_input((), edges)

    def restart(self):
        again = WatermarkValve(self.edges)
        again.restore(json.loads(json.dumps(self.valve.snapshot())))
        self.valve = again


def test_the_splits_of_a_source_combine_by_minimum():
    valve = Told([SOURCE])
    valve.report(1, "s", 10)
    assert valve.end_batch() == NOTHING
    assert valve.valve.watermark == MIN_MS
    valve.report(1, "t", 7)
    assert valve.end_batch() == Progress(7)
    assert valve.valve.split_watermarks() == {"": {"s": 10, "t": 7}}


def test_a_split_that_appears_later_counts_from_its_first_report():
    valve = Told([ValveEdge(1, "1", (), is_source=True)])
    assert valve.end_batch() == NOTHING
    valve.report(1, "s", 10)
    assert valve.end_batch() == Progress(10)
    valve.report(1, "t", 4)
    valve.report(1, "s", 20)
    assert valve.end_batch() == NOTHING


def test_a_report_without_a_watermark_changes_nothing():
    valve = Told([SOURCE])
    valve.report(1, "s", 10)
    valve.report(1, "t", idle=True)
    assert valve.end_batch() == Progress(10)
    valve.report(1, "t")
    assert valve.end_batch() == NOTHING


def test_the_watermark_of_a_split_that_falls_idle_is_not_asked_for_and_comes_with_its_next():
    valve = Told([SOURCE])
    valve.report(1, "s", 10)
    valve.report(1, "t", 20, idle=True)
    assert valve.end_batch() == Progress(10)
    valve.restart()
    valve.report(1, "s", idle=True)
    assert valve.end_batch() == Progress(idle=True)
    valve.report(1, "t", 15)
    assert valve.end_batch() == Progress(20, idle=False)


def test_a_subtask_that_falls_idle_gives_its_watermark_first():
    valve = Told([STAGE])
    valve.report(3, "0", 10, idle=True)
    valve.report(3, "1", 20, idle=True)
    assert valve.end_batch() == Progress(20, idle=True)


def test_a_split_that_ends_gives_its_watermark_and_then_holds_nothing_back():
    valve = Told([SOURCE])
    valve.report(1, "s", 10)
    valve.report(1, "t", 5, ended=True)
    assert valve.end_batch() == Progress(10)


def test_the_end_of_the_source_is_the_largest_watermark():
    valve = Told([SOURCE])
    valve.report(1, "s", 10, ended=True)
    valve.report(1, "t", 5, ended=True)
    assert valve.end_batch() == Progress(5)
    assert valve.end(1) == Progress(MAX_MS)
    assert valve.end_batch() == NOTHING


def test_a_source_that_is_idle_when_it_ends_sends_no_final_watermark():
    valve = Told([SOURCE])
    valve.report(1, "s", 10)
    valve.report(1, "t", idle=True)
    assert valve.end_batch() == Progress(10)
    valve.report(1, "s", idle=True)
    assert valve.end_batch() == Progress(idle=True)
    valve.report(1, "s", ended=True)
    valve.report(1, "t", ended=True)
    assert valve.end_batch() == NOTHING
    assert valve.end(1) == NOTHING


def test_what_an_idle_source_brings_in_the_micro_batch_in_which_it_ends_moves_nothing():
    valve = Told([OTHER_SOURCE])
    valve.report(2, "u", 10)
    valve.report(2, "u", idle=True)
    assert valve.end_batch() == Progress(10, idle=True)
    valve.report(2, "u", 30, idle=False)
    valve.report(2, "u", ended=True)
    assert valve.end_batch(ending=[2]) == NOTHING
    assert valve.end(2) == NOTHING


def test_an_idle_source_that_gives_a_watermark_before_the_end_of_its_last_micro_batch_gives_its_final_one():
    valve = Told([OTHER_SOURCE])
    valve.report(2, "u", 10)
    valve.report(2, "u", idle=True)
    valve.end_batch()
    assert valve.valve.advance([(2, WatermarkReport("u", 0, 20, idle=False, spoke=True))]) == Progress(20, idle=False)
    valve.report(2, "u", 30)
    valve.report(2, "u", ended=True)
    assert valve.end_batch(ending=[2]) == NOTHING
    assert valve.end(2) == Progress(MAX_MS)


@pytest.mark.parametrize("input_of_the_other", [0, 1], ids=["a union", "two inputs"])
def test_when_one_source_ends_the_watermarks_of_all_sources_move_the_operator_once(input_of_the_other):
    valve = Told([SOURCE, replace(OTHER_SOURCE, input=input_of_the_other)])
    valve.report(1, "s", 7)
    valve.report(1, "t", 7)
    assert valve.end_batch() == NOTHING
    valve.report(1, "s", ended=True)
    valve.report(1, "t", ended=True)
    valve.report(2, "u", 9)
    assert valve.end_batch(ending=[1]) == NOTHING
    assert valve.end(1) == Progress(9)


def files(valve, *reports):
    """Reports of splits that were not expected, such as files: (split, watermark, ended)."""
    for split, watermark, ended in reports:
        valve.report(1, split, watermark, ended=ended)
    return valve.end_batch()


FILES = ValveEdge(1, "1", (), is_source=True)


def test_between_files_the_watermark_stays_and_it_never_goes_back():
    valve = Told([FILES])
    assert files(valve, ("a", 10, False)) == Progress(10)
    assert files(valve, ("a", 20, True)) == Progress(20)
    assert files(valve) == NOTHING
    assert (valve.valve.watermark, valve.valve.idle, valve.valve.split_watermarks()) == (20, False, {})
    assert files(valve, ("b", 5, False)) == NOTHING
    assert files(valve, ("b", 30, True)) == Progress(30)


def test_a_file_that_was_begun_holds_the_watermark_until_it_ends():
    valve = Told([FILES])
    assert files(valve, ("a", 10, False), ("b", 90, True)) == Progress(10)
    assert files(valve, ("c", 50, True)) == NOTHING
    assert files(valve, ("a", 20, False)) == Progress(20)
    assert files(valve, ("a", 25, True)) == Progress(25)


def test_files_that_end_together_end_as_if_read_in_turn():
    valve = Told([FILES])
    assert files(valve, ("a", 30, True), ("b", 10, True), ("c", None, True), ("d", 20, True)) == Progress(30)
    assert files(valve, ("e", 40, True), ("f", 35, False), ("g", 50, True)) == Progress(35)
    assert valve.valve.split_watermarks() == {"": {"f": 35}}


def test_splits_that_were_expected_end_together():
    valve = Told([SOURCE])
    valve.report(1, "s", 10, ended=True)
    valve.report(1, "t", 5, ended=True)
    assert valve.end_batch() == Progress(5)


def test_files_hold_no_other_source_longer_than_they_are_read():
    valve = Told([FILES, OTHER_SOURCE])
    valve.report(2, "u", 50)
    assert files(valve, ("a", 10, True)) == Progress(10)
    valve.report(2, "u", 60)
    assert files(valve) == NOTHING, "the next file may be anything, so the source stands where it was"
    assert valve.end(1) == Progress(60)


def test_the_state_does_not_grow_with_every_file():
    valve = Told([FILES])
    before = None
    for number in range(3):
        files(valve, (f"file {number}", 10, True))
        stored = json.dumps(valve.valve.snapshot())
        assert before in {None, stored}
        before = stored


def test_sources_combine_by_minimum_and_an_ended_one_holds_nothing_back():
    valve = Told([SOURCE, OTHER_SOURCE])
    valve.report(1, "s", 10)
    valve.report(1, "t", 12)
    assert valve.end_batch() == NOTHING
    valve.report(2, "u", 8)
    assert valve.end_batch() == Progress(8)
    valve.report(2, "u", ended=True)
    valve.end_batch()
    assert valve.end(2) == Progress(10)


def test_an_idle_source_does_not_hold_another_and_is_left_out_until_it_has_caught_up():
    valve = Told([ValveEdge(1, "1", ("s",), is_source=True), OTHER_SOURCE])
    valve.report(1, "s", 10)
    valve.report(2, "u", 3, idle=True)
    assert valve.end_batch() == Progress(10)
    valve.report(2, "u", 5)
    valve.report(1, "s", 20)
    assert valve.end_batch() == Progress(20)
    valve.report(2, "u", 25)
    valve.report(1, "s", 30)
    assert valve.end_batch() == Progress(25)


def test_subtasks_combine_by_minimum_and_say_when_they_are_idle():
    valve = Told([STAGE])
    valve.report(3, "0", 10)
    assert valve.end_batch() == NOTHING
    valve.report(3, "1", 20)
    assert valve.end_batch() == Progress(10)
    valve.report(3, "0", idle=True)
    assert valve.end_batch() == Progress(20)
    valve.report(3, "1", idle=True)
    assert valve.end_batch() == Progress(None, idle=True)
    assert valve.valve.idle
    valve.report(3, "0", idle=False)
    assert valve.end_batch() == Progress(None, idle=False)
    valve.report(3, "0", 30)
    assert valve.end_batch() == Progress(30)


def test_a_subtask_and_a_source_may_have_channels_of_one_name():
    valve = Told([ValveEdge(1, "1", ("0",), is_source=True), ValveEdge(3, "3", ("0",), is_source=False)])
    valve.report(1, "0", 10)
    assert valve.end_batch() == NOTHING
    valve.report(3, "0", 4)
    assert valve.end_batch() == Progress(4)


@pytest.mark.parametrize("restarted_after", range(5))
def test_a_restart_between_any_two_micro_batches_changes_nothing(restarted_after):
    steps = [
        ([("s", {"watermark": 5}), ("t", {"watermark": 3, "idle": True})], Progress(5)),
        ([("s", {"idle": True})], Progress(None, idle=True)),
        ([("t", {"watermark": 9})], Progress(9, idle=False)),
        ([("t", {"ended": True})], Progress(None, idle=True)),
        ([("s", {"watermark": 20})], Progress(20, idle=False)),
    ]
    valve = Told([SOURCE])
    for number, (reports, expected) in enumerate(steps):
        for split, said in reports:
            valve.report(1, split, **said)
        assert valve.end_batch() == expected
        if number == restarted_after:
            valve.restart()


def test_what_is_said_in_the_middle_of_a_micro_batch_counts_there():
    valve = WatermarkValve([ValveEdge(1, "1", ("s",), is_source=True)])
    assert valve.advance([(1, WatermarkReport("s", 3, 10, spoke=True))]) == Progress(10)
    assert valve.advance([(1, WatermarkReport("s", 4, idle=True))]) == Progress(None, idle=True)
    assert valve.advance([(1, WatermarkReport("s", 5, 20, idle=False))]) == Progress(20, idle=False)


TIMED = ValveEdge(1, "1", ("s", "t"), is_source=True, idle_after_ms=99)


def test_a_silent_split_holds_nothing_back_after_the_timeout_and_counts_again_from_its_next_watermark():
    valve = Told([TIMED])
    valve.report(1, "s", 10)
    assert valve.end_batch(clock=1_000) == NOTHING
    assert valve.valve.next_clock_ms == 1_100, "t was first heard of now"
    valve.report(1, "s", 20)
    assert valve.end_batch(clock=1_050) == NOTHING
    valve.restart()
    valve.report(1, "s", 30)
    assert valve.end_batch(clock=1_100) == Progress(30)
    assert valve.valve.next_clock_ms == 1_200
    valve.report(1, "s", 40)
    valve.report(1, "t", 5)
    assert valve.end_batch(clock=1_110) == NOTHING
    valve.report(1, "t", 35)
    assert valve.end_batch(clock=1_120) == Progress(35)


def test_when_all_splits_are_silent_the_highest_counts_and_then_the_source_is_idle():
    valve = Told([TIMED])
    valve.report(1, "s", 10)
    valve.report(1, "t", 20)
    assert valve.end_batch(clock=0) == Progress(10)
    assert valve.end_batch(clock=99) == NOTHING
    assert valve.end_batch(clock=100) == Progress(20, idle=True)
    assert valve.valve.next_clock_ms is None


def test_what_a_generator_says_by_the_clock_is_no_sign_of_life():
    valve = Told([TIMED])
    valve.report(1, "s", 10)
    valve.report(1, "t", 10)
    assert valve.end_batch(clock=0) == Progress(10)
    valve.report(1, "s", 500)
    valve.report(1, "t", 400, spoke=False)
    assert valve.end_batch(clock=100) == Progress(500)


def test_a_watermark_of_the_source_itself_is_a_sign_of_life():
    valve = Told([replace(TIMED, has_own_watermarks=True)])
    valve.report(1, "s", 10)
    valve.report(1, "t", 10)
    assert valve.end_batch(clock=0) == Progress(10)
    valve.report(1, "s", 500)
    valve.report(1, "t", 400, spoke=False)
    assert valve.end_batch(clock=100) == Progress(400)
    valve.report(1, "s", 600)
    assert valve.end_batch(clock=200) == Progress(600)


def test_a_subtask_may_fall_silent_too():
    valve = Told([ValveEdge(3, "3", ("0", "1"), is_source=False, idle_after_ms=99)])
    valve.report(3, "0", 10)
    assert valve.end_batch(clock=0) == NOTHING
    valve.report(3, "0", 20)
    assert valve.end_batch(clock=100) == Progress(20)


def test_the_largest_watermark_of_a_silent_subtask_counts():
    valve = Told([ValveEdge(3, "3", ("0", "1"), is_source=False, idle_after_ms=99)])
    valve.report(3, "0", 10)
    valve.report(3, "1", 20)
    assert valve.end_batch(clock=0) == Progress(10)
    assert valve.end_batch(clock=100) == Progress(20, idle=True)
    last = [(3, WatermarkReport(channel, END_OF_INPUT, MAX_MS)) for channel in ("0", "1")]
    assert valve.valve.end_input(last, ()) == Progress(MAX_MS, idle=False)


def test_a_split_that_ends_is_not_judged_any_more_so_the_source_gives_its_final_watermark():
    valve = Told([ValveEdge(1, "1", ("s",), is_source=True, idle_after_ms=99)])
    valve.report(1, "s", 10)
    assert valve.end_batch(clock=0) == Progress(10)
    valve.report(1, "s", ended=True, spoke=False)
    assert valve.end_batch(clock=100) == NOTHING
    assert valve.end(1) == Progress(MAX_MS)


def at_place(valve, place, *said):
    """Reports of splits at one place: (split, watermark) or (split, idle)."""
    reports = [
        (
            1,
            WatermarkReport(
                split, place, None if isinstance(what, bool) else what, what if isinstance(what, bool) else None
            ),
        )
        for split, what in said
    ]
    return valve.advance(reports)


def test_a_watermark_in_the_middle_counts_at_once_and_what_comes_at_the_end_counts_together():
    valve = WatermarkValve([SOURCE])
    assert at_place(valve, 0, ("s", 10)) == NOTHING
    assert at_place(valve, 1, ("t", 5)) == Progress(5)
    assert at_place(valve, 2, ("t", 12)) == Progress(10)
    ends = [
        (1, WatermarkReport("s", watermark=30)),
        (1, WatermarkReport("t", idle=True)),
        (1, WatermarkReport("s", watermark=20)),
    ]
    assert valve.end_batch(ends, 0) == Progress(30)


def test_the_watermark_stands_when_a_split_comes_back_below_it_and_goes_on_from_there():
    valve = WatermarkValve([SOURCE])
    assert at_place(valve, 0, ("s", 10), ("t", True)) == Progress(10)
    assert at_place(valve, 1, ("t", 4)) == NOTHING
    assert at_place(valve, 2, ("s", 20)) == NOTHING
    assert at_place(valve, 3, ("t", 15)) == Progress(15)


def test_a_split_that_says_that_it_is_active_holds_the_others_where_it_stood():
    valve = WatermarkValve([SOURCE])
    assert at_place(valve, 0, ("s", 10), ("t", 5)) == Progress(5)
    assert at_place(valve, 1, ("t", True)) == Progress(10)
    assert at_place(valve, 2, ("t", False)) == NOTHING
    assert at_place(valve, 3, ("s", 20)) == NOTHING
    assert at_place(valve, 4, ("t", True)) == Progress(20)


def test_when_all_splits_are_idle_the_highest_counts_and_a_higher_watermark_wakes_the_source():
    valve = WatermarkValve([SOURCE])
    assert at_place(valve, 0, ("s", 10), ("t", 7)) == Progress(7)
    assert at_place(valve, 1, ("s", True), ("t", True)) == Progress(10, idle=True)
    assert at_place(valve, 2, ("t", 9)) == NOTHING
    assert valve.idle
    assert at_place(valve, 3, ("t", 11)) == Progress(11, idle=False)


def in_run(valve, run, clock):
    valve.restart()
    valve.valve.begin_run(run)
    return valve.end_batch(clock)


def test_the_time_between_two_runs_is_no_silence():
    valve = Told([TIMED])
    valve.report(1, "s", 10)
    valve.report(1, "t", 20)
    assert in_run(valve, "first", 0) == Progress(10)
    valve.report(1, "s", 1_000)
    assert in_run(valve, "second", 1_000) == Progress(20), "t counts, although it was not heard of for a second"
    assert in_run(valve, "second", 1_099) == NOTHING
    valve.report(1, "s", 1_001)
    assert in_run(valve, "second", 1_100) == Progress(1_001)
    valve.report(1, "s", 2_000)
    assert in_run(valve, "third", 2_000) == NOTHING, "t counts again"
    valve.report(1, "t", 1_500)
    assert in_run(valve, "third", 2_001) == Progress(1_500)


def test_without_a_name_for_its_run_a_valve_goes_on_counting():
    valve = Told([TIMED])
    valve.report(1, "s", 10)
    valve.report(1, "t", 20)
    assert in_run(valve, None, 0) == Progress(10)
    valve.report(1, "s", 1_000)
    assert in_run(valve, None, 1_000) == Progress(1_000)


def watched(*heard, clock=0):
    """Two channels, of which one or the other is heard in a micro-batch."""
    idleness = Idleness(timeout_ms=99)
    for channel in heard:
        idleness.hear(channel)
    idleness.end_batch(["a", "b"], clock)
    return idleness


@pytest.mark.parametrize(("clock", "silent"), [(99, set()), (100, {"a", "b"}), (101, {"a", "b"})])
def test_the_timeout_runs_from_the_batch_in_which_a_channel_was_heard_of(clock, silent):
    idleness = watched("a")
    idleness.end_batch(["a", "b"], clock)
    assert idleness.silent == silent


def test_elements_start_the_timeout_anew_and_end_the_silence_at_once():
    idleness = watched()
    idleness.end_batch(["a", "b"], 100)
    assert (idleness.silent, idleness.next_deadline_ms) == ({"a", "b"}, None)
    idleness.hear("b")
    assert idleness.silent == {"a"}
    idleness.end_batch(["a", "b"], 110)
    assert (idleness.silent, idleness.next_deadline_ms) == ({"a"}, 210)


def test_the_next_deadline_is_that_of_the_channel_that_was_silent_longest_but_not_too_long():
    idleness = watched()
    idleness.hear("a")
    idleness.end_batch(["a", "b"], 30)
    assert idleness.next_deadline_ms == 100
    idleness.end_batch(["a", "b"], 100)
    assert idleness.next_deadline_ms == 130


def test_a_channel_that_is_gone_is_forgotten_and_starts_anew_when_it_comes_back():
    idleness = watched()
    idleness.end_batch(["a"], 50)
    idleness.end_batch(["a", "b"], 100)
    assert idleness.silent == {"a"}
    idleness.end_batch([], 100)
    assert (idleness.silent, idleness.next_deadline_ms) == (set(), None)


def test_a_restart_changes_nothing():
    before = watched()
    before.hear("a")
    before.end_batch(["a", "b"], 60)
    after = Idleness(timeout_ms=99)
    after.restore(json.loads(json.dumps(before.snapshot())))
    for idleness in (before, after):
        assert (idleness.silent, idleness.next_deadline_ms) == (set(), 100)
        idleness.end_batch(["a", "b"], 100)
        assert (idleness.silent, idleness.next_deadline_ms) == ({"b"}, 160)


def test_the_clock_stands_still_for_a_channel_that_is_held_from_then_until_it_is_let_go():
    idleness = Idleness(timeout_ms=100)
    idleness.hear("b")
    idleness.end_batch(["a", "b"], 0)
    idleness.hold("a", True)
    idleness.end_batch(["a", "b"], 60)  # what went by before it was held counts
    assert (idleness.silent, idleness.next_deadline_ms) == (set(), 101)
    again = Idleness(timeout_ms=100)
    again.restore(json.loads(json.dumps(idleness.snapshot())))
    for held in (idleness, again):
        held.hold("a", False)
        held.end_batch(["a", "b"], 1_060)
        assert (held.silent, held.next_deadline_ms) == ({"b"}, 1_101)
        held.end_batch(["a", "b"], 1_100)
        assert held.silent == {"b"}
        held.end_batch(["a", "b"], 1_101)
        assert held.silent == {"a", "b"}


def test_what_an_older_version_stored_holds_nothing_back():
    idleness = Idleness(timeout_ms=100)
    idleness.restore([{"a": 50}, []])
    idleness.end_batch(["a"], 150)
    assert (idleness.silent, idleness.next_deadline_ms) == (set(), 151)


def test_a_clock_that_is_set_back_adds_nothing_and_takes_nothing_away():
    idleness = watched(clock=1_000)
    idleness.hear("a")
    idleness.end_batch(["a", "b"], 1_060)
    idleness.end_batch(["a", "b"], 0)
    assert (idleness.silent, idleness.next_deadline_ms) == (set(), 40)
    idleness.end_batch(["a", "b"], 40)
    assert (idleness.silent, idleness.next_deadline_ms) == ({"b"}, 100)


def test_a_channel_that_is_held_stays_so_when_timeouts_begin_anew():
    idleness = Idleness(timeout_ms=100)
    idleness.hold("a", True)
    idleness.end_batch(["a", "b"], 0)
    idleness.end_batch(["a", "b"], 101)
    assert idleness.begin_anew() == {"b"}
    idleness.end_batch(["a", "b"], 10_000)
    assert (idleness.silent, idleness.next_deadline_ms) == (set(), 10_101)
    idleness.end_batch(["a", "b"], 10_101)
    assert idleness.silent == {"b"}
