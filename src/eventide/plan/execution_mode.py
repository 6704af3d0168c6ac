"""How a program runs: on and on, or over bounded input once."""

from enum import Enum

__all__ = ["RuntimeExecutionMode"]


class RuntimeExecutionMode(Enum):
    """STREAMING runs until stopped, BATCH needs bounded sources, AUTOMATIC is BATCH where all sources are bounded."""

    STREAMING = 0
    BATCH = 1
    AUTOMATIC = 2
