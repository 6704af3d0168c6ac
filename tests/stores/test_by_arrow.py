"""Files that eventide opens by Arrow lie in a store as on a disk: logs, checkpoints, files that are read."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from eventide.common import WatermarkStrategy
from eventide.datastream.connectors import FileSource
from eventide.spark.checkpoint.files import CheckpointFiles
from eventide.spark.query.shared_files import AlignmentFolder
from eventide.storage import Folder, opened
from eventide.testing import local_environment
from support.stores.store import Store


def test_files_of_a_folder_appear_whole_are_replaced_and_deleted(store: Store) -> None:
    folder = Folder(f"{store.location}/folder/below")
    assert folder.names() == []
    folder.write("2", b"two")
    folder.write("1", b"one")
    folder.write("1", b"again")
    assert (folder.names(), folder.read("1", bytes)) == (["1", "2"], b"again")
    folder.delete("2")
    folder.delete("2")
    assert folder.names() == ["1"]


def test_how_far_aligned_sources_have_come_is_found_again(store: Store) -> None:
    writing, reading = (AlignmentFolder(f"{store.location}/alignment") for _ in range(2))
    assert reading.latest() == {}
    for number in range(6):
        writing.write({"number": number, "sources": {"a": {"watermark": number}}})
    assert reading.latest() == {"a": {"watermark": 5}}


def test_a_checkpoint_says_what_is_planned_and_how_large_it_is(store: Store) -> None:
    file_system, root = opened(f"{store.location}/checkpoint")
    for log, number in (("offsets", 0), ("offsets", 1), ("commits", 0)):
        file_system.create_dir(f"{root}/{log}")
        with file_system.open_output_stream(f"{root}/{log}/{number}") as file:
            file.write(b'v1\n{"batchTimestampMs":7}\n-')
    files = CheckpointFiles(f"{store.location}/checkpoint")
    assert files.exists()
    assert (sorted(files.planned()), sorted(files.committed())) == ([0, 1], [0])
    assert min(files.committed().values()) > 1_000_000_000_000, "milliseconds since the epoch, by the store's clock"
    assert files.plan_of(1).at_ms == 7
    assert files.listing().files == 3
    assert not CheckpointFiles(f"{store.location}/nothing").exists()


def test_files_are_found_and_read(store: Store) -> None:
    file_system, root = opened(f"{store.location}/input")
    file_system.create_dir(root)
    for part in range(2):
        with file_system.open_output_stream(f"{root}/{part}.parquet") as file:
            pq.write_table(pa.table({"n": [2 * part, 2 * part + 1]}), file)
    env = local_environment()
    source = FileSource.parquet(f"{store.location}/input").build()
    rows = env.from_source(source, WatermarkStrategy.no_watermarks(), "files").map(lambda row: row["n"])
    assert sorted(rows.execute_and_collect()) == [0, 1, 2, 3]
