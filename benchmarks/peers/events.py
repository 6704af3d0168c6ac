"""The events: made once, as files of CSV that every engine reads.

An event is (event, user, at, value): its name, its user, its time in milliseconds, and a number. Each of 1,000 users is
active for 3 seconds of every 10, and events come up to a second late. An answer has the name of an event, and comes 1.2
to 3 seconds after it; every second event has one.

The users are distributed to two streams, each in the order of arrival. `whole` has each stream as one file, for engines
that keep no order among files; `parts` has it in pieces, for engines that read some files in each micro-batch.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.peers.programs.contract import BATCHES

START_MS = 1_700_000_000_000
STREAMS = 2
USERS = 1_000
DISORDER_MS = 1_000
_PER_SECOND = 5_000
_EVERY_MS, _ACTIVE_MS = 10_000, 3_000
STEP_MS = 3
"""Times are multiples of it, and the gap of a session is none: engines differ about events exactly one gap apart."""


@dataclass(frozen=True)
class Events:
    """A recipe.

    Attributes:
        count: how many events there are; half as many answers come with them.
    """

    count: int

    @property
    def end_ms(self) -> int:
        """The time after the last event."""
        return START_MS + self._duration_ms

    @property
    def _duration_ms(self) -> int:
        return max(self.count * 1_000 // _PER_SECOND // _EVERY_MS, 1) * _EVERY_MS

    def tables(self) -> dict[str, pd.DataFrame]:
        """Events and answers in the order of arrival; the same every time."""
        random = np.random.default_rng(32)
        user = random.integers(0, USERS, self.count)
        burst = random.integers(0, self._duration_ms // _EVERY_MS, self.count) * _EVERY_MS
        at = (burst + (user * 7919 + random.integers(0, _ACTIVE_MS, self.count)) % _EVERY_MS) // STEP_MS * STEP_MS
        events = self._arranged(random, np.arange(self.count), user, at)
        answered = random.permutation(self.count)[: self.count // 2]
        later = at[answered] + random.integers(1_200, 3_000, len(answered)) // STEP_MS * STEP_MS
        return {"events": events, "answers": self._arranged(random, answered, user[answered], later)}

    def _arranged(
        self, random: np.random.Generator, number: np.ndarray, user: np.ndarray, at: np.ndarray
    ) -> pd.DataFrame:
        arrives = at + random.integers(0, DISORDER_MS, len(at))
        table = pd.DataFrame(
            {
                "event": pd.Series(number).map("e{:07d}".format),
                "user": pd.Series(user).map("user-{:04d}".format),
                "at": START_MS + at,
                "value": random.integers(0, 1_000, len(at)),
                "stream": user % STREAMS,
                "batch": np.minimum(arrives * BATCHES // self._duration_ms, BATCHES - 1),
            }
        )
        return table.iloc[np.argsort(arrives, kind="stable")].reset_index(drop=True)

    def write(self, folder: Path) -> dict[str, pd.DataFrame]:
        """Write all files; return what is in them."""
        tables = {}
        for kind, table in self.tables().items():
            rows = tables[kind] = table.drop(columns=["stream", "batch"])
            for form in ("whole", "parts"):
                (folder / form / kind).mkdir(parents=True)
            for stream in range(STREAMS):
                of_stream = table["stream"] == stream
                rows[of_stream].to_csv(folder / "whole" / kind / f"{stream}.csv", index=False)
                for batch in range(BATCHES):
                    path = folder / "parts" / kind / f"{batch}-{stream}.csv"
                    rows[of_stream & (table["batch"] == batch)].to_csv(path, index=False)
                    os.utime(path, (START_MS // 1_000 + batch,) * 2)
        return tables
