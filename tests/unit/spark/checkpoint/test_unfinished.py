"""Whether sinks may have something of a micro-batch that was begun and not finished."""

from dataclasses import replace

import pytest

from eventide.spark.checkpoint.files import Listing
from eventide.spark.checkpoint.inspection import Inspection, MicroBatch
from eventide.spark.checkpoint.savepoint import may_be_in_sinks


@pytest.fixture
def found(tmp_path):
    """A job with two file sinks that has begun its fifth micro-batch."""
    directories = tuple(str(tmp_path / name) for name in ("one", "other"))
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "part-00000003-00000.json").touch()
    return Inspection(
        location=str(tmp_path),
        id="c",
        query=None,
        created_ms=None,
        job="daily",
        format=3,
        parallelism=2,
        max_parallelism=128,
        programs=1,
        description={},
        sources=(),
        operators=(),
        sinks=("one", "other"),
        directories=directories,
        transactions=(),
        committed=MicroBatch(3, None, None, None),
        unfinished=MicroBatch(4, None, None, None),
        listing=Listing(0, {}),
    )


def test_directories_of_files_show_what_they_have(found, tmp_path):
    assert not may_be_in_sinks(found)
    (tmp_path / "one" / "part-00000004-00001.json").touch()
    assert may_be_in_sinks(found)
    assert not may_be_in_sinks(replace(found, unfinished=None))


def test_of_other_sinks_and_of_those_of_a_later_program_nothing_is_known(found):
    assert may_be_in_sinks(replace(found, sinks=("one", "other", "kafka")))
    assert may_be_in_sinks(replace(found, has_newer_program=True))
