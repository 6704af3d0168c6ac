"""Lengths of time as one would write them."""

from __future__ import annotations

_STEPS = (86_400_000, 3_600_000, 600_000, 300_000, 60_000, 10_000, 5_000, 1_000, 100, 10, 1)


def rounded_up(ms: int) -> int:
    """A length that is no shorter, by less than a tenth longer, and a shorter number.

    >>> rounded_up(0), rounded_up(7), rounded_up(4_871), rounded_up(61_200), rounded_up(13_860_000)
    (0, 7, 4900, 65000, 14400000)
    """
    step = next((step for step in _STEPS if step * 10 <= ms), 1)
    return -(-ms // step) * step
