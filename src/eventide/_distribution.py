"""The name of eventide for pip, and the commands that install its extras."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from eventide.errors import ProgramError

NAME = "eventide-spark"
"""On the public index, `eventide` is another project."""


def getting(extra: str) -> str:
    """The command that installs eventide with an extra.

    >>> getting("kafka")
    "pip install 'eventide-spark[kafka]'"
    """
    return f"pip install '{NAME}[{extra}]'"


@contextmanager
def needing(library: str, what: str, extra: str) -> Iterator[None]:
    """Say what to install where a library of an extra cannot be imported.

    Args:
        library: the name of the library.
        what: the feature that needs it.
        extra: the extra that brings it.

    Raises:
        ProgramError: in place of an ``ImportError``.
    """
    try:
        yield
    except ImportError as error:
        raise ProgramError(
            f"{what} needs the library {library}, which is not installed here: {getting(extra)}, also where Spark's "
            "workers run"
        ) from error
