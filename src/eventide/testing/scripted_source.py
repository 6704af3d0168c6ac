"""A source that plays a script: what comes in which micro-batch, and when a split falls silent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eventide.api.source import IDLE, Source
from eventide.common.typeinfo import TypeInformation, Types
from eventide.errors import ProgramError


@dataclass(frozen=True, slots=True)
class Idle:
    """Marks a split idle at the end of a micro-batch, unless an element of it follows in the same one."""

    split: str


@dataclass(frozen=True, slots=True)
class End:
    """Ends a split with a micro-batch: nothing of it may follow. With the last of its splits the source ends."""

    split: str


class ScriptedSource(Source):
    """Plays micro-batches exactly as they are written, without Spark and on Spark.

    Each inner list of ``batches`` is one micro-batch of ``(split, element)`` pairs and of :class:`Idle` and
    :class:`End` markers; an empty one is a micro-batch without data. With ``bounded``, the end of the splits that have
    not ended by then, and with it ``MAX_WATERMARK``, follows in one more micro-batch of its own. If all splits have an
    :class:`End`, the source ends with the last of these, bounded or not.

    A position of this source is a number of micro-batches.

    Raises:
        ProgramError: if a batch names a split that is not in ``splits``, or one that has ended.

    >>> source = ScriptedSource(["a", "b"], [[("a", 1), ("b", 2), Idle("b")], [("a", 3), End("a")]])
    >>> list(source.read("b", 0, 1))
    [2, IDLE]
    >>> [source.has_ended("a", position) for position in (1, 2)]
    [False, True]
    """

    def __init__(
        self,
        splits: Sequence[str],
        batches: Sequence[Sequence[tuple[str, Any] | Idle | End]],
        type_info: TypeInformation | None = None,
        bounded: bool = True,
    ) -> None:
        self._splits = list(splits)
        self._bounded = bounded
        self._type_info = type_info or Types.PICKLED_BYTE_ARRAY()
        self._ends: dict[str, int] = {}
        self._script = [self._batch(number, batch) for number, batch in enumerate(batches)]

    def _batch(self, number: int, batch: Sequence[tuple[str, Any] | Idle | End]) -> dict[str, list[Any]]:
        """The items of each split; where one ends is remembered."""
        script: dict[str, list[Any]] = {}
        for entry in batch:
            split, item = (entry.split, IDLE) if isinstance(entry, Idle | End) else entry
            if split not in self._splits:
                raise ProgramError(f"batch {number} names the split {split!r}; the splits are {self._splits!r}")
            if split in self._ends:
                raise ProgramError(
                    f"batch {number} has {entry!r}, but the split {split!r} has ended in batch {self._ends[split] - 1}"
                )
            if isinstance(entry, End):
                self._ends[split] = number + 1
            else:
                script.setdefault(split, []).append(item)
        return script

    def splits(self) -> list[str]:
        return self._splits

    def latest_position(self, split: str) -> int:
        """The number of micro-batches, and one for the end; for a split with an `End`, that up to there."""
        return self._ends.get(split, len(self._script) + self._bounded)

    def has_ended(self, split: str, position: int) -> bool:
        """Whether this comes after the split's `End`, or after the end of all."""
        return (self._bounded or split in self._ends) and position >= self.latest_position(split)

    def read(self, split: str, start: int, end: int) -> Iterator[Any]:
        for script in self._script[start:end]:
            yield from script.get(split, [])

    def next_positions(self, positions: Mapping[str, int], max_rows: int | None) -> dict[str, int]:
        """One micro-batch further; a limit of rows does not cut the script."""
        return {split: min(position + 1, self.latest_position(split)) for split, position in positions.items()}

    def is_bounded(self) -> bool:
        return self._bounded

    def may_end(self) -> bool:
        """Whether it is bounded, or the script ends all of its splits."""
        return self._bounded or self._ends.keys() == set(self._splits)

    def get_produced_type(self) -> TypeInformation:
        return self._type_info
