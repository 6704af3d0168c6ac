"""Restart strategies: when a failed job restarts by itself, from its checkpoint."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from itertools import repeat
from typing import TypeAlias

from eventide._absent import hand_out_names
from eventide.errors import ProgramError

__all__ = ["RestartStrategies", "RestartStrategyConfiguration"]

Span: TypeAlias = timedelta | int
"""A length of time: a ``timedelta``, or a number of milliseconds."""

Backoff: TypeAlias = Callable[[int], int | None]
"""Decides about the failures of one job. Flink: ``RestartBackoffTimeStrategy``.

It is called once for each failure, with its time, and returns the delay before the restart, or None for no restart.
Both are milliseconds; the clock of these times never goes back.
"""


class RestartStrategyConfiguration(ABC):
    """A restart strategy. Flink: ``RestartStrategyConfiguration``. Made with :class:`RestartStrategies`.

    Args:
        description: the whole strategy in words; two strategies with one description are equal.
    """

    def __init__(self, description: str) -> None:
        self._description = description

    def get_description(self) -> str:
        """The strategy in words."""
        return self._description

    @abstractmethod
    def backoff(self) -> Backoff:
        """Start to count failures of one job. Not in PyFlink."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RestartStrategyConfiguration) and self._description == other._description

    def __hash__(self) -> int:
        return hash(self._description)

    def __repr__(self) -> str:
        return f"<{self._description}>"


