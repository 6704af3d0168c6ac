"""The same program, in one process, without Spark."""

from __future__ import annotations

from eventide.datastream.stream_execution_environment import StreamExecutionEnvironment
from eventide.local.host import LocalHost


def local_environment() -> StreamExecutionEnvironment:
    """An environment whose jobs run at once in this process, with the operators, frames and state of the real thing.

    A job runs to the end of what its sources have. Only what needs Spark itself is missing: DataFrames and
    ``writeStream`` formats.

    >>> from eventide.common import Types
    >>> env = local_environment()
    >>> stream = env.from_collection([1, 2, 3], Types.INT()).map(lambda x: x * 10)
    >>> list(stream.execute_and_collect())
    [10, 20, 30]
    """
    return StreamExecutionEnvironment(LocalHost())
