"""Elements dealt out to subtasks without a key: in turn, all to one, or as a user function says."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from eventide.errors import ProgramError
from eventide.runtime.elements.codec import ElementCodec
from eventide.runtime.elements.columns import Batch, as_elements
from eventide.runtime.elements.elements import Elements
from eventide.runtime.elements.ownership import own_each
from eventide.runtime.exchange.partitioners import encoded, selectors
from eventide.runtime.invoke import last_of, user_function_error


class Dealing(Protocol):
    """Says which subtask each element goes to; picklable."""

    def user_functions(self) -> list[tuple[str, Any]]:
        """The user's functions, each with a name, to be opened and closed."""

    def describe(self) -> str:
        """How elements are dealt out, for ``explain``."""

    def subtasks_of(self, values: Sequence[Any], first: int, subtasks: int) -> Iterator[int]:
        """Give the subtask of each element, of `subtasks` subtasks; ``first`` counts the elements that went before."""


@dataclass(frozen=True, slots=True)
class RebalancePartitioner:
    """Elements of a split or task go to one subtask after the other, in their order: so it is the same at a replay."""

    def user_functions(self) -> list[tuple[str, Any]]:
        """None."""
        return []

    def describe(self) -> str:
        """In turn."""
        return "to one subtask after the other"

    def subtasks_of(self, values: Sequence[Any], first: int, subtasks: int) -> Iterator[int]:
        """One after the other."""
        return (number % subtasks for number in range(first, first + len(values)))


@dataclass(frozen=True, slots=True)
class ToFirst:
    """All elements go to the first subtask."""

    def user_functions(self) -> list[tuple[str, Any]]:
        """None."""
        return []

    def describe(self) -> str:
        """To one."""
        return "to the first subtask"

    def subtasks_of(self, values: Sequence[Any], first: int, subtasks: int) -> Iterator[int]:
        """Always the first."""
        return (0 for _ in values)


@dataclass(frozen=True, slots=True)
class ByPartitioner:
    """A user function says where a key goes."""

    partition: Callable[[Any, int], int]
    select: Callable[[Any], Any]
    partitioner: Any

    def user_functions(self) -> list[tuple[str, Any]]:
        """The partitioner and the key selector."""
        return [("partitioner", self.partitioner), *selectors(self.select)]

    def describe(self) -> str:
        """By a function."""
        return "as a partitioner says"

    def subtasks_of(self, values: Sequence[Any], first: int, subtasks: int) -> Iterator[int]:
        """The partitioner's result for the key; the partitioner and the key selector see copies."""
        for value in own_each([*values]):
            subtask = self.partition(self.select(value), subtasks)
            if not 0 <= subtask < subtasks:
                raise ProgramError(f"the partitioner gave {subtask!r}, and there are subtasks 0 to {subtasks - 1}")
            yield subtask


@dataclass(frozen=True, slots=True)
class DealtOut:
    """How elements leave that are dealt out without a key."""

    codec: ElementCodec
    dealing: Dealing
    mixes_splits: bool = False
    max_parallelism: int = 1

    def describe(self) -> str:
        """How elements travel, for ``explain``."""
        return f"{self.dealing.describe()}, {self.codec.value_type} as {self.codec.describe()}"

    def user_functions(self) -> list[tuple[str, Any]]:
        """The user's functions of the dealing."""
        return self.dealing.user_functions()

    def open(self, producer: str, slot: int, subtasks: int) -> _DealtOut:
        """An empty writer of the task with a slot."""
        return _DealtOut(self, producer, slot, subtasks)


class _DealtOut:
    def __init__(self, partitioner: DealtOut, producer: str, slot: int, subtasks: int) -> None:
        self._partitioner = partitioner
        self._producer = producer
        self._first = slot
        self._subtasks = subtasks
        self._waiting: defaultdict[int, list[Elements]] = defaultdict(list)
        self.size = 0

    def add(self, batch: Batch) -> None:
        elements = as_elements(batch)
        self.size += len(elements)
        of_subtask: defaultdict[int, list[int]] = defaultdict(list)
        subtasks = self._partitioner.dealing.subtasks_of(elements.values, self._first, self._subtasks)
        self._first += len(elements)
        values = iter(elements.values)
        try:
            for index, (_, subtask) in enumerate(zip(values, subtasks, strict=True)):
                of_subtask[subtask].append(index)
        except Exception as error:
            element = last_of(elements.values, values)
            raise user_function_error(
                self._producer, error, during="when an element was dealt out", element=element
            ) from error
        for subtask, indices in of_subtask.items():
            self._waiting[subtask].append(elements.at(indices))

    def take(self) -> Iterator[tuple[int, bytes]]:
        waiting, self._waiting, self.size = self._waiting, defaultdict(list), 0
        for subtask in sorted(waiting):
            for content in encoded(self._partitioner.codec, [*waiting[subtask]], []):
                yield subtask, content
