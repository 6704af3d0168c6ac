"""Whether the jobs of an environment start again by themselves when they have failed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from eventide.common.configuration import Configuration
from eventide.common.restart_strategy import RestartStrategies, RestartStrategyConfiguration
from eventide.datastream._lengths_of_time import milliseconds
from eventide.errors import ProgramError

_STRATEGIES: dict[str, tuple[Callable[..., RestartStrategyConfiguration], dict[str, Any]]] = {
    "none": (RestartStrategies.no_restart, {}),
    "fixed-delay": (RestartStrategies.fixed_delay_restart, {"attempts": 1, "delay": "1 s"}),
    "failure-rate": (
        RestartStrategies.failure_rate_restart,
        {"max-failures-per-interval": 1, "failure-rate-interval": "1 min", "delay": "1 s"},
    ),
    "exponential-delay": (
        RestartStrategies.exponential_delay_restart,
        {
            "initial-backoff": "1 s",
            "max-backoff": "1 min",
            "backoff-multiplier": 1.5,
            "reset-backoff-threshold": "1 h",
            "jitter-factor": 0.1,
            "attempts-before-reset-backoff": None,
        },
    ),
}
"""The options of each strategy with Flink's defaults, in the order of its parameters; texts are lengths of time."""

_TYPE = ("restart-strategy.type", "restart-strategy")
"""The option that names the strategy, in Flink 2 and in versions before it."""

_OTHER_NAMES = {"off": "none", "disable": "none"} | {name.replace("-", ""): name for name in _STRATEGIES}

RESTART_OPTIONS = frozenset(_TYPE) | {
    f"restart-strategy.{name}.{option}" for name, (_, options) in _STRATEGIES.items() for option in options
}
"""The names of all options of restart strategies."""


def restart_strategy(configuration: Configuration) -> RestartStrategyConfiguration | None:
    """The restart strategy that options describe; None if they name none.

    Raises:
        ProgramError: if there is no such strategy, or a value cannot be read.

    >>> options = {"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.delay": "10 s"}
    >>> restart_strategy(Configuration.from_dict(options)).get_description()
    'Restart with fixed delay (0:00:10). #1 restart attempts.'
    """
    given = configuration.to_dict()
    option = next((option for option in _TYPE if option in given), None)
    if option is None:
        return None
    name = given[option].strip().lower()
    name = _OTHER_NAMES.get(name, name)
    if name not in _STRATEGIES:
        raise ProgramError(f"the option {option!r} cannot be {given[option]!r}; there are {', '.join(_STRATEGIES)}")
    make, options = _STRATEGIES[name]
    return make(*(_value(given, f"restart-strategy.{name}.{option}", default) for option, default in options.items()))


def _value(given: dict[str, str], option: str, default: Any) -> Any:
    if option not in given and default is None:
        return None
    readers: dict[type, Callable[[str], Any]] = {str: milliseconds, float: float}
    read = readers.get(type(default), int)
    try:
        return read(given.get(option, str(default)))
    except ValueError as error:
        raise ProgramError(f"the option {option!r} cannot be {given[option]!r}") from error


class Restarting:
    """The part of an environment that says what follows when a job has failed."""

    _restart_strategy: RestartStrategyConfiguration = RestartStrategies.fall_back_restart()
    _restart_strategy_of_options: RestartStrategyConfiguration = RestartStrategies.no_restart()

    def set_restart_strategy(self, restart_strategy_configuration: RestartStrategyConfiguration) -> Self:
        """Say whether a job that fails starts again by itself, from its checkpoint; by default it does not.

        The reason of each failure is logged, and is in ``client.get_restarts()``. A failure that would come again each
        time, such as a program that does not fit its checkpoint, ends the job at once. Flink's default, where it takes
        checkpoints, is to start again for ever.

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
        falls_back = isinstance(self._restart_strategy, RestartStrategies.FallbackRestartStrategyConfiguration)
        return self._restart_strategy_of_options if falls_back else self._restart_strategy
