"""The library of sketches, which is an optional part of eventide."""

from __future__ import annotations

from importlib.util import find_spec

from eventide._distribution import getting
from eventide.errors import ProgramError


def check_sketches_are_installed(function: str) -> None:
    """Refuse an approximate aggregate where the library that computes it is missing.

    Raises:
        ProgramError: saying what to install.

    >>> check_sketches_are_installed("approx_top_k")
    """
    if find_spec("datasketches") is None:
        raise ProgramError(
            f"{function} needs the library datasketches, which is not installed here: "
            f"{getting('sketches')}, also where Spark's workers run"
        )
