"""Contents of a checkpoint, read from files as Spark and eventide write them."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from fsspec.implementations.local import LocalFileSystem
from pyarrow.fs import FSSpecHandler, PyFileSystem

from eventide.common.checksum import json_with_checksum
from eventide.errors import StateError
from eventide.runtime.state.operators import FORMAT
from eventide.spark.checkpoint.files import CheckpointFiles
from eventide.spark.checkpoint.inspection import InspectedOperator, MicroBatch, SourcePart, SourceState, inspect
from support.disks import damages, outcome

HALF, DONE = {"start": 0, "position": 5, "ended": False}, {"start": 0, "position": 10, "ended": True}
NUMBERS = {"name": "numbers", "kind": "NumberSequenceSource"}
ORDERS = {"name": "orders", "kind": "DataFrame"}
OPERATOR = {"name": "sums", "level": "1", "parallelism": "2", "window": "Tumbling"}


def started(place: Path, start: int = 1, after: int = -1, **changed: Any) -> None:
    """Write what eventide writes when a program is started on a checkpoint."""
    program = {"format": FORMAT, "parallelism": 2, "max parallelism": 128, "sources": [], "sinks": [{"name": "print"}]}
    operators = {"0123456789ab": OPERATOR}
    record = {"start": start, "after": after, "directories": [], "id": "c", "job": "daily", **changed}
    record.setdefault("description", {"sources": [NUMBERS, ORDERS]})
    record["program"] = program | {"operators": operators} | changed.get("program", {})
    (place / "eventide").mkdir(parents=True, exist_ok=True)
    (place / "eventide" / f"part-{start}.txt").write_text(json.dumps(record) + "\n")
    (place / "eventide" / "_SUCCESS").touch()


def planned(place: Path, number: int, *offsets: Any, version: str = "v1") -> int:
    """Write what Spark writes before a micro-batch; when, by the clock of the disk."""
    times = {"batchWatermarkMs": 0, "batchTimestampMs": 1_000 * number, "conf": {}}
    lines = [version, json.dumps(times), *("-" if offset is None else json.dumps(offset) for offset in offsets)]
    (place / "offsets").mkdir(exist_ok=True)
    (place / "offsets" / str(number)).write_text("\n".join(lines))
    (place / "offsets" / f".{number}.crc").touch()
    (place / "metadata").write_text('{"id":"the query"}')
    return (place / "offsets" / str(number)).stat().st_mtime_ns // 1_000_000


def committed(place: Path, number: int) -> int:
    """Write what Spark writes after a micro-batch; when, by the clock of the disk."""
    (place / "commits").mkdir(exist_ok=True)
    file = place / "commits" / str(number)
    file.write_text('v1\n{"nextBatchWatermarkMs":0}')
    return file.stat().st_mtime_ns // 1_000_000


def test_a_checkpoint_has_the_program_the_sources_and_the_last_micro_batch(tmp_path: Path) -> None:
    started(tmp_path, directories=["/out"])
    planned(tmp_path, 9, {"a": HALF}, {"topic": {"0": 3}})
    committed(tmp_path, 9)
    logged_ms = planned(tmp_path, 10, {"a": DONE, "b": HALF}, {"topic": {"0": 7, "1": 2}})
    at_ms = committed(tmp_path, 10)
    (tmp_path / "eventide-sinks").mkdir()
    (tmp_path / "eventide-sinks" / "part-1.txt").write_text('{"group": "g"}\n{"group": "g"}\n')

    found = inspect(str(tmp_path))

    assert (found.query, found.job, found.parallelism, found.max_parallelism, found.programs) == (
        "the query",
        "daily",
        2,
        128,
        1,
    )
    assert (found.committed, found.unfinished) == (MicroBatch(10, 10_000, logged_ms, at_ms), None)
    assert found.sources == (
        SourceState(
            "numbers",
            "NumberSequenceSource",
            (SourcePart("a", 10, None, ended=True), SourcePart("b", 5, None, ended=False)),
        ),
        SourceState(
            "orders",
            "DataFrame",
            (SourcePart("topic-0", 7, None, ended=False), SourcePart("topic-1", 2, None, ended=False)),
        ),
    )
    assert found.operators == (InspectedOperator("0123456789ab", "sums", 1, 2, dict(OPERATOR)),)
    assert (found.sinks, found.directories, found.transactions) == (("print",), ("/out",), ("g",))
    assert found.listing.files == sum(path.is_file() for path in tmp_path.rglob("*"))
    assert found.listing.folders["commits"] == 2 * len('v1\n{"nextBatchWatermarkMs":0}')


def test_a_micro_batch_that_was_begun_says_how_far_it_would_go(tmp_path: Path) -> None:
    started(tmp_path)
    planned(tmp_path, 0, {"a": HALF}, {"logOffset": 0})
    committed(tmp_path, 0)
    logged_ms = planned(tmp_path, 1, {"a": DONE, "b": HALF}, {"logOffset": 1})
    found = inspect(str(tmp_path))
    assert found.unfinished == MicroBatch(1, 1_000, logged_ms, None)
    assert [source.parts for source in found.sources] == [
        (SourcePart("a", 5, 10, ended=False), SourcePart("b", None, 5, ended=False)),
        (SourcePart("logOffset", 0, 1, ended=False),),
    ]


def test_before_the_first_micro_batch_there_is_the_program_alone(tmp_path: Path) -> None:
    started(tmp_path)
    found = inspect(str(tmp_path))
    assert (found.query, found.created_ms, found.committed, found.unfinished) == (None, None, None, None)
    assert [(source.name, source.parts) for source in found.sources] == [("numbers", ()), ("orders", ())]
    logged_ms = planned(tmp_path, 0, {"a": HALF}, None)
    found = inspect(str(tmp_path))
    assert (found.committed, found.unfinished) == (None, MicroBatch(0, 0, logged_ms, None))
    assert [source.parts for source in found.sources] == [(SourcePart("a", None, 5, ended=False),), ()]


def test_the_program_is_the_last_one_that_has_committed(tmp_path: Path) -> None:
    started(tmp_path)
    planned(tmp_path, 0, {}, None)
    committed(tmp_path, 0)
    renamed = {"operators": {"0123456789ab": OPERATOR | {"name": "renamed"}}}
    started(tmp_path, start=2, after=0, program=renamed)
    assert [operator.name for operator in inspect(str(tmp_path)).operators] == ["sums"]
    planned(tmp_path, 1, {}, None)
    committed(tmp_path, 1)
    assert [operator.name for operator in inspect(str(tmp_path)).operators] == ["renamed"]
    assert inspect(str(tmp_path)).programs == 2


def test_a_data_frame_may_have_several_lines_of_the_log_and_a_source_of_eventide_has_one(tmp_path: Path) -> None:
    started(tmp_path, description={"sources": [ORDERS, NUMBERS]})
    planned(tmp_path, 0, {"orders": {"0": 1}}, 7, {"a": HALF})
    committed(tmp_path, 0)
    assert [
        (source.name, [(part.name, part.committed) for part in source.parts])
        for source in inspect(str(tmp_path)).sources
    ] == [
        ("orders", [("orders-0", 1), ("", 7)]),
        ("numbers", [("a", 5)]),
    ]


@pytest.mark.parametrize("entry", ["description", "directories", "id", "job"])
def test_a_record_without_what_each_version_has_written_is_refused(tmp_path: Path, entry: str) -> None:
    started(tmp_path)
    record = tmp_path / "eventide" / "part-1.txt"
    record.write_text(json.dumps({k: v for k, v in json.loads(record.read_text()).items() if k != entry}))
    with pytest.raises(StateError, match="stores state in format 'of an earlier version', and this version"):
        inspect(str(tmp_path))


def test_what_is_no_checkpoint_says_so_and_what_was_perhaps_meant(tmp_path: Path) -> None:
    with pytest.raises(StateError, match=r"there is nothing at .*/absent; give the directory that the job has"):
        inspect(f"{tmp_path}/absent")
    with pytest.raises(
        StateError, match=r"is not a checkpoint: it has none of the folders eventide, offsets and commits\."
    ):
        inspect(str(tmp_path))
    started(tmp_path / "orders")
    with pytest.raises(
        StateError, match=rf"is not a checkpoint: .* commits; there is one in it: {tmp_path}/orders\. Give"
    ):
        inspect(f"{tmp_path}/")


def test_a_checkpoint_of_spark_alone_is_named_as_such(tmp_path: Path) -> None:
    planned(tmp_path, 0, {"logOffset": 0})
    with pytest.raises(StateError, match=r"is the checkpoint of a Spark query that eventide did not start"):
        inspect(str(tmp_path))


@pytest.mark.parametrize("of_another_format", [{"program": {"format": FORMAT + 1}}, {"program": {"format": "1"}}])
def test_a_checkpoint_in_another_format_is_refused_with_both(tmp_path: Path, of_another_format: dict[str, Any]) -> None:
    started(tmp_path, **of_another_format)
    with pytest.raises(
        StateError, match=rf"stores state in format .* and this version of eventide reads the formats 3 and {FORMAT}"
    ):
        inspect(str(tmp_path))


def test_a_log_of_spark_in_another_form_is_refused(tmp_path: Path) -> None:
    started(tmp_path)
    planned(tmp_path, 0, {}, None, version="v2")
    with pytest.raises(StateError, match=r"offsets/0 has the form 'v2', and 'v1' is read here"):
        inspect(str(tmp_path))


def test_a_plan_that_was_half_written_is_said_to_be(tmp_path: Path) -> None:
    started(tmp_path)
    planned(tmp_path, 0, {"a": HALF})
    (tmp_path / "offsets" / "0").write_text("")
    with pytest.raises(StateError, match=r"the plan of a micro-batch in .*/offsets/0 is incomplete"):
        inspect(str(tmp_path))


def test_a_damaged_file_is_said(tmp_path: Path) -> None:
    started(tmp_path)
    planned(tmp_path, 0, {}, None)
    for content in ("", "[]", "{}", '{"id"'):
        (tmp_path / "metadata").write_text(content)
        with pytest.raises(StateError, match=rf"{tmp_path}/metadata cannot be read: .*\. Put a copy of it back"):
            inspect(str(tmp_path))


def test_a_folder_that_is_made_while_it_is_listed_is_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow asks HDFS whether it is a folder, and then whether there is anything at all."""

    class Made(LocalFileSystem):
        def isdir(self, path: str) -> bool:
            return False

        def exists(self, path: str, **_: object) -> bool:
            return True

    made = PyFileSystem(FSSpecHandler(Made()))
    monkeypatch.setattr("eventide.spark.checkpoint.files.opened", lambda location: (made, location))
    assert CheckpointFiles(str(tmp_path)).planned() == {}


