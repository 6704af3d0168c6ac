"""Parts of a program as they travel to the workers: pickled once, unpickled and opened once per worker and subtask."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from eventide.plan.job import SinkSpec
from eventide.runtime.pickles import Program, loads_program
from eventide.runtime.tasks.stage import Stage
from eventide.runtime.tasks.task import close_all, open_all
from eventide.spark.query.worker import program_loaded, work_where_archives_are

_UNUSED_S = 600.0
"""So long a part of a program is kept that no task has asked for: its job has ended, or another worker has it."""


def opened_stage(payload: bytes, subtask: int) -> Stage:
    """A level's description in this worker, its functions opened for a subtask."""
    stage: Stage = _stages.part(payload, subtask)
    return stage


def opened_source(payload: bytes, place: int) -> Any:
    """A ``SourceSpec`` or ``ChainSpec`` in this worker, its functions opened for a task."""
    return _sources.part(payload, place)


def opened_sink(payload: bytes) -> SinkSpec:
    """A ``SinkSpec`` in this worker."""
    spec: SinkSpec = _sinks.part(payload, 0)
    return spec


class OpenedPrograms:
    """The parts of programs that this worker has at hand, each for one subtask, those used last at the end.

    Args:
        functions: the sources and the tasks of a part, whose functions are opened and closed.
    """

    def __init__(self, functions: Callable[[Any], tuple[Any, Any]]) -> None:
        self._functions = functions
        self._programs: dict[tuple[bytes, int], tuple[Program, float]] = {}

    def part(self, payload: bytes, index: int) -> Any:
        """The part in some bytes, its functions opened for the subtask of an index."""
        work_where_archives_are()
        now = time.monotonic()
        program, _ = self._programs.pop((payload, index), (None, now))
        if program is None:
            self._close_unused(now)
            program = loads_program(payload)
            program_loaded()
            open_all(*self._functions(program.part), index)
        else:
            program.bring()  # this worker may have served another program since, with classes of the same names
        self._programs[payload, index] = program, now
        return program.part

    def _close_unused(self, now: float) -> None:
        for key, (program, used) in [*self._programs.items()]:
            if now - used <= _UNUSED_S:
                break
            del self._programs[key]
            with suppress(Exception):  # the job that it was part of has ended, and another one has this task
                close_all(*self._functions(program.part))


_stages = OpenedPrograms(lambda stage: ((), stage.tasks))
_sources = OpenedPrograms(lambda source: ((source,), ()))
_sinks = OpenedPrograms(lambda sink: ((), ()))
