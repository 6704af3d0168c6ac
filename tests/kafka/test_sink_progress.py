"""Which micro-batch is written first in a run, from what stands in Kafka and in the checkpoint."""

from __future__ import annotations

import uuid
from dataclasses import replace
from functools import partial

import pytest

from eventide.connectors.kafka.sink_writer import JobRun, Mark, first_batch_to_write, temporary
from eventide.errors import StateError
from support.disks import damages, outcome

MINE, OTHER = "mine", "other"
AT_MS = 1_700_000_000_000


def first(found: list[Mark], run: JobRun, batch: int) -> int:
    return first_batch_to_write("group", found, run, batch)


@pytest.mark.parametrize("run", [JobRun(MINE), JobRun(MINE, repeated=0), JobRun(MINE, repeated=0, has_begun=False)])
def test_without_a_mark_a_new_sink_writes_the_first_micro_batch(run: JobRun) -> None:
    assert first([], run, 0) == 0


def test_a_sink_that_is_new_in_an_old_job_begins_where_the_job_is() -> None:
    assert first([], JobRun(MINE, repeated=7), 7) == 7


@pytest.mark.parametrize(("marked", "following"), [(7, 7), (8, 8), (3, 3)])
def test_a_repeated_micro_batch_is_there_if_its_mark_is(marked: int, following: int) -> None:
    assert first([Mark(marked, MINE)], JobRun(MINE, repeated=7, has_begun=True), 7) == following


def test_of_several_topics_the_highest_mark_counts_and_that_of_others_does_not() -> None:
    found = [Mark(4, MINE), Mark(6, MINE), Mark(99, OTHER)]
    assert first(found, JobRun(MINE, has_begun=True), 6) == 6


def test_a_mark_that_was_lost_stops_a_job_where_its_micro_batch_was_begun() -> None:
    with pytest.raises(StateError, match="micro-batch 7 is repeated, and Kafka no longer knows"):
        first([], JobRun(MINE, repeated=7, has_begun=True), 7)


def test_a_mark_that_was_lost_does_not_matter_to_a_new_micro_batch() -> None:
    assert first([], JobRun(MINE, repeated=None, has_begun=True), 7) == 7
    assert first([], JobRun(MINE, repeated=6, has_begun=True), 7) == 7


@pytest.mark.parametrize("run", [JobRun(MINE), JobRun(MINE, repeated=0), JobRun(MINE, has_begun=True)])
def test_the_mark_of_another_checkpoint_stops_a_job(run: JobRun) -> None:
    with pytest.raises(StateError, match=r"'group' belongs to a job with another checkpoint \(other\)"):
        first([Mark(3, OTHER)], run, 0)


@pytest.mark.parametrize("marked", [3, 8])
def test_a_job_that_begins_with_a_savepoint_takes_the_place_of_the_one_before(marked: int) -> None:
    run = JobRun(MINE, savepoint=Mark(8, OTHER))
    assert first([Mark(marked, OTHER)], run, 0) == 0
    assert first([Mark(marked, OTHER), Mark(2, MINE)], replace(run, has_begun=True), 2) == 2
    with pytest.raises(StateError, match=r"belongs to a job with another checkpoint \(third\)"):
        first([Mark(marked, OTHER), Mark(1, "third")], run, 0)


def test_a_job_that_has_gone_on_after_its_savepoint_stops_the_one_that_begins_with_it() -> None:
    with pytest.raises(
        StateError, match="before 9, but the savepoint covers the micro-batches before 8: that job has continued"
    ):
        first([Mark(9, OTHER)], JobRun(MINE, savepoint=Mark(8, OTHER)), 0)


def test_a_temporary_checkpoint_is_in_no_ones_way() -> None:
    assert first([Mark(3, temporary("a"))], JobRun(MINE), 0) == 0
    assert first([Mark(3, OTHER)], JobRun(temporary("b")), 0) == 0
    assert first([Mark(3, temporary("a"))], JobRun(temporary("b")), 0) == 0


@pytest.mark.parametrize(("run", "marked"), [(JobRun(MINE, repeated=None), 8), (JobRun(MINE, repeated=7), 9)])
def test_a_checkpoint_that_was_put_back_stops_a_job(run: JobRun, marked: int) -> None:
    with pytest.raises(StateError, match="micro-batch 7 is next in the checkpoint"):
        first([Mark(marked, MINE)], run, 7)


@pytest.mark.parametrize("repeated", [None, 6])
def test_a_micro_batch_is_there_if_its_mark_is_of_the_same_plan(repeated: int | None) -> None:
    """An older run may plan and write it after this one has looked: so it counts when it was planned."""
    mark = Mark.of("group", 7, Mark(7, MINE, 1_000).metadata)
    run = JobRun(MINE, repeated, has_begun=True)
    assert first([mark], replace(run, planned_ms=1_000), 6) == 7
    with pytest.raises(
        StateError, match=r"micro-batch 6 is next in the checkpoint.* is older than that of the last run"
    ):
        first([mark], replace(run, planned_ms=2_000), 6)
    assert first([mark], replace(run, planned_ms=2_000), 7) == 7


@pytest.mark.parametrize(("metadata", "planned_ms"), [(MINE, None), (f"{MINE} planned at {AT_MS}", AT_MS)])
def test_a_mark_of_an_earlier_version_has_no_checksum(metadata: str, planned_ms: int | None) -> None:
    mark = Mark.of("group", 7, metadata)
    assert mark == Mark(7, MINE, planned_ms)
    assert first([mark], JobRun(MINE, repeated=6, has_begun=True, planned_ms=AT_MS), 6) == 7


@pytest.mark.parametrize("planned_ms", [AT_MS, None])
def test_what_has_changed_in_a_mark_is_an_error_that_names_the_group(
    planned_ms: int | None, pytestconfig: pytest.Config
) -> None:
    """Kafka keeps an offset in eight bytes and its metadata after it; it reads them as text, whatever they are."""
    mark = Mark(7, uuid.uuid4().hex, planned_ms)
    run = JobRun(mark.checkpoint, repeated=6, has_begun=True, planned_ms=planned_ms)

    def following(stored: bytes) -> int:
        offset, metadata = int.from_bytes(stored[:8].ljust(8, b"\0"), signed=True), stored[8:].decode(errors="replace")
        return first([Mark.of("group", offset, metadata)], run, 6)

    written = mark.next_batch.to_bytes(8, signed=True) + mark.metadata.encode()
    assert following(written) == 7
    refused = 0
    for damaged in damages(written, pytestconfig):
        found, said = outcome(partial(following, damaged), StateError)
        assert "group" in said or found == 7, damaged  # what is cut before the checksum is as of an earlier version
        refused += bool(said)
    assert refused > 100
