"""When a job that failed starts again by itself, from its checkpoint."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from eventide._absent import finder_of_names
from eventide.common._restart_backoff import ExponentialDelay, FailureRate, FixedDelay, Never, RestartBackoff
from eventide.errors import ProgramError

__all__ = ["RestartStrategies", "RestartStrategyConfiguration"]


class RestartStrategyConfiguration(ABC):
    """A restart strategy. Flink: ``RestartStrategyConfiguration``. Made with :class:`RestartStrategies`."""

    @abstractmethod
    def get_description(self) -> str:
        """The strategy in words."""

    @abstractmethod
    def backoff(self) -> RestartBackoff:
        """What it says during one job; not in PyFlink."""


class RestartStrategies:
    """Makes restart strategies for ``env.set_restart_strategy``. Flink: ``RestartStrategies``.

    A job whose micro-batch fails goes on from its checkpoint: the micro-batch is run once more, with the same input.
    Before that, Spark itself repeats a task, on a cluster as often as ``spark.task.maxFailures`` says, in one process,
    with ``local[...]`` as its master, not at all. Spans of time are milliseconds or ``timedelta``.

    >>> RestartStrategies.fixed_delay_restart(3, 10_000).get_description()
    'Restart with fixed delay (0:00:10). #3 restart attempts.'
    """

    @dataclass(frozen=True)
    class NoRestartStrategyConfiguration(RestartStrategyConfiguration):
        """Do not start again."""

        def get_description(self) -> str:
            """The strategy in words."""
            return "Restart deactivated."

        def backoff(self) -> RestartBackoff:
            """Never."""
            return Never()

    @dataclass(frozen=True)
    class FixedDelayRestartStrategyConfiguration(RestartStrategyConfiguration):
        """Start again a number of times, after a delay in milliseconds or as a ``timedelta``."""

        restart_attempts: int
        delay_between_attempts_interval: timedelta | int

        def __post_init__(self) -> None:
            _whole("restart_attempts", self.restart_attempts, least=0)
            _span("delay_between_attempts_interval", self.delay_between_attempts_interval)

        def get_restart_attempts(self) -> int:
            """How often the job is started again."""
            return self.restart_attempts

        def get_delay_between_attempts_interval(self) -> timedelta:
            """The delay."""
            return _span("delay_between_attempts_interval", self.delay_between_attempts_interval)

        def get_description(self) -> str:
            """The strategy in words."""
            delay = self.get_delay_between_attempts_interval()
            return f"Restart with fixed delay ({delay}). #{self.restart_attempts} restart attempts."

        def backoff(self) -> RestartBackoff:
            """So many times in the life of a job."""
            return FixedDelay(self.restart_attempts, _ms(self.get_delay_between_attempts_interval()))

    @dataclass(frozen=True)
    class FailureRateRestartStrategyConfiguration(RestartStrategyConfiguration):
        """Start again as long as there are not too many failures within an interval."""

        max_failure_rate: int
        failure_interval: timedelta | int
        delay_between_attempts_interval: timedelta | int

        def __post_init__(self) -> None:
            _whole("max_failure_rate", self.max_failure_rate, least=1)
            _span("failure_interval", self.failure_interval)
            _span("delay_between_attempts_interval", self.delay_between_attempts_interval)

        def get_max_failure_rate(self) -> int:
            """How many failures an interval may have."""
            return self.max_failure_rate

        def get_failure_interval(self) -> timedelta:
            """The interval in which failures are counted."""
            return _span("failure_interval", self.failure_interval)

        def get_delay_between_attempts_interval(self) -> timedelta:
            """The delay."""
            return _span("delay_between_attempts_interval", self.delay_between_attempts_interval)

        def get_description(self) -> str:
            """The strategy in words."""
            return (
                f"Failure rate restart with maximum of {self.max_failure_rate} failures within interval "
                f"{self.get_failure_interval()} and fixed delay {self.get_delay_between_attempts_interval()}."
            )

        def backoff(self) -> RestartBackoff:
            """As long as no interval has too many."""
            delay, interval = self.get_delay_between_attempts_interval(), self.get_failure_interval()
            return FailureRate(self.max_failure_rate, _ms(interval), _ms(delay))

    @dataclass(frozen=True)
    class ExponentialDelayRestartStrategyConfiguration(RestartStrategyConfiguration):
        """Start again after a delay that grows; see :meth:`RestartStrategies.exponential_delay_restart`."""

        initial_backoff: timedelta | int
        max_backoff: timedelta | int
        backoff_multiplier: float
        reset_backoff_threshold: timedelta | int
        jitter_factor: float
        attempts_before_reset_backoff: int | None = None

        def __post_init__(self) -> None:
            initial = _span("initial_backoff", self.initial_backoff)
            _span("reset_backoff_threshold", self.reset_backoff_threshold)
            if not timedelta(0) < initial <= _span("max_backoff", self.max_backoff):
                raise ProgramError(
                    f"initial_backoff must be above 0 and not above max_backoff, {self.max_backoff}, and is "
                    f"{self.initial_backoff}"
                )
            if self.backoff_multiplier <= 1:
                raise ProgramError(f"backoff_multiplier must be above 1, and is {self.backoff_multiplier}")
            if not 0 <= self.jitter_factor <= 1:
                raise ProgramError(f"jitter_factor must be between 0 and 1, and is {self.jitter_factor}")
            if self.attempts_before_reset_backoff is not None:
                _whole("attempts_before_reset_backoff", self.attempts_before_reset_backoff, least=0)

        def get_description(self) -> str:
            """The strategy in words."""
            longest = _span("max_backoff", self.max_backoff)
            attempts = self.attempts_before_reset_backoff
            return (
                f"Restart with exponential delay: starting at {_span('initial_backoff', self.initial_backoff)}, "
                f"increasing by {self.backoff_multiplier}, with maximum {longest}. Delay resets after "
                f"{_span('reset_backoff_threshold', self.reset_backoff_threshold)} with jitter {self.jitter_factor}."
                + ("" if attempts is None else f" #{attempts} restart attempts before that.")
            )

        def backoff(self) -> RestartBackoff:
            """For ever, or so many times, unless the job runs well for a while."""
            return ExponentialDelay(
                _ms(_span("initial_backoff", self.initial_backoff)),
                _ms(_span("max_backoff", self.max_backoff)),
                self.backoff_multiplier,
                _ms(_span("reset_backoff_threshold", self.reset_backoff_threshold)),
                self.jitter_factor,
                self.attempts_before_reset_backoff,
            )

    @dataclass(frozen=True)
    class FallbackRestartStrategyConfiguration(RestartStrategyConfiguration):
        """Do what Flink's option ``restart-strategy.type`` says, if ``env.configure`` has it; else do not start."""

        def get_description(self) -> str:
            """The strategy in words."""
            return "Cluster level default restart strategy"

        def backoff(self) -> RestartBackoff:
            """Never, where no option says another."""
            return Never()

    @staticmethod
    def no_restart() -> NoRestartStrategyConfiguration:
        """Do not start again."""
        return RestartStrategies.NoRestartStrategyConfiguration()

    @staticmethod
    def fall_back_restart() -> FallbackRestartStrategyConfiguration:
        """Do what Flink's option ``restart-strategy.type`` says, if ``env.configure`` has it; else do not start."""
        return RestartStrategies.FallbackRestartStrategyConfiguration()

    @staticmethod
    def fixed_delay_restart(
        restart_attempts: int, delay_between_attempts: timedelta | int
    ) -> FixedDelayRestartStrategyConfiguration:
        """Start again a number of times in the life of the job, after a delay.

        Raises:
            ProgramError: if it is no number of times, or no span of time.
        """
        return RestartStrategies.FixedDelayRestartStrategyConfiguration(restart_attempts, delay_between_attempts)

    @staticmethod
    def failure_rate_restart(
        failure_rate: int, failure_interval: timedelta | int, delay_interval: timedelta | int
    ) -> FailureRateRestartStrategyConfiguration:
        """Start again, after a delay, as long as an interval has at most so many failures.

        Raises:
            ProgramError: if it is no number of failures, or no span of time.
        """
        return RestartStrategies.FailureRateRestartStrategyConfiguration(failure_rate, failure_interval, delay_interval)

    @staticmethod
    def exponential_delay_restart(
        initial_backoff: timedelta | int = 1_000,
        max_backoff: timedelta | int = 60_000,
        backoff_multiplier: float = 1.5,
        reset_backoff_threshold: timedelta | int = 3_600_000,
        jitter_factor: float = 0.1,
        attempts_before_reset_backoff: int | None = None,
    ) -> ExponentialDelayRestartStrategyConfiguration:
        """Start again after a delay that grows with every failure, and is the first one again after a good while.

        In Flink's Java API and its options, with these defaults; not in PyFlink's ``RestartStrategies``.

        Args:
            initial_backoff: the first delay.
            max_backoff: the longest one.
            backoff_multiplier: what a delay is multiplied by for the next.
            reset_backoff_threshold: how long the job must have run well for the delay to be the first again.
            jitter_factor: up to what part of a delay is added or taken away at random.
            attempts_before_reset_backoff: how often the job is started again without such a while; None for ever.

        Raises:
            ProgramError: if a value makes no sense.
        """
        return RestartStrategies.ExponentialDelayRestartStrategyConfiguration(
            initial_backoff,
            max_backoff,
            backoff_multiplier,
            reset_backoff_threshold,
            jitter_factor,
            attempts_before_reset_backoff,
        )


def _span(what: str, span: timedelta | int) -> timedelta:
    """A span of time that is given in milliseconds or as a ``timedelta``."""
    if isinstance(span, int) and not isinstance(span, bool):
        span = timedelta(milliseconds=span)
    if not isinstance(span, timedelta) or span < timedelta(0):
        raise ProgramError(f"{what} must be a number of milliseconds or a timedelta, 0 or more, not {span!r}")
    return span


def _ms(span: timedelta) -> int:
    return span // timedelta(milliseconds=1)


def _whole(what: str, number: int, least: int) -> None:
    if not isinstance(number, int) or isinstance(number, bool) or number < least:
        raise ProgramError(f"{what} must be a whole number, {least} or more, not {number!r}")


if not TYPE_CHECKING:
    __getattr__ = finder_of_names(__name__)
