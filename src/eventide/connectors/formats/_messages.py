"""Schemas that read rows from messages and write rows as messages: the common part of JSON, CSV and Avro."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from eventide.common.serialization import DeserializationSchema, SerializationSchema, bytes_of
from eventide.common.typeinfo import CompositeTypeInfo, TypeInformation
from eventide.common.types import Row
from eventide.errors import DataError, ProgramError

if TYPE_CHECKING:
    import pyarrow as pa

ReadMany: TypeAlias = "Callable[[Sequence[bytes]], pa.StructArray | None]"
"""Returns the rows of many messages; or None if they must be read one by one."""

_FEW = 64
_LONGEST = 200


class OfRows:
    """A dataclass that pickles only its fields, without values computed from them."""

    row_type: CompositeTypeInfo

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]


class WritesRows(OfRows, SerializationSchema[object]):
    """Writes a row as a message."""

    form: ClassVar[str]
    """The name of a message, for errors."""

    def _declared(self, element: object) -> Any:
        """Return an element as a value of its type.

        Raises:
            DataError: if it is not of the type.
        """
        if element is None:
            raise DataError(f"there is no {self.form} for None; it should be of {self.row_type}")
        [declared] = self.row_type.as_declared([element])
        return declared


class ReadsRows(OfRows, DeserializationSchema[Row]):
    """Reads a row from each message; from many messages at once if that certainly gives the same rows."""

    format: ClassVar[str]
    ignores_parse_errors: bool = False

    @abstractmethod
    def _read(self, message: bytes) -> Any:
        """Return the row of a message; None if it has none.

        Raises:
            ValueError: if the message cannot be read.
        """

    @cached_property
    def _read_many(self) -> ReadMany | None:
        """Reads many messages at once; None, the default, to read messages one by one."""
        return None

    def deserialize(self, message: bytes | str | None) -> Any:
        """Return the row; None for a message without a row and, if parse errors are ignored, for one with errors.

        A ``map`` keeps None; see :meth:`DeserializationSchema.deserialize`.

        Raises:
            DataError: The message cannot be read, or a field has another type, or a required field is missing.
            ProgramError: A registry does not return the schema of an Avro record.
        """
        if message is None:
            return None
        content = bytes_of(message)
        try:
            return self._read(content)
        except ProgramError:
            raise
        except (ValueError, RecursionError) as error:
            if self.ignores_parse_errors:
                return None
            raise DataError(
                f"the message {said(content)} cannot be read as {self.format} of {self.row_type}: {error}"
            ) from error

    def get_produced_type(self) -> TypeInformation:
        return self.row_type

    def deserialize_column(self, messages: pa.Array) -> pa.Array:
        """Return the rows as a struct; see :meth:`DeserializationSchema.deserialize_column`.

        Text, booleans, numbers, dates and points in time are read many at once. Other types, and CSV messages with
        quotes, are read one by one.
        """
        import pyarrow as pa

        is_text = pa.types.is_string(messages.type) or pa.types.is_large_string(messages.type)
        return self.deserialize_all((messages.cast(pa.binary()) if is_text else messages).to_pylist())

    def deserialize_all(self, messages: Sequence[bytes | None]) -> pa.Array:
        """Return the rows of messages that are objects; see :meth:`DeserializationSchema.deserialize_all`.

        If the messages cannot be read at once, halves of them are tried, so that few others are read one by one because
        of one bad message.
        """
        import pyarrow as pa

        read_many = self._read_many
        if read_many is None:
            return self._one_by_one(messages)
        there = [message for message in messages if message is not None]
        if len(there) < len(messages):
            numbers = itertools.count()
            places = [None if message is None else next(numbers) for message in messages]
            return self.deserialize_all(there).take(pa.array(places, pa.int64()))
        rows = read_many(there) if there else None
        if rows is not None:
            return rows
        if len(there) <= _FEW:
            return self._one_by_one(there)
        middle = len(there) // 2
        return pa.concat_arrays([self.deserialize_all(part) for part in (there[:middle], there[middle:])])


def row_type_of(schema: str, type_info: TypeInformation | None) -> CompositeTypeInfo:
    """The type of rows that was given to the builder of a schema.

    Raises:
        ProgramError: if there is none, or it is not a type of rows.
    """
    if not isinstance(type_info, CompositeTypeInfo):
        raise ProgramError(
            f"{schema} needs the type of its rows, such as Types.ROW_NAMED([...], [...]), not {type_info!r}"
        )
    return type_info


def said(message: bytes) -> str:
    """A message as shown in an error, cut to a moderate length."""
    text = repr(message[:_LONGEST])
    return text if len(message) <= _LONGEST else f"{text}… ({len(message)} bytes)"
