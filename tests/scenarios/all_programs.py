"""All recorded scenarios, each with the program that a user would write for it."""

from __future__ import annotations

from tests.scenarios.join_programs import JOIN_KINDS
from tests.scenarios.process_programs import PROCESS_KINDS
from tests.scenarios.programs import KINDS, Scenario, program, scenarios

from eventide.datastream import DataStream, StreamExecutionEnvironment

_OTHER = PROCESS_KINDS | JOIN_KINDS


def all_scenarios() -> list[Scenario]:
    """Every one that ran as a stream, of windows first."""
    return [*scenarios(KINDS), *scenarios(_OTHER)]


def batch_scenarios() -> list[Scenario]:
    """Every one that ran in batch execution."""
    return scenarios([*KINDS, *_OTHER], in_batch=True)


def any_program(env: StreamExecutionEnvironment, scenario: Scenario) -> tuple[DataStream, DataStream | None]:
    """The scenario's program: its results, and its late elements where there can be any."""
    return _OTHER.get(scenario.kind, program)(env, scenario)
