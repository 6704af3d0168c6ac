"""Parts of a program as they travel to the workers: pickled once, unpickled and opened once per worker and subtask."""

from __future__ import annotations

import pickle
from functools import lru_cache
from typing import Any

from eventide.runtime.tasks.level import Level
from eventide.runtime.tasks.lifecycle import open_all
from eventide.spark.worker import program_loaded


@lru_cache(maxsize=256)
def opened_level(payload: bytes, subtask: int) -> Level:
    """A level's description in this worker, its functions opened for a subtask."""
    level: Level = pickle.loads(payload)
    program_loaded()
    open_all((), level.tasks, subtask)
    return level


@lru_cache(maxsize=256)
def opened_source(payload: bytes, place: int) -> Any:
    """A ``SourceSpec`` or ``ChainSpec`` in this worker, its functions opened for a task."""
    spec = pickle.loads(payload)
    program_loaded()
    open_all((spec,), (), place)
    return spec
