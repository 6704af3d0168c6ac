"""The data: Parquet files, four for each micro-batch, which cover the same 50 seconds of event time.

A row is (user, ts, value, extra); `extra` is not used. Rows come up to a second too late. The files of a
micro-batch were changed before those of the next, so that every reader of four at a time, oldest first, reads the same.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SCHEMA = "user STRING, ts TIMESTAMP, value LONG, extra DOUBLE"
FILES_PER_BATCH = 4
BATCH_MS = 50_000
DISORDER_MS = 1_000
START_MS = 1_700_000_000_000

_BURST_EVERY_MS, _BURST_MS = 10_000, 3_000


@dataclass(frozen=True)
class DataSet:
    """A recipe.

    Attributes:
        keys: how many users there are.
        batches: how many micro-batches.
        rows_per_batch: how many rows each has.
        bursts: whether each user is active for 3 seconds of every 10, each at another time, instead of always.
        hot: whether every second row is of one user.
        still: whether all micro-batches cover the same time, so that the windows stay the same.
        other: whether it is the second of two streams: other rows of the same kind.
    """

    keys: int
    batches: int
    rows_per_batch: int
    bursts: bool = False
    hot: bool = False
    still: bool = False
    other: bool = False

    @property
    def name(self) -> str:
        """The name of its folder."""
        kinds = [kind for kind in ("bursts", "hot", "still", "other") if getattr(self, kind)]
        return "-".join([f"{self.keys}-keys", *kinds, f"{self.batches}x{self.rows_per_batch}"])

    def write(self, folder: Path) -> None:
        """Write all files; the same every time."""
        folder.mkdir(parents=True)
        random = np.random.default_rng([self.keys, self.other] if self.other else self.keys)
        users = pa.array([f"user-{number:07d}" for number in range(self.keys)])
        for batch in range(self.batches):
            for file in range(FILES_PER_BATCH):
                path = folder / f"part-{batch:03d}-{file}.parquet"
                pq.write_table(self._rows(random, users, batch), path, row_group_size=1 << 19, store_schema=False)
                changed = START_MS // 1_000 + batch * FILES_PER_BATCH + file
                os.utime(path, (changed, changed))

    def _rows(self, random: np.random.Generator, users: pa.Array, batch: int) -> pa.Table:
        count = self.rows_per_batch // FILES_PER_BATCH
        user = random.integers(0, self.keys, count)
        if self.hot:
            user[random.random(count) < 0.5] = 0
        times = self._bursts(random, user) if self.bursts else random.integers(0, BATCH_MS, count)
        arrival = np.argsort(times + random.integers(0, DISORDER_MS, count), kind="stable")
        start = START_MS + (0 if self.still else batch * BATCH_MS)
        return pa.table(
            {
                "user": pa.DictionaryArray.from_arrays(pa.array(user[arrival].astype(np.int32)), users),
                "ts": pa.array((start + times[arrival]) * 1_000).view(pa.timestamp("us", "UTC")),
                "value": random.integers(0, 1_000, count),
                "extra": random.random(count),
            }
        )

    def _bursts(self, random: np.random.Generator, user: np.ndarray) -> np.ndarray:
        phase = user * 7919 % _BURST_EVERY_MS
        burst = random.integers(0, BATCH_MS // _BURST_EVERY_MS, len(user)) * _BURST_EVERY_MS
        return (burst + phase + random.integers(0, _BURST_MS, len(user))) % BATCH_MS


def with_the_time_before(folder: Path, seconds: int, users: int) -> None:
    """Write a file to be read before all others, with a row for each user and each of the seconds before them."""
    times = START_MS + 1_000 * np.repeat(np.arange(-seconds, 0), users)
    rows = {
        "user": [f"user-{number:07d}" for number in range(users)] * seconds,
        "ts": pa.array(times * 1_000).view(pa.timestamp("us", "UTC")),
        "value": np.ones(len(times), np.int64),
        "extra": np.zeros(len(times)),
    }
    path = folder / "part-before.parquet"
    pq.write_table(pa.table(rows), path, store_schema=False)
    os.utime(path, (START_MS // 1_000 - 1,) * 2)


def in_small_files(folder: Path, files: int, step_ms: int, users: int = 1) -> None:
    """Write files of one row for each user, each file a step later than the one before it."""
    folder.mkdir(parents=True)
    for file in range(files):
        moment = (START_MS + file * step_ms) * 1_000
        rows = {
            "user": [f"user-{number:07d}" for number in range(users)],
            "ts": pa.array([moment] * users, pa.timestamp("us", "UTC")),
            "value": range(users),
            "extra": [0.0] * users,
        }
        path = folder / f"part-{file:03d}.parquet"
        pq.write_table(pa.table(rows), path, store_schema=False)
        os.utime(path, (START_MS // 1_000 + file,) * 2)