def test_how_large_the_offsets_of_the_last_planned_micro_batch_are(tmp_path: Path) -> None:
    assert CheckpointFiles(str(tmp_path)).plan_bytes() == 0
    planned(tmp_path, 9, {"a": {"position": 3, "ended": False}})
    planned(tmp_path, 10, {"a": {"position": 3_000_000, "ended": False}})
    assert CheckpointFiles(str(tmp_path)).plan_bytes() == (tmp_path / "offsets" / "10").stat().st_size


def sums(file: Path, bytes_of_each: int = 512) -> Path:
    """Write the sums that Hadoop leaves beside a file that it writes to a disk."""
    content, path = file.read_bytes(), file.with_name(f".{file.name}.crc")
    parts = (content[at : at + bytes_of_each] for at in range(0, len(content), bytes_of_each))
    path.write_bytes(b"crc\0" + struct.pack(">i", bytes_of_each) + b"".join(struct.pack(">I", crc32(p)) for p in parts))
    return path


@pytest.mark.parametrize("name", ["offsets/0", "commits/0", "metadata"])
@pytest.mark.parametrize("bytes_of_each", [7, 512])
def test_what_has_changed_in_a_file_of_spark_is_an_error_that_names_it(
    tmp_path: Path, name: str, bytes_of_each: int, pytestconfig: pytest.Config
) -> None:
    started(tmp_path)
    planned(tmp_path, 0, {"a": HALF}, {"logOffset": 0})
    committed(tmp_path, 0)
    file = tmp_path / name
    sums(file, bytes_of_each)
    expected, content = inspect(str(tmp_path)), file.read_bytes()
    for damaged in damages(content, pytestconfig):
        file.write_bytes(damaged)
        said = rf"{name} is not as it was written: it does not have the sums in \.{file.name}\.crc"
        with pytest.raises(StateError, match=said):
            inspect(str(tmp_path))
    file.write_bytes(content)
    found = inspect(str(tmp_path))
    assert (found.sources, found.query) == (expected.sources, expected.query)


