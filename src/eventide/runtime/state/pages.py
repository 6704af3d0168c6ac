"""Form of buckets whose keys have one value each, as columns: for operators that work on columns.

Such a bucket is a *page*. It lies where a bucket of objects would lie, and says itself which types it has, so that
``Bucket.from_bytes`` reads it too.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from eventide.common.typeinfo import CompositeTypeInfo, TypeInformation
from eventide.common.typeinfo.widening import type_of_text
from eventide.runtime.elements.hashing import Hashes

HASH, VALUE = "__hash", "__value"
_LENGTH = struct.Struct("<I")
_END = b"keyed page"


@dataclass(frozen=True, slots=True)
class PageTypes:
    """The name of the one state that keys have in a page, and the types of key and value.

    >>> from eventide.common.typeinfo import Types
    >>> import numpy as np
    >>> types = PageTypes("count", Types.STRING(), Types.LONG())
    >>> rows = types.rows([pa.array(["a"])], np.array([7], np.uint64), pa.array([1]))
    >>> is_page(types.page(rows)), read_page(types.page(rows)) == (types, rows)
    (True, True)
    """

    name: str
    key: TypeInformation
    value: TypeInformation

    @property
    def schema(self) -> pa.Schema:
        """The columns of a page: hash, key, and value."""
        parts = self.key.types if isinstance(self.key, CompositeTypeInfo) else [self.key]
        keys = [(f"__key{i}", part.arrow_type()) for i, part in enumerate(parts)]
        return pa.schema([(HASH, pa.uint64()), *keys, (VALUE, self.value.arrow_type())])

    def rows(self, keys: Sequence[pa.Array], hashes: Hashes, values: pa.Array) -> pa.RecordBatch:
        """Rows of a page, from the parts of their keys, the hashes of the keys, and the values."""
        return pa.RecordBatch.from_arrays([pa.array(hashes), *keys, values], schema=self.schema)

    def keys_of(self, rows: pa.RecordBatch) -> pa.Array:
        """The keys of some rows as a column of their type."""
        parts = rows.columns[1:-1]
        if not isinstance(self.key, CompositeTypeInfo):
            return parts[0]
        return pa.StructArray.from_arrays(parts, fields=list(self.key.arrow_type()))

    def page(self, rows: pa.RecordBatch) -> bytes:
        """The page of some rows."""
        text = _text(self)
        return b"".join([rows.serialize(), text, _LENGTH.pack(len(text)), _END])


def is_page(content: bytes) -> bool:
    """Whether a bucket is a page."""
    return content.endswith(_END)


def read_page(content: bytes) -> tuple[PageTypes, pa.RecordBatch]:
    """The types of a page, and its rows, which stay where the bytes are."""
    end = len(content) - len(_END) - _LENGTH.size
    (length,) = _LENGTH.unpack_from(content, end)
    types, schema = _types(content[end - length : end])
    return types, pa.ipc.read_record_batch(pa.py_buffer(content), schema)


@lru_cache
def _text(types: PageTypes) -> bytes:
    return json.dumps([types.name, str(types.key), str(types.value)]).encode()


@lru_cache
def _types(text: bytes) -> tuple[PageTypes, pa.Schema]:
    name, key, value = json.loads(text)
    types = PageTypes(name, type_of_text(key), type_of_text(value))
    return types, types.schema
