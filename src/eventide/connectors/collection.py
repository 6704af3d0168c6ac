"""A source over a Python collection: one split, in its order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from eventide.api.source import Source
from eventide.common.type_variables import T_co
from eventide.common.typeinfo import TypeInformation, Types

__all__ = ["CollectionSource"]


class CollectionSource(Source[T_co]):
    """What ``StreamExecutionEnvironment.from_collection`` reads.

    >>> list(CollectionSource(["a", "b", "c"]).read("collection", 1, 3))
    ['b', 'c']
    """

    def __init__(self, collection: Iterable[T_co], type_info: TypeInformation | None = None) -> None:
        self._elements = list(collection)
        self._type_info = type_info or Types.PICKLED_BYTE_ARRAY()

    def splits(self) -> list[str]:
        """The collection is one split."""
        return ["collection"]

    def latest_position(self, split: str) -> int:
        """The number of elements."""
        return len(self._elements)

    def read(self, split: str, start: int, end: int) -> Iterator[T_co]:
        """A slice."""
        return iter(self._elements[start:end])

    def get_produced_type(self) -> TypeInformation:
        """The type that was declared."""
        return self._type_info
