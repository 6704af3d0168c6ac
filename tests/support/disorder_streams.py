"""Streams whose disorder is known, as stretches, and advice on them."""

from __future__ import annotations

import numpy as np

from eventide.advisor import Advice
from eventide.advisor.disorder import DisorderMeter, Stretch
from eventide.advisor.reading import ColumnRoles
from eventide.runtime.observation.histograms import Ints

START_MS = 1_600_000_000_000


def delayed(rows: int, rate: float, delays: Ints) -> Ints:
    """Event times in the order of arrival, of elements that happen at random, `rate` a millisecond, and come late."""
    happened = np.cumsum(np.random.default_rng(7).exponential(1 / rate, rows)).astype(np.int64) + START_MS
    return happened[np.argsort(happened + delays, kind="stable")]


def advice_on(splits: dict[str, Ints], lose: float = 0.001, arrived: dict[str, Ints] | None = None) -> Advice:
    """Advice on splits whose elements arrive in turn, or when it is said."""
    order = arrived or {name: np.arange(len(times)) for name, times in splits.items()}
    clock = np.concatenate(list(order.values()))
    by_arrival = np.argsort(clock, kind="stable")
    times = np.concatenate(list(splits.values()))[by_arrival]
    places = np.repeat(np.arange(len(splits), dtype=np.int32), [len(times) for times in splits.values()])[by_arrival]
    meter = DisorderMeter()
    meter.take(Stretch(times, list(splits), places, None if arrived is None else clock[by_arrival]))
    return Advice(meter.disorder, ColumnRoles("ts", ("split",)), lose)
