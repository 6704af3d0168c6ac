"""A job goes on with what each version before has stored, as if it had never been stopped."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from eventide.common.checksum import json_with_checksum, json_without_checksum
from eventide.errors import StateError
from eventide.runtime.state import operators
from eventide.runtime.state.backend import MemoryBackend
from eventide.runtime.state.operators import FORMAT, HEAD, OperatorStates, small_values
from eventide.savepoint.directory import NAME
from support.steps import in_steps
from support.stored_versions import PLACE, archives, by_checkpoint, by_savepoint, expected, extracted, known

LATER = f"in format {FORMAT + 1}, and this version of eventide reads the formats 3 and {FORMAT}; go on with the version"


def contents(folder: Path) -> dict[str, bytes]:
    """All files below a folder."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.fixture(params=archives(), ids=lambda archive: archive.name.removesuffix(".tar.xz"))
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The folder with what a version has stored."""
    return extracted(request.param, tmp_path)


def test_there_is_an_archive_of_each_version() -> None:
    assert [archive.name for archive in archives()] == ["0.1.0.tar.xz", "0.2.0.tar.xz"]


def test_a_job_begins_with_the_savepoint(stored: Path) -> None:
    assert known(stored, "savepoint") + by_savepoint(stored) == expected()


def test_a_savepoint_of_a_later_version_is_refused(stored: Path) -> None:
    header = stored / "savepoint" / NAME
    content = json_without_checksum(header.read_text(), may_lack=True)
    header.write_text(json_with_checksum({**content, "version": content["version"] + 100}))
    with pytest.raises(
        StateError, match=f"is of version {content['version'] + 100}, and this version of eventide reads"
    ):
        by_savepoint(stored)


def test_a_savepoint_with_state_of_a_later_format_is_refused(stored: Path) -> None:
    header = stored / "savepoint" / NAME
    content = json_without_checksum(header.read_text(), may_lack=True)
    content["program"]["format"] = FORMAT + 1
    header.write_text(json_with_checksum(content))
    with pytest.raises(StateError, match=LATER):
        by_savepoint(stored)


def test_state_of_a_later_format_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The head of each subtask has the format, which is read before anything else is."""
    stored = MemoryBackend()
    with monkeypatch.context() as later_version:
        later_version.setattr(operators, "FORMAT", FORMAT + 1)
        OperatorStates(stored, {}).flush()
    before = dict(stored.values)
    with pytest.raises(StateError, match=LATER):
        OperatorStates(stored, {})
    with pytest.raises(StateError, match=LATER):
        small_values(stored.values[HEAD])
    assert stored.values == before


@pytest.mark.spark
@in_steps
def test_a_checkpoint_of_a_later_format_is_refused_and_stays_as_it_is(spark: SparkSession, tmp_path: Path) -> None:
    """As an earlier version finds one with which a later version has gone on; then it begins with the savepoint."""
    stored = extracted(archives()[-1], tmp_path)
    [record] = (stored / "checkpoint" / "eventide").glob("part-*")
    program = json_without_checksum(record.read_text(), may_lack=True)
    program["program"]["format"] = FORMAT + 1
    record.write_text(json_with_checksum(program))
    (stored / "checkpoint" / "eventide" / f".{record.name}.crc").unlink(missing_ok=True)
    before = contents(stored / "checkpoint")
    with pytest.raises(StateError, match=LATER):
        by_checkpoint(stored)
    assert contents(PLACE) == before
    assert not (stored / "later").exists()
    assert known(stored, "savepoint") + by_savepoint(stored) == expected()


@pytest.mark.spark
@in_steps
def test_a_job_goes_on_with_the_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    """One version after the other, because each checkpoint has to lie at the same place."""
    for archive in archives():
        stored = extracted(archive, tmp_path / archive.name)
        assert known(stored, "checkpoint") + by_checkpoint(stored) == expected(), archive.name
