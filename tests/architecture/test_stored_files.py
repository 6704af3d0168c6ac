"""Each kind of stored file has a test that changes its bytes: see the row of docs/faults.md."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
SOURCE = TESTS.parent / "src" / "eventide"
WRITES = re.compile(
    r"""\b(Folder|open_output_stream|TemporaryFile)\(|\bopen\(.*["'][wax]b?(:gz)?["']|\.write_(bytes|text)\("""
)
"""Calls with which a file is written, or may be."""

DAMAGED_BY = {
    "connectors/_function_log.py": "unit/storage/test_damaged_files.py",
    "connectors/file_system/_planning.py": "unit/storage/test_damaged_files.py",
    "connectors/file_system/compaction.py": "unit/connectors/file_system/test_compaction.py",
    "connectors/file_system/sink.py": "unit/storage/test_damaged_files.py",
    "connectors/kafka/_source.py": "unit/connectors/kafka/test_partitions.py",
    "savepoint/directory.py": "unit/local/test_savepoints.py",
    "spark/checkpoint/files.py": "unit/spark/checkpoint/test_inspection.py",
    "spark/checkpoint/owner.py": "unit/storage/test_damaged_files.py",
    "spark/checkpoint/records.py": "unit/spark/checkpoint/test_inspection.py",
    "spark/checkpoint/strategies.py": "unit/storage/test_damaged_files.py",
    "spark/checkpoint/unfinished.py": "unit/storage/test_damaged_files.py",
    "spark/connect.py": "unit/storage/test_damaged_files.py",
    "spark/query/shared_files.py": "unit/storage/test_damaged_files.py",
}
"""The modules that write files which a later run reads, and the tests that damage these."""

OF_ANOTHER_KIND = {
    "cli/doctor.py": "a file that is written to see whether a folder can be written to",
    "connectors/file_system/part_writer.py": "the output of a job, for its readers",
    "local/file_sink.py": "the output of a job, for its readers",
    "spark/query/subtask_run.py": "frames of a task, in a file without a name that ends with the task",
    "spark/query/worker.py": "the last words of a worker, which Spark adds to an error",
    "spark/session/python_files.py": "the code of eventide, packed anew for each session",
    "storage/__init__.py": "writes for the modules above",
    "storage/local_copies.py": "copies of state that need not be right, damaged in unit/runtime/state/test_copied.py",
    "testing/kafka_broker.py": "the settings of a broker in tests",
    "testing/servers.py": "what such a server says",
}


def writers() -> set[str]:
    """The modules that write files."""
    return {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if any(WRITES.search(line) for line in path.read_text().splitlines() if not line.lstrip().startswith(">>>"))
    }


def test_each_module_that_writes_files_has_a_test_that_damages_them() -> None:
    known = {*DAMAGED_BY, *OF_ANOTHER_KIND}
    assert writers() - known == set(), "damage each kind of file that they write in a test, and name that here"
    assert known - writers() == set(), "they write no files: remove them here"


def test_each_of_these_tests_changes_bytes() -> None:
    for test in sorted({*DAMAGED_BY.values()}):
        assert "in damages(" in (TESTS / test).read_text(), test
