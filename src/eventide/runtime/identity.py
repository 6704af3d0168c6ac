"""What changed between the program that made a state and the one that finds it."""

from __future__ import annotations

from collections.abc import Mapping


def differences(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Each property that differs, in words.

    >>> differences({"parallelism": "2", "key type": "LONG"}, {"parallelism": "4", "key type": "LONG"})
    ["parallelism was '2' and is now '4'"]
    """
    return [
        f"{what} was {before.get(what)!r} and is now {now.get(what)!r}"
        for what in sorted({*before, *now})
        if before.get(what) != now.get(what)
    ]
