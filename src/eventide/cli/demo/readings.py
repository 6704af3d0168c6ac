"""The demo's readings: how they were made, the stream of them, and what becomes of each of them in the demo's job.

Three weather stations send a temperature every 15 seconds for a day. What they send takes three minutes on its way, on
average, and some of it much longer. At six in the morning the line of one station gets slow: it carries two thirds of
what there is to send, until the station is three hours behind, and stays so. ``python -m eventide.cli.demo.readings``
makes the same readings once more.
"""

from __future__ import annotations

import math
import os
import random
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

FILE = Path(__file__).parent / "readings.parquet"
STATIONS = ("coast", "hills", "north")
LAGGING = "north"

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
FIRST_MS = 1_782_000_000_000 // DAY_MS * DAY_MS
"""The midnight at which the day begins, in UTC."""

BOUND_MS = 300_000
"""How far readings of a station may be out of order and not be late."""

EVERY_MS = 5_700_000
"""Length of time whose arrivals are one micro-batch."""

SCHEMA = pa.schema(
    [
        ("station", pa.string()),
        ("measured_at", pa.timestamp("ms", "UTC")),
        ("arrived_at", pa.timestamp("ms", "UTC")),
        ("celsius", pa.float64()),
    ]
)

ReadingCounts: TypeAlias = Counter[tuple[str, int]]
"""Readings by station and hour, which is the millisecond at which it begins."""


def read() -> pa.Table:
    """All readings, in the order in which they arrived."""
    return pq.read_table(FILE, schema=SCHEMA)


def write_stream(readings: pa.Table, folder: Path) -> int:
    """Write the stream as files, one for each micro-batch; return how many there are."""
    folder.mkdir(parents=True)
    since_ms = pc.subtract(readings["arrived_at"].cast(pa.int64()), FIRST_MS)
    numbers = pc.divide(since_ms, EVERY_MS)
    count = int(pc.max(numbers).as_py()) + 1
    for number in range(count):
        path = folder / f"{number:02}.parquet"
        pq.write_table(readings.filter(pc.equal(numbers, number)), path)
        os.utime(path, (1_000_000_000 + number,) * 2)  # Spark reads files in the order of their times
    return count


def counted_at_rest(readings: pa.Table) -> ReadingCounts:
    """The truth: readings by station and hour."""
    hours = pc.floor_temporal(readings["measured_at"], unit="hour").cast(pa.int64())
    keyed = pa.table({"station": readings["station"], "hour": hours})
    rows = keyed.group_by(["station", "hour"]).aggregate([([], "count_all")]).to_pylist()
    return Counter({(row["station"], row["hour"]): row["count_all"] for row in rows})


def hour_of(measured_at: datetime) -> int:
    """The hour of a time in UTC, as `ReadingCounts` has it."""
    return round(measured_at.replace(minute=0, second=0, microsecond=0, tzinfo=UTC).timestamp() * 1_000)


_EVERY_MS = 15_000
_ON_ITS_WAY_MS = 180_000
_SLOW_SINCE_MS = 6 * HOUR_MS
_FARTHEST_BEHIND_MS = 3 * HOUR_MS


def made() -> pa.Table:
    """Return the readings that had arrived by the end of the day, in the order of arrival."""
    chance = random.Random(2026)
    rows = []
    for place, station in enumerate(STATIONS):
        for since_ms in range(place * 5_000, DAY_MS, _EVERY_MS):
            behind_ms = _behind_ms(since_ms) if station == LAGGING else 0
            arrived_ms = since_ms + behind_ms + round(chance.expovariate(1 / _ON_ITS_WAY_MS))
            warmth = 14 + 3 * place - 6 * math.cos(2 * math.pi * (since_ms / DAY_MS - 0.1))
            celsius = round(warmth + chance.gauss(0, 0.3), 1)
            if arrived_ms < DAY_MS:
                rows.append((arrived_ms, station, since_ms, celsius))
    rows.sort()
    columns = [
        [station for _, station, _, _ in rows],
        [FIRST_MS + since_ms for _, _, since_ms, _ in rows],
        [FIRST_MS + arrived_ms for arrived_ms, _, _, _ in rows],
        [celsius for _, _, _, celsius in rows],
    ]
    return pa.table([pa.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=True)], SCHEMA)


def _behind_ms(since_ms: int) -> int:
    """Lag of the slow line for readings that were measured `since_ms` after midnight."""
    return min(max(0, since_ms - _SLOW_SINCE_MS) // 2, _FARTHEST_BEHIND_MS)


def write(file: Path) -> None:
    """Write the readings."""
    pq.write_table(made(), file, compression="zstd", compression_level=19)


OPERATOR = "temperatures"


@dataclass(frozen=True, slots=True)
class EventideCount:
    """Result of eventide: the counts, the late readings that were handed over, and the last watermark."""

    counts: ReadingCounts
    late: ReadingCounts
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
    """Fate of the readings on one side; ``lost`` are those that are missing from results and from late data."""

    readings: int
    counted: int
    waiting: int
    late: int
    lost: int
    hours_too_low: int


def fate_of(truth: ReadingCounts, counts: ReadingCounts, late: ReadingCounts, watermark_ms: int) -> Fate:
    """Account for all readings.

    Those of hours that the watermark has not passed are waiting, in state; of the others, what is neither counted nor
    late is lost.

    Args:
        truth: all readings, counted at rest.
        counts: the number of readings in the hours that have a result.
        late: the number of readings that were handed over as too late.
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


if __name__ == "__main__":
    write(FILE)
