"""The unfinished micro-batch of a checkpoint reads nothing, where nothing of it is in a sink."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from eventide.cli.app import app
from eventide.errors import StateError
from eventide.runtime.sources.offsets import clock_of, deferred, packed, unpacked
from eventide.runtime.state.operators import FORMAT
from eventide.spark.checkpoint.owner import Ownership
from eventide.spark.checkpoint.unfinished import Deferred, defer

OPERATOR = {"name": "sums", "level": "1", "parallelism": "2"}
PRINT, FILES, KAFKA = ({"name": name, "kind": name} for name in ("PrintSink", "FormatSink", "KafkaSink"))


def at(position: int, *, ended: bool = False, **more: Any) -> dict[str, Any]:
    return {"start": 0, "position": position, "ended": ended, "audience": "x", **more}


class Checkpoint:
    """The files of a job's checkpoint, as Spark and eventide write them."""

    def __init__(self, place: Path, sink: dict[str, Any] = PRINT, **more: Any) -> None:
        self.place = place
        for folder in ("eventide", "offsets", "commits"):
            (place / folder).mkdir(parents=True)
        self.record(1, sink, **more)

    def record(self, start: int, sink: dict[str, Any] = PRINT, after: int = -1, **more: Any) -> None:
        program = {"format": FORMAT, "parallelism": 2, "max parallelism": 128, "sources": []}
        program |= {"sinks": [sink], "operators": {"0123": OPERATOR}}
        description = {"sources": [{"name": "numbers", "kind": "Own"}], "sinks": [sink]}
        record = {"start": start, "after": after, "directories": [], "id": "c", "job": "daily", **more}
        record |= {"description": description, "program": program}
        (self.place / "eventide" / f"part-{start}.txt").write_text(json.dumps(record) + "\n")

    def planned(self, number: int, *lines: str) -> None:
        conf = {"batchTimestampMs": 5, "conf": {"spark.sql.shuffle.partitions": "2"}}
        (self.place / "offsets" / str(number)).write_text("\n".join(["v1", json.dumps(conf), *lines]))
        (self.place / "offsets" / f".{number}.crc").touch()

    def committed(self, number: int) -> None:
        (self.place / "commits" / str(number)).write_text("v1\n{}")

    def stored(self, *names: str) -> None:
        for name in names:
            path = self.place / "state" / "0" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()

    def state(self) -> list[str]:
        return sorted(
            str(path.relative_to(self.place / "state" / "0"))
            for path in self.place.rglob("state/**/*")
            if path.is_file()
        )

    def line(self, number: int, source: int = 0) -> dict[str, Any]:
        version, _, *lines = (self.place / "offsets" / str(number)).read_text().split("\n")
        assert version == "v1"
        return json.loads(lines[source])


@pytest.fixture
def job(tmp_path: Path) -> Checkpoint:
    """A job that was to read 5 elements of `a` and all of the new `b`, and whose first task has stored its state."""
    job = Checkpoint(tmp_path / "c")
    job.planned(7, json.dumps(packed({"a": at(10)}, 1_000)))
    job.committed(7)
    job.planned(8, json.dumps(packed({"a": at(15), "b": at(9, ended=True, stop=9)}, 2_000)))
    job.stored(
        "0/8.changelog", "1/8.changelog", "0/9.changelog", "0/.9.changelog.crc", "0/9.zip", "0/SSTs/000009-x.sst"
    )
    return job


def test_it_reads_nothing_and_all_that_was_found_out_stays(job: Checkpoint) -> None:
    assert defer(str(job.place)) == Deferred(8, 2)
    line = job.line(8)
    assert unpacked(line) == {"a": at(10), "b": at(0, stop=9)}
    assert clock_of(line) == 2_000, "it is the same micro-batch, at the same time"
    assert not (job.place / "offsets" / ".8.crc").exists(), "Spark would take the sum of the former bytes"


def test_what_tasks_have_stored_of_it_is_deleted_and_nothing_else(job: Checkpoint) -> None:
    defer(str(job.place))
    assert job.state() == ["0/8.changelog", "0/SSTs/000009-x.sst", "1/8.changelog"]


def test_a_second_time_there_is_nothing_to_defer(job: Checkpoint) -> None:
    defer(str(job.place))
    with pytest.raises(StateError, match=r"micro-batch 8 .* reads nothing, so that it is not too large"):
        defer(str(job.place))


