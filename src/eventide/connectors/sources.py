"""Sources without a connection: a collection of the program, and a range of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from eventide.api.source import Source
from eventide.common.type_variables import T_co
from eventide.common.typeinfo import TypeInformation, Types
from eventide.errors import ProgramError


class CollectionSource(Source[T_co]):
    """Source that ``StreamExecutionEnvironment.from_collection`` reads.

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
        return len(self._elements)

    def read(self, split: str, start: int, end: int) -> Iterator[T_co]:
        return iter(self._elements[start:end])

    def get_produced_type(self) -> TypeInformation:
        return self._type_info


class NumberSequenceSource(Source[int]):
    """The numbers from ``start`` to ``end``, both included, in a number of splits.

    Flink: ``NumberSequenceSource``; the number of splits is eventide's own argument.

    Raises:
        ProgramError: ``end`` is before ``start``, or there are no splits.

    >>> source = NumberSequenceSource(1, 5, splits=2)
    >>> [list(source.read(split, 0, source.latest_position(split))) for split in source.splits()]
    [[1, 2, 3], [4, 5]]
    """

    def __init__(self, start: int, end: int, splits: int = 1) -> None:
        if splits < 1:
            raise ProgramError(f"NumberSequenceSource needs at least one split, not {splits!r}")
        if end < start:
            raise ProgramError(f"no numbers from {start} to {end}; give NumberSequenceSource the lower one first")
        count = end - start + 1
        self._bounds = [start + -(-count * i // splits) for i in range(splits + 1)]

    def splits(self) -> list[str]:
        """Numbered from 0."""
        return [str(i) for i in range(len(self._bounds) - 1)]

    def latest_position(self, split: str) -> int:
        return self._bounds[int(split) + 1] - self._bounds[int(split)]

    def read(self, split: str, start: int, end: int) -> Iterator[int]:
        first = self._bounds[int(split)]
        return iter(range(first + start, first + end))

    def get_produced_type(self) -> TypeInformation[int]:
        return Types.LONG()
