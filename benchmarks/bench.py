"""Common means of all parts: the session, the data, a place for files, and how a query is timed."""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from rich.console import Console

from benchmarks.data import DataSet
from benchmarks.queries import PARALLELISM
from benchmarks.sizes import Sizes
from eventide.common import Configuration
from eventide.datastream import StreamExecutionEnvironment

_ROUNDS = 3
Start = Callable[[Path], StreamingQuery]
"""Starts a query, which may write below the folder that it gets."""


@dataclass(frozen=True)
class Run:
    """A query that has ended."""

    query: StreamingQuery
    place: Path

    @property
    def seconds(self) -> list[float]:
        """How long each micro-batch took."""
        return [
            progress.durationMs["triggerExecution"] / 1_000
            for progress in self.query.recentProgress
            if "addBatch" in progress.durationMs
        ]

    @property
    def output(self) -> Path:
        """The folder of the Parquet files that the query has written."""
        return self.place / "out"

    def steady(self, warm_up: int, batches: int) -> float:
        """The median time of the micro-batches after the first few, without the last that has data."""
        return statistics.median(self.seconds[warm_up : batches - 1])


class Bench:
    """One session, in which everything is measured."""

    def __init__(self, place: Path, sizes: Sizes, console: Console, jars: Iterable[Path] = ()) -> None:
        self.sizes = sizes
        self.place = place
        self.console = console
        self.spark = _session(jars)
        self._runs = 0
        self.throughputs: dict[tuple[DataSet, str], float] = {}
        """Rows a second of tumbling windows, which several parts show."""

    def data(
        self, keys: int, *, few: bool = False, bursts: bool = False, hot: bool = False, still: bool = False
    ) -> DataSet:
        """The recipe of data in the sizes of this run."""
        batches = self.sizes.few_batches if few else self.sizes.batches
        return DataSet(keys, batches, self.sizes.rows_per_batch, bursts, hot, still)

    def warming_data(self) -> DataSet:
        """The recipe of a little data."""
        return DataSet(keys=1_000, batches=3, rows_per_batch=100_000)

    def files(self, data: DataSet) -> Path:
        """Where data is, which is written when it is first asked for."""
        folder = self.place / "data" / data.name
        if not folder.exists():
            self.say(f"writing the data {data.name}")
            data.write(folder)
        return folder

    def in_turn(self, starts: Mapping[str, Start]) -> dict[str, list[Run]]:
        """Run several queries in turn, three times, and return the runs of each; the output of the last is kept.

        The JVM compiles what it runs often, so the first rounds are slower, and what else the machine does only makes a
        run worse: the best run of each counts.
        """
        runs: dict[str, list[Run]] = {what: [] for what in starts}
        for _ in range(_ROUNDS):
            for what, start in starts.items():
                self.clear(*runs[what])
                runs[what].append(self.run(what, start))
        return runs

    def run(self, what: str, start: Start) -> Run:
        """Run a query to its end.

        Args:
            what: its name, for the viewer.
            start: starts it.
        """
        self._runs += 1
        place = self.place / f"run-{self._runs:03d}"
        query = start(place)
        query.awaitTermination()
        run = Run(query, place)
        self.say(f"{what}: " + " ".join(f"{seconds:.2f}" for seconds in run.seconds) + " s")
        return run

    def warm_up(self, data: DataSet) -> int:
        """How many of its micro-batches are not counted."""
        return 1 if data.batches <= self.sizes.few_batches else self.sizes.warm_up

    def throughput(self, run: Run, data: DataSet) -> float:
        """Rows a second in the steady micro-batches."""
        return data.rows_per_batch / run.steady(self.warm_up(data), data.batches)

    def clear(self, *runs: Run) -> None:
        """Delete what queries have written."""
        for run in runs:
            shutil.rmtree(run.place, ignore_errors=True)

    def say(self, text: str) -> None:
        """Tell the viewer."""
        self.console.print(f"[dim]{text}[/]", highlight=False)


def _session(jars: Iterable[Path]) -> SparkSession:
    """The session of both sides, as eventide makes one, on two cores; with jars for Spark's side."""
    settings = {
        "spark.master": f"local[{PARALLELISM}]",
        "spark.driver.memory": "6g",
        "spark.sql.shuffle.partitions": str(PARALLELISM),
        "spark.jars": ",".join(map(str, jars)),
    }
    StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    return SparkSession.active()
