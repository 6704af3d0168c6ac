"""Rows a second, beside Spark's own windows."""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.bench import Bench
from benchmarks.checking import check_same, flat
from benchmarks.data import DataSet
from benchmarks.figures import Figure, shown
from benchmarks.queries import OURS, SESSIONS, SIDES, SLIDING, TUMBLING, Job, Windows

KEYS = (1_000, 10_000, 100_000, 1_000_000)


def tumbling_few_keys(bench: Bench) -> list[Figure]:
    """Tumbling windows of 5 s, 1,000 keys."""
    rates = measured(bench, bench.data(1_000), TUMBLING, SIDES)
    return _figures(rates, {"FileSource": 1.4, "from_data_frame": 0.7})


def tumbling_many_keys(bench: Bench) -> list[Figure]:
    """Tumbling windows of 5 s, 100,000 keys."""
    rates = measured(bench, bench.data(100_000), TUMBLING, SIDES)
    return _figures(rates, {"FileSource": 6, "from_data_frame": 4})


def sliding(bench: Bench) -> list[Figure]:
    """Sliding windows of 60 s by 5 s, 10,000 keys."""
    rates = measured(bench, bench.data(10_000), SLIDING, SIDES)
    return _figures(rates, {"FileSource": 8, "from_data_frame": 5})


def sessions(bench: Bench) -> list[Figure]:
    """Sessions with a gap of 1 s, 10,000 keys that are active in bursts."""
    rates = measured(bench, bench.data(10_000, bursts=True), SESSIONS, SIDES)
    return _figures(rates, {"FileSource": 2, "from_data_frame": 2})


def keys(bench: Bench) -> list[Figure]:
    """Tumbling windows of 5 s as keys grow, and with a key that has half of all rows."""
    sides = ("Spark", "FileSource")
    rates = {f"{n:,} keys": measured(bench, _grown(bench, n), TUMBLING, sides) for n in KEYS}
    rates["100,000 keys, half of all rows of one"] = measured(
        bench, bench.data(100_000, few=True, hot=True), TUMBLING, sides
    )
    return [Figure(what, "rows/s", rate["FileSource"], rate["Spark"]) for what, rate in rates.items()]


def _grown(bench: Bench, keys: int) -> DataSet:
    return bench.data(keys, few=keys == max(KEYS))


def measured(bench: Bench, data: DataSet, windows: Windows, sides: Iterable[str]) -> dict[str, float]:
    """Rows a second of each side, by its name, after a check that all gave the same rows."""
    known = bench.throughputs if windows is TUMBLING else {}
    if not all((data, side) in known for side in sides):
        job = Job(bench.files(data), windows)
        bench.say(data.name)
        starts = {side: lambda place, side=side: SIDES[side](bench.spark, job, place) for side in sides}
        runs = bench.in_turn(starts)
        rates = {side: max(bench.throughput(run, data) for run in some) for side, some in runs.items()}
        known |= {(data, side): rate for side, rate in rates.items()}
        bench.say("  " + ", ".join(f"{side} {shown(rate, 'rows/s')}" for side, rate in rates.items()))
        last = {side: some[-1] for side, some in runs.items()}
        same = check_same({side: flat(bench.spark.read.parquet(str(run.output))) for side, run in last.items()})
        bench.say(f"  all gave the same {same:,} rows")
        bench.clear(*last.values())
    return {side: known[data, side] for side in sides}


def _figures(rates: dict[str, float], least: dict[str, float]) -> list[Figure]:
    return [Figure(side, "rows/s", rates[side], rates["Spark"], least=least[side]) for side in OURS]