@pytest.mark.parametrize("of_sums", [b"", b"crc", b"crc\0", b"other sums"])
def test_sums_in_no_form_of_hadoop_s_are_passed_over_as_hadoop_does(tmp_path: Path, of_sums: bytes) -> None:
    started(tmp_path)
    planned(tmp_path, 0, {"a": HALF}, None)
    (tmp_path / "offsets" / ".0.crc").write_bytes(of_sums)
    assert inspect(str(tmp_path)).unfinished is not None


def test_a_log_without_sums_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    started(tmp_path)
    planned(tmp_path, 0, {"a": HALF})
    (tmp_path / "offsets" / ".0.crc").unlink()
    log = tmp_path / "offsets" / "0"
    for content in ('v1\n{"batch', "v1\n{}", "v1\n[]", 'v1\n{"batchTimestampMs":1}\n{"\\u0000open":{"content":"x"}}'):
        log.write_text(content)
        with pytest.raises(StateError, match=r"the plan of a micro-batch in .*/offsets/0 cannot be read"):
            inspect(str(tmp_path))
    for content in ('v1\n{"batch', "v1\n{}", "v1\n[]"):
        log.write_text(content)
        with pytest.raises(StateError, match=r"the plan of a micro-batch in .*/offsets/0 cannot be read"):
            CheckpointFiles(str(tmp_path)).planned_at_ms(0)


def test_what_has_changed_in_the_record_of_a_program_is_an_error(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    started(tmp_path)
    file = tmp_path / "eventide" / "part-1.txt"
    file.write_text(json_with_checksum(json.loads(file.read_text())) + "\n")
    expected, content = inspect(str(tmp_path)).operators, file.read_bytes()
    for damaged in damages(content, pytestconfig):
        file.write_bytes(damaged)
        found, said = outcome(lambda: inspect(str(tmp_path)).operators, StateError)
        if said:
            assert str(file) in said or "cannot be read" in said
        else:
            assert found == expected
        _, said = outcome(lambda: CheckpointFiles(str(tmp_path)).records("eventide"), StateError)
        assert not said or str(file) in said
    file.write_bytes(b"\n" + content + b"\n")  # as an editor leaves it
    assert inspect(str(tmp_path)).operators == expected
    file.write_bytes(b"")
    with pytest.raises(StateError, match=r"part-1\.txt is empty, .*delete it"):
        inspect(str(tmp_path))
