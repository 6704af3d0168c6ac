"""How fast data are measured for advice on watermarks."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.figures import Figure
from eventide.advisor import Advice
from eventide.advisor import advise as advised

_USERS = 1_000
_LEAST = 1_000_000
"""Rows a second of files: a hundred million in less than two minutes. What Spark takes is most of all its sorting."""


def advise(bench: Bench) -> list[Figure]:
    """Advice on watermarks: the disorder of Parquet, by Arrow, and of a DataFrame, by Spark."""
    data = bench.data(_USERS)
    files = bench.files(data)
    rows = data.batches * data.rows_per_batch
    kinds: dict[str, Callable[[], Advice]] = {
        "Parquet, one split": lambda: advised(files, time="ts"),
        f"Parquet, {_USERS:,} splits": lambda: advised(files, time="ts", split_by="user"),
        f"Parquet, {_USERS:,} splits, sorted by a column": lambda: advised(
            files, time="ts", split_by="user", order_by="ts"
        ),
        f"a DataFrame, {_USERS:,} splits, sorted by a column": lambda: _of_a_data_frame(bench, files),
    }
    figures = []
    for name, measure in kinds.items():
        started = time.perf_counter()
        found = measure()
        rate = rows / (time.perf_counter() - started)
        if found.disorder.rows != rows:
            raise ValueError(f"{name}: {found.disorder.rows:,} of {rows:,} rows were measured")
        bench.say(f"{name}: {rate:,.0f} rows/s")
        figures.append(Figure(name, "rows/s", rate, least=_LEAST if name.startswith("Parquet") else None))
    return figures


def _of_a_data_frame(bench: Bench, files: Path) -> Advice:
    return advised(bench.spark.read.parquet(str(files)), time="ts", split_by="user", order_by="ts")
