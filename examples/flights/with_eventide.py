"""The count with eventide: one watermark for each airport, and late flights on a side output."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from flights import AIRPORTS, BOUND, Counts, hour_of

from eventide.common import Duration, Row, Time, WatermarkStrategy
from eventide.common.job import BatchProgress
from eventide.datastream import OutputTag, StreamExecutionEnvironment
from eventide.datastream.connectors import CollectSink
from eventide.datastream.functions import AggregateFunction, WindowFunction
from eventide.datastream.window import TimeWindow, TumblingEventTimeWindows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Count(AggregateFunction):
    """Counts elements."""

    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Row, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


class WithAirportAndHour(WindowFunction[int, tuple[str, int, int], str, TimeWindow]):
    """Puts the airport and the start of the hour before the count."""

    def apply(self, key: str, window: TimeWindow, inputs: Iterable[int]) -> Iterator[tuple[str, int, int]]:
        for count in inputs:
            yield key, window.start, count


@dataclass(frozen=True)
class EventideResult:
    """Result of eventide: the counts, the late rows that it handed over, and its progress."""

    counts: Counts
    late: list[Row]
    rows_in: int
    metric: int
    progress: list[BatchProgress]


def count_with_eventide(env: StreamExecutionEnvironment, reports: DataFrame, checkpoint: Path) -> EventideResult:
    """Count the departures of each airport and hour."""
    bound = Duration.of_seconds(int(BOUND.total_seconds()))
    too_late = OutputTag("too late")
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(bound).with_timestamp_assigner("took_off")
    counts = (
        env.from_data_frame(reports, strategy, split_by=["origin"], splits=list(AIRPORTS))
        .key_by(lambda flight: flight.origin)
        .window(TumblingEventTimeWindows.of(Time.hours(1)))
        .side_output_late_data(too_late)
        .aggregate(Count(), WithAirportAndHour())
        .name("departures")
    )
    counts.sink_to(CollectSink())
    counts.get_side_output(too_late).sink_to(CollectSink())

    env.set_available_now()  # end when all that is there has been read
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(checkpoint))
    job = env.execute_async("eventide")
    results = list(job.collected())

    metrics = job.get_metrics()["departures"]
    return EventideResult(
        counts=Counter({(r[0], hour_of(r[1])): r[2] for r in results if not isinstance(r, Row)}),
        late=[r for r in results if isinstance(r, Row)],
        rows_in=metrics["numRecordsIn"],
        metric=metrics.get("numLateRecordsToSideOutput", 0),
        progress=job.get_progress(),
    )
