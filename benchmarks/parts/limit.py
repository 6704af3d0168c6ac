"""The limit: what Arrow and Polars take for the same grouping of the same files, without a stream around it."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.bench import Bench
from benchmarks.data import FILES_PER_BATCH
from benchmarks.figures import Figure
from benchmarks.parts.throughput import measured
from benchmarks.queries import PARALLELISM, TUMBLING

_COLUMNS = ["user", "ts", "value"]


def limit(bench: Bench) -> list[Figure]:
    """Tumbling windows of 5 s, beside bare Arrow and Polars: read, group, write, and keep nothing."""
    os.environ["POLARS_MAX_THREADS"] = str(PARALLELISM)  # before Polars is first loaded
    pa.set_cpu_count(PARALLELISM)
    figures = []
    for keys in (1_000, 100_000):
        data = bench.data(keys)
        ours = measured(bench, data, TUMBLING, ("Spark", "FileSource"))["FileSource"]
        for library, group in (("Arrow", _by_arrow), ("Polars", _by_polars)):
            rate = data.rows_per_batch / _seconds(group, bench.files(data), bench.place / "limit.parquet")
            figures.append(Figure(f"{keys:,} keys, FileSource", "rows/s", ours, rate, beside=library))
            bench.say(f"{data.name}, {library}: {rate:,.0f} rows/s")
    return figures


def _seconds(group: Callable[[list[Path], Path], None], folder: Path, output: Path) -> float:
    """The median time for the files of one micro-batch."""
    files = sorted(folder.iterdir())
    took = []
    for first in range(0, len(files), FILES_PER_BATCH):
        started = time.perf_counter()
        group(files[first : first + FILES_PER_BATCH], output)
        took.append(time.perf_counter() - started)
    return statistics.median(took[1:])


def _by_arrow(files: list[Path], output: Path) -> None:
    rows = pa.concat_tables([pq.read_table(file, columns=_COLUMNS) for file in files])
    start = pc.multiply(pc.divide(rows["ts"].cast(pa.int64()), 5_000_000), 5_000_000)
    groups = rows.append_column("start", start).group_by(["user", "start"])
    pq.write_table(groups.aggregate([("value", "sum"), ("value", "count")]), output)


def _by_polars(files: list[Path], output: Path) -> None:
    import polars as pl

    rows = pl.scan_parquet(files).group_by("user", pl.col("ts").dt.truncate("5s").alias("start"))
    rows.agg(pl.col("value").sum(), pl.len().alias("n")).sink_parquet(output)
