"""Python's garbage collector, kept away from where a great many objects are made that all stay."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collection() -> Iterator[None]:
    """Let the collector rest while state is loaded or stored.

    It looks through all objects again and again as they are made, though none of them can be garbage yet: that is half
    of the time it takes to load many. Within another such block, or where the program has switched it off, nothing
    changes.

    >>> with without_collection():
    ...     gc.isenabled()
    False
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
