"""Schemas, which turn elements into bytes, and bytes into elements, at the edges of a program."""

from __future__ import annotations

import codecs
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, overload

from eventide._absent import hand_out_names
from eventide.common.type_variables import T_co, T_contra
from eventide.common.typeinfo import TypeInformation, Types
from eventide.common.typeinfo.base import one_array
from eventide.errors import DataError, ProgramError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "BulkWriterFactory",
    "ByteArraySchema",
    "DeserializationSchema",
    "Encoder",
    "RowFieldExtractorSchema",
    "SerializationSchema",
    "SimpleStringSchema",
]


class SerializationSchema(ABC, Generic[T_contra]):
    """Turns elements into bytes: call it in a ``map`` before a sink of bytes. PyFlink: ``SerializationSchema``."""

    @abstractmethod
    def serialize(self, element: T_contra) -> bytes:
        """Return the bytes of an element.

        Raises:
            DataError: It cannot be written; the error says which element.
        """

    def serialize_column(self, elements: pa.Array, type_info: TypeInformation) -> pa.Array:
        """Return the bytes of many elements, each at the place of its element, as an Arrow array of binary.

        The result is the same as that of :meth:`serialize` for each element.

        Args:
            elements: The elements, as an array of their type.
            type_info: Their type.

        Raises:
            DataError: An element cannot be written; the error says which.
        """
        import pyarrow as pa

        values = type_info.from_arrow(elements)
        messages = [self.serialize(value) for value in values]
        try:
            return pa.array(messages, pa.binary())
        except pa.ArrowTypeError as error:
            kinds = (bytes, bytearray, memoryview, str, type(None))
            places = (place for place, message in enumerate(messages) if not isinstance(message, kinds))
            place = next(places, 0)
            raise DataError(
                f"{type(self).__name__}.serialize gave {messages[place]!r} for {values[place]!r}, and has to give "
                "bytes; convert it, as with str(value).encode()"
            ) from error


class DeserializationSchema(ABC, Generic[T_co]):
    """Turns messages, which are bytes, into elements: one in a ``map``, or a column of them at once.

    A user-defined schema needs :meth:`deserialize`, and declares the type of the elements with
    :meth:`get_produced_type`. PyFlink: ``DeserializationSchema``.
    """

    @abstractmethod
    def deserialize(self, message: bytes) -> T_co | None:
        """Return the element in a message; None if there is none and the message is to be skipped.

        A source in Flink drops None. A ``map`` does not: put a filter after it, such as
        ``.filter(lambda element: element is not None)``.

        Raises:
            DataError: It cannot be read; the error says which message.
        """

    def get_produced_type(self) -> TypeInformation[T_co]:
        """Return the type of the elements; by default any object, pickled."""
        return Types.PICKLED_BYTE_ARRAY()

    def deserialize_column(self, messages: pa.Array) -> pa.Array:
        """Return the elements of many messages, each at the place of its message, as an Arrow array of their type.

        The result is the same as that of :meth:`deserialize` for each message: null for None, and for a missing
        message.

        Args:
            messages: Bytes, or text, which is read as its UTF-8.

        Raises:
            DataError: A message cannot be read; the error says which.
        """
        return self._one_by_one(one_array(messages).to_pylist())

    def deserialize_all(self, messages: Sequence[bytes | None]) -> pa.Array:
        """Return the result of `deserialize_column` for messages that a source has as Python objects.

        By default, it makes an array of them and calls :meth:`deserialize_column`.
        """
        import pyarrow as pa

        return self.deserialize_column(pa.array(messages, pa.binary()))

    def _one_by_one(self, messages: Sequence[bytes | None]) -> pa.Array:
        elements = [None if message is None else self.deserialize(message) for message in messages]
        return self.get_produced_type().to_arrow(elements)


def bytes_of(message: object) -> bytes:
    """Return the bytes of a message that was given to a schema: bytes as they are, text as UTF-8.

    Raises:
        DataError: It is neither.
    """
    if isinstance(message, str):
        return message.encode(errors="surrogatepass")  # a lone surrogate is not UTF-8: its reader raises
    if isinstance(message, bytes | bytearray | memoryview):
        return bytes(message)
    raise DataError(f"a message is bytes or text, not {message!r:.200}; cast or encode the column first")


