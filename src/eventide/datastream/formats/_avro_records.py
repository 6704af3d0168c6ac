"""What all schemas have in common that read rows from records of Avro, wherever the schema of a record comes from."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from eventide.common.serialization import DeserializationSchema
from eventide.common.typeinfo import CompositeTypeInfo, TypeInformation
from eventide.common.typeinfo._base import one_array
from eventide.common.types import Row

if TYPE_CHECKING:
    import pyarrow as pa


class ReadsAvroRecords(DeserializationSchema[Row]):
    """Reads one record at a time, and makes rows, or a column of them, of what it reads."""

    @property
    @abstractmethod
    def _row_type(self) -> CompositeTypeInfo:
        """The type of the rows."""

    @abstractmethod
    def _record(self, message: bytes | str) -> Any:
        """What is in a message: a dict, by the names of fields."""

    def deserialize(self, message: bytes | str | None) -> Any:
        """Return the row; None where there is no message.

        Raises:
            DataError: It is no record of its schema, or does not say which schema that is where it must.
            ProgramError: Whoever has to be asked for the schema does not answer.
        """
        if message is None:
            return None
        [row] = self._row_type.as_declared([self._record(message)])
        return row

    def get_produced_type(self) -> TypeInformation:
        """Return the type of the rows."""
        return self._row_type

    def deserialize_column(self, messages: pa.Array) -> pa.Array:
        """Return the rows as a struct; see :meth:`DeserializationSchema.deserialize_column`."""
        return self.deserialize_all(one_array(messages).to_pylist())

    def deserialize_all(self, messages: Sequence[bytes | None]) -> pa.Array:
        """Return the same of messages that are objects; see :meth:`DeserializationSchema.deserialize_all`."""
        records = [None if message is None else self._record(message) for message in messages]
        return self._row_type.to_arrow(records)
