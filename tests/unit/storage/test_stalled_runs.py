"""A run stands still before each change that it makes to a checkpoint, and a younger one takes over meanwhile.

What the younger run has written stands when the older one goes on, and the older one stops or does no harm.
"""

import json
from contextlib import suppress

import pyarrow as pa
import pytest

import eventide.storage
from eventide.connectors._function_log import LogWriter, WriteAheadLog
from eventide.connectors.file_system import _planning
from eventide.connectors.file_system._planning import FinishedFiles
from eventide.connectors.file_system.sink import NO_LEFTOVERS, PartFiles, new_stage
from eventide.errors import StateError
from eventide.runtime.sources.reached import Reached
from eventide.spark import connect
from eventide.spark.connect import ResultFiles
from eventide.spark.query.shared_files import AlignmentFolder, ReachedFolder
from support.disks import Disk, NthChange, outcome


@pytest.fixture
def stalls(monkeypatch):
    """Call a run with each of its changes in turn interrupted by a younger one; give what the younger run said."""
    change = NthChange(0, lambda *_: None)
    disk = Disk(lambda what, path: change(what, path))  # noqa: PLW0108 - it is another one each time
    monkeypatch.setattr(eventide.storage, "opened", lambda location: (disk, location))

    def each(older, younger):
        nonlocal change
        number = 0
        while True:
            said = []
            change = NthChange(number, lambda *_, number=number: said.append(younger(number)))  # noqa: B023
            older(number)
            count = change.count
            change = NthChange(-1, lambda *_: None)
            if not said:
                assert number > 1, "nothing was changed"
                return
            yield number, said[0]
            assert number < count
            number += 1

    return each


def test_the_log_of_a_function_is_that_of_the_younger_run(stalls, tmp_path):
    stopped = []

    def older(number):
        def write():
            writer = LogWriter(str(tmp_path / str(number)))
            for item in (b"a", b"b", b"c"):
                writer.append([item], item)
                writer.forget(1)

        _, said = outcome(write, StateError)
        if said:
            assert "another run of this job has taken over its checkpoint" in said
            stopped.append(number)

    def younger(number):
        writer = LogWriter(str(tmp_path / str(number)))
        begin = writer.end
        writer.append([b"x", b"y"], b"younger")
        return begin

    for number, begin in stalls(older, younger):
        log = WriteAheadLog(str(tmp_path / str(number)))
        assert [*log.read(begin + 1, begin + 2)] == [b"y"]
        if stopped[-1:] == [number]:
            assert (log.end, log.state()) == (begin + 2, b"younger")
        else:  # it has begun after the younger one has, or ended before
            assert [*log.read(2, log.end)] in ([b"a", b"b", b"c"], [b"c", b"x", b"y"])
    assert len(stopped) > 10


def test_a_run_whose_elements_a_younger_one_has_read_is_told_of_that(tmp_path):
    writer = LogWriter(str(tmp_path))
    for item in (b"a", b"b", b"c"):
        writer.append([item], item)
    writer.forget(2)
    with pytest.raises(
        StateError, match=r"from position 0 to 3.* deleted up to position 2, as another run .* only one run"
    ):
        [*WriteAheadLog(str(tmp_path)).read(0, 3)]
    with pytest.raises(StateError, match=r"from position 3 to 4, .* its files must stay as long as the checkpoint"):
        [*WriteAheadLog(str(tmp_path)).read(2, 4)]


def test_no_finished_file_is_forgotten_by_either_run(stalls, tmp_path, monkeypatch):
    monkeypatch.setattr(_planning, "_FEW", 2)
    begun = [f"/in/{n}" for n in range(30)]

    def older(number):
        place = str(tmp_path / str(number))
        finished = FinishedFiles(place)
        for end in (5, 10, 15, 20, 25, 30):
            finished.take(begun[:end])

    def younger(number):
        """A run that has listed the lists, and goes on after the older run."""
        return FinishedFiles(str(tmp_path / str(number)))

    for _, finished in stalls(older, younger):
        known = {*finished}
        for end in (5, 10, 15, 20, 25, 30):
            finished.take([*begun[:end], *(f"/more/{n}" for n in range(end))])
            assert known <= {*finished}
        assert {*finished} >= {*begun, *(f"/more/{n}" for n in range(27))}


def test_both_runs_take_finished_files_at_once(stalls, tmp_path, monkeypatch):
    monkeypatch.setattr(_planning, "_FEW", 2)
    begun = [f"/in/{n}" for n in range(30)]

    def older(number):
        finished = FinishedFiles(str(tmp_path / str(number)))
        for end in (5, 10, 15, 20, 25, 30):
            finished.take(begun[:end])

    def younger(number):
        place = str(tmp_path / str(number))
        finished = FinishedFiles(place)
        for end in (10, 20, 30, 40):
            finished.take([*begun[:end], *(f"/more/{n}" for n in range(end))])
        return place

    for _, place in stalls(older, younger):
        assert {*FinishedFiles(place)} >= {*begun, *(f"/more/{n}" for n in range(37))}


