"""Whether a job that failed is started again, and how long it waits before that: what is left of each strategy."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from typing import Protocol


class RestartBackoff(Protocol):
    """What a restart strategy says during one job. Flink: ``RestartBackoffTimeStrategy``."""

    def after_failure(self, at_ms: int) -> int | None:
        """How long to wait before the job is started again, in milliseconds; None if it is not.

        Args:
            at_ms: when it failed, in milliseconds of a clock that never goes back. Each failure is told once.
        """


class Never:
    """Does not start again."""

    def after_failure(self, at_ms: int) -> int | None:
        """None."""
        return None


class FixedDelay:
    """Starts again a number of times in the life of a job.

    >>> backoff = FixedDelay(attempts=1, delay_ms=500)
    >>> backoff.after_failure(0), backoff.after_failure(9_000)
    (500, None)
    """

    def __init__(self, attempts: int, delay_ms: int) -> None:
        self._left = attempts
        self._delay_ms = delay_ms

    def after_failure(self, at_ms: int) -> int | None:
        """The delay, as often as was said."""
        self._left -= 1
        return self._delay_ms if self._left >= 0 else None


class FailureRate:
    """Starts again as long as no interval has more failures than it may have.

    >>> backoff = FailureRate(failures=1, interval_ms=1_000, delay_ms=5)
    >>> [backoff.after_failure(at) for at in (0, 1_001, 2_001)]
    [5, 5, None]
    """

    def __init__(self, failures: int, interval_ms: int, delay_ms: int) -> None:
        self._interval_ms = interval_ms
        self._delay_ms = delay_ms
        self._failed_at: deque[int] = deque(maxlen=failures + 1)

    def after_failure(self, at_ms: int) -> int | None:
        """The delay, unless too many failures are within the interval that ends here, its first moment included."""
        self._failed_at.append(at_ms)
        are_many = len(self._failed_at) == self._failed_at.maxlen
        return None if are_many and at_ms - self._failed_at[0] <= self._interval_ms else self._delay_ms


class ExponentialDelay:
    """Waits longer each time, up to a limit, and as at first again when the job has run well for a while.

    Args:
        initial_ms: the first delay.
        max_ms: the longest.
        multiplier: what each delay is multiplied by for the next.
        reset_after_ms: how long the job must have run without a failure for the delay to be the first again.
        jitter: up to what part of a delay is added or taken away, so that jobs which failed together do not come back
            together.
        attempts: how often the job is started again without such a time between; None for ever.
        at_random: gives any number between two.

    >>> backoff = ExponentialDelay(100, 300, 2.0, reset_after_ms=1_000, jitter=0.0)
    >>> [backoff.after_failure(at) for at in (0, 200, 500, 1_000, 2_300)]
    [100, 200, 300, 300, 100]
    """

    def __init__(
        self,
        initial_ms: int,
        max_ms: int,
        multiplier: float,
        reset_after_ms: int,
        jitter: float,
        attempts: int | None = None,
        at_random: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._initial_ms = initial_ms
        self._max_ms = max_ms
        self._multiplier = multiplier
        self._reset_after_ms = reset_after_ms
        self._jitter = jitter
        self._attempts = attempts
        self._at_random = at_random
        self._delay_ms = 0.0
        self._used = 0
        self._failed_at: int | None = None

    def after_failure(self, at_ms: int) -> int | None:
        """The next delay, as long as there are attempts left."""
        ran_well = self._failed_at is None or at_ms - self._failed_at >= self._reset_after_ms + self._delay_ms
        self._used = 1 if ran_well else self._used + 1
        self._delay_ms = self._initial_ms if ran_well else min(self._delay_ms * self._multiplier, self._max_ms)
        self._failed_at = at_ms
        if self._attempts is not None and self._used > self._attempts:
            return None
        varied = self._delay_ms * (1 + self._at_random(-self._jitter, self._jitter))
        return min(round(varied), self._max_ms)
