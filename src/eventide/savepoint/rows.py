"""The rows of a savepoint: what belongs to keys, what operators on columns keep, and what tasks have beside it."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, TypeAlias

import pyarrow as pa

from eventide.errors import StateError
from eventide.pickling.pickles import plain_loads

VALUE, EVENT_TIMER, CLOCK_TIMER, WINDOW = "value", "event timer", "clock timer", "window"
"""The kinds of rows. That of a window holds what one of its chunks has of a key."""

TIMERS = (EVENT_TIMER, CLOCK_TIMER)
"""The kinds of timers, in the order in which state has them."""

BROADCAST = "broadcast/"
"""The beginning of the name of state by key that every subtask has."""

KEYED = pa.schema(
    [
        ("operator", pa.string()),
        ("part", pa.string()),
        ("kind", pa.string()),
        ("key_group", pa.int32()),
        ("key_hash", pa.uint64()),
        ("key", pa.string()),
        ("namespace", pa.string()),
        ("name", pa.string()),
        ("value", pa.string()),
        ("time_ms", pa.int64()),
        ("number", pa.int64()),
        ("row", pa.int64()),
        ("chunk", pa.int32()),
        ("key_pickle", pa.binary()),
        ("namespace_pickle", pa.binary()),
        ("value_pickle", pa.binary()),
    ]
)
"""State by key.

``part`` is empty, or names the broadcast state. ``key_group`` and ``key_hash`` are null where the hash of a key is not
known without its class. ``namespace`` is the window. ``number`` says in which order timers were set; ``row`` and
``chunk`` where the content of a fixed window lies, whose number is its namespace. The pickles are read; ``key``,
``namespace`` and ``value`` are texts for people, and a value that is no plain one has none.
"""

KEPT = pa.schema(
    [
        field.with_type(pa.large_binary()) if field.type == pa.binary() else field
        for field in KEYED
        if field.name not in {"key", "namespace", "value"}
    ]
)
"""Columns that a job reads; pickles of a subtask may be more than 2 GB together."""

TASKS = pa.schema([("operator", pa.string()), ("subtask", pa.int32()), ("name", pa.string()), ("content", pa.binary())])
"""Small values in the state of a subtask: JSON, but for the user-defined generators."""

Small: TypeAlias = tuple[str, int, str, bytes]
"""A row of what is small: operator, subtask, name and content."""

GROUP, ROW, CHUNK, DUE = "__group", "__row", "__chunk", "__due"
"""The columns of a table beside its own: the key group; and the row and the chunk that it lies in, or, where it lies in
buckets, when the earliest of these is due.
"""

PART = b"part"
"""Under this, the schema of a table names the part of the operator's state that it is."""

_LONGEST = 1_000


def text_of(value: Any) -> str | None:
    """A key or a namespace for people, as Python writes it; None where its class cannot do that."""
    with suppress(Exception):
        return repr(value)[:_LONGEST]
    return None


def text_of_value(pickled: bytes) -> str | None:
    """A plain value for people; None for an object of a class, which was not looked at.

    >>> from eventide.pickling.pickles import dumps
    >>> text_of_value(dumps(("a", 1))), text_of_value(dumps(TypeError()))
    ("('a', 1)", None)
    """
    try:
        return text_of(plain_loads(pickled))
    except StateError:
        return None
