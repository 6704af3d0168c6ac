"""The last run that has begun owns a checkpoint, and the one before stops."""

import pickle

import pytest

from eventide.connectors.file_system.sink import PartFiles, prefix_of
from eventide.errors import StateError
from eventide.spark.checkpoint.owner import Ownership
from eventide.spark.sinks.files import DirectoryOfSpark

TAKEN = "another run of this job has begun with its checkpoint, and this one has stopped"


def test_the_run_that_began_last_owns_a_checkpoint(tmp_path):
    first, second = (Ownership(str(tmp_path), run) for run in ("first", "second"))
    first.claim().check()
    second.claim().check()
    with pytest.raises(StateError, match=TAKEN):
        first.check()
    pickle.loads(pickle.dumps(second)).check()


def test_a_checkpoint_that_was_deleted_has_no_owner(tmp_path):
    with pytest.raises(StateError, match=r"the checkpoint \S*/gone does not say any more which run it belongs to"):
        Ownership(str(tmp_path / "gone"), "run").check()


def test_the_owner_replaces_what_an_older_run_writes_until_it_stops_and_nothing_later(tmp_path):
    out = tmp_path / "out"
    directory = DirectoryOfSpark(str(out), "text", {})
    directory.owner = Ownership(str(tmp_path / "checkpoint"), "younger").claim()

    def commit(number):
        """Commit a micro-batch of which an older run has written the file since this one began."""
        (out / directory._stage).mkdir(parents=True)
        (out / directory._stage / "staged.txt").write_text("younger")
        (out / f"{prefix_of(number)}00000.txt").write_text("older")
        return directory._commit(PartFiles.at(str(out)), number, {"staged.txt": ".txt"})

    assert commit(5) == 1
    assert (out / "part-00000005-00000.txt").read_text() == "younger"
    with pytest.raises(StateError, match=r"this run has not written part-00000006-00000\.txt"):
        commit(6)
    assert (out / "part-00000006-00000.txt").read_text() == "older"


def test_a_run_that_is_succeeded_while_it_looks_at_what_is_there_replaces_nothing(tmp_path, monkeypatch):
    out, checkpoint = tmp_path / "out", str(tmp_path / "checkpoint")
    directory = DirectoryOfSpark(str(out), "text", {})
    directory.owner = Ownership(checkpoint, "older").claim()
    (out / directory._stage).mkdir(parents=True)
    (out / directory._stage / "staged.txt").write_text("older")

    def found_with_those_of_the_younger_run(parts, number):
        Ownership(checkpoint, "younger").claim()
        (out / f"{prefix_of(number)}00000.txt").write_text("younger")
        return names_of(parts, number)

    names_of = PartFiles.names_of
    monkeypatch.setattr(PartFiles, "names_of", found_with_those_of_the_younger_run)
    with pytest.raises(StateError, match=TAKEN):
        directory._commit(PartFiles.at(str(out)), 5, {"staged.txt": ".txt"})
    assert (out / "part-00000005-00000.txt").read_text() == "younger"


def test_of_two_jobs_that_write_to_one_directory_the_second_one_stops(tmp_path):
    """The first may not have written anything when the second starts, so that the directory is empty then."""
    out = tmp_path / "out"

    def commit(job, number):
        directory = DirectoryOfSpark(str(out), "text", {})
        directory.job = job
        (out / directory._stage).mkdir(parents=True)
        (out / directory._stage / "staged.txt").write_text(job)
        return directory._commit(PartFiles.at(str(out)), number, {"staged.txt": ".txt"})

    for number in range(2):
        assert commit("orders", number) == 1
    for number in range(3):
        with pytest.raises(StateError, match=r"out belongs to another job \(orders\).* give this one a directory"):
            commit("rides", number)
    assert commit("orders", 2) == 1
    assert [path.read_text() for path in sorted(out.glob("part-*"))] == ["orders"] * 3
