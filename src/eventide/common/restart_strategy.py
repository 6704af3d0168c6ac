"""When Flink starts a failed job again. On Spark, that is the cluster's business: values, without effect."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import timedelta

from eventide.errors import ProgramError

__all__ = ["RestartStrategies", "RestartStrategyConfiguration"]


class RestartStrategyConfiguration(ABC):
    """A restart strategy. Flink: ``RestartStrategyConfiguration``. Made with :class:`RestartStrategies`."""

    @abstractmethod
    def get_description(self) -> str:
        """The strategy in words."""


class RestartStrategies:
    """Makes restart strategies; ``env.set_restart_strategy`` takes one, without effect. Flink: ``RestartStrategies``.

    On a cluster, Spark tries a task as often as ``spark.task.maxFailures`` says; in one process, with ``local[...]`` as
    its master, once. What fails for good ends the job, which goes on from its checkpoint when its program is started
    again.

    >>> RestartStrategies.fixed_delay_restart(3, 10_000).get_description()
    'Restart with fixed delay (0:00:10). #3 restart attempts.'
    """

    @dataclass(frozen=True)
    class NoRestartStrategyConfiguration(RestartStrategyConfiguration):
        """Do not start again."""

        def get_description(self) -> str:
            """The strategy in words."""
            return "Restart deactivated."

    @dataclass(frozen=True)
    class FixedDelayRestartStrategyConfiguration(RestartStrategyConfiguration):
        """Start again a number of times, after a delay in milliseconds or as a ``timedelta``."""

        restart_attempts: int
        delay_between_attempts_interval: timedelta | int

        def __post_init__(self) -> None:
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

    @dataclass(frozen=True)
    class FailureRateRestartStrategyConfiguration(RestartStrategyConfiguration):
        """Start again as long as there are not too many failures within an interval."""

        max_failure_rate: int
        failure_interval: timedelta | int
        delay_between_attempts_interval: timedelta | int

        def __post_init__(self) -> None:
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

    @dataclass(frozen=True)
    class FallbackRestartStrategyConfiguration(RestartStrategyConfiguration):
        """Do what the cluster says."""

        def get_description(self) -> str:
            """The strategy in words."""
            return "Cluster level default restart strategy"

    @staticmethod
    def no_restart() -> NoRestartStrategyConfiguration:
        """Do not start again."""
        return RestartStrategies.NoRestartStrategyConfiguration()

    @staticmethod
    def fall_back_restart() -> FallbackRestartStrategyConfiguration:
        """Do what the cluster says."""
        return RestartStrategies.FallbackRestartStrategyConfiguration()

    @staticmethod
    def fixed_delay_restart(
        restart_attempts: int, delay_between_attempts: timedelta | int
    ) -> FixedDelayRestartStrategyConfiguration:
        """Start again a number of times, after a delay in milliseconds or as a ``timedelta``."""
        return RestartStrategies.FixedDelayRestartStrategyConfiguration(restart_attempts, delay_between_attempts)

    @staticmethod
    def failure_rate_restart(
        failure_rate: int, failure_interval: timedelta | int, delay_interval: timedelta | int
    ) -> FailureRateRestartStrategyConfiguration:
        """Start again, after a delay, as long as an interval has at most so many failures.

        Both are in milliseconds or ``timedelta``.
        """
        return RestartStrategies.FailureRateRestartStrategyConfiguration(failure_rate, failure_interval, delay_interval)


def _span(what: str, span: timedelta | int) -> timedelta:
    """A span of time that is given in milliseconds or as a ``timedelta``."""
    if isinstance(span, timedelta):
        return span
    if not isinstance(span, int) or isinstance(span, bool):
        raise ProgramError(f"{what} must be a number of milliseconds or a timedelta, not {span!r}")
    return timedelta(milliseconds=span)
