"""The settings of a job that PyFlink programs reach through ``env.get_config()``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eventide.errors import ProgramError

__all__ = ["ExecutionConfig"]


class ExecutionConfig:
    """Settings that hold for the whole job.

    >>> ExecutionConfig().set_auto_watermark_interval(500).get_auto_watermark_interval()
    500
    """

    def __init__(self) -> None:
        self._auto_watermark_interval_ms = 0
        self._job_parameters: dict[str, str] = {}

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

    def set_global_job_parameters(self, global_job_parameters_dict: Mapping[str, Any]) -> ExecutionConfig:
        """Set what every function of the job can ask for, with ``get_job_parameter`` of its ``RuntimeContext``.

        Values that are not text become text, as ``str`` gives it. What was set before is replaced.

        Raises:
            ProgramError: if it is no dict, or a name in it is no text.

        >>> ExecutionConfig().set_global_job_parameters({"limit": 5}).get_global_job_parameters()
        {'limit': '5'}
        """
        parameters = global_job_parameters_dict
        if not isinstance(parameters, Mapping) or not all(isinstance(name, str) for name in parameters):
            raise ProgramError(f"the job parameters must be a dict whose keys are text, not {parameters!r}")
        self._job_parameters = {name: str(value) for name, value in parameters.items()}
        return self

    def get_global_job_parameters(self) -> dict[str, str]:
        """The job parameters, as text."""
        return dict(self._job_parameters)
