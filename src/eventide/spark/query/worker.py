"""Keeps a Python worker of Spark quick from one task to the next."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Iterator
from typing import TypeVar

from pyspark import SparkFiles, TaskContext

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
    """Have this worker work in the folder that has the archives of programs, if there are any.

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
