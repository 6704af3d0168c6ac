"""Whether a job is started again after a failure, as its restart strategy says."""

from __future__ import annotations

import logging
import time
from collections import deque

from eventide._secrets import without_secrets
from eventide.common.job import KEPT, JobRestart
from eventide.common.restart_strategy import RestartStrategies, RestartStrategyConfiguration
from eventide.common.words import length
from eventide.spark.failures import is_for_good, is_of_a_late_process

_LOG = logging.getLogger("eventide")
_WHEN_LATE = RestartStrategies.failure_rate_restart(failure_rate=5, failure_interval=600_000, delay_interval=1_000)
"""The strategy for losses of a busy machine, which are no failures of the job, whatever its own strategy is."""


class Restarts:
    """Says after each failure of a job whether it is started again; remembers that, and logs it with the job's name."""

    def __init__(self, job: str, strategy: RestartStrategyConfiguration) -> None:
        self._job = job
        self._strategy = strategy
        self._wait_after, self._wait_when_late = strategy.backoff(), _WHEN_LATE.backoff()
        self._known: deque[JobRestart] = deque(maxlen=KEPT)

    def known(self) -> list[JobRestart]:
        """The last of them."""
        return list(self._known)

    def wait_after(self, failure: BaseException) -> float | None:
        """How many seconds to wait before the next run; None if there is none, which a note on the failure tells."""
        number = self._known[-1].number if self._known else 0
        wait_ms = self._wait_ms_after(failure)
        if wait_ms is None:
            if number:
                times = "once" if number == 1 else f"{number} times"
                failure.add_note(
                    f"This is the last failure of the job {self._job!r}, which was started again {times}. Its restart "
                    f"strategy: {self._strategy.get_description()}"
                )
            return None
        reason = without_secrets(f"{type(failure).__name__}: {failure}")
        self._known.append(JobRestart(number + 1, time.time_ns() // 1_000_000, reason, wait_ms))
        said = "the job %r has failed, and is started again in %s (restart %d); the reason: %s"
        _LOG.warning(said, self._job, length(wait_ms), number + 1, reason)
        return wait_ms / 1000

    def _wait_ms_after(self, failure: BaseException) -> int | None:
        now_ms = time.monotonic_ns() // 1_000_000
        if is_for_good(failure):
            return None
        if is_of_a_late_process(failure) and (wait_ms := self._wait_when_late(now_ms)) is not None:
            return wait_ms
        return self._wait_after(now_ms)
