"""Opened parts of each subtask: functions of its own, as on Spark, opened when it first has something to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eventide.runtime.pickles import Copies
from eventide.runtime.sources.task import SourceSpec
from eventide.runtime.tasks.level import Level
from eventide.runtime.tasks.lifecycle import close_all, open_all
from eventide.runtime.tasks.task import TaskSpec


class OpenedParts:
    """The sources and levels of a job, copied and opened for each of their subtasks that runs.

    ``classes`` are what is known of their classes, as on Spark.

    Raises:
        ProgramError: for what could not travel on Spark.
    """

    def __init__(
        self, sources: Sequence[SourceSpec], levels: Sequence[Level], registered_types: Sequence[Any] = ()
    ) -> None:
        self._levels_at = {level.number: len(sources) + place for place, level in enumerate(levels)}
        self._copies = Copies(
            [(source, f"the source {source.name!r} or a function after it") for source in sources]
            + [(level, f"an operator ({level.name}) or a function after it") for level in levels],
            registered_types,
        )
        self.classes = self._copies.classes
        self._opened: dict[tuple[int, int], Any] = {}

    def source(self, place: int, task: int) -> SourceSpec:
        """The source of a place, with the functions after it, as one of its tasks has them."""
        source: SourceSpec = self._part(place, task)
        return source

    def level(self, number: int, subtask: int) -> Level:
        """The level of a number as one of its subtasks has it."""
        level: Level = self._part(self._levels_at[number], subtask)
        return level

    def close(self) -> None:
        """Close the functions of all that were opened; another run gets others."""
        while self._opened:
            _, part = self._opened.popitem()
            close_all(*_functions_in(part))

    def _part(self, number: int, subtask: int) -> Any:
        at = number, subtask
        if at not in self._opened:
            part = self._copies.copy(number)
            open_all(*_functions_in(part), subtask)
            self._opened[at] = part
        return self._opened[at]


def _functions_in(part: SourceSpec | Level) -> tuple[tuple[SourceSpec, ...], tuple[TaskSpec, ...]]:
    return ((), part.tasks) if isinstance(part, Level) else ((part,), ())