class SimpleStringSchema(SerializationSchema[str], DeserializationSchema[str]):
    """Elements that are text, such as ``stream.map(SimpleStringSchema().serialize)``. PyFlink: ``SimpleStringSchema``.

    UTF-16 without a byte order mark is big-endian, and is written so, as in Java.

    Raises:
        ProgramError: Python does not know the encoding.

    >>> SimpleStringSchema().deserialize("été".encode())
    'été'
    """

    def __init__(self, charset: str = "UTF-8") -> None:
        self.charset = _known_charset(charset)
        self._is_utf_16 = codecs.lookup(self.charset).name == "utf-16"

    def serialize(self, element: str) -> bytes:
        if not isinstance(element, str):
            raise DataError(f"SimpleStringSchema: expected a str, got {element!r}")
        try:
            if self._is_utf_16:
                return codecs.BOM_UTF16_BE + element.encode("UTF-16BE")
            return element.encode(self.charset)
        except UnicodeEncodeError as error:
            raise DataError(f"SimpleStringSchema: {element!r} cannot be written in {self.charset}") from error

    def serialize_column(self, elements: pa.Array, type_info: TypeInformation) -> pa.Array:
        import pyarrow as pa

        is_text = pa.types.is_string(elements.type) and not elements.null_count
        if is_text and codecs.lookup(self.charset).name == "utf-8":
            return elements.cast(pa.binary())
        return super().serialize_column(elements, type_info)

    @overload
    def deserialize(self, message: bytes | str) -> str: ...

    @overload
    def deserialize(self, message: bytes | str | None) -> str | None: ...

    def deserialize(self, message: bytes | str | None) -> str | None:
        """Return the decoded text; None for a missing message."""
        if message is None:
            return None
        content = bytes_of(message)
        charset = self.charset
        if self._is_utf_16 and not content.startswith((codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE)):
            charset = "UTF-16BE"
        try:
            return content.decode(charset)
        except UnicodeDecodeError as error:
            raise DataError(f"SimpleStringSchema: {content!r} is not {self.charset}") from error

    def get_produced_type(self) -> TypeInformation[str]:
        return Types.STRING()

    def deserialize_column(self, messages: pa.Array) -> pa.Array:
        import pyarrow as pa

        messages = one_array(messages)
        if codecs.lookup(self.charset).name == "utf-8":
            with suppress(pa.ArrowInvalid):  # to find the one that fails
                return messages.cast(pa.string())
        return super().deserialize_column(messages)


class ByteArraySchema(SerializationSchema[bytes], DeserializationSchema[bytes]):
    """Elements that are bytes, unchanged. PyFlink: ``ByteArraySchema``.

    >>> ByteArraySchema().deserialize(b"as it is")
    b'as it is'
    """

    def serialize(self, element: bytes) -> bytes:
        if not isinstance(element, bytes | bytearray):
            raise DataError(f"ByteArraySchema: expected bytes, got {element!r}")
        return bytes(element)

    @overload
    def deserialize(self, message: bytes | str) -> bytes: ...

    @overload
    def deserialize(self, message: bytes | str | None) -> bytes | None: ...

    def deserialize(self, message: bytes | str | None) -> bytes | None:
        """Return the bytes; None for a missing message."""
        return None if message is None else bytes_of(message)

    def get_produced_type(self) -> TypeInformation[bytes]:
        return Types.PRIMITIVE_ARRAY(Types.BYTE())

    def deserialize_column(self, messages: pa.Array) -> pa.Array:
        return one_array(messages).cast(self.get_produced_type().arrow_type())


@dataclass(frozen=True)
class RowFieldExtractorSchema(SerializationSchema):
    """One field of a row that is already bytes, such as the key of a message. PyFlink: ``RowFieldExtractorSchema``.

    Raises:
        ProgramError: The index is below zero.

    >>> from eventide.common import Row
    >>> RowFieldExtractorSchema(0).serialize(Row(b"key", 5))
    b'key'
    """

    field_index: int

    def __post_init__(self) -> None:
        if self.field_index < 0:
            raise ProgramError(f"the index of a field is 0 or more, not {self.field_index!r}")

    def serialize(self, element: Any) -> bytes:
        """Return the field; empty bytes if it, or the row, is None.

        Raises:
            DataError: The row is too short, or the field is something else.
        """
        if element is None:
            return b""
        if not self.field_index < len(element):
            raise DataError(f"RowFieldExtractorSchema: {element!r} has no field {self.field_index}")
        field = element[self.field_index]
        return b"" if field is None else ByteArraySchema().serialize(field)


class Encoder(Generic[T_contra]):
    r"""Writes the elements of a file sink: each as text, on a line of its own.

    >>> Encoder.simple_string_encoder().encode((1, "a"))
    b"(1, 'a')\n"
    """

    def __init__(self, charset_name: str) -> None:
        self.charset_name = _known_charset(charset_name)

    @staticmethod
    def simple_string_encoder(charset_name: str = "UTF-8") -> Encoder[object]:
        """Return an encoder that writes ``str(element)`` and a newline.

        Raises:
            ProgramError: Python does not know the encoding.
        """
        return Encoder(charset_name)

    def encode(self, element: T_contra) -> bytes:
        """Return the bytes to append to the file."""
        return f"{element}\n".encode(self.charset_name)


@dataclass(frozen=True)
class BulkWriterFactory:
    """One of Spark's file formats, and the rows to write in it; made by ``ParquetBulkWriters`` and similar classes."""

    format: str
    row_type: TypeInformation
    options: dict[str, str] = field(default_factory=dict)

    def get_row_type(self) -> TypeInformation:
        """Return the type of the rows."""
        return self.row_type


def _known_charset(charset: str) -> str:
    try:
        codecs.lookup(charset)
    except LookupError as error:
        raise ProgramError(f"unknown encoding {charset!r}") from error
    return charset


hand_out_names(__name__)
