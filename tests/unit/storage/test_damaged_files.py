"""Each byte of a small file changed, and the file cut at each place: an error that names it, or what was written."""

import json

import pyarrow as pa
import pytest

from eventide.connectors._function_log import LogWriter, WriteAheadLog
from eventide.connectors.file_system import _planning
from eventide.connectors.file_system._planning import FinishedFiles, GoneFiles, RemovedFiles
from eventide.connectors.file_system.files import FileInfo
from eventide.connectors.file_system.sink import PartFiles
from eventide.errors import StateError
from eventide.runtime.elements.codec import decode_table, encode_table
from eventide.runtime.invoke import CallMark
from eventide.runtime.sources.reached import Reached
from eventide.spark.checkpoint.owner import Ownership
from eventide.spark.checkpoint.strategies import ask_for, strategies_at, values_in_force
from eventide.storage import Folder
from support.disks import damages, outcome


def alignment(place):
    from eventide.spark.query.shared_files import AlignmentFolder

    AlignmentFolder(place).write({"number": 3, "sources": {"log": {"splits": {"a": 1_700_000_000_000}, "idle": []}}})
    return lambda: AlignmentFolder(place).latest()


def reached(place):
    from eventide.spark.query.shared_files import ReachedFolder

    ReachedFolder(place).write(Reached(3, "audience", {"window": 1_700_000_000_000}))
    return lambda: ReachedFolder(place).latest()


def runs(place):
    from eventide.spark.query.shared_files import begun

    begun(place, "first")
    return lambda: Folder(f"{place}/eventide-runs").read("runs", json.loads)


def gone(place):
    GoneFiles(place, ["/in"]).are(["/in/a", "/in/b"], 1_000.5)
    return lambda: GoneFiles(place, ["/in"]).are(["/in/a", "/in/b"], 2_000)


def finished(place):
    FinishedFiles(place).take(f"/in/{number}" for number in range(20))
    return lambda: sorted(FinishedFiles(place))


def removed(place):
    RemovedFiles(place).take({"/in/a": FileInfo(7, 1_700_000_000_000_000_001), "/in/b": FileInfo(8, 9)}, ["/in/a"])
    return lambda: RemovedFiles(place).free({"/in/a": FileInfo(7, 1_700_000_000_000_000_001)})


def log_of_a_function(place):
    writer = LogWriter(place)
    writer.append([b"one", b"two"], b"state")

    def read():
        log = WriteAheadLog(place)
        return [*log.read(0, 2)], log.state(), log.end, log.is_complete

    return read


def results(place):
    from eventide.spark.connect import ResultFiles

    found = ResultFiles(place)
    found.begin("0123456789abcdef")
    rows = {"batch": pa.array([1, 1]), "sink": pa.array(["0 print"] * 2), "frame": pa.array([b"a", b"b"])}
    found.write(1, pa.table(rows))
    assert [*found.take("0123456789abcdef", -1, 0, 0)] == []

    def read():
        again, folder = ResultFiles(place), Folder(f"{place}/eventide-results")
        rows = folder.read(f"{1:020}", decode_table).to_pylist()
        if not again.is_taken_by("0123456789abcdef"):
            raise StateError("a run is told that another one takes, and stops")
        return again.waiting(), rows

    return read


def elements_that_end_a_process(place):
    from eventide.spark.checkpoint.unfinished import note_end, set_aside

    Folder(f"{place}/offsets", has_checksums=False).write("0", b'v1\n{"batchTimestampMs":7}\n-')
    note_end(place, CallMark("parse", "while it handled an element", "'a'", "id").line())
    return lambda: set_aside(place).ends


def owner(place):
    return Ownership(place, "0123456789abcdef").claim().check


def strategies(place):
    declared = {"orders": {"bound_ms": 5, "idle_after_ms": 100}}
    values_in_force(place, declared, takes=True)
    ask_for(place, "orders", 9, "off", None)
    values_in_force(place, declared, takes=True)
    ask_for(place, "orders", 7, None, None)  # and waits
    return lambda: (strategies_at(place), values_in_force(place, declared, takes=True, keeps=False))


def transactions(place):
    from eventide.spark.sinks.kafka import SinkRun

    first = SinkRun()
    first.starts(None, "id", place)
    first.begin(None, "orders")

    def read():
        second = SinkRun()
        second.starts(None, "id", place)
        return second.has_begun("orders")

    assert read()
    return read


def job_of_a_directory(place):
    """The name of the job, which another job is not taken for."""
    PartFiles.at(place).claim("0123456789abcdef0123456789abcdef")
    return lambda: PartFiles.at(place).claim("0123456789abcdef0123456789abcdef")


IN_TEXT = [transactions, job_of_a_directory]
KINDS = [
    alignment,
    reached,
    runs,
    gone,
    finished,
    removed,
    log_of_a_function,
    results,
    elements_that_end_a_process,
    owner,
    strategies,
]


@pytest.mark.parametrize("kind", KINDS + IN_TEXT, ids=lambda kind: kind.__name__)
def test_what_has_changed_in_a_file_is_an_error_that_names_it(kind, tmp_path, monkeypatch, pytestconfig):
    monkeypatch.setattr(_planning, "_FEW", 2)
    read = kind(str(tmp_path))
    expected = read()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    refused = 0
    for file in files:
        content = file.read_bytes()
        for damaged in damages(content, pytestconfig):
            file.write_bytes(damaged)
            found, said = outcome(read, StateError, UserWarning)  # a warning where a job does without
            if said:
                assert file.name in said or damaged == b"", said  # an earlier version left "run" empty
                refused += 1
            else:
                assert found == expected, (file.name, damaged)
        file.write_bytes(content)
    assert refused >= 50
    assert read() == expected


def before(content):
    """The content of a file as the version before wrote it."""
    return content[5:]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_file_of_an_earlier_version_is_read(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(_planning, "_FEW", 2)
    read = kind(str(tmp_path))
    expected = read()
    for file in tmp_path.rglob("*"):
        if file.is_file():
            file.write_bytes(before(file.read_bytes()))
    assert read() == expected


def test_the_run_that_takes_results_was_written_as_it_is_by_an_earlier_version(tmp_path):
    read = results(str(tmp_path))
    expected = read()
    (tmp_path / "eventide-results" / "run").write_bytes(b"0123456789abcdef")
    (tmp_path / "eventide-results" / "taken-0123456789abcdef").write_bytes(b"0")
    assert read() == expected


@pytest.mark.parametrize("content", [b"", b"[1, 2", b'"a', b"\x80\x05", b"\x01abc"])
def test_a_file_without_a_checksum_that_cannot_be_read_is_named(content, tmp_path):
    (tmp_path / "known").write_bytes(content)
    with pytest.raises(StateError, match=r"the file .*/known is not as it was written: .* or delete it$"):
        Folder(str(tmp_path), "delete it").read("known", json.loads)


def test_a_table_that_was_cut_between_two_messages_is_not_read_as_a_shorter_one(tmp_path):
    table = pa.concat_tables([pa.table({"n": [1, 2]}), pa.table({"n": [3]})])
    folder = Folder(str(tmp_path))
    folder.write("rows", encode_table(table))
    content = (tmp_path / "rows").read_bytes()
    (tmp_path / "rows").write_bytes(content[:-8])  # Arrow takes the end of a file for that of a stream
    with pytest.raises(StateError, match="rows is not as it was written"):
        folder.read("rows", decode_table)
