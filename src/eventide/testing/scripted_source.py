"""A source that plays a script: what comes in which micro-batch, and when a split falls silent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eventide.common.typeinfo import TypeInformation, Types
from eventide.datastream.connectors.source import IDLE, Source
from eventide.errors import ProgramError


@dataclass(frozen=True, slots=True)
class Idle:
    """Marks a split idle at the end of a micro-batch, unless an element of it follows in the same one."""

    split: str


class ScriptedSource(Source):
    """Plays micro-batches exactly as they are written, without Spark and on Spark.

    Each inner list of ``batches`` is one micro-batch of ``(split, element)`` pairs and :class:`Idle` markers; an empty
    one is a micro-batch without data. With ``bounded``, the end of all splits, and with it ``MAX_WATERMARK``, follows
    in one more micro-batch of its own.

    A position of this source is a number of micro-batches.

    Raises:
        ProgramError: if a batch names a split that is not in ``splits``.

    >>> source = ScriptedSource(["a", "b"], [[("a", 1), ("b", 2), Idle("b")], [("a", 3)]])
    >>> list(source.read("b", 0, 1))
    [2, IDLE]
    """

    def __init__(
        self,
        splits: Sequence[str],
        batches: Sequence[Sequence[tuple[str, Any] | Idle]],
        type_info: TypeInformation | None = None,
        bounded: bool = True,
    ) -> None:
        self._splits = list(splits)
        self._bounded = bounded
        self._type_info = type_info or Types.PICKLED_BYTE_ARRAY()
        self._script: list[dict[str, list[Any]]] = []
        for number, batch in enumerate(batches):
            script: dict[str, list[Any]] = {}
            for entry in batch:
                split, item = (entry.split, IDLE) if isinstance(entry, Idle) else entry
                if split not in self._splits:
                    raise ProgramError(f"batch {number} names the split {split!r}; the splits are {self._splits!r}")
                script.setdefault(split, []).append(item)
            self._script.append(script)

    def splits(self) -> list[str]:
        """The splits, as given."""
        return self._splits

    def latest_position(self, split: str) -> int:
        """The number of micro-batches, and one for the end."""
        return len(self._script) + self._bounded

    def read(self, split: str, start: int, end: int) -> Iterator[Any]:
        """What the script has for a split."""
        for script in self._script[start:end]:
            yield from script.get(split, [])

    def next_positions(self, positions: Mapping[str, int], max_rows: int | None) -> dict[str, int]:
        """One micro-batch further; a limit of rows does not cut the script."""
        return {split: min(position + 1, self.latest_position(split)) for split, position in positions.items()}

    def is_bounded(self) -> bool:
        """As given."""
        return self._bounded

    def get_produced_type(self) -> TypeInformation:
        """The type that was declared."""
        return self._type_info
