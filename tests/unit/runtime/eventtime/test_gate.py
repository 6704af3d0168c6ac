"""The inputs of a subtask: splits through a multiplexer, sources and subtasks through the valve."""

import json

import pytest

from eventide.common._ms import MAX_MS, MIN_MS
from eventide.runtime.events import Signal, SplitReport
from eventide.runtime.eventtime.combiner import Progress
from eventide.runtime.eventtime.gate import Gate, GateInput

NOTHING = Progress()
SOURCE = GateInput(1, ("s", "t"), is_source=True)
OTHER_SOURCE = GateInput(2, ("u",), is_source=True)
STAGE = GateInput(3, ("0", "1"), is_source=False)


def report(gate, edge, split, watermark=None, *, idle=False, ended=False):
    gate.receive(Signal.SPLIT_REPORT, edge, split, SplitReport(watermark, idle, ended))


def test_the_splits_of_a_source_combine_by_minimum():
    gate = Gate([SOURCE])
    report(gate, 1, "s", 10)
    assert gate.advance() == NOTHING
    assert gate.watermark == MIN_MS
    report(gate, 1, "t", 7)
    assert gate.advance() == Progress(7)
    assert gate.split_watermarks() == {"s": 10, "t": 7}


def test_a_split_that_appears_later_counts_from_its_first_report():
    gate = Gate([GateInput(1, (), is_source=True)])
    assert gate.advance() == NOTHING
    report(gate, 1, "s", 10)
    assert gate.advance() == Progress(10)
    report(gate, 1, "t", 4)
    report(gate, 1, "s", 20)
    assert gate.advance() == NOTHING


def test_a_report_without_a_watermark_changes_nothing():
    gate = Gate([SOURCE])
    report(gate, 1, "s", 10)
    report(gate, 1, "t", idle=True)
    assert gate.advance() == Progress(10)
    report(gate, 1, "t")
    assert gate.advance() == NOTHING


def test_an_idle_split_gives_its_watermark_first():
    gate = Gate([SOURCE])
    report(gate, 1, "s", 10)
    report(gate, 1, "t", 20, idle=True)
    assert gate.advance() == Progress(10)
    report(gate, 1, "s", idle=True)
    assert gate.advance() == Progress(20, idle=True)


def test_a_split_that_ends_gives_its_watermark_and_then_holds_nobody():
    gate = Gate([SOURCE])
    report(gate, 1, "s", 10)
    report(gate, 1, "t", 5, ended=True)
    assert gate.advance() == Progress(10)


def test_the_end_of_the_source_is_the_largest_watermark():
    gate = Gate([SOURCE])
    report(gate, 1, "s", 10, ended=True)
    report(gate, 1, "t", 5, ended=True)
    gate.receive(Signal.END_OF_SOURCE, 1, "", None)
    assert gate.advance() == Progress(MAX_MS)
    assert gate.advance() == NOTHING


def test_a_source_that_is_idle_when_it_ends_sends_no_final_watermark():
    gate = Gate([SOURCE])
    report(gate, 1, "s", 10, idle=True)
    report(gate, 1, "t", idle=True)
    assert gate.advance() == Progress(10, idle=True)
    report(gate, 1, "s", ended=True)
    report(gate, 1, "t", ended=True)
    gate.receive(Signal.END_OF_SOURCE, 1, "", None)
    assert gate.advance() == NOTHING


def files(gate, *reports):
    """Reports of splits that nobody expected, such as files: (split, watermark, ended)."""
    for split, watermark, ended in reports:
        report(gate, 1, split, watermark, ended=ended)
    return gate.advance()


FILES = GateInput(1, (), is_source=True)


def test_between_files_the_watermark_stays_and_it_never_goes_back():
    gate = Gate([FILES])
    assert files(gate, ("a", 10, False)) == Progress(10)
    assert files(gate, ("a", 20, True)) == Progress(20)
    assert files(gate) == NOTHING
    assert (gate.watermark, gate.idle, gate.split_watermarks()) == (20, False, {})
    assert files(gate, ("b", 5, False)) == NOTHING
    assert files(gate, ("b", 30, True)) == Progress(30)


def test_a_file_that_was_begun_holds_the_watermark_until_it_ends():
    gate = Gate([FILES])
    assert files(gate, ("a", 10, False), ("b", 90, True)) == Progress(10)
    assert files(gate, ("c", 50, True)) == NOTHING
    assert files(gate, ("a", 20, False)) == Progress(20)
    assert files(gate, ("a", 25, True)) == Progress(25)


