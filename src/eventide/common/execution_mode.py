"""`ExecutionMode`, a setting of Flink 1."""

from enum import Enum

from eventide._absent import hand_out_names

__all__ = ["ExecutionMode"]


class ExecutionMode(Enum):
    """How a batch program of Flink 1 exchanged data; `RuntimeExecutionMode` has taken its place."""

    PIPELINED = 0
    PIPELINED_FORCED = 1
    BATCH = 2
    BATCH_FORCED = 3


hand_out_names(__name__)
