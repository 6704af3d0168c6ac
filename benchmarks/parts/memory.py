"""Memory of a million open windows: bytes of state, and memory of a Python worker."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.bench import Bench, Run
from benchmarks.figures import Figure
from benchmarks.queries import PARALLELISM, TUMBLING, Job, environment, spark_sums, sums_of_files
from eventide.spark.host import settings_for_start
from eventide.spark.session.make import CHANGELOG, ROW_COUNT

_NOTHING_CLOSES_S = 24 * 60 * 60
_ROWS_PER_PAIR = 5
_WINDOWS = 10  # of 5 s in the 50 s that a micro-batch covers


def memory(bench: Bench) -> list[Figure]:
    """Windows of 5 s that stay open, each touched by every micro-batch."""
    keys = bench.sizes.rows_per_batch // _ROWS_PER_PAIR // _WINDOWS
    data = bench.data(keys, few=True, still=True)
    job = Job(bench.files(data), TUMBLING, disorder_s=_NOTHING_CLOSES_S)

    def by_eventide(place: Path) -> StreamingQuery:
        return _with_snapshots(bench, sums_of_files(environment(bench.spark, place), job).to_data_frame(), place)

    def by_spark(place: Path) -> StreamingQuery:
        return _with_snapshots(bench, spark_sums(bench.spark, job), place)

    with PeakOfWorkers() as peak:
        ours = bench.run("open windows, eventide", by_eventide)
    theirs = bench.run("open windows, Spark", by_spark)
    pairs = _state(theirs)[-1].numRowsTotal
    figures = []
    for batch in (0, data.batches - 2):  # in the last one the source ends, and all windows close
        sizes = [int(_state(run)[batch].customMetrics["rocksdbSstFileSize"]) / pairs for run in (ours, theirs)]
        figures.append(
            Figure(f"state of a pair of {pairs:,}, after {batch + 1} of {data.batches} micro-batches", "bytes", *sizes)
        )
    figures.append(Figure("highest resident memory of a Python worker", "MB", peak.bytes / 1_000_000))
    bench.clear(ours, theirs)
    return figures


def _with_snapshots(bench: Bench, rows: DataFrame, place: Path) -> StreamingQuery:
    """Start a query that stores all of its state at every micro-batch, not only changes: so its size is known."""
    writer = rows.writeStream.format("parquet").option("path", str(place / "out")).trigger(availableNow=True)
    with settings_for_start(bench.spark, PARALLELISM):
        bench.spark.conf.set(CHANGELOG, "false")
        bench.spark.conf.set(ROW_COUNT, "true")
        return writer.option("checkpointLocation", str(place / "checkpoint")).start()


def _state(run: Run) -> list[Any]:
    return [progress.stateOperators[0] for progress in run.query.recentProgress if progress.stateOperators]


class PeakOfWorkers:
    """Looks at the memory of this process's Python workers, ten times a second."""

    def __init__(self) -> None:
        self.bytes = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> PeakOfWorkers:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(0.1):
            self.bytes = max(self.bytes, _largest_worker())


def _largest_worker() -> int:
    """The resident memory of the largest worker in bytes; 0 while there is none."""
    import psutil  # late: it is not needed to know which parts there are

    largest = 0
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # it has just ended
            if "pyspark.daemon" in process.cmdline():
                largest = max(largest, process.memory_info().rss)
    return largest
