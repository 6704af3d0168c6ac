"""`ExecutionMode`, a setting of Flink 1."""

from enum import Enum

from eventide._absent import hand_out_names

__all__ = ["ExecutionMode"]


class ExecutionMode(Enum):
    """Data exchange of batch programs in Flink 1; replaced by `RuntimeExecutionMode`."""

    PIPELINED = 0
    PIPELINED_FORCED = 1
    BATCH = 2
    BATCH_FORCED = 3


hand_out_names(__name__)