def test_files_that_end_together_end_as_if_read_in_turn():
    gate = Gate([FILES])
    assert files(gate, ("a", 30, True), ("b", 10, True), ("c", None, True), ("d", 20, True)) == Progress(30)
    assert files(gate, ("e", 40, True), ("f", 35, False), ("g", 50, True)) == Progress(35)
    assert gate.split_watermarks() == {"f": 35}


def test_splits_that_were_expected_end_together():
    gate = Gate([SOURCE])
    report(gate, 1, "s", 10, ended=True)
    report(gate, 1, "t", 5, ended=True)
    assert gate.advance() == Progress(5)


def test_files_hold_no_other_source_longer_than_they_are_read():
    gate = Gate([FILES, OTHER_SOURCE])
    report(gate, 2, "u", 50)
    assert files(gate, ("a", 10, True)) == Progress(10)
    report(gate, 2, "u", 60)
    assert files(gate) == NOTHING, "the next file may be anything, so the source stands where it was"
    gate.receive(Signal.END_OF_SOURCE, 1, "", None)
    assert gate.advance() == Progress(60)


def test_the_state_does_not_grow_with_every_file():
    gate = Gate([FILES])
    before = None
    for number in range(3):
        files(gate, (f"file {number}", 10, True))
        stored = json.dumps(gate.snapshot())
        assert before in {None, stored}
        before = stored


def test_sources_combine_by_minimum_and_an_ended_one_holds_nobody():
    gate = Gate([SOURCE, OTHER_SOURCE])
    report(gate, 1, "s", 10)
    report(gate, 1, "t", 12)
    assert gate.advance() == NOTHING
    report(gate, 2, "u", 8)
    assert gate.advance() == Progress(8)
    report(gate, 2, "u", ended=True)
    gate.receive(Signal.END_OF_SOURCE, 2, "", None)
    assert gate.advance() == Progress(10)


def test_an_idle_source_does_not_hold_another_and_is_left_out_until_it_has_caught_up():
    gate = Gate([GateInput(1, ("s",), is_source=True), OTHER_SOURCE])
    report(gate, 1, "s", 10)
    report(gate, 2, "u", 3, idle=True)
    assert gate.advance() == Progress(10)
    report(gate, 2, "u", 5)
    report(gate, 1, "s", 20)
    assert gate.advance() == Progress(20)
    report(gate, 2, "u", 25)
    report(gate, 1, "s", 30)
    assert gate.advance() == Progress(25)


def test_subtasks_combine_by_minimum_and_say_when_they_are_idle():
    gate = Gate([STAGE])
    gate.receive(Signal.WATERMARK, 3, "0", 10)
    assert gate.advance() == NOTHING
    gate.receive(Signal.WATERMARK, 3, "1", 20)
    assert gate.advance() == Progress(10)
    gate.receive(Signal.IDLE, 3, "0", None)
    assert gate.advance() == Progress(20)
    gate.receive(Signal.IDLE, 3, "1", None)
    assert gate.advance() == Progress(None, idle=True)
    assert gate.idle
    gate.receive(Signal.ACTIVE, 3, "0", None)
    assert gate.advance() == Progress(None, idle=False)
    gate.receive(Signal.WATERMARK, 3, "0", 30)
    assert gate.advance() == Progress(30)


def test_a_subtask_and_a_source_may_have_channels_of_one_name():
    gate = Gate([GateInput(1, ("0",), is_source=True), GateInput(3, ("0",), is_source=False)])
    report(gate, 1, "0", 10)
    assert gate.advance() == NOTHING
    gate.receive(Signal.WATERMARK, 3, "0", 4)
    assert gate.advance() == Progress(4)


@pytest.mark.parametrize("restarted_after", range(5))
def test_a_restart_between_any_two_micro_batches_changes_nothing(restarted_after):
    steps = [
        ([("s", SplitReport(5)), ("t", SplitReport(3, idle=True))], Progress(5)),
        ([("s", SplitReport(idle=True))], Progress(None, idle=True)),
        ([("t", SplitReport(9))], Progress(9, idle=False)),
        ([("t", SplitReport(ended=True))], Progress(None, idle=True)),
        ([("s", SplitReport(20))], Progress(20, idle=False)),
    ]
    gate = Gate([SOURCE])
    for number, (reports, expected) in enumerate(steps):
        for split, content in reports:
            gate.receive(Signal.SPLIT_REPORT, 1, split, content)
        assert gate.advance() == expected
        if number == restarted_after:
            again = Gate([SOURCE])
            again.restore(json.loads(json.dumps(gate.snapshot())))
            gate = again
