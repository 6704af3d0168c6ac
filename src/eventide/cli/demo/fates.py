"""Fate of every reading, by a plain count of all of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from eventide.cli.demo.readings import HOUR_MS, Counts


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
