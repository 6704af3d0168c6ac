"""Cost of the memory that operators have of their splits, for `why`."""

from __future__ import annotations

import statistics
import time
from contextlib import nullcontext
from pathlib import Path
from unittest.mock import patch

from benchmarks.bench import Bench
from benchmarks.data import FILES_PER_BATCH
from benchmarks.figures import Figure
from benchmarks.queries import TUMBLING, Job, sums
from eventide.common import Types
from eventide.datastream.connectors import FileSource
from eventide.local.runner import LocalRunner
from eventide.runtime.observation.histograms import TimestampSummary
from eventide.testing import local_environment

_ROUNDS = 7
_ROW = Types.ROW_NAMED(["user", "ts", "value"], [Types.STRING(), Types.SQL_TIMESTAMP(), Types.LONG()])


def why(bench: Bench) -> list[Figure]:
    """CPU of a million rows, files to windows on columns without Spark: with what `why` asks for, and without it."""
    data = bench.data(1_000, few=True)
    files = bench.files(data)
    rows = data.batches * data.rows_per_batch
    seconds: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(_ROUNDS + 1):
        for remembers, taken in seconds.items():
            taken.append(_cpu_s(files, remembers))
    per_million = {remembers: statistics.median(taken[1:]) / rows * 1e9 for remembers, taken in seconds.items()}
    return [Figure("CPU of a million rows", "ms", per_million[True], per_million[False], "without it", most=1.03)]


def _cpu_s(files: Path, remembers: bool) -> float:
    """The seconds of CPU that a job takes in this process."""
    env = local_environment()
    source = FileSource.parquet(str(files), type_info=_ROW).set_max_files_per_batch(FILES_PER_BATCH).build()
    job = Job(files, TUMBLING)
    runner = LocalRunner(env.get_plan(sums(env.from_source(source, job.strategy(), "events"), job)))
    nothing = patch.object(TimestampSummary, "see", lambda arrivals, timestamps: None)
    with nullcontext() if remembers else nothing:
        started = time.process_time()
        for _ in runner.batches():
            pass
        return time.process_time() - started
