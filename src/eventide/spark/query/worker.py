"""The programs of a Python worker of Spark, unpickled and opened once per subtask.

The module also keeps the worker quick from one task to the next.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import IO, Any, TypeVar

from pyspark import SparkFiles, TaskContext

from eventide.plan.job import SinkSpec
from eventide.runtime.pickles import Program, loads_program
from eventide.runtime.tasks.stage import Stage
from eventide.runtime.tasks.task import close_all, open_all

T = TypeVar("T")

_TASKS_TO_WARM_UP = 2
_OBJECTS_BETWEEN_COLLECTIONS = 200_000
"""Python's own 700 has the collector look at the same elements and entries of state again and again."""


_HAS_ARCHIVES = "eventide-archives"
"""The name of an empty folder beside the archives of programs, where Spark has unpacked them."""


class _Worker:
    tasks_to_warm_up = _TASKS_TO_WARM_UP


def program_loaded() -> None:
    """Say that this worker has loaded a program, whose modules and functions stay."""
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS, *gc.get_threshold()[1:])
    _Worker.tasks_to_warm_up = _TASKS_TO_WARM_UP


def archives_are_here() -> None:
    """Record, in the driver, that Spark unpacks an archive for the functions of programs."""
    os.makedirs(SparkFiles.get(_HAS_ARCHIVES), exist_ok=True)


def work_where_archives_are() -> None:
    """Move this worker to the folder that has the archives of programs, if there are any.

    A worker of an executor does so anyway. Where Spark runs tasks in the driver's process, it unpacks them elsewhere.
    """
    if TaskContext.get() is not None and os.path.exists(SparkFiles.get(_HAS_ARCHIVES)):
        os.chdir(SparkFiles.getRootDirectory())


def settled(output: Iterable[T]) -> Iterator[T]:
    """Pass on what a task gives; after it, take what the worker has loaded out of the garbage collector's sight.

    Spark's workers collect garbage after every task. With Arrow and a program loaded, that looks through some hundred
    thousand objects, which all stay: 40 ms, for which the next task that Spark hands to this worker has to wait. It is
    done for the first tasks of a program only, so that the garbage of later tasks is still found.
    """
    yield from output
    if _Worker.tasks_to_warm_up > 0:
        _Worker.tasks_to_warm_up -= 1
        gc.collect()
        gc.freeze()


_UNUSED_S = 600.0
"""The seconds for which a part of a program is kept unused: its job may have ended, or another worker have it."""


def opened_stage(payload: bytes, subtask: int) -> Stage:
    """A stage's description in this worker, its functions opened for a subtask."""
    stage: Stage = _stages.part(payload, subtask)
    return stage


def opened_source(payload: bytes, place: int) -> Any:
    """A ``SourceSpec`` or ``ChainSpec`` in this worker, its functions opened for a task."""
    return _sources.part(payload, place)


def opened_sink(payload: bytes) -> SinkSpec:
    """A ``SinkSpec`` in this worker."""
    spec: SinkSpec = _sinks.part(payload, 0)
    return spec


def number_of_batch() -> int | None:
    """The number of the micro-batch that this task is part of; None if Spark does not say it."""
    context = TaskContext.get()
    number = None if context is None else context.getLocalProperty("streaming.sql.batchId")
    return None if number is None else int(number)


_ANY = -1
"""Stands for the index of every subtask."""


class OpenedPrograms:
    """The parts of programs that this worker has cached, each for one subtask, the last used ones at the end.

    Args:
        functions: the sources and the tasks of a part, whose functions are opened and closed.
        may_share: whether subtasks share a part that has no functions of the user's.
    """

    def __init__(self, functions: Callable[[Any], tuple[Any, Any]], *, may_share: bool = False) -> None:
        self._functions = functions
        self._may_share = may_share
        self._programs: dict[tuple[bytes, int], tuple[Program, float]] = {}

    def part(self, payload: bytes, index: int) -> Any:
        """The part in some bytes, its functions opened for the subtask of an index."""
        work_where_archives_are()
        now = time.monotonic()
        index = _ANY if (payload, _ANY) in self._programs else index
        program, _ = self._programs.pop((payload, index), (None, now))
        if program is None:
            self._close_unused(now)
            program = loads_program(payload)
            program_loaded()
            if open_all(*self._functions(program.part), index) == 0 and self._may_share:
                index = _ANY
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


_stages = OpenedPrograms(lambda stage: ((), stage.tasks), may_share=True)
_sources = OpenedPrograms(lambda source: ((source,), ()))
_sinks = OpenedPrograms(lambda sink: ((), ()))


class FaultLog:
    """The file to which Python's ``faulthandler`` writes at a native crash: Spark adds it to the error of the task.

    One text is kept in it, to which the traceback of a crash is appended. If Spark has named no such file, nothing is
    kept.
    """

    def __init__(self) -> None:
        folder = os.environ.get("PYTHON_FAULTHANDLER_DIR")
        self._file: IO[bytes] | None = None
        if folder is not None:
            self._file = open(os.path.join(folder, str(os.getpid())), "ab", buffering=0)  # noqa: SIM115 - for the task
            faulthandler.enable(file=self._file)

    def __call__(self, text: str) -> None:
        """Keep a text in place of the one before."""
        if self._file is not None:
            self._file.truncate(0)
            self._file.write(text.encode())
