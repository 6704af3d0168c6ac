"""Consumers of a worker process: made once for each configuration, and kept from micro-batch to micro-batch."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from eventide.connectors.kafka._errors import Complaints
from eventide.connectors.kafka.library import CLIENT_DEFAULTS, client, library

_DEFAULTS = {
    **CLIENT_DEFAULTS,
    "fetch.wait.max.ms": 10,  # by default 500, which a new assignment would have to wait for
    "fetch.queue.backoff.ms": 5,
    "queued.min.messages": 20_000,  # of each partition; by default 100,000, most of it after the end of a range
}
_FIXED = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,  # an end may lie after messages that are never seen
    "auto.offset.reset": "error",  # what is gone is not passed over in silence
}

_Key = tuple[int, tuple[tuple[str, str], ...], str | None, str | None]


@dataclass(frozen=True, slots=True)
class Reader:
    """A consumer, and the errors that it reports outside of a request."""

    consumer: Any
    complaints: Complaints


_resting: dict[_Key, list[Reader]] = {}
"""Readers that are not in use. A process that was forked has none: their threads did not come with it."""


@contextmanager
def borrowed(properties: Mapping[str, str], group_id: str | None, prefix: str | None) -> Iterator[Reader]:
    """A consumer for some ranges, which nothing is assigned to; it is kept for the next, unless something went wrong.

    Raises:
        ProgramError: if a property is not right.
    """
    resting = _resting.setdefault((os.getpid(), tuple(sorted(properties.items())), group_id, prefix), [])
    reader = resting.pop() if resting else _made(properties, group_id, prefix)
    try:
        yield reader
    except Exception:
        reader.consumer.close()
        raise
    except GeneratorExit:  # the reader has enough
        reader.consumer.unassign()
        resting.append(reader)
        raise
    reader.consumer.unassign()
    resting.append(reader)


def _made(properties: Mapping[str, str], group_id: str | None, prefix: str | None) -> Reader:
    complaints = Complaints()
    settings: dict[str, Any] = {**_DEFAULTS, **properties, **_FIXED, "error_cb": complaints.hear}
    settings["group.id"] = group_id or "eventide"  # the library wants one; nothing is committed
    settings["client.id"] = f"{prefix or group_id or 'eventide'}-read"
    if "request.timeout.ms" in settings:  # Java's name for it, and here that of something producers have
        settings["socket.timeout.ms"] = settings.pop("request.timeout.ms")
    return Reader(client(library().Consumer, settings), complaints)
