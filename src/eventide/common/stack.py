"""Where in the user's program a warning belongs."""

from __future__ import annotations

import sys


def level_of_the_program() -> int:
    """The ``stacklevel`` with which a warning of the caller points into the user's program."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("eventide."):
        level, frame = level + 1, frame.f_back
    return level


def place_in_the_program() -> tuple[str, int]:
    """The file and the line at which the user's program called, for a warning that comes later."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("eventide."):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno
