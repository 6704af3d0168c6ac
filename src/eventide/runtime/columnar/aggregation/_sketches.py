"""Base of the sketches of the library datasketches: one for each group, as bytes in a column."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from eventide.aggregates.library import check_sketches_are_installed
from eventide.runtime.columnar.aggregation._groups import Groups, Ints


def library(function: str) -> Any:
    """Return the module datasketches.

    Raises:
        ProgramError: It is not installed where this runs.
    """
    check_sketches_are_installed(function)
    import datasketches

    return datasketches


def made_sketches(offsets: Ints, make: Callable[[int, int], bytes]) -> pa.Array:
    """Return a column of sketches, each of the values from one offset to the next; null where there is no value."""
    bounds = zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
    return pa.array([make(start, end) if start < end else None for start, end in bounds], pa.binary())


def merged_sketches(column: pa.ChunkedArray, groups: Groups, merge: Callable[[list[bytes]], bytes]) -> pa.Array:
    """Return a column of one sketch for each group; one that is alone in its group stays as it is."""
    parts = column.take(pa.array(groups.order)).to_pylist()
    merged: list[bytes | None] = []
    for start, end in zip(groups.offsets[:-1].tolist(), groups.offsets[1:].tolist(), strict=True):
        known = [part for part in parts[start:end] if part is not None]
        merged.append(merge(known) if len(known) > 1 else known[0] if known else None)
    return pa.array(merged, pa.binary())
