"""All operators of one depth of a graph: they run after one shuffle, in one call for each subtask."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from eventide.runtime.elements.keys import groups_of
from eventide.runtime.exchange.frames import Frame, metrics_frame
from eventide.runtime.metrics import add_up, told_splits
from eventide.runtime.state.backend import Backend
from eventide.runtime.state.operators import OperatorStates
from eventide.runtime.tasks.alignment_task import AlignmentTaskSpec
from eventide.runtime.tasks.task import TaskSpec


@dataclass(frozen=True, slots=True)
class Stage:
    """The operators whose inputs all come from sources and from stages before; ``number`` counts from 1.

    One that ``keeps_clock`` may run when only the clock has gone on even if nothing in it needs that now. A host may
    keep where its operators stand ``reached_in`` a folder.
    """

    number: int
    tasks: tuple[TaskSpec, ...]
    keeps_clock: bool = False
    reached_in: str | None = None

    @property
    def name(self) -> str:
        """The names of its operators, for messages."""
        return ", ".join(task.name for task in self.tasks)

    @property
    def targets(self) -> frozenset[int]:
        """The numbers that frames for its operators are addressed to."""
        return frozenset(task.number for task in self.tasks)

    @property
    def needs_clock(self) -> bool:
        """Whether the stage may have to run when only the clock has gone on."""
        return self.keeps_clock or any(task.needs_clock and not task.in_batch for task in self.tasks)

    @property
    def runs_without_data(self) -> bool:
        """Whether micro-batches have to come while no data does, because of its operators."""
        return any(task.runs_without_data and not task.in_batch for task in self.tasks)

    def program(self) -> dict[str, dict[str, str]]:
        """Identity of each operator's state, by the operator's id."""
        return {task.id: {"name": task.name, **task.identity} for task in self.tasks}

    def with_storage(self, standing: str | None, reached_in: str | None) -> Stage:
        """Return a copy for a job that keeps things in folders.

        Args:
            standing: the folder for the progress of sources that wait for each other.
            reached_in: the folder for where operators stand.
        """
        tasks = (replace(t, storage=standing) if isinstance(t, AlignmentTaskSpec) else t for t in self.tasks)
        return replace(self, tasks=tuple(tasks), reached_in=reached_in)

    @property
    def storage(self) -> str | None:
        """Where the host keeps that, if an operator of this stage says it."""
        return next((task.storage for task in self.tasks if isinstance(task, AlignmentTaskSpec)), None)

    def run(self, subtask: int, backend: Backend, clock_ms: int, run: str | None = None) -> StageRun:
        """Open one of its subtasks for a micro-batch.

        Args:
            subtask: its index.
            backend: its state.
            clock_ms: the time of the micro-batch by the clock, in milliseconds since the epoch.
            run: a name for the run of the job that planned the micro-batch; None if runs cannot be told apart.
        """
        return StageRun(self, subtask, backend, clock_ms, run)


class StageRun:
    """One subtask of all operators of a stage during one micro-batch.

    An operator runs if there are frames for it, or if its time by the clock has come; the others cost nothing.
    """

    def __init__(self, stage: Stage, subtask: int, backend: Backend, clock_ms: int, run: str | None = None) -> None:
        self._stage = stage
        self._subtask = subtask
        self._clock_ms = clock_ms
        self._run = run
        self._states = OperatorStates(backend, stage.program(), self._where)
        self.passed: dict[str, list[int]] = {}

    @property
    def next_clock_before_ms(self) -> int | None:
        """The time by the clock at which it was to run again, before this micro-batch; None if it need not."""
        return self._states.next_clock_before_ms

    @property
    def next_clock_ms(self) -> int | None:
        """The time by the clock at which this subtask must run again, with no data too; None if it need not."""
        return min(self._states.clocks.values(), default=None)

    def run(self, frames: Iterable[Frame]) -> Iterator[Frame]:
        """Handle the frames of a micro-batch for this subtask, give those for other stages, and store the state.

        There are no frames where only the clock has gone on.
        """
        mine: dict[int, list[Frame]] = {}
        for frame in frames:
            mine.setdefault(frame.target, []).append(frame)
        counted: list[Mapping[str, Any]] = []
        due = self._states.due(self._clock_ms)
        for spec in self._stage.tasks:
            if spec.number in mine or spec.id in due:
                task = spec.task(self._subtask, self._states.of(spec.id), self._clock_ms, self._run)
                yield from task.run(mine.get(spec.number, ()))
                self._set_clock(spec.id, task.next_clock_ms)
                self.passed[spec.name] = task.passed
                counted.append(task.metrics())
        self._states.flush()
        content = _together(counted)
        if any(content.values()):
            yield metrics_frame(content)

    def _where(self, name: str) -> str:
        """Name the operator whose state lies under a name, for messages."""
        place = f"{name!r} of subtask {self._subtask}"
        owner = next((task for task in self._stage.tasks if name.startswith(f"{task.id}/")), None)
        if owner is None:
            return f"{place} of {self._stage.name}"
        groups = groups_of(self._subtask, owner.max_parallelism, owner.parallelism)
        return f"{place} of {owner.name!r}, which has the key groups from {groups.start} to {groups.stop - 1},"

    def _set_clock(self, operator: str, next_ms: int | None) -> None:
        self._states.clocks.pop(operator, None)
        if next_ms is not None:
            self._states.clocks[operator] = next_ms


def _together(counted: list[Mapping[str, Any]]) -> dict[str, Any]:
    """Merge the counts of the tasks of a stage."""
    content: dict[str, Any] = {"operators": add_up([one["operators"] for one in counted])}
    for what in ("functions", "held"):
        parts = [part for one in counted for part in one.get(what, ())]
        if parts:
            content[what] = parts
    watermarks = {name: ms for one in counted for name, ms in one.get("watermarks", {}).items()}
    splits: dict[str, dict[str, int]] = {}
    for one in counted:
        for source, of_source in one.get("splits", {}).items():
            splits.setdefault(source, {}).update(of_source)
    told = (("watermarks", watermarks), ("splits", told_splits(splits)))
    return content | {what: known for what, known in told if known}
