"""Files in which sources remember something beside the checkpoint of a running job, as a savepoint has them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from eventide.errors import ProgramError, StateError
from eventide.runtime.state.operators import FORMAT
from eventide.spark.checkpoint import savepoint
from eventide.spark.checkpoint.inspection import Inspection, inspect
from eventide.spark.checkpoint.savepoint import saved_sources, take_savepoint

SOURCES = {"sources": [{"name": "files", "element type": "STRING"}]}


class Job:
    """The checkpoint of a job that does something each time that its checkpoint is looked at."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.steps: Iterator[Callable[[], object]] = iter(())
        self.remembered = place / "eventide-sources" / "1" / "finished"
        for folder in ("eventide", "offsets", "commits"):
            (place / folder).mkdir(parents=True)
        self.remembered.mkdir(parents=True)
        program = {"format": FORMAT, "parallelism": 2, "max parallelism": 128, "sinks": [], "operators": {}}
        record = {"start": 1, "after": -1, "directories": [], "id": "c", "job": "daily", "program": program}
        described = {"sources": [{"name": "files", "kind": "FileSource"}], "sinks": []}
        (place / "eventide" / "part-1.txt").write_text(json.dumps({**record, "description": described}))
        self.commits(0)

    def commits(self, number: int) -> None:
        """Plan and commit a micro-batch, after which the source stands at its number."""
        offset = {"a": {"start": 0, "position": number, "ended": False}}
        plan = ["v1", json.dumps({"batchTimestampMs": 1_000 * number}), json.dumps(offset)]
        (self.place / "offsets" / str(number)).write_text("\n".join(plan))
        (self.place / "commits" / str(number)).write_text("v1\n{}")

    def remembers(self, *names: str) -> None:
        for name in names:
            (self.remembered / name).write_text(name)

    def forgets(self, name: str) -> None:
        (self.remembered / name).unlink()

    def looked_at(self, spark: Any, location: str) -> Inspection:
        next(self.steps, lambda: None)()
        return inspect(location)


def at_a_server(spark: Any, call: Callable[[], Any]) -> Any:
    """Call a function as over Spark Connect: what it raises comes as an error of Spark's, without its class."""
    try:
        return call()
    except OSError as error:
        raise RuntimeError(f"FileNotFoundError: {error}") from error


@pytest.fixture(params=["in this process", "at a server"])
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Job:
    found = Job(tmp_path / "checkpoint")
    monkeypatch.setattr(savepoint, "inspected", found.looked_at)
    if request.param == "at a server":
        monkeypatch.setattr(savepoint, "there", at_a_server)
    return found


def saved(job: Job, target: Path) -> tuple[Any, Any, list[str]]:
    """The micro-batch that is saved, where the source stands after it, and the files with what it remembers."""
    before = inspect(str(job.place))
    found, [source] = saved_sources(None, before, SOURCES, str(target))  # type: ignore[arg-type]
    assert found.committed is not None
    names = sorted(path.name for path in target.rglob("*") if path.is_file())
    assert source.storage == ("eventide-sources/1" if names else None)
    return found.committed.number, source.offsets["a"]["position"], names


def test_a_source_that_remembers_nothing_has_no_files(job: Job, tmp_path: Path) -> None:
    assert saved(job, tmp_path / "target") == (0, 0, [])


def test_a_micro_batch_that_is_committed_meanwhile_is_the_one_that_is_saved(job: Job, tmp_path: Path) -> None:
    job.remembers("1")
    job.steps = iter([lambda: (job.commits(1), job.remembers("2"))])
    assert saved(job, tmp_path / "target") == (1, 1, ["1", "2"])


def test_files_that_the_source_merges_meanwhile_are_not_saved_beside_what_they_became(job: Job, tmp_path: Path) -> None:
    """The first look has two files, of which one is still there when they are copied."""
    job.remembers("1", "2")
    job.steps = iter([lambda: (job.remembers("3"), job.forgets("2")), lambda: job.forgets("1")])
    assert saved(job, tmp_path / "target") == (0, 0, ["3"])


def test_a_job_whose_micro_batches_follow_each_other_too_quickly_is_told_of(job: Job, tmp_path: Path) -> None:
    job.steps = iter([partial(job.commits, number) for number in range(1, 100)])
    with pytest.raises(StateError, match="commits micro-batches faster than the state of its sources can be read"):
        saved(job, tmp_path / "target")


@pytest.mark.parametrize("numbers", [{"max_parallelism": 32_769}, {"parallelism": 0}])
def test_a_number_that_no_job_can_have_is_refused_before_anything_is_read(numbers: dict[str, int]) -> None:
    no_session: Any = None
    with pytest.raises(ProgramError, match="a parallelism must be a whole number from 1 to 32768, not "):
        take_savepoint(no_session, "/of/a/job", "/new", **numbers)
