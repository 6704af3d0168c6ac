"""How the demo's readings were made: ``python -m eventide.cli.demo.making`` makes the same ones once more.

Three weather stations send a temperature every 15 seconds for a day. What they send takes three minutes on its way, on
average, and some of it much longer. At six in the morning the line of one station gets slow: it carries two thirds of
what there is to send, until the station is three hours behind, and stays so.
"""

from __future__ import annotations

import math
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from eventide.cli.demo.readings import DAY_MS, FILE, FIRST_MS, HOUR_MS, LAGGING, SCHEMA, STATIONS

_EVERY_MS = 15_000
_ON_ITS_WAY_MS = 180_000
_SLOW_SINCE_MS = 6 * HOUR_MS
_FARTHEST_BEHIND_MS = 3 * HOUR_MS


def readings() -> pa.Table:
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
    pq.write_table(readings(), file, compression="zstd", compression_level=19)


if __name__ == "__main__":
    write(FILE)
