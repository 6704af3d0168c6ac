"""A disk that is full, or fails, at each change: an error that names the file, and all goes on when there is room."""

import json
import re
import subprocess
import sys

import pytest

import eventide.storage
from eventide.connectors._function_log import LogWriter, WriteAheadLog
from eventide.connectors.file_system import _planning
from eventide.connectors.file_system._planning import FinishedFiles
from eventide.errors import StorageError
from eventide.storage import Folder
from support.disks import Disk, NthChange, outcome, refuse


def hidden(folder):
    return [path.name for path in folder.rglob(".*")]


@pytest.fixture
def fails_at(monkeypatch):
    """Let every folder lie on a disk that refuses one change, by its number."""

    def fail(number):
        change = NthChange(number, refuse)
        disk = Disk(change)
        monkeypatch.setattr(eventide.storage, "opened", lambda location: (disk, location))
        return change

    return fail


CHANGES_OF_A_WRITE = 4  # the folder is made, the file is opened, written, and moved


@pytest.mark.parametrize("number", range(CHANGES_OF_A_WRITE))
def test_a_file_that_cannot_be_written_is_named_and_the_one_before_stays(number, fails_at, tmp_path):
    Folder(str(tmp_path)).write("runs", b"[1]")
    fails_at(number)
    folder = Folder(str(tmp_path))
    with pytest.raises(StorageError, match=r"/runs cannot be written: .*No space left on device.*; when there is room"):
        folder.write("runs", b"[1, 2]")
    assert folder.read("runs", json.loads) == [1]
    assert hidden(tmp_path) == []
    folder.write("runs", b"[1, 2, 3]")
    assert folder.read("runs", json.loads) == [1, 2, 3]


def test_that_is_every_change_of_a_write(fails_at, tmp_path):
    change = fails_at(1_000)
    Folder(str(tmp_path / "new")).write("runs", b"[1]")
    assert change.count == CHANGES_OF_A_WRITE


def test_an_error_of_storage_travels_and_is_one_of_the_operating_system_too():
    import pickle

    error = pickle.loads(pickle.dumps(StorageError("/a cannot be written")))
    assert (type(error), str(error), isinstance(error, OSError)) == (StorageError, "/a cannot be written", True)


def test_a_log_that_could_not_be_written_goes_on_where_it_was(fails_at, tmp_path, injected):
    count = 0
    for number in range(20):
        change, place = fails_at(number), tmp_path / str(number)
        done = []

        def write(place=place, done=done):
            writer = LogWriter(str(place))
            for item in (b"a", b"b"):
                writer.append([item], item)
                done.append(item)

        _, said = outcome(write, StorageError)
        assert not said or str(place) in said
        count += bool(said)
        is_last, change.number = change.count <= number, -1
        again = LogWriter(str(place))
        assert [*again.read(0, again.end)] == done, "what was not written whole is not there"
        again.append([b"c"], b"c")
        assert [*WriteAheadLog(str(place)).read(0, len(done) + 1)] == [*done, b"c"]
        if is_last:
            break
    assert 10 < count <= number
    injected["full disks"] += count


def test_the_list_of_finished_files_loses_nothing(fails_at, tmp_path, monkeypatch, injected):
    monkeypatch.setattr(_planning, "_FEW", 2)
    for number in range(40):
        change, place = fails_at(number), tmp_path / str(number)
        finished, read = FinishedFiles(str(place)), []
        for begin in range(0, 40, 5):
            read += [f"/in/{n}" for n in range(begin, begin + 5)]
            _, said = outcome(lambda finished=finished, read=read: finished.take(read), StorageError)
            if said:
                assert str(place) in said
                injected["full disks"] += 1
                finished = FinishedFiles(str(place))  # the job starts again, and its offsets still have them
        finished.take(read)
        assert {*FinishedFiles(str(place))} | {*read[-2:]} == {*read}
        if change.count <= number:
            break
    assert number > 20


_LIMITED = """
import resource
import sys
from pathlib import Path
from types import SimpleNamespace

from eventide.common import Types, WatermarkStrategy
from eventide.connectors.file_system.compaction import Compaction
from eventide.connectors.file_system.sink import PartFiles
from eventide.datastream.connectors import FormatSink
from eventide.errors import StorageError
from eventide.local.host import take_savepoint
from eventide.local.runner import LocalCheckpoint, LocalRunner
from eventide.plan.compiler import compile_plan
from eventide.plan.graph import SinkTransformation
from eventide.savepoint import Savepoint
from eventide.spark.query.subtask_run import HeldFrames
from eventide.testing import ScriptedSource, local_environment

place = Path(sys.argv[1])
everything = resource.getrlimit(resource.RLIMIT_FSIZE)


def with_no_room(do):
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, everything[1]))
    try:
        do()
    except StorageError as error:
        print(error)
    else:
        print("no error")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, everything)


def frames():
    held = HeldFrames(most_bytes=0)
    for _ in range(10):
        held.add(SimpleNamespace(target=1, subtask=0, frame=bytes(9_000)))
    held.all()


with_no_room(frames)
frames()

env = local_environment()
source = ScriptedSource(["s"], [[("s", "x" * 500)] * 20, [("s", "y")]], Types.STRING())
lines = env.from_source(source, WatermarkStrategy.no_watermarks(), "script")
lines = lines.key_by(lambda line: line, Types.STRING()).reduce(lambda a, b: a).uid("first")
out = SinkTransformation("out", lines._transformation, FormatSink("text", {"path": str(place / "out")}))
plan = compile_plan([out], 2, 128)
checkpoint = LocalCheckpoint()
with_no_room(lambda: [*LocalRunner(plan, checkpoint=checkpoint).batches()])
[*LocalRunner(plan, checkpoint=checkpoint).batches()]
print([len(path.read_text().split()) for path in sorted((place / "out").glob("part-*"))])

with_no_room(lambda: take_savepoint(plan, checkpoint, str(place / "half")))
print(Savepoint.is_at(str(place / "half")))
take_savepoint(plan, checkpoint, str(place / "whole"))
print(len(Savepoint(str(place / "whole"), verify=True).small_rows()) > 0)

for batch in range(3):
    (place / "many").mkdir(exist_ok=True)
    (place / "many" / f"part-{batch:08}-00000.txt").write_text("z" * 1_500)
compaction = Compaction(PartFiles.at(str(place / "many")), 10_000)
with_no_room(compaction.run)
print(compaction.run())
"""


def test_what_is_written_by_the_operating_system_s_own_limit(tmp_path):
    """In a process of its own, whose files have a limit for a while."""
    done = subprocess.run(
        [sys.executable, "-c", _LIMITED, str(tmp_path)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    frames, sink, lines, half, is_half, is_whole, merged, compacted = done.stdout.splitlines()
    assert re.match(r"a file of frames in /.* cannot be written: ", frames)
    assert re.match(rf"{tmp_path}/out/_eventide-.* cannot be written: ", sink)
    assert lines == "[20, 1]"
    assert re.match(rf"{tmp_path}/half/.* cannot be written: ", half)
    assert (is_half, is_whole) == ("False", "True")
    assert re.search(rf"{tmp_path}/many/_compacting/merged-\w+ cannot be written", merged)
    assert compacted == "Compacted(before=3, after=2)"
