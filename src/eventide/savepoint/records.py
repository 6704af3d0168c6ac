"""Rows of a table as elements of a program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eventide.common.typeinfo import type_info_from_arrow

if TYPE_CHECKING:
    import pyarrow as pa


def elements_of(batch: pa.RecordBatch) -> list[Any]:
    """Each row as a `Row` with its fields by name.

    >>> import pyarrow as pa
    >>> elements_of(pa.RecordBatch.from_pylist([{"id": 1, "name": "a"}]))
    [Row(id=1, name='a')]
    """
    return type_info_from_arrow(batch.schema).from_arrow(batch.to_struct_array())