def test_the_first_micro_batch_keeps_where_sources_begin(tmp_path: Path) -> None:
    job = Checkpoint(tmp_path / "c")
    job.planned(0, json.dumps(packed({"a": {**at(9), "start": 4}}, 2_000)))
    defer(str(job.place))
    assert unpacked(job.line(0)) == {"a": {**at(4), "start": 4}}


def test_without_an_unfinished_one_it_is_refused(job: Checkpoint) -> None:
    job.committed(8)
    with pytest.raises(StateError, match="has no unfinished micro-batch"):
        defer(str(job.place))


def refused(job: Checkpoint, reason: str) -> None:
    """The micro-batch is not deferred, and nothing has changed."""
    before = {path: path.read_bytes() for path in job.place.rglob("*") if path.is_file()}
    with pytest.raises(StateError, match=reason):
        defer(str(job.place))
    assert {path: path.read_bytes() for path in job.place.rglob("*") if path.is_file()} == before


def test_where_all_tasks_have_stored_their_state_sinks_may_have_it(job: Checkpoint) -> None:
    job.stored("1/9.changelog")
    refused(job, "all of its tasks may have ended, so that sinks may have it, and its results would come twice")


def test_where_a_sink_has_files_of_it_it_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    job = Checkpoint(tmp_path / "c", FILES, directories=[str(out)])
    job.planned(8, json.dumps(packed({"a": at(15)})))
    (out / "part-00000008-00000.json").touch()
    refused(job, "there are files of it in ")
    (out / "part-00000008-00000.json").unlink()
    assert defer(str(job.place)) == Deferred(8, 1)


def test_a_sink_that_tasks_write_to_may_have_some_of_it_unless_that_is_a_transaction(tmp_path: Path) -> None:
    job = Checkpoint(tmp_path / "c", KAFKA)
    job.planned(8, json.dumps(packed({"a": at(15)})))
    job.stored("0/9.changelog")
    refused(job, "its tasks write to the sink 'KafkaSink' before others have ended")
    job.record(1, {**KAFKA, "is_exactly_once": True})
    assert defer(str(job.place)) == Deferred(8, 1)


def test_the_sinks_of_a_later_program_may_be_others(job: Checkpoint) -> None:
    job.record(2, after=7)
    refused(job, "another program was started on it since the last one that is committed")


def test_one_that_begins_with_a_savepoint_begins_anew(tmp_path: Path) -> None:
    job = Checkpoint(tmp_path / "c", savepoint="/saved")
    job.planned(0, json.dumps(packed({"a": at(15)})))
    refused(job, "begins with the savepoint /saved, and has committed nothing: start it with a new checkpoint location")


def test_kafka_as_a_data_frame_goes_back_and_sources_that_keep_lists_are_refused(job: Checkpoint) -> None:
    own, topic = json.dumps(packed({"a": at(10)})), '{"topic":{"0":3}}'
    job.planned(7, own, topic)
    job.planned(8, own, '{"topic":{"0":300}}')
    assert defer(str(job.place)) == Deferred(8, 1)
    assert job.line(8, source=1) == {"topic": {"0": 3}}
    job.planned(7, own, '{"logOffset":3}')
    job.planned(8, own, '{"logOffset":4}')
    refused(
        job,
        r"reads a DataFrame whose positions are Spark's own \(\{\"logOffset\":4\}\), and the micro-batch cannot be",
    )


def test_parts_that_have_rest_have_it_as_before() -> None:
    start, end = {"a": at(1, rest="held"), "b": at(1)}, {"a": at(9), "b": at(9, rest="done"), "c": at(0, rest="held")}
    assert deferred(start, end) == {"a": at(1, rest="held"), "b": at(1), "c": at(0, rest="held")}


def test_the_command_says_what_comes_next(job: Checkpoint) -> None:
    said = CliRunner().invoke(app, ["checkpoint", str(job.place), "--defer"])
    assert said.exit_code == 0
    assert said.stdout == (
        "Micro-batch 8 reads nothing now; it would have read from 2 parts of sources. Lower "
        "env.set_max_rows_per_batch(...) in the program, and start the job: the next micro-batches read that input\n"
    )
    again = CliRunner().invoke(app, ["checkpoint", str(job.place), "--defer"])
    assert (again.exit_code, again.stdout) == (2, "")


def test_a_driver_that_was_thought_dead_does_not_go_on_with_it(job: Checkpoint) -> None:
    older = Ownership(str(job.place), "older").claim()
    older.check()
    defer(str(job.place))
    with pytest.raises(StateError, match="another run of this job has begun"):
        older.check()
