"""A job goes on with what each version before has stored, as if it had never been stopped."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from eventide.common.checksum import json_with_checksum, json_without_checksum
from eventide.errors import StateError
from eventide.savepoint.directory import NAME
from support.steps import in_steps
from support.stored_versions import archives, by_checkpoint, by_savepoint, expected, extracted, known


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


@pytest.mark.spark
@in_steps
def test_a_job_goes_on_with_the_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    """One version after the other, because each checkpoint has to lie at the same place."""
    for archive in archives():
        stored = extracted(archive, tmp_path / archive.name)
        assert known(stored, "checkpoint") + by_checkpoint(stored) == expected(), archive.name
