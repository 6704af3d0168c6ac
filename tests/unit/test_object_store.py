"""What eventide opens by Arrow lies in S3 as on a disk: small files of logs, checkpoints, files that are read."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs
from tests.cluster.s3_server import s3_server

from eventide.common import WatermarkStrategy
from eventide.datastream.connectors import FileSource
from eventide.datastream.connectors._folder import Folder
from eventide.spark.alignment import AlignmentFolder
from eventide.spark.checkpoint_files import CheckpointFiles
from eventide.testing import local_environment


@pytest.fixture(scope="module")
def store() -> Iterator[fs.FileSystem]:
    """A bucket, named as Hadoop does in ``s3a://bucket``."""
    with s3_server() as s3, pytest.MonkeyPatch.context() as patch:
        for name, value in s3.variables.items():
            patch.setenv(name, value)
        made, _ = fs.FileSystem.from_uri("s3://bucket?allow_bucket_creation=true")
        made.create_dir("bucket")
        yield made


def test_files_of_a_folder_appear_whole_are_replaced_and_deleted(store: fs.FileSystem) -> None:
    folder = Folder("s3a://bucket/folder/below")
    assert folder.names() == []
    folder.write("2", b"two")
    folder.write("1", b"one")
    folder.write("1", b"again")
    assert (folder.names(), folder.read("1")) == (["1", "2"], b"again")
    folder.delete("2")
    folder.delete("2")
    assert folder.names() == ["1"]


def test_how_far_aligned_sources_have_come_is_found_again(store: fs.FileSystem) -> None:
    writing, reading = (AlignmentFolder("s3a://bucket/alignment") for _ in range(2))
    assert reading.latest() == {}
    for number in range(6):
        writing.write({"number": number, "sources": {"a": {"watermark": number}}})
    assert reading.latest() == {"a": {"watermark": 5}}


def test_a_checkpoint_says_what_is_planned_and_how_large_it_is(store: fs.FileSystem) -> None:
    for log, number in (("offsets", 0), ("offsets", 1), ("commits", 0)):
        with store.open_output_stream(f"bucket/checkpoint/{log}/{number}") as file:
            file.write(b'v1\n{"batchTimestampMs":7}\n-')
    files = CheckpointFiles("s3a://bucket/checkpoint")
    assert files.exists()
    assert (sorted(files.planned()), sorted(files.committed())) == ([0, 1], [0])
    assert files.plan_of(1).at_ms == 7
    assert files.listing().files == 3
    assert not CheckpointFiles("s3a://bucket/nothing").exists()


def test_files_are_found_and_read(store: fs.FileSystem) -> None:
    for part in range(2):
        with store.open_output_stream(f"bucket/input/{part}.parquet") as file:
            pq.write_table(pa.table({"n": [2 * part, 2 * part + 1]}), file)
    env = local_environment()
    source = FileSource.parquet("s3a://bucket/input").build()
    rows = env.from_source(source, WatermarkStrategy.no_watermarks(), "files").map(lambda row: row["n"])
    assert sorted(rows.execute_and_collect()) == [0, 1, 2, 3]
