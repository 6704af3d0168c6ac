"""Which bucket a hash is in, when the number of buckets grows one by one: linear hashing, without any directory.

With ``2**n`` buckets, the last ``n`` bits of a hash say which one. The next bucket takes from the first those hashes
that have one more bit set, the one after it from the second, and so on until there are twice as many: so a bucket more
means that the entries of one other bucket move, and the number of buckets is all that needs to be known to find one.
"""

from __future__ import annotations

import numpy as np

from eventide.runtime.elements.hashing import Hashes

_ADDRESS_BITS = 32
MOST_BUCKETS = 1 << _ADDRESS_BITS - 1
"""The upper half of a hash says which subtask a key is in, so it tells nothing any more within one."""


def address(key_hash: int, count: int) -> int:
    """The bucket of a hash among `count` buckets.

    >>> [address(key_hash, 6) for key_hash in range(8)]
    [0, 1, 2, 3, 4, 5, 2, 3]
    """
    low = 1 << count.bit_length() - 1
    found = key_hash & 2 * low - 1
    return found if found < count else found - low


def addresses(hashes: Hashes, count: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """:func:`address` for each of many hashes."""
    low = 1 << count.bit_length() - 1
    found = (hashes & np.uint64(2 * low - 1)).astype(np.int64)
    return np.where(found < count, found, found - low)


def parents(before: int, count: int) -> list[int]:
    """The buckets from which entries move when ``before`` buckets become ``count``.

    >>> parents(6, 8), parents(1, 8)
    ([2, 3], [0])
    """
    found = set()
    for bucket in range(before, count):
        parent = bucket
        while parent >= before:
            parent -= 1 << parent.bit_length() - 1
        found.add(parent)
    return sorted(found)
