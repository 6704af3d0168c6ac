"""The settings of a job that PyFlink programs reach through ``env.get_config()``."""

from __future__ import annotations

from eventide.errors import ProgramError

__all__ = ["ExecutionConfig"]


class ExecutionConfig:
    """Settings that hold for the whole job.

    >>> ExecutionConfig().set_auto_watermark_interval(500).get_auto_watermark_interval()
    500
    """

    def __init__(self) -> None:
        self._auto_watermark_interval_ms = 0

    def set_auto_watermark_interval(self, interval: int) -> ExecutionConfig:
        """Set how often watermarks are made, in milliseconds.

        That is once per micro-batch, so this is the trigger interval of the query. 0, the default, starts each
        micro-batch as soon as there is data and the one before is done; jobs that need the clock, and so have
        micro-batches without data, start one every 200 ms then.

        Raises:
            ProgramError: if the interval is not a number of milliseconds, 0 or more.
        """
        if not isinstance(interval, int) or isinstance(interval, bool) or interval < 0:
            raise ProgramError(f"the auto watermark interval must be 0 or more milliseconds, not {interval!r}")
        self._auto_watermark_interval_ms = interval
        return self

    def get_auto_watermark_interval(self) -> int:
        """The interval in milliseconds."""
        return self._auto_watermark_interval_ms