def test_what_sources_wait_by_is_what_the_younger_run_says(stalls, tmp_path):
    def write(number, batches):
        folder = AlignmentFolder(str(tmp_path / str(number)))
        for batch in batches:
            folder.write({"number": batch, "sources": {"log": {"splits": {"a": batch}}}})

    def younger(number):
        write(number, range(3, 9))
        return str(tmp_path / str(number))

    for _, place in stalls(lambda number: write(number, range(1, 5)), younger):
        assert AlignmentFolder(place).latest() == {"log": {"splits": {"a": 8}}}


def test_where_operators_stand_is_what_the_younger_run_says(stalls, tmp_path):
    def write(number, batches, watermark):
        folder = ReachedFolder(str(tmp_path / str(number)))
        for batch in batches:
            folder.write(Reached(batch, "audience", {"window": watermark + batch}))

    def younger(number):
        write(number, range(4, 8), 100)
        return str(tmp_path / str(number))

    for _, place in stalls(lambda number: write(number, range(1, 5), 0), younger):
        assert ReachedFolder(place).latest() == Reached(7, "audience", {"window": 107})


def rows(batch, frame):
    return pa.table({"batch": [batch], "sink": ["0 print"], "frame": [frame]}).cast(connect._ROWS)


def taken(results, run, done, after, committed):
    return [row["frame"] for batch in results.take(run, done, after, committed) for row in batch.to_pylist()]


def test_no_result_that_a_program_has_comes_again(stalls, tmp_path):
    """The older run leaves a micro-batch that the program of the younger one has had, and a third run begins."""

    def older(number):
        results = ResultFiles(str(tmp_path / str(number)))
        results.write(7, rows(7, b"seven"))

    def younger(number):
        results = ResultFiles(str(tmp_path / str(number)))
        results.begin("younger")
        results.write(7, rows(7, b"seven"))
        results.write(8, rows(8, b"eight"))
        assert taken(results, "younger", -1, -1, 8) == [b"seven", b"eight"]
        assert taken(results, "younger", 8, 8, 8) == []
        return results

    for _, results in stalls(older, younger):
        results.begin("third")
        results.write(9, rows(9, b"nine"))
        assert taken(results, "third", -1, -1, 9) == [b"nine"]
        assert results.batches() == [9]
        results.end("third")
        results.begin("fourth")
        assert taken(results, "fourth", -1, -1, 9) == [b"nine"], "it was taken, and nobody says that the program has it"


@pytest.mark.parametrize("replaces", [True, False], ids=["replaces", "refuses to replace"])
def test_files_of_a_sink_are_those_of_the_younger_run(stalls, tmp_path, replaces):
    eventide.storage.opened("")[0].replaces = replaces

    def put(number, stage, names, content):
        for name in names:
            (tmp_path / str(number) / stage).mkdir(parents=True, exist_ok=True)
            (tmp_path / str(number) / stage / name).write_text(content)

    def commit(number, batch, names, content, *, is_first):
        folder, stage = PartFiles(*eventide.storage.opened(str(tmp_path / str(number)))), new_stage()
        leftovers = folder.leftovers(batch) if is_first else NO_LEFTOVERS
        put(number, stage, names, content)
        folder.commit(batch, stage, dict.fromkeys(names, ".txt"), leftovers)

    for is_first in (True, False):

        def older(number, is_first=is_first):
            with suppress(OSError):
                commit(f"{is_first} {number}", 3, ["a", "b", "c"], "older", is_first=is_first)

        def younger(number, is_first=is_first):
            place = f"{is_first} {number}"
            commit(place, 3, ["a", "b"], "younger", is_first=True)
            commit(place, 4, ["a"], "younger", is_first=False)
            return tmp_path / place

        for number, place in stalls(older, younger):
            parts = sorted(place.glob("part-*"))
            found = {path.name: path.read_text() for path in parts}
            wanted = [f"part-0000000{batch}-0000{n}.txt" for batch, n in ((3, 0), (3, 1), (4, 0))]
            assert found == dict.fromkeys(wanted, "younger"), number


def test_the_name_of_a_run_is_that_of_one_of_both(stalls, tmp_path):
    from eventide.spark.query.shared_files import begun
    from eventide.storage import Folder

    def younger(number):
        begun(str(tmp_path / str(number)), "younger")
        return str(tmp_path / str(number))

    for _, place in stalls(lambda number: begun(str(tmp_path / str(number)), "older"), younger):
        assert Folder(f"{place}/eventide-runs").read("runs", json.loads) in ([["older", -1]], [["younger", -1]])
