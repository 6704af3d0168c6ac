"""Spark's state store as the state of the operators of one stage in one subtask."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql.types import BinaryType, StringType, StructType


class MapStateBackend:
    """A :class:`~eventide.runtime.state.backend.Backend` over a ``MapState`` of Spark.

    Names read before are known, so that deleting what was never there costs no call.
    """

    # As objects: Spark would have the JVM parse them as text, four times in every task.
    SCHEMAS = (StructType().add("name", StringType()), StructType().add("content", BinaryType()))

    def __init__(self, map_state: Any) -> None:
        self._map_state = map_state
        self._absent: set[str] = set()

    def get(self, name: str) -> bytes | None:
        """The value under a name, or None."""
        row = self._map_state.getValue((name,))
        if row is None:
            self._absent.add(name)
            return None
        return bytes(row[0])

    def put(self, name: str, value: bytes) -> None:
        """Store a value under a name."""
        self._absent.discard(name)
        self._map_state.updateValue((name,), (value,))

    def delete(self, name: str) -> None:
        """Forget a name, whether it is there or not."""
        if name not in self._absent:
            self._map_state.removeKey((name,))
            self._absent.add(name)

    def all_of(self, prefix: str) -> Iterator[tuple[str, bytes]]:
        """Every name that begins in some way, with its value: Spark hands them over hundreds at a time."""
        return ((name, bytes(value)) for (name,), (value,) in self._map_state.iterator() if name.startswith(prefix))
