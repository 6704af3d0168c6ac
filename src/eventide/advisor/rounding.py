"""Lengths of time as one would write them."""

from __future__ import annotations

from eventide.common._words import length

_STEPS = (86_400_000, 3_600_000, 600_000, 300_000, 60_000, 10_000, 5_000, 1_000, 100, 10, 1)


def rounded_up(ms: int) -> int:
    """A length that is no shorter, by less than a tenth longer, and a shorter number.

    >>> rounded_up(0), rounded_up(7), rounded_up(4_871), rounded_up(61_200), rounded_up(13_860_000)
    (0, 7, 4900, 65000, 14400000)
    """
    step = next((step for step in _STEPS if step * 10 <= ms), 1)
    return -(-ms // step) * step


def in_words(ms: int) -> str:
    """A length in three digits, or in its two largest units.

    >>> in_words(90), in_words(3_500), in_words(23_456), in_words(61_000)
    ('90 ms', '3.5 s', '23.5 s', '1 min 1 s')
    """
    return f"{ms / 1_000:.3g} s" if 1_000 <= ms < 60_000 else length(ms)
