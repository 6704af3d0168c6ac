"""Memory of an operator for questions about it: results depend on none of it."""

from __future__ import annotations

import json
from typing import Any

EVENT_TIME, LATE, NUMBERS = "event time", "late", "numbers"
"""The names of the values: the log of splits and of the watermark, what came too late, what was counted and is held."""

REMEMBERED = (EVENT_TIME, LATE, NUMBERS)

_FORM = 2


def stored(content: Any) -> bytes:
    """A value as it is stored, of JSON values."""
    return json.dumps({"form": _FORM, "content": content}).encode()


def remembered(value: bytes | None) -> Any:
    """The inverse of :func:`stored`; None where nothing is, or a version stored it in another form: it begins anew.

    >>> remembered(stored([1, 2])), remembered(b"[1, 2]"), remembered(None)
    ([1, 2], None, None)
    """
    found = None if value is None else json.loads(value)
    return found["content"] if isinstance(found, dict) and found.get("form") == _FORM else None
