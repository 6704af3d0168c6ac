"""From one savepoint to another: without the state of some operators."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import ExitStack

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from eventide.savepoint.files import Directory, copy_files
from eventide.savepoint.rows import Small
from eventide.savepoint.saved import Savepoint

_ROWS = 65_536


def copy_state(savepoint: Savepoint, target: Directory, without: Collection[str]) -> list[Small]:
    """Copy what sources remember, and the state of all operators but some, into a directory.

    Returns:
        What is small of it.
    """
    for source in savepoint.header.sources:
        if source.storage is not None:
            names = savepoint.files_in(source.storage)
            copy_files(savepoint.directory, source.storage, names, target.below(source.storage))
    for operator in savepoint.header.program["operators"]:
        if operator not in without:
            folder = Directory.of_tables(operator)
            copy_files(savepoint.directory, folder, savepoint.files_in(folder), target.below(folder))
    for name in savepoint.files_in("keyed"):
        _copy_rows(savepoint.directory, target, f"keyed/{name}", without)
    return [row for row in savepoint.small_rows() if row[0] not in without]


def _copy_rows(directory: Directory, target: Directory, name: str, without: Collection[str]) -> None:
    """Copy a file of rows by key, if anything is left of it."""
    with ExitStack() as closing:
        file = closing.enter_context(directory.store.open_input_file(directory.path(name)))
        found, writer = pq.ParquetFile(file), None
        for batch in found.iter_batches(_ROWS):
            gone = pc.is_in(batch.column("operator"), pa.array([*without], pa.string()))
            kept = batch.filter(pc.invert(gone))
            if len(kept):
                if writer is None:
                    stream = closing.enter_context(target.writing(name))
                    writer = closing.enter_context(pq.ParquetWriter(stream, found.schema_arrow))
                writer.write_batch(kept)
