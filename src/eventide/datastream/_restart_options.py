"""Flink's options of restart strategies, ``restart-strategy.*``, and the strategy that they describe."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from eventide.common.configuration import Configuration
from eventide.common.restart_strategy import RestartStrategies, RestartStrategyConfiguration
from eventide.datastream._lengths_of_time import milliseconds
from eventide.errors import ProgramError

_Parameters = dict[str, tuple[str, Callable[[str], Any], Any]]
"""The name of each parameter, with the end of its option, what reads the value, and Flink's default."""

_NAMES = ("restart-strategy.type", "restart-strategy")
"""What the kind is called, by Flink 2 and by those before it."""

_FIXED_DELAY: _Parameters = {
    "restart_attempts": ("attempts", int, 1),
    "delay_between_attempts": ("delay", milliseconds, 1_000),
}
_FAILURE_RATE: _Parameters = {
    "failure_rate": ("max-failures-per-interval", int, 1),
    "failure_interval": ("failure-rate-interval", milliseconds, 60_000),
    "delay_interval": ("delay", milliseconds, 1_000),
}
_EXPONENTIAL_DELAY: _Parameters = {
    "initial_backoff": ("initial-backoff", milliseconds, 1_000),
    "max_backoff": ("max-backoff", milliseconds, 60_000),
    "backoff_multiplier": ("backoff-multiplier", float, 1.5),
    "reset_backoff_threshold": ("reset-backoff-threshold", milliseconds, 3_600_000),
    "jitter_factor": ("jitter-factor", float, 0.1),
    "attempts_before_reset_backoff": ("attempts-before-reset-backoff", int, None),
}
_KINDS: dict[str, tuple[Callable[..., RestartStrategyConfiguration], _Parameters]] = {
    "none": (RestartStrategies.no_restart, {}),
    "fixed-delay": (RestartStrategies.fixed_delay_restart, _FIXED_DELAY),
    "failure-rate": (RestartStrategies.failure_rate_restart, _FAILURE_RATE),
    "exponential-delay": (RestartStrategies.exponential_delay_restart, _EXPONENTIAL_DELAY),
}
_OTHER_NAMES = {
    **dict.fromkeys(("off", "disable"), "none"),
    **{name.replace("-", ""): name for name in _KINDS},
}

RESTART_OPTIONS = frozenset(_NAMES) | {
    f"restart-strategy.{kind}.{end}" for kind, (_, parameters) in _KINDS.items() for end, *_ in parameters.values()
}
"""The names of all of them."""


def restart_strategy(configuration: Configuration) -> RestartStrategyConfiguration | None:
    """The restart strategy that options describe; None if they name none.

    Raises:
        ProgramError: if there is no such strategy, or a value is none.

    >>> options = {"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.delay": "10 s"}
    >>> restart_strategy(Configuration.from_dict(options)).get_description()
    'Restart with fixed delay (0:00:10). #1 restart attempts.'
    """
    options = configuration.to_dict()
    named = next((name for name in _NAMES if name in options), None)
    if named is None:
        return None
    kind = options[named].strip().lower()
    kind = _OTHER_NAMES.get(kind, kind)
    if kind not in _KINDS:
        raise ProgramError(f"the option {named!r} cannot be {options[named]!r}; there are {', '.join(_KINDS)}")
    make, parameters = _KINDS[kind]
    return make(**{name: _value(options, f"restart-strategy.{kind}", *of) for name, of in parameters.items()})


def _value(options: Mapping[str, str], prefix: str, end: str, read: Callable[[str], Any], default: Any) -> Any:
    name = f"{prefix}.{end}"
    try:
        return read(options[name]) if name in options else default
    except ValueError as error:
        raise ProgramError(f"the option {name!r} cannot be {options[name]!r}") from error
