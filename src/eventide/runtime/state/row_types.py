"""The types of the rows in which keys are stored."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from eventide.common.typeinfo import TypeInformation
from eventide.common.typeinfo.widening import type_of_text
from eventide.runtime.elements.elements import from_fields, types_of_fields
from eventide.runtime.elements.hashing import Hashes
from eventide.runtime.state.extents import HASH


@dataclass(frozen=True, slots=True)
class RowTypes:
    """The type of the keys of some rows, and the names and types of their values.

    A name may be there twice, with different types: each key has a value of one of them.

    >>> import numpy as np
    >>> from eventide.common.typeinfo import Types
    >>> types = RowTypes(Types.STRING(), (("count", Types.LONG()),))
    >>> rows = types.rows([pa.array(["a"])], np.array([7], np.uint64), [pa.array([1])])
    >>> types.keys_of(rows).to_pylist(), [values.to_pylist() for values in types.values_of(rows)]
    (['a'], [[1]])
    """

    key: TypeInformation
    values: tuple[tuple[str, TypeInformation], ...]

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows: hashes, keys, and values."""
        keys = [(f"__key{i}", part.arrow_type()) for i, part in enumerate(types_of_fields(self.key))]
        values = [(f"__value{i}", kind.arrow_type()) for i, (_, kind) in enumerate(self.values)]
        return pa.schema([(HASH, pa.uint64()), *keys, *values])

    def rows(self, keys: Sequence[pa.Array], hashes: Hashes, values: Sequence[pa.Array]) -> pa.RecordBatch:
        """Rows, from the parts of their keys, the hashes of the keys, and the values."""
        return pa.RecordBatch.from_arrays([pa.array(hashes), *keys, *values], schema=self.schema)

    def parts_of(self, rows: pa.RecordBatch) -> list[pa.Array]:
        """The parts of the keys of some rows."""
        return list(rows.columns[1 : len(rows.columns) - len(self.values)])

    def keys_of(self, rows: pa.RecordBatch) -> pa.Array:
        """The keys of some rows as a column of their type."""
        return from_fields(self.parts_of(rows), self.key)

    def values_of(self, rows: pa.RecordBatch) -> Sequence[pa.Array]:
        """The values of some rows, a column for each name and type."""
        return list(rows.columns[len(rows.columns) - len(self.values) :])


@lru_cache
def text_of_types(types: RowTypes) -> bytes:
    """The types of rows as they are stored."""
    return json.dumps([str(types.key), [[name, str(kind)] for name, kind in types.values]]).encode()


@lru_cache
def types_of_text(text: bytes) -> tuple[RowTypes, pa.Schema]:
    """The types of rows, and their schema; pages of one value, of earlier versions, say its name first."""
    key, values, *of_one_value = json.loads(text)
    if of_one_value:
        key, values = values, [[key, *of_one_value]]
    types = RowTypes(type_of_text(key), tuple((name, type_of_text(kind)) for name, kind in values))
    return types, types.schema
