"""A function on the elements of many keys, on Spark: it fails, starts again, and gives each result once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from eventide.common import JobStatus, RestartStrategies, Row, Types, WatermarkStrategy
from eventide.datastream import StreamExecutionEnvironment
from eventide.datastream.connectors import CollectSink
from eventide.datastream.functions import VectorizedKeyedProcessFunction
from eventide.datastream.state import ValueStateDescriptor
from support.steps import in_steps

pytestmark = pytest.mark.spark

SECOND = Types.ROW_NAMED(["key", "shard", "at", "n"], [Types.STRING(), Types.INT(), Types.LONG(), Types.LONG()])
TOTAL = Types.ROW_NAMED(["key", "at", "total"], [Types.STRING(), Types.LONG(), Types.LONG()])
ELEMENTS = [Row(key="abc"[n % 3], shard=n % 2, at=n * 10, n=n) for n in range(60)]


class Totals(VectorizedKeyedProcessFunction):
    """Adds up by key, and tells the total 100 ms later; it fails once at one element."""

    def __init__(self, failure: Path) -> None:
        self._failure = failure

    def open(self, runtime_context: Any) -> None:
        self._total = runtime_context.get_vectorized_state(ValueStateDescriptor("total", Types.LONG()))

    def process_batch(self, batch: pa.RecordBatch, ctx: VectorizedKeyedProcessFunction.Context) -> None:
        sums = np.zeros(len(ctx.distinct_keys), np.int64)
        np.add.at(sums, ctx.key_numbers, batch.column("n").to_numpy())
        self._total.put(ctx.distinct_keys, pc.add(self._total.get(ctx.distinct_keys).fill_null(0), sums))
        ctx.timer_service().register_event_time_timers(ctx.keys, pc.add(ctx.timestamps, 100))
        if 40 in batch.column("n").to_pylist() and self._failure.exists():
            self._failure.unlink()
            raise ConnectionError("no answer")

    def on_timers(self, timestamps: pa.Array, ctx: VectorizedKeyedProcessFunction.OnTimersContext) -> None:
        names = pc.struct_field(ctx.keys, "key")
        totals = self._total.get(ctx.keys)
        ctx.collect(pa.record_batch({"key": names, "at": timestamps, "total": totals}))


@in_steps
@pytest.mark.filterwarnings("ignore:.*temporary directory")
def test_a_function_on_columns_goes_on_after_a_failure(spark: object, tmp_path: Path) -> None:
    failure = tmp_path / "failure"
    failure.touch()
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2).set_max_rows_per_batch(15)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 10))
    in_time = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("at")
    elements = env.from_collection(ELEMENTS, SECOND).assign_timestamps_and_watermarks(in_time)
    elements.key_by("key", "shard").process(Totals(failure), TOTAL).sink_to(CollectSink())
    job = env.execute_async("totals")
    found = sorted((row.at, row.key, row.total) for row in job.collected())
    assert job.get_job_status().result() is JobStatus.FINISHED
    assert len(job.get_restarts()) == 1
    assert [(at, key) for at, key, _ in found] == sorted((element.at + 100, element.key) for element in ELEMENTS)
    of_key: dict[tuple[str, int], int] = {}
    for element in ELEMENTS:
        of_key[element.key, element.shard] = of_key.get((element.key, element.shard), 0) + element.n
    last = {(key, at // 10 % 2): total for at, key, total in found}
    assert last == of_key