class RestartStrategies:
    """Makes restart strategies for ``env.set_restart_strategy``. Flink: ``RestartStrategies``.

    A job whose micro-batch fails continues from its checkpoint: the micro-batch is repeated, with the same input.
    Before that, Spark itself repeats a failed task: on a cluster as often as ``spark.task.maxFailures`` says, but never
    in one process, with ``local[...]`` as its master. Lengths of time are milliseconds or ``timedelta``. An invalid
    value raises a ``ProgramError``.

    >>> RestartStrategies.fixed_delay_restart(3, 10_000).get_description()
    'Restart with fixed delay (0:00:10). #3 restart attempts.'
    """

    class NoRestartStrategyConfiguration(RestartStrategyConfiguration):
        """Do not restart."""

        def __init__(self) -> None:
            super().__init__("Restart deactivated.")

        def backoff(self) -> Backoff:
            return lambda at_ms: None

    class FallbackRestartStrategyConfiguration(NoRestartStrategyConfiguration):
        """Follow Flink's option ``restart-strategy.type``, if ``env.configure`` sets it; else do not restart."""

        def __init__(self) -> None:
            RestartStrategyConfiguration.__init__(self, "Cluster level default restart strategy")

    class FixedDelayRestartStrategyConfiguration(RestartStrategyConfiguration):
        """Restart up to a number of times in the life of a job, after a delay."""

        def __init__(self, restart_attempts: int, delay_between_attempts_interval: Span) -> None:
            self._attempts = _whole("restart_attempts", restart_attempts, least=0)
            self._delay = _span("delay_between_attempts_interval", delay_between_attempts_interval)
            super().__init__(f"Restart with fixed delay ({self._delay}). #{self._attempts} restart attempts.")

        def get_restart_attempts(self) -> int:
            """The greatest number of restarts."""
            return self._attempts

        def get_delay_between_attempts_interval(self) -> timedelta:
            """The delay."""
            return self._delay

        def backoff(self) -> Backoff:
            """Return the delay, as often as there are attempts."""
            left = repeat(_ms(self._delay), self._attempts)
            return lambda at_ms: next(left, None)

    class FailureRateRestartStrategyConfiguration(RestartStrategyConfiguration):
        """Restart, after a delay, unless an interval has too many failures."""

        def __init__(
            self, max_failure_rate: int, failure_interval: Span, delay_between_attempts_interval: Span
        ) -> None:
            self._failures = _whole("max_failure_rate", max_failure_rate, least=1)
            self._interval = _span("failure_interval", failure_interval)
            self._delay = _span("delay_between_attempts_interval", delay_between_attempts_interval)
            super().__init__(
                f"Failure rate restart with maximum of {self._failures} failures within interval {self._interval} and "
                f"fixed delay {self._delay}."
            )

        def get_max_failure_rate(self) -> int:
            """How many failures an interval may have."""
            return self._failures

        def get_failure_interval(self) -> timedelta:
            """The interval in which failures are counted."""
            return self._interval

        def get_delay_between_attempts_interval(self) -> timedelta:
            """The delay."""
            return self._delay

        def backoff(self) -> Backoff:
            """Return the delay, unless the interval up to and including a failure has too many."""
            last: deque[int] = deque(maxlen=self._failures + 1)

            def after_failure(at_ms: int) -> int | None:
                last.append(at_ms)
                are_many = len(last) == last.maxlen and at_ms - last[0] <= _ms(self._interval)
                return None if are_many else _ms(self._delay)

            return after_failure

    class ExponentialDelayRestartStrategyConfiguration(RestartStrategyConfiguration):
        """Restart after a delay that grows with every failure, and returns to the initial delay after a long success.

        In Flink's Java API and its options, with these defaults; not in PyFlink's ``RestartStrategies``.

        Args:
            initial_backoff: the first delay.
            max_backoff: the longest one.
            backoff_multiplier: the factor from one delay to the next.
            reset_backoff_threshold: how long the job must run without a failure to reset the delay.
            jitter_factor: the largest part of a delay that is added or subtracted at random, so that jobs that failed
                together do not restart together.
            attempts_before_reset_backoff: how often the job is restarted without such a reset; None for no limit.
        """

        def __init__(
            self,
            initial_backoff: Span = 1_000,
            max_backoff: Span = 60_000,
            backoff_multiplier: float = 1.5,
            reset_backoff_threshold: Span = 3_600_000,
            jitter_factor: float = 0.1,
            attempts_before_reset_backoff: int | None = None,
        ) -> None:
            first, longest = _span("initial_backoff", initial_backoff), _span("max_backoff", max_backoff)
            good_while = _span("reset_backoff_threshold", reset_backoff_threshold)
            attempts = attempts_before_reset_backoff
            if not timedelta(0) < first <= longest:
                raise ProgramError(
                    f"initial_backoff must be above 0 and not above max_backoff, {max_backoff}, and is "
                    f"{initial_backoff}"
                )
            if backoff_multiplier <= 1:
                raise ProgramError(f"backoff_multiplier must be above 1, and is {backoff_multiplier}")
            if not 0 <= jitter_factor <= 1:
                raise ProgramError(f"jitter_factor must be between 0 and 1, and is {jitter_factor}")
            if attempts is not None:
                _whole("attempts_before_reset_backoff", attempts, least=0)
            super().__init__(
                f"Restart with exponential delay: starting at {first}, increasing by {backoff_multiplier}, with "
                f"maximum {longest}. Delay resets after {good_while} with jitter {jitter_factor}."
                + ("" if attempts is None else f" #{attempts} restart attempts before that.")
            )
            self._first_ms, self._longest_ms, self._good_while_ms = _ms(first), _ms(longest), _ms(good_while)
            self._multiplier, self._jitter, self._attempts = backoff_multiplier, jitter_factor, attempts

        def backoff(self, at_random: Callable[[float, float], float] = random.uniform) -> Backoff:
            """Return the next delay, as long as there are attempts; ``at_random`` returns a number between two."""
            delay_ms, used = 0.0, 0
            failed_at: int | None = None

            def after_failure(at_ms: int) -> int | None:
                nonlocal delay_ms, used, failed_at
                ran_well = failed_at is None or at_ms - failed_at >= self._good_while_ms + delay_ms
                used = 1 if ran_well else used + 1
                delay_ms = self._first_ms if ran_well else min(delay_ms * self._multiplier, self._longest_ms)
                failed_at = at_ms
                if self._attempts is not None and used > self._attempts:
                    return None
                return min(round(delay_ms * (1 + at_random(-self._jitter, self._jitter))), self._longest_ms)

            return after_failure

    no_restart = NoRestartStrategyConfiguration
    fall_back_restart = FallbackRestartStrategyConfiguration
    exponential_delay_restart = ExponentialDelayRestartStrategyConfiguration

    @staticmethod
    def fixed_delay_restart(
        restart_attempts: int, delay_between_attempts: Span
    ) -> FixedDelayRestartStrategyConfiguration:
        """Restart up to a number of times in the life of the job, after a delay."""
        return RestartStrategies.FixedDelayRestartStrategyConfiguration(restart_attempts, delay_between_attempts)

    @staticmethod
    def failure_rate_restart(
        failure_rate: int, failure_interval: Span, delay_interval: Span
    ) -> FailureRateRestartStrategyConfiguration:
        """Restart, after a delay, as long as no interval has more than ``failure_rate`` failures."""
        return RestartStrategies.FailureRateRestartStrategyConfiguration(failure_rate, failure_interval, delay_interval)


def _span(name: str, value: Span) -> timedelta:
    """Return the length of time of a parameter."""
    span = timedelta(milliseconds=value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(span, timedelta) or span < timedelta(0):
        raise ProgramError(f"{name} must be a number of milliseconds or a timedelta, 0 or more, not {value!r}")
    return span


def _ms(span: timedelta) -> int:
    return span // timedelta(milliseconds=1)


def _whole(name: str, value: int, least: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ProgramError(f"{name} must be a whole number, {least} or more, not {value!r}")
    return value


hand_out_names(__name__)
