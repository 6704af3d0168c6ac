"""The demo's readings: a file of this package, and the stream that is made of it."""

from __future__ import annotations

import os
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

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

Counts: TypeAlias = Counter[tuple[str, int]]
"""Readings by station and hour, which is the millisecond at which it begins."""


def read() -> pa.Table:
    """All of them, in the order in which they arrived."""
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


def counted_at_rest(readings: pa.Table) -> Counts:
    """The truth: readings by station and hour."""
    hours = pc.floor_temporal(readings["measured_at"], unit="hour").cast(pa.int64())
    keyed = pa.table({"station": readings["station"], "hour": hours})
    rows = keyed.group_by(["station", "hour"]).aggregate([([], "count_all")]).to_pylist()
    return Counter({(row["station"], row["hour"]): row["count_all"] for row in rows})


def hour_of(measured_at: datetime) -> int:
    """The hour of a time in UTC, as `Counts` has it."""
    return round(measured_at.replace(minute=0, second=0, microsecond=0, tzinfo=UTC).timestamp() * 1_000)
