"""From a key to its key group and subtask: the same in every process, on every machine, after every restart."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import fractions
import uuid
import zlib
from collections.abc import Iterable
from typing import Any

from eventide.common.types import Row
from eventide.errors import DataError

_NUMBERS = (bool, int, float, decimal.Decimal, fractions.Fraction, complex)
_TEXT_FORM = (datetime.datetime, datetime.date, datetime.time, datetime.timedelta, uuid.UUID)
_ADVICE = "let the key selector return text, a number, bytes, a date or time, or a tuple of such values"


def stable_hash(key: Any) -> int:
    """Hash a key to 32 bits so that equal keys have equal hashes in every process.

    Python's own ``hash`` of text differs from process to process, and two pickles of equal keys may differ. Numbers
    that are equal hash equally whatever their type, as they do in a dict.

    Raises:
        DataError: for a type whose hash cannot be known to be stable, such as an object with an identity only, and for
            NaN, which does not even equal itself.

    >>> stable_hash(1) == stable_hash(1.0) == stable_hash(True)
    True
    >>> stable_hash(("a", 1)) == stable_hash(("a", 2))
    False
    """
    if isinstance(key, str):
        return zlib.crc32(key.encode("utf-8", "surrogatepass"), 1)
    if isinstance(key, _NUMBERS):
        if key != key:  # noqa: PLR0124 - NaN, of whatever type
            raise DataError(f"the key {key!r} is not equal to itself, so no two elements could share it; {_ADVICE}")
        return zlib.crc32(hash(key).to_bytes(8, "little", signed=True))
    if isinstance(key, enum.Enum):
        return zlib.crc32(key.name.encode(), 2)
    if key is None:
        return 3
    if isinstance(key, bytes):
        return zlib.crc32(key, 4)
    if isinstance(key, tuple):
        return _combine(5, key)
    if isinstance(key, Row):
        names = key.get_field_names()
        return _combine(5, key if names is None else [key[name] for name in sorted(names)])
    if isinstance(key, frozenset):
        return _combine(6, sorted(map(stable_hash, key)))
    if isinstance(key, _TEXT_FORM):
        return zlib.crc32(str(_canonical(key)).encode(), 7)
    if dataclasses.is_dataclass(key) and not isinstance(key, type) and type(key).__eq__ is not object.__eq__:
        return _combine(8, [getattr(key, field.name) for field in dataclasses.fields(key) if field.compare])
    if type(key).__module__ == "numpy" and hasattr(key, "item"):
        return stable_hash(key.item())
    raise DataError(
        f"the key {key!r} is a {type(key).__name__}, which has no hash that is the same in every process; {_ADVICE}"
    )


def unhashable(key: Any) -> DataError:
    """What to say of a key that Python cannot hash, such as a list."""
    return DataError(f"the key {key!r} is a {type(key).__name__} that cannot be hashed; {_ADVICE}")


def _combine(seed: int, parts: Iterable[Any]) -> int:
    for part in parts:
        seed = zlib.crc32(stable_hash(part).to_bytes(4, "little"), seed)
    return seed


def _canonical(key: Any) -> Any:
    """Bring equal moments in different time zones to one form."""
    if isinstance(key, datetime.datetime) and key.tzinfo is not None:
        return key.astimezone(datetime.UTC)
    if isinstance(key, datetime.time) and (offset := key.utcoffset()) is not None:
        return datetime.datetime.combine(datetime.date(2000, 1, 2), key.replace(tzinfo=None)) - offset
    return key


def key_group(key: Any, max_parallelism: int) -> int:
    """The key group of a key: the unit in which keyed state is stored and dealt out to subtasks (Flink's term)."""
    return stable_hash(key) % max_parallelism


def subtask_of(group: int, max_parallelism: int, parallelism: int) -> int:
    """The subtask that owns a key group; each subtask owns a contiguous range, as in Flink.

    >>> [subtask_of(group, 8, 3) for group in range(8)]
    [0, 0, 0, 1, 1, 1, 2, 2]
    """
    return group * parallelism // max_parallelism
