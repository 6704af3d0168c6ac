"""Cost of a micro-batch, and of what is kept of it, as there are more splits, and more files that have been read."""

from __future__ import annotations

import json
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.parts.growth import written_by_batch
from benchmarks.parts.watermarks import Meters
from benchmarks.queries import TUMBLING, Job, environment, query_of, sums
from eventide.common import Duration, Types, WatermarkStrategy
from eventide.datastream.connectors import FileSource, FormatSink
from eventide.datastream.window import TumblingEventTimeWindows

_ROWS = 100_000
_BATCHES = 6
"""Micro-batches of a job with many splits; the first two are not counted."""
_FILES = 6
"""Files that come one by one when many have been read; the first two are not counted."""
_PATIENCE_S = 120.0
_EACH_MS = 1_000


@dataclass(frozen=True)
class Kept:
    """Cost of a micro-batch in milliseconds, and what is kept of it, in kB."""

    ms: float
    offsets: float
    report: float
    state: float


def many_splits(bench: Bench) -> list[Figure]:
    """Rows that are born in Python, in 1 to 10,000 splits that all have some in each micro-batch."""
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(2)).with_timestamp_assigner("ts")

    def cost(splits: int) -> Kept:
        def start(place: Path) -> StreamingQuery:
            env = environment(bench.spark, place)
            source = Meters(splits, max(_ROWS, splits), _BATCHES)
            sums(env.from_source(source, strategy, "meters"), Job(place, TUMBLING)).sink_to(FormatSink("noop", {}))
            return query_of(env)

        run = bench.run(f"{splits:,} splits", start)
        kept = _kept(run.query, run.place, run.seconds[2 : _BATCHES - 1])
        bench.clear(run)
        return kept

    return _figures({n: cost(n) for n in bench.sizes.splits}, "splits")


def many_files(bench: Bench) -> list[Figure]:
    """One more file of one line, in a directory with 1 to 100,000 files that have been read."""
    return _figures({n: _with_files(bench, n) for n in bench.sizes.finished_files}, "files read before")


def _with_files(bench: Bench, count: int) -> Kept:
    place = bench.place / f"files-{count}"
    folder = place / "in"
    folder.mkdir(parents=True)
    for number in range(count):  # not links to one file: a file system allows only some ten thousand of them
        (folder / f"part-{number:07}.txt").write_text("1\n")
    env = environment(bench.spark, place)
    source = FileSource.text(str(folder)).monitor_continuously(Duration(0)).build()
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda line, _: int(line))
    lines = env.from_source(source, strategy, "lines").key_by(lambda line: line, Types.STRING())
    windows = lines.window(TumblingEventTimeWindows.of(_EACH_MS)).reduce(max)
    windows.sink_to(FormatSink("noop", {}))
    query = query_of(env)
    took: list[float] = []
    try:
        _batch(query, -1)
        for number in range(_FILES):
            before = query.lastProgress.batchId
            hidden = folder / f".new-{number}"
            hidden.write_text(f"{(number + 1) * _EACH_MS}\n")
            hidden.rename(folder / f"new-{number}.txt")
            took.append(_batch(query, before))
        kept = _kept(query, place, took[2:])
    finally:
        query.stop()
    bench.say(f"{count:,} files: " + " ".join(f"{seconds:.2f}" for seconds in took) + " s")
    return kept


def _batch(query: StreamingQuery, after: int) -> float:
    """The seconds of the next micro-batch with data.

    Raises:
        RuntimeError: if it does not come.
    """
    until = time.monotonic() + _PATIENCE_S
    while query.isActive and time.monotonic() < until:
        progress = query.lastProgress
        if progress is not None and progress.batchId > after and "addBatch" in progress.durationMs:
            return float(progress.durationMs["triggerExecution"]) / 1_000
        time.sleep(0.02)
    raise RuntimeError(f"there was no micro-batch after {after}: {query.exception()}")


def _kept(query: StreamingQuery, place: Path, seconds: list[float]) -> Kept:
    reports = [one for one in query.recentProgress if "addBatch" in one.durationMs]
    logs = {int(path.name): path.stat().st_size for path in (place / "checkpoint" / "offsets").glob("[0-9]*")}
    written = written_by_batch(place / "checkpoint")
    last = max(logs)
    return Kept(
        statistics.median(seconds) * 1_000,
        logs[last] / 1_000,
        statistics.median(len(json.dumps(json.loads(one.json))) for one in reports[-3:]) / 1_000,
        statistics.median(written.get(batch, 0) for batch in range(last - 2, last + 1)) / 1_000,
    )


def _figures(costs: dict[int, Kept], what: str) -> list[Figure]:
    fewest = min(costs)
    beside = f"{fewest:,}"
    first = costs[fewest]
    figures = []
    for count, cost in costs.items():
        named = f"{what}: {count:,}"
        figures += [
            Figure(named, "ms", cost.ms, first.ms if count > fewest else None, beside),
            Figure(f"{named}; offsets of a micro-batch", "kB", cost.offsets),
            Figure(f"{named}; a report of progress", "kB", cost.report),
            Figure(f"{named}; state written in a micro-batch", "kB", cost.state),
        ]
    return figures
