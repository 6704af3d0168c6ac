"""How a program runs: on and on, or over bounded input once."""

from enum import Enum
from typing import TYPE_CHECKING

from eventide._absent import finder_of_names

__all__ = ["RuntimeExecutionMode"]


class RuntimeExecutionMode(Enum):
    """STREAMING runs until stopped, BATCH needs bounded sources, AUTOMATIC is BATCH where all sources are bounded."""

    STREAMING = 0
    BATCH = 1
    AUTOMATIC = 2


if not TYPE_CHECKING:
    __getattr__ = finder_of_names(__name__)
