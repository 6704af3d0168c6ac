"""Flink's options by name, and what they set in an environment."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol

from eventide.common.accepted import has_no_effect
from eventide.common.configuration import Configuration
from eventide.common.execution_config import ExecutionConfig
from eventide.common.restart_strategy import RestartStrategyConfiguration
from eventide.datastream._lengths_of_time import milliseconds
from eventide.datastream._restarting import RESTART_OPTIONS, restart_strategy
from eventide.datastream.checkpoint_config import CheckpointConfig
from eventide.errors import ProgramError
from eventide.plan.execution_mode import RuntimeExecutionMode

_OF_SPARK = "spark."
_QUOTED = """'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\""""
_ENTRY = re.compile(
    rf"\s*(?:(?P<whole>{_QUOTED})|(?P<name>{_QUOTED}|[^,:]*[^,:\s])\s*:\s*(?P<value>{_QUOTED}|[^,]*?))\s*(?:,|\Z)"
)


class Configurable(Protocol):
    """An object that options are set in: an environment."""

    def get_config(self) -> ExecutionConfig:
        """Settings of the whole job."""

    def get_checkpoint_config(self) -> CheckpointConfig:
        """Where the job keeps its checkpoint."""

    def set_runtime_mode(self, execution_mode: RuntimeExecutionMode) -> object:
        """Choose between streaming and batch execution."""

    def fall_back_on(self, restart_strategy_configuration: RestartStrategyConfiguration) -> None:
        """Take the restart strategy that options describe."""


def split_options(configuration: Configuration) -> tuple[Configuration, Configuration]:
    """The options of Spark, for a session that is made, and all others."""
    options = configuration.to_dict()
    of_spark = {key: value for key, value in options.items() if key.startswith(_OF_SPARK)}
    others = {key: value for key, value in options.items() if key not in of_spark}
    return Configuration.from_dict(of_spark), Configuration.from_dict(others)


def apply_options(configuration: Configuration, env: Configurable) -> None:
    """Set in an environment what the options say that it knows, and warn of the others.

    Raises:
        ProgramError: if a known option has a value that is none.
    """
    options = configuration.to_dict()
    for key, value in options.items():
        if key in OPTIONS:
            try:
                OPTIONS[key](env, value)
            except (ValueError, KeyError) as error:
                why = f": {error}" if isinstance(error, ProgramError) else ""
                raise ProgramError(f"the option {key!r} cannot be {value!r}{why}") from error
    strategy = restart_strategy(configuration)
    if strategy is not None:
        env.fall_back_on(strategy)
    unknown = sorted(set(options) - set(OPTIONS) - RESTART_OPTIONS)
    for_a_session = [key for key in unknown if key.startswith(_OF_SPARK)]
    has_no_effect(
        ", ".join(for_a_session),
        "options of Spark's are those of a session; give them to get_execution_environment(...), which makes it",
        how_many=len(for_a_session),
    )
    others = [key for key in unknown if key not in for_a_session]
    why = "'From PyFlink' in eventide's documentation names the options of Flink's that are known"
    has_no_effect(", ".join(others), why, how_many=len(others))


def mapping(text: str) -> dict[str, str]:
    """The names and values of a map as Flink writes it; in quotes, which may be around an entry too, commas are text.

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


def _unquoted(text: str) -> str:
    quote = text[:1]
    is_quoted = re.fullmatch(_QUOTED, text) is not None
    return text[1:-1].replace(quote * 2, quote) if is_quoted else text


def _truth(text: str) -> bool:
    return {"true": True, "false": False}[text.lower()]


def _auto_generate_uids(env: Configurable, value: str) -> None:
    config = env.get_config()
    _ = config.enable_auto_generated_uids() if _truth(value) else config.disable_auto_generated_uids()


def _job_parameters(env: Configurable, value: str) -> None:
    env.get_config().set_global_job_parameters(mapping(value))


def _checkpoint_directory(env: Configurable, value: str) -> None:
    env.get_checkpoint_config().set_checkpoint_storage_dir(value)


def _watermark_interval(env: Configurable, value: str) -> None:
    env.get_config().set_auto_watermark_interval(milliseconds(value))


OPTIONS: dict[str, Callable[[Configurable, str], object]] = {
    "parallelism.default": lambda env, value: env.get_config().set_parallelism(int(value)),
    "pipeline.max-parallelism": lambda env, value: env.get_config().set_max_parallelism(int(value)),
    "pipeline.auto-watermark-interval": _watermark_interval,
    "pipeline.auto-generate-uids": _auto_generate_uids,
    "pipeline.global-job-parameters": _job_parameters,
    "execution.runtime-mode": lambda env, value: env.set_runtime_mode(RuntimeExecutionMode[value.upper()]),
    "execution.checkpointing.dir": _checkpoint_directory,
    "state.checkpoints.dir": _checkpoint_directory,
}
"""Flink's options by name, and the setting of each. Those of restart strategies belong together."""
