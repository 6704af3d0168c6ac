"""`TypeSerializer`, which writes and reads values of one type."""

from __future__ import annotations

from abc import ABC, abstractmethod
from io import BytesIO
from typing import Generic, TypeVar

from eventide._absent import hand_out_names

__all__ = ["TypeSerializer", "VoidNamespaceSerializer", "void"]

_T = TypeVar("_T")

void = b""
"""The namespace of state that belongs to a key alone, without a window."""


class TypeSerializer(ABC, Generic[_T]):
    """Writes and reads values of one type. Flink: ``TypeSerializer``.

    A user-defined window assigner may have one for its windows; it is not used, since windows are stored as they are.
    Serializers compare by their class and settings.
    """

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    @abstractmethod
    def serialize(self, element: _T, stream: BytesIO) -> None:
        """Write a value."""

    @abstractmethod
    def deserialize(self, stream: BytesIO) -> _T:
        """Read a value."""


class VoidNamespaceSerializer(TypeSerializer[bytes]):
    """Writes nothing, and reads nothing, for the only namespace."""

    def serialize(self, element: bytes, stream: BytesIO) -> None:
        """Write nothing."""

    def deserialize(self, stream: BytesIO) -> bytes:
        return void


hand_out_names(__name__)
