"""Real limits of memory: the kernel kills a worker, and Spark's own limit makes Python raise MemoryError.

What stops the job is a sentence that says what helps; that is done, and the job goes on.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from eventide.cli.app import app
from eventide.errors import MEMORY_ADVICE
from support.control_groups import limited_group
from support.spark import limited_job
from support.steps import in_steps

pytestmark = [pytest.mark.spark, pytest.mark.long]

_PATIENCE_S = 900
_GROUP_BYTES = 700 << 20


def run(*arguments: object) -> dict[str, Any]:
    """The last line that the job prints."""
    command = [sys.executable, limited_job.__file__, *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=_PATIENCE_S)
    assert done.returncode == 0, done.stderr[-3_000:]
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said


def command(*options: str) -> str:
    said = CliRunner().invoke(app, ["checkpoint", *options])
    assert (said.exit_code, said.stderr) == (0, "")
    return said.stdout


@in_steps
def test_an_element_for_which_the_kernel_kills_the_worker_is_named_and_kills_no_more(
    tmp_path: Path, injected: Counter[str]
) -> None:
    """Once by surprise, and twice until it is known: then it is not handled again, however often the job starts."""
    place = tmp_path / "checkpoint"
    with limited_group(_GROUP_BYTES) as group:
        said = run("element", place, group.folder)
        assert group.killed() == 3
        assert said["error"].startswith(
            f"DataError: in operator 'needs', while it handled an element (key 1, element {limited_job.LARGE}):"
        )
        assert "had no memory left; to have the job go on without it, run 'eventide checkpoint PATH" in said["error"]
        assert "Traceback" not in said["error"]
        assert (said["sum"], said["restarts"]) == (0, limited_job.RESTARTS)
        assert f"needs, while it handled an element: {limited_job.LARGE}" in command(str(place), "--set-aside")
        said = run("element", place, group.folder)
        assert (said["error"], said["restarts"], group.killed()) == (None, 0, 3)
        assert said["sum"] == sum(range(limited_job.NUMBERS + 1)) - limited_job.LARGE
        injected["workers killed for memory"] += group.killed()


@in_steps
def test_a_key_with_all_rows_of_a_micro_batch_for_which_memory_is_short_comes_in_smaller_ones(tmp_path: Path) -> None:
    place = tmp_path / "checkpoint"
    for _ in range(2):
        said = run("micro-batch", place)
        head, _, trace = said["error"].partition("Its traceback:")
        assert head.startswith("UserFunctionError: ")
        assert f"raised MemoryError(); {MEMORY_ADVICE}" in head
        assert "MemoryError" in trace
    assert "Micro-batch 0 reads nothing now" in command(str(place), "--defer")
    said = run("micro-batch", place, limited_job.ROWS // 10)
    assert said == {"sum": limited_job.ROWS * limited_job.ROW_BYTES, "error": None, "restarts": 0}
