"""Rows by key in a state backend: one table for each key group, read when one of its keys is touched."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from eventide.runtime.columnar.hashing import key_groups
from eventide.runtime.columnar.layout import slices_by
from eventide.runtime.elements.codec import decode_table, encode_table
from eventide.runtime.state.backend import StateBackend

_INDEX = "groups"
_GROUP = "__group"


class KeyedTable:
    """One table of all rows whose key group was read in this micro-batch; each group is written back once.

    A small index keeps a time for each group, so that those with something due can be found without reading any.
    """

    def __init__(self, backend: StateBackend, schema: pa.Schema, keys: list[str], max_parallelism: int) -> None:
        self._backend = backend
        self._keys = keys
        self._max_parallelism = max_parallelism
        stored = backend.get(_INDEX)
        content = {} if stored is None else json.loads(stored)
        self._times: dict[int, int] = {int(group): time_ms for group, time_ms in content.items()}
        self._times_at_start = dict(self._times)
        self._groups: set[int] = set()
        self.table = schema.empty_table()

    def read_keys_of(self, rows: pa.Table) -> None:
        """Read the groups of the keys of some rows."""
        self._read(np.unique(self._groups_of(rows)).tolist())

    def read_due(self, time_ms: int) -> None:
        """Read the groups whose time has come."""
        self._read(group for group, due_ms in self._times.items() if due_ms <= time_ms)

    def flush(self, time_of: Callable[[pa.Table], int]) -> None:
        """Write back what was read; ``time_of`` says when a group with rows should be read for its time."""
        left = self._groups
        for group, rows in slices_by(self.table.append_column(_GROUP, pa.array(self._groups_of(self.table))), _GROUP):
            self._backend.put(_name(group), encode_table(rows))
            self._times[group] = time_of(rows)
            left = left - {group}
        for group in left:
            if self._times.pop(group, None) is not None:
                self._backend.delete(_name(group))
        if self._times != self._times_at_start:
            self._backend.put(_INDEX, json.dumps(self._times).encode())
            self._times_at_start = dict(self._times)
        self.table = self.table.slice(0, 0)
        self._groups = set()

    def _read(self, groups: Iterable[int]) -> None:
        found = [self.table]
        for group in groups:
            if group not in self._groups:
                self._groups.add(group)
                content = self._backend.get(_name(group)) if group in self._times else None
                if content is not None:
                    found.append(decode_table(content))
        self.table = pa.concat_tables(found)

    def _groups_of(self, rows: pa.Table) -> np.ndarray[Any, Any]:
        if not self._keys:
            return np.zeros(len(rows), np.int64)
        return key_groups([rows.column(name) for name in self._keys], self._max_parallelism)


def _name(group: int) -> str:
    return f"group/{group}"
