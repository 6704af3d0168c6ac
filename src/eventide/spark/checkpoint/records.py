"""Records of eventide beside Spark's own checkpoint: one for each program that was started on it.

The first micro-batch that a program commits makes its record count. They can be read by Spark or from the files
themselves.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from eventide.runtime.state.operators import check_format

PLACE = "eventide"
"""The folder of the records, below the checkpoint."""

KAFKA_PLACE = "eventide-sinks"
"""The folder that names the groups of transactions that sinks have begun in Kafka."""

Record: TypeAlias = dict[str, Any]
"""``start``, the number of the start; ``after``, the last micro-batch committed before; ``program``, its identity;
``description`` of its graph; ``job``, its name; ``directories`` of its file sinks; and the checkpoint's ``id``.
"""


def in_order(texts: Iterable[str]) -> list[Record]:
    """Records from their texts, in the order of the starts.

    Raises:
        StateError: if one is in the form of an earlier version.
    """
    found = [json.loads(text) for text in texts]
    if any("directories" not in one for one in found):
        check_format("of an earlier version")
    return sorted(found, key=lambda one: int(one["start"]))


def in_force(started: Sequence[Record], committed: int) -> Record | None:
    """The record of the last program that was started and committed a micro-batch; None if there is none."""
    counting = [one for one in started if one["after"] < committed]
    return counting[-1] if counting else None
