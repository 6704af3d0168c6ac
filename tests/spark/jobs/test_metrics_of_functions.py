"""Metrics of functions come out of a job on Spark as they do without it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from eventide.common import Types, WatermarkStrategy
from eventide.datastream import (
    KeyedProcessFunction,
    MapFunction,
    RuntimeContext,
    RuntimeExecutionMode,
    SourceFunction,
    StreamExecutionEnvironment,
)
from eventide.datastream.connectors import NumberSequenceSource
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.testing import local_environment
from support.steps import in_steps

pytestmark = pytest.mark.spark

MONOTONOUS = WatermarkStrategy.for_monotonous_timestamps()


class Maps(MapFunction):
    """Counts odd and even numbers."""

    def open(self, runtime_context: RuntimeContext) -> None:
        group = runtime_context.get_metrics_group()
        self.counters = [group.add_group("numbers", name).counter("seen") for name in ("even", "odd")]

    def map(self, value: int) -> int:
        self.counters[value % 2].inc()
        return value


class Measures(KeyedProcessFunction):
    """Has one metric of each kind."""

    def open(self, runtime_context: RuntimeContext) -> None:
        group = runtime_context.get_metrics_group()
        self.index = runtime_context.get_index_of_this_subtask()
        self.sizes, self.events = group.distribution("sizes"), group.meter("events", 10_000_000)
        group.gauge("index", lambda: self.index)

    def process_element(self, value: int, ctx: Any) -> Iterable[int]:
        self.events.mark_event()
        self.sizes.update(value)
        yield value


class Emits(SourceFunction):
    """Ten numbers."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.emitted = runtime_context.get_metrics_group().counter("emitted")

    def run(self, ctx: Any) -> None:
        for number in range(10):
            self.emitted.inc()
            ctx.collect(number)

    def cancel(self) -> None:
        """Ends by itself."""


def metrics(env: StreamExecutionEnvironment) -> dict[str, dict[str, Any]]:
    strategy = MONOTONOUS.with_timestamp_assigner(lambda number, _: number)
    numbers = env.from_source(NumberSequenceSource(0, 99, splits=3), strategy, "numbers").map(Maps()).name("maps")
    measured = numbers.key_by(lambda n: n % 7, Types.LONG()).process(Measures(), Types.LONG()).name("measures")
    windows = measured.key_by(lambda n: n % 2, Types.LONG()).window(TumblingEventTimeWindows.of(10))
    windows.reduce(max).map(Maps()).name("maps behind").print()
    return env.execute("metrics").metrics


@in_steps
@pytest.mark.parametrize("mode", [RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.BATCH])
def test_metrics_of_functions_come_out_of_a_job_on_spark(
    env: StreamExecutionEnvironment, mode: RuntimeExecutionMode
) -> None:
    found = metrics(env.set_runtime_mode(mode).set_max_rows_per_batch(20))
    expected = metrics(local_environment().set_runtime_mode(mode))
    assert found["measures"].pop("index") == {0: 0, 1: 1}
    assert expected["measures"].pop("index") == {0: 0, 1: 1}
    assert found == expected
    assert found["maps"].items() >= {"numbers.even.seen": 50, "numbers.odd.seen": 50}.items()
    assert found["measures"] == {
        "numRecordsIn": 100,
        "numRecordsOut": 100,
        "events": {"count": 100, "rate": 0.00001},
        "sizes": {"count": 100, "sum": 4950, "min": 0, "max": 99, "mean": 49.5},
    }


def test_what_a_source_function_counts_comes_out(env: StreamExecutionEnvironment) -> None:
    env.add_source(Emits(), "emits", Types.LONG()).print()
    assert env.execute("emits").metrics["emits"] == {"numRecordsOut": 10, "emitted": 10}
