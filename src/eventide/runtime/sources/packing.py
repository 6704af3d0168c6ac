"""Offsets as Spark's log stores them: with the time of their micro-batch, and compressed if many parts have ended.

What has been read stays known for as long as its source names it, and every micro-batch says so again. Spark keeps the
offsets of a micro-batch several times: in its log, in each report of progress, and on the way to the planner.
"""

from __future__ import annotations

import json
import zlib
from base64 import b85decode, b85encode
from collections.abc import Mapping
from typing import Any

from eventide.runtime.sources.offsets import Offsets

_FEW = 100
"""Number of ended parts that stay legible."""
_PACKED = "\0ended"
_CLOCK = "\0clock"
"""Names that no part has."""


def packed(offsets: Offsets, clock_ms: int | None = None) -> dict[str, Any]:
    r"""Return offsets for the log; those of parts that have ended are compressed where they are many.

    Args:
        offsets: where the source stands after a micro-batch.
        clock_ms: the time of that micro-batch by the clock, in milliseconds since the epoch. It is logged with the
            offsets, so that a micro-batch that is run again has the same time. None if there is no micro-batch.

    >>> offsets = {f"file-{n:03}": {"start": 0, "position": n, "ended": n < 500} for n in range(501)}
    >>> sorted(packed(offsets))
    ['\x00ended', 'file-500']
    >>> unpacked(packed(offsets)) == offsets
    True
    >>> clock_of(packed(offsets, clock_ms=1_000))
    1000
    """
    logged = _small(offsets)
    return logged if clock_ms is None else {**logged, _CLOCK: {"ms": clock_ms}}


def clock_of(logged: Mapping[str, Any]) -> int | None:
    """Return the time of the micro-batch that ends at these offsets, in milliseconds; None if none was logged."""
    return logged[_CLOCK]["ms"] if _CLOCK in logged else None


def unpacked(logged: Mapping[str, Any]) -> dict[str, Any]:
    """Return the offsets that were given to :func:`packed`; offsets of another kind are returned as they are."""
    offsets = {part: at for part, at in logged.items() if part not in {_CLOCK, _PACKED}}
    if _PACKED not in logged:
        return offsets
    return offsets | dict(json.loads(zlib.decompress(b85decode(logged[_PACKED]["content"]))))


def _small(offsets: Offsets) -> dict[str, Any]:
    ended = {part: at for part, at in offsets.items() if at["ended"]}
    if len(ended) <= _FEW:
        return offsets
    content = b85encode(zlib.compress(json.dumps(sorted(ended.items())).encode())).decode()
    return {part: at for part, at in offsets.items() if part not in ended} | {_PACKED: {"content": content}}
