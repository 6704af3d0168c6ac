"""Parts of a program as they travel to the workers: pickled once, unpickled and opened once per worker and subtask."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from eventide.common._pickles import bring
from eventide.runtime.pickles import Program, loads_program
from eventide.runtime.tasks.level import Level
from eventide.runtime.tasks.lifecycle import open_all
from eventide.spark.worker import program_loaded


def opened_level(payload: bytes, subtask: int) -> Level:
    """A level's description in this worker, its functions opened for a subtask."""
    level: Level = _at_hand(_level(payload, subtask))
    return level


def opened_source(payload: bytes, place: int) -> Any:
    """A ``SourceSpec`` or ``ChainSpec`` in this worker, its functions opened for a task."""
    return _at_hand(_source(payload, place))


@lru_cache(maxsize=256)
def _level(payload: bytes, subtask: int) -> Program:
    program = loads_program(payload)
    program_loaded()
    open_all((), program.part.tasks, subtask)
    return program


@lru_cache(maxsize=256)
def _source(payload: bytes, place: int) -> Program:
    program = loads_program(payload)
    program_loaded()
    open_all((program.part,), (), place)
    return program


def _at_hand(program: Program) -> Any:
    """The part; this worker may have served another program since, with classes of the same names."""
    bring(program.classes)
    return program.part
