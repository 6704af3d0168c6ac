"""Cost of calls to the state store from Python."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from benchmarks.bench import Bench
from benchmarks.figures import Figure
from eventide.spark.host import settings_for_start

_CALLS = {100: 200, 10_000: 200, 1_000_000: 20}
"""How often, by size of the value in bytes."""


def state_calls(bench: Bench) -> list[Figure]:
    """A put and a get, by size of the value."""
    with settings_for_start(bench.spark, 1):
        rows = (
            bench.spark.createDataFrame([(0,)], "key INT")
            .groupBy("key")
            .transformWithStateInPandas(StateCalls(), "call STRING, size LONG, ms DOUBLE", "Append", "None")
            .collect()
        )
    return [Figure(f"{row.call} of {row.size:,} bytes", "ms", row.ms) for row in rows]


class StateCalls(StatefulProcessor):
    """Times calls."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getMapState("values", "name STRING", "content BINARY")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        for size, calls in _CALLS.items():
            content = bytes(size)
            put = _per_call(lambda i, c=content: self._state.updateValue((str(i),), (c,)), calls)
            get = _per_call(lambda i: self._state.getValue((str(i),)), calls)
            yield pd.DataFrame({"call": ["put", "get"], "size": [size, size], "ms": [put, get]})

    def close(self) -> None:
        pass


def _per_call(call: Callable[[int], Any], calls: int) -> float:
    """Milliseconds of one call."""
    started = time.perf_counter()
    for i in range(calls):
        call(i)
    return (time.perf_counter() - started) / calls * 1_000
