"""How elements become bytes, and bytes elements, at the edges of a program."""

from __future__ import annotations

import codecs
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from eventide._absent import no_such_name
from eventide.errors import DataError, ProgramError

__all__ = ["DeserializationSchema", "Encoder", "SerializationSchema", "SimpleStringSchema"]


class SerializationSchema(ABC):
    """Turns elements into bytes. Not asked by any sink yet: call it in a ``map`` before one.

    It is here for functions of the program's own and for PyFlink's sake; a sink that does not take one refuses it.
    """

    @abstractmethod
    def serialize(self, element: Any) -> bytes:
        """Return the bytes of an element; a `DataError` says that it cannot be written."""


class DeserializationSchema(ABC):
    """Turns bytes into elements. Not asked by any source yet: call it in a ``map`` behind one."""

    @abstractmethod
    def deserialize(self, message: bytes) -> Any:
        """Return the element in a message; a `DataError` says that it cannot be read."""


class SimpleStringSchema(SerializationSchema, DeserializationSchema):
    """Elements that are text, for use in a ``map``: ``stream.map(SimpleStringSchema().serialize)``.

    Raises:
        ProgramError: Python does not know the encoding.

    >>> SimpleStringSchema().deserialize("été".encode())
    'été'
    """

    def __init__(self, charset: str = "UTF-8") -> None:
        self.charset = _known_charset(charset)

    def serialize(self, element: Any) -> bytes:
        """Return the encoded text."""
        if not isinstance(element, str):
            message = f"SimpleStringSchema: expected a str, got {element!r}"
            raise DataError(message)
        try:
            return element.encode(self.charset)
        except UnicodeEncodeError as error:
            message = f"SimpleStringSchema: {element!r} cannot be written in {self.charset}"
            raise DataError(message) from error

    def deserialize(self, message: bytes) -> str:
        """Return the decoded text."""
        try:
            return bytes(message).decode(self.charset)
        except UnicodeDecodeError as error:
            text = f"SimpleStringSchema: {bytes(message)!r} is not {self.charset}"
            raise DataError(text) from error


class Encoder:
    r"""Writes the elements of a file sink: each as text, on a line of its own.

    >>> Encoder.simple_string_encoder().encode((1, "a"))
    b"(1, 'a')\n"
    """

    def __init__(self, charset_name: str) -> None:
        self.charset_name = _known_charset(charset_name)

    @staticmethod
    def simple_string_encoder(charset_name: str = "UTF-8") -> Encoder:
        """Return an encoder that writes ``str(element)`` and a newline.

        Raises:
            ProgramError: Python does not know the encoding.
        """
        return Encoder(charset_name)

    def encode(self, element: Any) -> bytes:
        """Return the bytes to append to the file."""
        return f"{element}\n".encode(self.charset_name)


def _known_charset(charset: str) -> str:
    try:
        codecs.lookup(charset)
    except LookupError as error:
        message = f"unknown encoding {charset!r}"
        raise ProgramError(message) from error
    return charset


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        raise no_such_name(__name__, name)
