"""Offsets as they lie in Spark's log: of many parts that have ended, such as files that were read, as little as can be.

What has been read stays known for as long as its source names it, and every micro-batch says so again. Spark keeps the
offsets of a micro-batch several times: in its log, in each report of progress, and on the way to who plans.
"""

from __future__ import annotations

import json
import zlib
from base64 import b85decode, b85encode
from collections.abc import Mapping
from typing import Any

from eventide.runtime.sources.offsets import Offsets

_FEW = 100
"""So many stay legible."""
_PACKED = "\0ended"
"""No part has this name."""


def packed(offsets: Offsets) -> dict[str, Any]:
    r"""Offsets for the log; those of parts that have ended are compressed where they are many.

    >>> offsets = {f"file-{n:03}": {"start": 0, "position": n, "ended": n < 500} for n in range(501)}
    >>> sorted(packed(offsets))
    ['\x00ended', 'file-500']
    >>> unpacked(packed(offsets)) == offsets
    True
    """
    ended = {part: at for part, at in offsets.items() if at["ended"]}
    if len(ended) <= _FEW:
        return offsets
    content = b85encode(zlib.compress(json.dumps(sorted(ended.items())).encode())).decode()
    return {part: at for part, at in offsets.items() if part not in ended} | {_PACKED: {"content": content}}


def unpacked(logged: Mapping[str, Any]) -> dict[str, Any]:
    """The inverse of :func:`packed`; offsets of another kind are as they were."""
    if _PACKED not in logged:
        return dict(logged)
    ended = json.loads(zlib.decompress(b85decode(logged[_PACKED]["content"])))
    return {part: at for part, at in logged.items() if part != _PACKED} | dict(ended)
