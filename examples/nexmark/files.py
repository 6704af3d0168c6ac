"""The events as Parquet files, so that several engines can read the same: a folder of files for each kind."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eventide.datastream import DataStream, StreamExecutionEnvironment
from eventide.datastream.connectors import FileSource
from examples.nexmark.generator import AUCTIONS, BIDS, KINDS, PERSONS, START_MS, Kind, Recipe
from examples.nexmark.source import TYPES, Events, Streams, in_time


def write(recipe: Recipe, folder: Path, chunks: int, splits: int) -> None:
    """Write all events, as `chunks` chunks that follow each other in time, each of them in a file for each split.

    The files of a chunk were changed before those of the next one, so that every reader of as many at a time as there
    are splits, oldest first, reads chunk by chunk.
    """
    for kind in KINDS:
        events = Events(recipe, kind, splits)
        (folder / kind.name).mkdir(parents=True)
        for split in events.splits():
            bounds = np.linspace(0, events.latest_position(split), chunks + 1, dtype=np.int64).tolist()
            for chunk in range(chunks):
                path = folder / kind.name / f"part-{chunk:03}-{split}.parquet"
                with pq.ParquetWriter(path, pa.schema(TYPES[kind].arrow_type()), store_schema=False) as file:
                    for batch in events.read(split, bounds[chunk], bounds[chunk + 1]):
                        file.write_batch(batch)
                changed = START_MS // 1_000 + chunk * splits + int(split)
                os.utime(path, (changed, changed))


def read(env: StreamExecutionEnvironment, recipe: Recipe, folder: Path, files_at_once: int) -> Streams:
    """The events from files, `files_at_once` of each kind in a micro-batch."""

    def stream(kind: Kind) -> DataStream:
        files = FileSource.parquet(str(folder / kind.name), type_info=TYPES[kind])
        source = files.set_max_files_per_batch(files_at_once).build()
        return env.from_source(source, in_time(recipe), f"{kind.name}s")

    return Streams(stream(PERSONS), stream(AUCTIONS), stream(BIDS), recipe)
