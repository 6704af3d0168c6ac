"""Which unit of time a number counts, by the date that it would be."""

PER_S = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
"""The units in which people count time since the epoch, and how many of each a second has."""

NAMES = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
"""Their names."""

_FROM_S, _UNTIL_S = 631_152_000, 4_102_444_800  # 1990 and 2100


def other_unit_of(number: int) -> str | None:
    """The unit in which a number is a date of these decades, if that is not milliseconds; None if it is, or none is.

    >>> other_unit_of(1_790_000_000), other_unit_of(1_790_000_000_000), other_unit_of(7)
    ('s', None, None)
    """
    units = [unit for unit, per_s in PER_S.items() if _FROM_S <= number // per_s < _UNTIL_S]
    return units[0] if units and units[0] != "ms" else None
