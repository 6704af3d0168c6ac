"""Ids of subtasks, chosen so that Spark's hash partitioner puts exactly one into each shuffle partition."""

from __future__ import annotations

from functools import lru_cache

_MASK = 0xFFFFFFFF
_SEED = 42


def murmur3(value: int) -> int:
    """Spark's hash of an INT column: Murmur3 of 32 bits with seed 42, as a signed integer.

    >>> murmur3(0), murmur3(1)
    (933211791, -559580957)
    """
    k = (value & _MASK) * 0xCC9E2D51 & _MASK
    k = _rotate_left(k, 15) * 0x1B873593 & _MASK
    h = _rotate_left(_SEED ^ k, 13) * 5 + 0xE6546B64 & _MASK
    h ^= 4
    h = (h ^ h >> 16) * 0x85EBCA6B & _MASK
    h = (h ^ h >> 13) * 0xC2B2AE35 & _MASK
    h ^= h >> 16
    return h - (1 << 32) if h >= 1 << 31 else h


def _rotate_left(value: int, bits: int) -> int:
    return (value << bits | value >> 32 - bits) & _MASK


@lru_cache(maxsize=64)
def subtask_ids(partitions: int) -> tuple[int, ...]:
    """For each shuffle partition the smallest id that lands in it.

    Small integers as they come would leave partitions empty and let others do the work of two, one after the other.

    >>> subtask_ids(2)
    (2, 0)
    """
    ids: dict[int, int] = {}
    candidate = 0
    while len(ids) < partitions:
        ids.setdefault(murmur3(candidate) % partitions, candidate)
        candidate += 1
    return tuple(ids[partition] for partition in range(partitions))
