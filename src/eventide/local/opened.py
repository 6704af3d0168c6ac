"""Opened parts of each subtask: functions of its own, as on Spark, opened when it first has something to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eventide.runtime.pickles import Copies
from eventide.runtime.sources.task import SourceSpec
from eventide.runtime.tasks.stage import Stage
from eventide.runtime.tasks.task import TaskSpec, close_all, open_all


class OpenedParts:
    """The sources and stages of a job, copied and opened for each of their subtasks that runs.

    ``classes`` are what is known of their classes, as on Spark.

    Raises:
        ProgramError: for what could not travel on Spark.
    """

    def __init__(
        self, sources: Sequence[SourceSpec], stages: Sequence[Stage], registered_types: Sequence[Any] = ()
    ) -> None:
        self._stages_at = {stage.number: len(sources) + place for place, stage in enumerate(stages)}
        self._copies = Copies(
            [(source, f"the source {source.name!r} or a function after it") for source in sources]
            + [(stage, f"an operator ({stage.name}) or a function after it") for stage in stages],
            registered_types,
        )
        self.classes = self._copies.classes
        self._opened: dict[tuple[int, int], Any] = {}

    def source(self, place: int, task: int) -> SourceSpec:
        """The source of a place, with the functions after it, as one of its tasks has them."""
        source: SourceSpec = self._part(place, task)
        return source

    def stage(self, number: int, subtask: int) -> Stage:
        """The level of a number as one of its subtasks has it."""
        stage: Stage = self._part(self._stages_at[number], subtask)
        return stage

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


def _functions_in(part: SourceSpec | Stage) -> tuple[tuple[SourceSpec, ...], tuple[TaskSpec, ...]]:
    return ((), part.tasks) if isinstance(part, Stage) else ((part,), ())
