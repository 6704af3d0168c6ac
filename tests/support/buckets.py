"""State that version 0.1.0 has stored by key: in buckets."""

import json
from base64 import b85decode
from pathlib import Path

from eventide.runtime.state.backend import MemoryBackend

_STORED = Path(__file__).parents[1] / "unit" / "runtime" / "state" / "data" / "buckets.json"
"""Made by the code of version 0.1.0; with pages, and changes beside buckets, by that of the days after it."""


def in_buckets(what: str) -> MemoryBackend:
    """A new backend with one of the states: ``numbers`` or ``pages``, ``windows`` or ``changed windows``."""
    stored = json.loads(_STORED.read_text())[what]
    return MemoryBackend({name: b85decode(content) for name, content in stored.items()})
