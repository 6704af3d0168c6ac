"""Whether the jobs of an environment start again by themselves when they have failed."""

from __future__ import annotations

from typing import Self

from eventide.common.restart_strategy import RestartStrategies, RestartStrategyConfiguration
from eventide.errors import ProgramError


class Restarting:
    """The part of an environment that says what follows when a job has failed."""

    _restart_strategy: RestartStrategyConfiguration = RestartStrategies.fall_back_restart()
    _restart_strategy_of_options: RestartStrategyConfiguration | None = None

    def set_restart_strategy(self, restart_strategy_configuration: RestartStrategyConfiguration) -> Self:
        """Say whether a job that fails starts again by itself, from its checkpoint; by default it does not.

        What made it fail is logged each time, and is in ``client.get_restarts()``. What can never go well, such as a
        program that does not fit its checkpoint, ends the job at once. Flink's default, where it takes checkpoints, is
        to start again for ever.

        Raises:
            ProgramError: if it is no restart strategy.

        >>> from eventide.common import RestartStrategies
        >>> from eventide.testing import local_environment
        >>> env = local_environment().set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 10_000))
        >>> env.get_restart_strategy().get_restart_attempts()
        3
        """
        if not isinstance(restart_strategy_configuration, RestartStrategyConfiguration):
            raise ProgramError(
                f"set_restart_strategy needs what RestartStrategies gives, not {restart_strategy_configuration!r}"
            )
        self._restart_strategy = restart_strategy_configuration
        return self

    def get_restart_strategy(self) -> RestartStrategyConfiguration:
        """What was set; else to fall back on what :meth:`configure` was told."""
        return self._restart_strategy

    def fall_back_on(self, restart_strategy_configuration: RestartStrategyConfiguration) -> None:
        """Take the restart strategy that options describe. Not in PyFlink."""
        self._restart_strategy_of_options = restart_strategy_configuration

    def _strategy_in_force(self) -> RestartStrategyConfiguration:
        """The strategy of the jobs that are started from here on."""
        if isinstance(self._restart_strategy, RestartStrategies.FallbackRestartStrategyConfiguration):
            return self._restart_strategy_of_options or self._restart_strategy
        return self._restart_strategy
