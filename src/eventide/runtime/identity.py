"""Changes between the program that made a state and the one that finds it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

ID_LENGTH = 12
"""How many hexadecimal digits an id has that follows from the program."""

_NUMBERED = re.compile(rf"([0-9a-f]{{{ID_LENGTH}}})(-\d+)?")


def numbered(first: str, number: int) -> str:
    """The id of one of several operators that are alike; the first has the plain one.

    >>> numbered("0123456789ab", 1), numbered("0123456789ab", 2)
    ('0123456789ab', '0123456789ab-2')
    """
    return first if number == 1 else f"{first}-{number}"


def alike(ids: Iterable[str]) -> dict[str, list[str]]:
    """The ids of operators that are alike, by that of the first; a uid is like no other.

    >>> alike(["0123456789ab-2", "mine-2", "0123456789ab"])
    {'0123456789ab': ['0123456789ab', '0123456789ab-2'], 'mine-2': ['mine-2']}
    """
    groups: dict[str, list[str]] = {}
    for one in sorted(ids):
        match = _NUMBERED.fullmatch(one)
        groups.setdefault(match[1] if match else one, []).append(one)
    return groups


def follows_from_the_program(operator: str) -> bool:
    """Whether an id is no uid.

    >>> follows_from_the_program("0123456789ab-2"), follows_from_the_program("mine-2")
    (True, False)
    """
    return _NUMBERED.fullmatch(operator) is not None


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
