"""Flink's options by name, including those of restart strategies, and what they set in an environment."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol

from eventide.common.accepted import has_no_effect
from eventide.common.configuration import Configuration
from eventide.common.execution_config import ExecutionConfig
from eventide.common.restart_strategy import RestartStrategies, RestartStrategyConfiguration
from eventide.datastream.checkpoint_config import CheckpointConfig
from eventide.errors import ProgramError
from eventide.plan.job import RuntimeExecutionMode

_OF_SPARK = "spark."
_QUOTED = """'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\""""
_ENTRY = re.compile(
    rf"\s*(?:(?P<whole>{_QUOTED})|(?P<name>{_QUOTED}|[^,:]*[^,:\s])\s*:\s*(?P<value>{_QUOTED}|[^,]*?))\s*(?:,|\Z)"
)
_UNITS = {
    "ms milli millis millisecond milliseconds": 1,
    "s sec secs second seconds": 1_000,
    "m min minute minutes": 60_000,
    "h hour hours": 3_600_000,
    "d day days": 86_400_000,
}
_MS = {"": 1} | {unit: ms for units, ms in _UNITS.items() for unit in units.split()}
_STRATEGIES: dict[str, tuple[Callable[..., RestartStrategyConfiguration], dict[str, str | float | None]]] = {
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

_RESTART_TYPE = ("restart-strategy.type", "restart-strategy")
"""The option that names the strategy, in Flink 2 and in versions before it."""

_OTHER_NAMES = {"off": "none", "disable": "none"} | {name.replace("-", ""): name for name in _STRATEGIES}

_RESTART_OPTIONS = frozenset(_RESTART_TYPE) | {
    f"restart-strategy.{name}.{option}" for name, (_, options) in _STRATEGIES.items() for option in options
}
"""The names of all options of restart strategies."""


class Configurable(Protocol):
    """An object that options are set in: an environment."""

    def get_config(self) -> ExecutionConfig:
        """Settings of the whole job."""

    def get_checkpoint_config(self) -> CheckpointConfig:
        """The settings of the checkpoint."""

    def set_runtime_mode(self, execution_mode: RuntimeExecutionMode) -> object:
        """Choose between streaming and batch execution."""

    def set_default_savepoint_directory(self, directory: str) -> object:
        """Set where savepoints of running jobs are written."""

    def fall_back_on(self, restart_strategy_configuration: RestartStrategyConfiguration) -> None:
        """Set the restart strategy that options describe."""


def split_options(configuration: Configuration) -> tuple[Configuration, Configuration]:
    """The options of Spark, for a session that is made, and all others."""
    options = configuration.to_dict()
    of_spark = {key: value for key, value in options.items() if key.startswith(_OF_SPARK)}
    others = {key: value for key, value in options.items() if key not in of_spark}
    return Configuration.from_dict(of_spark), Configuration.from_dict(others)


def apply_options(configuration: Configuration, env: Configurable) -> None:
    """Apply the known options to an environment, and warn of the others.

    Raises:
        ProgramError: if a known option has an invalid value.
    """
    options = configuration.to_dict()
    for key, value in options.items():
        if key in OPTIONS:
            try:
                OPTIONS[key](env, value)
            except (ValueError, KeyError) as error:
                why = f": {error}" if isinstance(error, ProgramError) else ""
                raise ProgramError(f"the option {key!r} cannot be {value!r}{why}") from error
    strategy = _restart_strategy(configuration)
    if strategy is not None:
        env.fall_back_on(strategy)
    unknown = sorted(set(options) - set(OPTIONS) - _RESTART_OPTIONS)
    for_a_session = [key for key in unknown if key.startswith(_OF_SPARK)]
    has_no_effect(
        ", ".join(for_a_session),
        "Spark's options are those of a session; give them to get_execution_environment(...), which makes it",
        how_many=len(for_a_session),
    )
    others = [key for key in unknown if key not in for_a_session]
    why = "'From PyFlink' in eventide's documentation names the Flink options that are known"
    has_no_effect(", ".join(others), why, how_many=len(others))


def mapping(text: str) -> dict[str, str]:
    """Parse a map as Flink writes it; in quotes, which may also enclose a whole entry, commas are text.

    Raises:
        ProgramError: if an entry has no colon.

    >>> mapping("a:1, 'b':'x,y', 'c:it''s'")
    {'a': '1', 'b': 'x,y', 'c': "it's"}
    """
    found, at = {}, 0
    while text[at:].strip():
        entry = _ENTRY.match(text, at)
        name, colon, value = "", "", ""
        if entry is not None and entry["whole"] is None:
            name, colon, value = _unquoted(entry["name"]), ":", _unquoted(entry["value"])
        elif entry is not None:
            name, colon, value = _unquoted(entry["whole"]).partition(":")
        if entry is None or not colon:
            raise ProgramError(
                "there is an entry without a colon; write a:1,b:2, and quotes around what has a comma: 'c':'x,y'"
            )
        found[name] = value
        at = entry.end()
    return found


def _milliseconds(text: str) -> int:
    """The milliseconds of a length of time as Flink writes it; raises ValueError if it is not one.

    >>> _milliseconds("200 ms"), _milliseconds("3s"), _milliseconds("500"), _milliseconds("2 Minutes")
    (200, 3000, 500, 120000)
    """
    match = re.fullmatch(r"(\d+)\s*([a-z]*)", text.strip().lower())
    if match is None or match[2] not in _MS:
        raise ValueError(text)
    return int(match[1]) * _MS[match[2]]


def _restart_strategy(configuration: Configuration) -> RestartStrategyConfiguration | None:
    """The restart strategy that options describe; None if they name no strategy.

    Raises:
        ProgramError: if there is no such strategy, or a value cannot be read.

    >>> options = {"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.delay": "10 s"}
    >>> _restart_strategy(Configuration.from_dict(options)).get_description()
    'Restart with fixed delay (0:00:10). #1 restart attempts.'
    """
    given = configuration.to_dict()
    option = next((option for option in _RESTART_TYPE if option in given), None)
    if option is None:
        return None
    name = given[option].strip().lower()
    name = _OTHER_NAMES.get(name, name)
    if name not in _STRATEGIES:
        raise ProgramError(f"the option {option!r} cannot be {given[option]!r}; there are {', '.join(_STRATEGIES)}")
    make, options = _STRATEGIES[name]
    return make(*(_value(given, f"restart-strategy.{name}.{option}", default) for option, default in options.items()))


def _value(given: dict[str, str], option: str, default: str | float | None) -> float | None:
    if option not in given and default is None:
        return None
    readers: dict[type, Callable[[str], float]] = {str: _milliseconds, float: float}
    read = readers.get(type(default), int)
    try:
        return read(given.get(option, str(default)))
    except ValueError as error:
        raise ProgramError(f"the option {option!r} cannot be {given[option]!r}") from error


def _unquoted(text: str) -> str:
    quote = text[:1]
    is_quoted = re.fullmatch(_QUOTED, text) is not None
    return text[1:-1].replace(quote * 2, quote) if is_quoted else text


_AUTO_UIDS = {
    "true": ExecutionConfig.enable_auto_generated_uids,
    "false": ExecutionConfig.disable_auto_generated_uids,
}
OPTIONS: dict[str, Callable[[Configurable, str], object]] = {
    "parallelism.default": lambda env, value: env.get_config().set_parallelism(int(value)),
    "pipeline.max-parallelism": lambda env, value: env.get_config().set_max_parallelism(int(value)),
    "pipeline.auto-watermark-interval": lambda env, v: env.get_config().set_auto_watermark_interval(_milliseconds(v)),
    "pipeline.auto-generate-uids": lambda env, value: _AUTO_UIDS[value.lower()](env.get_config()),
    "pipeline.global-job-parameters": lambda env, value: env.get_config().set_global_job_parameters(mapping(value)),
    "execution.runtime-mode": lambda env, value: env.set_runtime_mode(RuntimeExecutionMode[value.upper()]),
    "execution.checkpointing.dir": lambda env, value: env.get_checkpoint_config().set_checkpoint_storage_dir(value),
    "execution.checkpointing.savepoint-dir": lambda env, value: env.set_default_savepoint_directory(value),
    "state.savepoints.dir": lambda env, value: env.set_default_savepoint_directory(value),
    "state.checkpoints.dir": lambda env, value: env.get_checkpoint_config().set_checkpoint_storage_dir(value),
}
"""Flink's options by name, and the setting of each. Those of restart strategies belong together."""
