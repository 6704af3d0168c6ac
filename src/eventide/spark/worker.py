"""Keeps a Python worker of Spark quick from one task to the next."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

_TASKS_TO_WARM_UP = 2
_OBJECTS_BETWEEN_COLLECTIONS = 200_000
"""Python's own 700 has the collector look at the same elements and entries of state again and again."""


class _Worker:
    tasks_to_warm_up = _TASKS_TO_WARM_UP


def program_loaded() -> None:
    """Say that this worker has loaded a program, whose modules and functions stay."""
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS, *gc.get_threshold()[1:])
    _Worker.tasks_to_warm_up = _TASKS_TO_WARM_UP


def settled(output: Iterable[T]) -> Iterator[T]:
    """Pass on what a task gives; behind it, take what the worker has loaded out of the garbage collector's sight.

    Spark's workers collect garbage after every task. With Arrow and a program loaded, that looks through some hundred
    thousand objects, which all stay: 40 ms, for which the next task that Spark hands to this worker has to wait. It is
    done for the first tasks of a program only, so that what later tasks leave behind is still found.
    """
    yield from output
    if _Worker.tasks_to_warm_up > 0:
        _Worker.tasks_to_warm_up -= 1
        gc.collect()
        gc.freeze()
