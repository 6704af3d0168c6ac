"""Parts of a program as bytes, for the way to the workers."""

from __future__ import annotations

from typing import Any

import cloudpickle

from eventide.errors import ProgramError


def dumps_program(value: Any, what: str) -> bytes:
    """Pickle a part of the user's program, functions and classes by value.

    Raises:
        ProgramError: if it holds something that cannot travel, such as an open file, a lock or a SparkSession.
    """
    try:
        return bytes(cloudpickle.dumps(value, protocol=5))
    except Exception as error:
        raise ProgramError(
            f"{what} cannot be sent to the workers: {error!r}. A function must not hold open files, locks, "
            "connections or a SparkSession; create those in its open() method"
        ) from error
