"""The runbook is tried: its commands are those of the command line, and each of its sections has tests that do it."""

import re
from pathlib import Path

import pytest
import typer

from eventide.cli.app import app

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs" / "guide" / "runbook.md").read_text()
TABLES = "Messages without instructions"

TRIED = {
    "It does not start": [
        "unit/local/test_changed_programs.py: test_on_its_checkpoint",
        "spark/jobs/test_jobs.py: test_a_job_goes_on_from_its_checkpoint_and_refuses_another_program",
        "spark/checkpoint/test_checkpoints.py: test_two_runs_on_one_checkpoint_never_both_go_on",
        "spark/sinks/test_file_sink.py: test_two_file_sinks_write_all_lines_and_not_over_those_of_another_job",
        "kafka/test_sink.py: test_two_sinks_with_one_prefix_are_refused",
        "spark/test_command_line.py: test_a_checkpoint_is_read_and_not_touched",  # moved
        "spark/faults/test_restarts.py: "
        "test_a_process_that_starts_too_slowly_for_spark_is_tried_again_whatever_the_strategy",
        "spark/test_command_line.py: test_the_doctor_runs_a_job",
    ],
    "It has ended, or starts again and again": [
        "spark/faults/test_restarts.py: test_a_job_starts_again_and_gives_each_element_once",
        "spark/faults/test_restarts.py: test_a_job_gives_up_when_its_strategy_says_so",
        "unit/cli/test_dashboard.py: test_it_says_how_each_job_stands",
    ],
    "A micro-batch fails again and again": [
        "spark/faults/test_lethal_elements.py: test_it_is_found_by_the_next_attempt_named_and_set_aside_by_the_command",
        "spark/faults/test_memory.py: "
        "test_a_key_with_all_rows_of_a_micro_batch_for_which_memory_is_short_comes_in_smaller_ones",
        "spark/checkpoint/test_deferring.py: test_what_a_micro_batch_was_too_large_for_comes_once_in_smaller_ones",
        "spark/faults/test_full_disk.py: test_a_job_whose_disk_is_full_says_so_and_goes_on_when_there_is_room",
        "spark/checkpoint/test_checkpoints.py: test_a_damaged_file_of_a_checkpoint_is_an_error_that_names_it",
    ],
    "It does not go on": ["spark/test_runbook.py: test_of_a_job_that_hangs_all_is_said_that_the_runbook_says"],
    "It is late": [
        "spark/test_dashboard.py: test_elements_that_wait_for_later_micro_batches_are_counted",
        "spark/checkpoint/test_rescaling.py: test_a_job_goes_on_with_more_subtasks_and_then_with_fewer",
    ],
    "Windows do not fire": [
        "unit/why/test_stories.py: test_a_silent_partition",
        "spark/test_why.py: test_a_running_job_and_its_checkpoint_say_the_same",
        "spark/checkpoint/test_changed_watermarks.py: "
        "test_a_bound_changes_between_two_micro_batches_of_a_job_that_goes_on",
    ],
    "Too many are late": [
        "spark/test_why.py: test_late_elements_are_in_the_checkpoint",
        "unit/cli/test_advise.py: test_it_says_what_the_function_returns",
        "spark/checkpoint/test_changed_watermarks.py: "
        "test_a_bound_changes_between_two_micro_batches_of_a_job_that_goes_on",
        "unit/local/test_changed_programs.py: test_on_its_checkpoint",  # a side output of late elements
    ],
    "A bad element": [
        "unit/local/test_dead_letter_advice.py: test_the_job_stops_with_the_advice_and_goes_on_where_that_is_followed",
        "spark/jobs/test_dead_letters.py: test_what_is_bad_comes_out_once_over_a_failure_and_the_rest_is_as_without_it",
        "spark/faults/test_lethal_elements.py: test_it_is_found_by_the_next_attempt_named_and_set_aside_by_the_command",
    ],
    "State grows": [
        "spark/test_command_line.py: test_a_checkpoint_is_read_and_not_touched",
        "scenarios/test_time_to_live.py: ",
    ],
    "A sink is slow": [
        "spark/test_dashboard.py: test_the_time_of_each_sink_is_told_apart_from_that_of_operators",
        "unit/connectors/file_system/test_compaction.py: test_what_a_killed_compaction_has_begun_is_finished",
    ],
    "A broker, a disk, a store is gone": [
        "kafka/test_unreachable_broker.py: "
        "test_a_job_waits_for_a_broker_that_nothing_reaches_and_each_record_is_there_once",
        "kafka/test_source_reading.py: test_records_that_kafka_has_deleted_are_counted_if_that_is_no_error",
        "spark/faults/test_full_disk.py: test_a_job_whose_disk_is_full_says_so_and_goes_on_when_there_is_room",
        "stores/test_jobs_in_unreliable_store.py: "
        "test_a_job_that_is_started_until_s3_lets_it_end_gives_its_output_once",
    ],
    "Restore a backup": [
        "spark/checkpoint/test_running_savepoints.py: test_a_savepoint_of_a_job_that_goes_on_is_of_one_micro_batch",
        "spark/checkpoint/test_backups.py: test_a_copy_of_a_stopped_job_is_put_back_and_goes_on",
        "spark/checkpoint/test_backups.py: test_of_a_copy_that_was_made_while_the_job_ran_nothing_comes_twice",
        "kafka/test_sink_progress.py: test_a_checkpoint_that_was_put_back_stops_a_job",
    ],
    "Two runs by mistake": [
        "spark/checkpoint/test_checkpoints.py: test_two_runs_on_one_checkpoint_never_both_go_on",
        "spark/faults/test_stalls.py: "
        "test_a_job_that_stands_still_while_another_run_takes_over_gives_the_undisturbed_output",
        "stores/test_jobs_in_stores.py: test_of_two_drivers_of_one_job_one_goes_on",
        "kafka/test_sink_transactions.py: test_who_comes_later_ends_what_was_begun_and_keeps_the_other_from_writing",
    ],
    "Upgrade, and the way back": [
        "versions/test_versions.py: test_a_job_goes_on_with_the_checkpoint",
        "versions/test_versions.py: test_a_checkpoint_of_a_later_format_is_refused_and_stays_as_it_is",
        "spark/checkpoint/test_running_savepoints.py: test_a_new_version_is_tried_beside_the_old_one",
    ],
}
"""The tests of each section: what is to be done is done there, or what is said is seen."""


def commands() -> list[list[str]]:
    """The words of each command of the page."""
    shown = re.findall(r"`(eventide [^`]+)`", PAGE) + re.findall(r"^\$ (eventide [^#\n]+)", PAGE, re.M)
    return [line.split()[1:] for line in shown]


def test_each_section_has_tests():
    sections = [title for title in re.findall(r"^## (.*)", PAGE, re.M) if title != TABLES]
    assert sections == [*TRIED]


@pytest.mark.parametrize("section", TRIED)
def test_tests_of_a_section_are_there(section):
    for named in TRIED[section]:
        file, _, name = named.partition(": ")
        assert f"def {name or 'test_'}" in (TESTS / file).read_text(), named


def test_each_command_of_the_page_is_one_of_the_command_line():
    known = typer.main.get_command(app).commands
    found = commands()
    assert len(found) > 15
    for name, *words in found:
        options = {option for one in known[name].params for option in one.opts}
        assert {word.partition("=")[0] for word in words if word.startswith("--")} <= options, (name, words)
