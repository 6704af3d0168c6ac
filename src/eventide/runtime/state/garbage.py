"""Many objects are made at once: the garbage collector is kept from looking at them again and again meanwhile."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Switch the collector off for a while; what is made then hardly ever refers to itself, and is counted anyway."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
