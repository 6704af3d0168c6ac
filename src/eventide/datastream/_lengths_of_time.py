"""Lengths of time as Flink's options have them."""

from __future__ import annotations

import re

_MS = {"": 1, "ms": 1, "s": 1_000, "sec": 1_000, "min": 60_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def milliseconds(text: str) -> int:
    """The milliseconds of a length of time as Flink writes it; raises ValueError where it is none.

    >>> milliseconds("200 ms"), milliseconds("3s"), milliseconds("500")
    (200, 3000, 500)
    """
    match = re.fullmatch(r"(\d+)\s*([a-z]*)", text.strip())
    if match is None or match[2] not in _MS:
        raise ValueError(text)
    return int(match[1]) * _MS[match[2]]
