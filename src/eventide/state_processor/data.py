"""Data that state is made of: elements that are here, in any form, or the rows of a Spark DataFrame, which are not."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any

from eventide.errors import ProgramError
from eventide.savepoint.rows import elements_of

_AT_ONCE = 65_536


def is_data_frame(data: Any) -> bool:
    """Whether it is a DataFrame of Spark's."""
    return hasattr(data, "mapInArrow")


def check_data(data: Any) -> None:
    """Refuse what no state can be made of.

    Raises:
        ProgramError: if it is no iterable, and no table.
    """
    import pyarrow as pa

    is_known = isinstance(data, Iterable | pa.Table | pa.RecordBatch) or is_data_frame(data)
    if isinstance(data, str | bytes) or not is_known:
        raise ProgramError(
            f"bootstrap_with needs an iterable, a table of pandas or Arrow, or a Spark DataFrame, not {data!r}"
        )


def elements_here(data: Any) -> Iterable[Any]:
    """The elements of data that are here; the rows of a table have their fields by name."""
    import pyarrow as pa

    if type(data).__module__.partition(".")[0] == "pandas":
        data = pa.Table.from_pandas(data, preserve_index=False)
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.Table):
        return chain.from_iterable(map(elements_of, data.to_batches(max_chunksize=_AT_ONCE)))
    found: Iterable[Any] = data
    return found
