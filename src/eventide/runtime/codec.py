"""How elements become bytes between stages: Arrow columns where their type is declared, else a pickle."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from eventide.common._pickles import dumps
from eventide.common.typeinfo import TypeInformation
from eventide.errors import DataError
from eventide.runtime.events import Elements


@dataclass(frozen=True, slots=True)
class ElementCodec:
    """The form in which the elements of one edge travel.

    With a declared ``value_type`` it is an Arrow IPC stream of one record batch with the columns ``value``,
    ``timestamp`` (int64 milliseconds), ``order`` and, on edges with a key, ``key``. Otherwise it is one pickle of all.
    """

    value_type: TypeInformation
    key_type: TypeInformation | None = None

    @property
    def columnar(self) -> bool:
        """Whether elements travel as Arrow columns."""
        return not self.value_type.is_pickled

    def encode(self, elements: Elements) -> bytes:
        """Elements to bytes.

        Raises:
            TypeMismatch: if an element does not have the declared type.
            DataError: if an element without a declared type cannot be pickled.
        """
        if not self.columnar:
            if self.key_type is not None and not self.key_type.is_pickled:
                self.key_type.to_arrow(elements.keys)  # refuses keys of another type
            return _pickled(elements)
        columns = {
            "value": self.value_type.to_arrow(elements.values),
            "timestamp": pa.array(elements.timestamps, pa.int64()),
            "order": pa.array(elements.order, pa.int64()),
        }
        if self.key_type is not None:
            columns["key"] = self.key_type.to_arrow(elements.keys)
        batch = pa.record_batch(columns)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        return bytes(sink.getvalue())

    def decode(self, data: bytes) -> Elements:
        """Bytes to elements."""
        if not self.columnar:
            return Elements(*pickle.loads(data))
        batch = decode_batch(data)
        return Elements(
            self.value_type.from_arrow(batch.column("value")),
            batch.column("timestamp").to_pylist(),
            batch.column("order").to_pylist(),
            [] if self.key_type is None else self.key_type.from_arrow(batch.column("key")),
        )


def _pickled(elements: Elements) -> bytes:
    try:
        return dumps((elements.values, elements.timestamps, elements.order, elements.keys))
    except Exception as error:
        raise DataError(
            f"an element cannot be pickled: {error!r}. Elements must be plain data, not generators, locks or open files"
        ) from error


def decode_batch(data: bytes) -> Any:
    """The Arrow record batch of a columnar frame."""
    with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
        return reader.read_next_batch()
