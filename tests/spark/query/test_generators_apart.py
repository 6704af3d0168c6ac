"""Elements that go past their generator, keys and times by expressions, on Spark: the results are those without it."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from eventide.aggregates import count, sum_
from eventide.common import (
    BatchWatermarkOutput,
    Row,
    Types,
    VectorizedWatermarkGenerator,
    Watermark,
    WatermarkOutput,
    WatermarkStrategy,
)
from eventide.datastream import DataStream, OutputTag, ReduceFunction, StreamExecutionEnvironment
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.testing import local_environment
from support.steps import in_steps

pytestmark = pytest.mark.spark

EVENT = Types.ROW_NAMED(["user", "at", "value", "mark"], [Types.STRING(), *[Types.LONG()] * 3])
LATE = OutputTag("late", EVENT)
EVENTS = [
    Row(user=("ann", "Ann", "bob")[n % 3], at=n * 7 % 50 + n // 2, value=n, mark=int(n % 11 == 0)) for n in range(60)
]


class Marks(VectorizedWatermarkGenerator):
    """Emits after marked elements, so that what follows them within a micro-batch may be late."""

    columns = ("mark",)

    def on_batch(self, events: pa.RecordBatch, timestamps: pa.Array, output: BatchWatermarkOutput) -> None:
        assert events.schema.names == ["mark"]
        rows = pc.indices_nonzero(events.column("mark"))
        output.emit_watermarks(rows.cast(pa.int64()), timestamps.take(rows))

    def on_event(self, event: object, event_timestamp: int, output: WatermarkOutput) -> None:
        raise AssertionError("elements come as columns")

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        output.emit_watermark(Watermark(0))


class Adds(ReduceFunction):
    """Adds up the values, and keeps the other fields of the first."""

    def reduce(self, value1: Row, value2: Row) -> Row:
        return Row(user=value1.user, at=value1.at, value=value1.value + value2.value, mark=value1.mark)


def results(env: StreamExecutionEnvironment) -> list[str]:
    strategy = WatermarkStrategy.for_generator(Marks).with_timestamp_assigner(pc.field("at") + 1)
    events = env.from_collection(EVENTS, EVENT).assign_timestamps_and_watermarks(strategy)
    tens = TumblingEventTimeWindows.of(10)
    by_name = events.key_by("user").window(tens).side_output_late_data(LATE).aggregate(sum_("value"), count())
    by_expression = events.key_by(pc.utf8_lower(pc.field("user"))).window(tens).reduce(Adds())
    streams: list[DataStream[object]] = [by_name, by_name.get_side_output(LATE), by_expression]
    first, *others = (
        stream.map(lambda row, number=number: f"{number} {row!r}", Types.STRING())
        for number, stream in enumerate(streams)
    )
    with first.union(*others).execute_and_collect() as rows:
        return sorted(rows)


@in_steps
@pytest.mark.filterwarnings("ignore:.*temporary directory")
def test_spark_gives_the_results_of_this_process(spark: object) -> None:
    expected = results(local_environment())
    assert any(row.startswith("1 ") for row in expected)
    assert results(StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)) == expected
