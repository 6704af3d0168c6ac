"""Imports of the processes of Spark that only plan, or are only asked something: four at each start of a query."""

from __future__ import annotations

import subprocess
import sys

import pytest

RUNS_PROGRAMS = ("eventide.plan", "eventide.runtime.chain", "eventide.runtime.tasks", "eventide.runtime.tracing")


def imported(module: str) -> set[str]:
    program = f"import {module}, sys; print(*sys.modules)"
    return {*subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()}


@pytest.mark.parametrize("module", ["data_source", "stage_processor"])
def test_what_is_only_asked_imports_nothing_that_runs_a_program(module: str) -> None:
    there = imported(f"eventide.spark.query.{module}")
    assert f"eventide.spark.query.{module}" in there
    assert [name for name in there if name.startswith(RUNS_PROGRAMS) or name in {"numpy", "pandas", "pyarrow"}] == []


def test_what_runs_programs_leaves_pandas_to_those_that_use_it() -> None:
    there = imported("eventide.spark.query.subtask_run")
    assert ("eventide.runtime.tracing.kernels" in there, "pandas" in there) == (True, False)
