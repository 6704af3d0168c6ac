"""A source whose elements come as columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from eventide.common.typeinfo import TypeInformation
from eventide.testing import ScriptedSource


def in_columns(kind: TypeInformation, *batches: Sequence[Any], splits: int = 1) -> ScriptedSource:
    """A source of rows of a type, some for each micro-batch, distributed to the splits in turn."""
    script: list[list[Any]] = []
    for rows in batches:
        parts = [rows[number::splits] for number in range(splits)]
        script.append(
            [
                (str(number), pa.RecordBatch.from_struct_array(kind.to_arrow(part)))
                for number, part in enumerate(parts)
                if part
            ]
        )
    return ScriptedSource([str(number) for number in range(splits)], script, kind)
