"""The demo's job: readings by station and hour, with a watermark for each station; and the fate of every reading."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eventide.cli.demo.readings import BOUND_MS, HOUR_MS, STATIONS, Counts, hour_of

OPERATOR = "temperatures"


@dataclass(frozen=True, slots=True)
class EventideCount:
    """Result of eventide: the counts, the late readings that were handed over, and the last watermark."""

    counts: Counts
    late: Counts
    watermark_ms: int


def counted_by_eventide(readings: Any, parallelism: int, checkpoint: Path) -> EventideCount:
    """Count the readings of a streaming DataFrame, and take the mean of them."""
    from eventide.aggregates import count, mean
    from eventide.api.windows import TumblingEventTimeWindows
    from eventide.common import Duration, Time, WatermarkStrategy
    from eventide.connectors.sink import CollectSink
    from eventide.datastream import OutputTag, StreamExecutionEnvironment

    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism).set_available_now()
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(checkpoint))
    bound = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(BOUND_MS))
    too_late = OutputTag("too late")
    by_hour = (
        env.from_data_frame(
            readings, bound.with_timestamp_assigner("measured_at"), split_by=["station"], splits=list(STATIONS)
        )
        .key_by("station")
        .window(TumblingEventTimeWindows.of(Time.hours(1)))
        .side_output_late_data(too_late)
        .aggregate(count().alias("readings"), mean("celsius").alias("celsius"))
        .name(OPERATOR)
    )
    by_hour.sink_to(CollectSink()).name("by hour")
    by_hour.get_side_output(too_late).sink_to(CollectSink()).name("too late")
    job = env.execute_async("demo")
    rows = [row.as_dict() for row in job.collected()]
    return EventideCount(
        counts=Counter({(row["station"], row["window"].start): row["readings"] for row in rows if "window" in row}),
        late=Counter((row["station"], hour_of(row["measured_at"])) for row in rows if "window" not in row),
        watermark_ms=job.get_progress()[-1].watermarks[OPERATOR],
    )


@dataclass(frozen=True, slots=True)
class Fate:
    """Fate of the readings on one side; ``lost`` are those that were in no result and were not handed over."""

    readings: int
    counted: int
    waiting: int
    late: int
    lost: int
    hours_too_low: int


def fate_of(truth: Counts, counts: Counts, late: Counts, watermark_ms: int) -> Fate:
    """Account for all readings.

    Those of hours that the watermark has not passed are waiting, in state; of the others, what is neither counted nor
    late is lost.

    Args:
        truth: all readings, counted at rest.
        counts: what was counted in the hours that have a result.
        late: what was handed over as too late.
        watermark_ms: the last watermark. An hour is over when it is one millisecond before the hour's end.
    """
    over = Counter({key: number for key, number in truth.items() if key[1] + HOUR_MS - 1 <= watermark_ms})
    missing = over - counts - late
    return Fate(
        readings=truth.total(),
        counted=counts.total(),
        waiting=truth.total() - over.total(),
        late=late.total(),
        lost=missing.total(),
        hours_too_low=len(over - counts),
    )
