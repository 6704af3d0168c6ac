"""Jobs from a table of Delta Lake or Iceberg to others of its kind: each row once, whatever fails or is killed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from eventide.common import Row, Types
from eventide.testing import ScriptedSource, local_environment
from support.lake import lake_job
from support.lake.lake import Lake, lakes, spark_version

pytestmark = [pytest.mark.spark, pytest.mark.lake]

_PATIENCE_S = 400
_KILLS_IN_A_JOB = 2
_BOTH = ("totals", "late")


@dataclass
class Warehouse:
    """The tables of one kind in a folder, and processes that work with them."""

    lake: Lake
    folder: Path
    variables: dict[str, str] = field(default_factory=dict)

    def table(self, name: str) -> str:
        return self.lake.table(self.folder / "warehouse", name)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a process of the program."""
        paths = os.pathsep.join(sys.path)
        environment = {**os.environ, **self.variables, "PYTHONPATH": paths, "PYSPARK_PYTHON": sys.executable}
        command = [sys.executable, str(Path(lake_job.__file__)), self.lake.format, *arguments]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        return subprocess.Popen(command, text=True, start_new_session=True, env=environment, **pipes)

    def ended(self, process: subprocess.Popen[str]) -> str:
        """Let a process do its work; return what it printed."""
        try:
            printed, _ = process.communicate("go\n", _PATIENCE_S)
        finally:
            kill(process)
        assert process.returncode == 0
        return printed

    def shown(self, *tables: str) -> list[dict[str, Any]]:
        """Rows of tables."""
        printed = self.ended(self.start("show", *map(self.table, tables)))
        return [json.loads(line) for line in printed.splitlines() if line.startswith("{")]


def kill(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.fixture(scope="module", params=lakes(spark_version()), ids=lambda lake: lake.format)
def warehouse(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """A warehouse of each kind, with a table of events, and what a job makes of them that nothing disturbs."""
    found = Warehouse(request.param, tmp_path_factory.mktemp(request.param.format))
    found.variables = found.lake.write_settings(found.folder / "conf", found.folder / "warehouse")
    found.ended(found.start("write", found.table("events")))
    _run(found, "undisturbed")
    return found


def test_a_watermark_for_each_partition_of_a_table(warehouse: Warehouse) -> None:
    """Events are in time or late as they are on the twin, whose source tells the devices apart."""
    totals, late = ([json.loads(row) for row in table["rows"]] for table in _tables(warehouse, "undisturbed"))
    found = [(row["key"], row["window"]["start"], row["count"], row["n"]) for row in totals]
    expected, expected_late = _on_the_twin()
    assert len(expected_late) > 15
    assert sorted(row["n"] for row in late) == expected_late
    assert sorted(found) == [(key, _text(start), count, n) for key, start, count, n in expected]


def test_each_micro_batch_that_fails_after_the_tables_have_it_is_in_them_once(warehouse: Warehouse) -> None:
    failing = warehouse.folder / "failing"
    failing.mkdir()
    _run(warehouse, "failing", str(failing))
    assert len(list(failing.iterdir())) == 2 * lake_job.COMMITS
    assert _tables(warehouse, "failing") == _tables(warehouse, "undisturbed")


@pytest.mark.kill
@pytest.mark.parametrize("tables", [["totals", "late"], ["totals"]], ids=["two tables", "one table"])
def test_killed_at_random_moments_a_job_leaves_the_tables_of_one_that_was_not(
    warehouse: Warehouse, tables: list[str], pytestconfig: pytest.Config, injected: Counter[str]
) -> None:
    """`--kills=10` for long, `--seed=` for the same moments."""
    kills, seed = (pytestconfig.getoption(option) for option in ("--kills", "--seed"))
    dice = random.Random(f"{seed} {warehouse.lake.format} {tables}")
    expected = _tables(warehouse, "undisturbed", tables)
    for series in range(0, kills, _KILLS_IN_A_JOB):
        name = f"killed_{len(tables)}_{series}"
        arguments = _arguments(warehouse, name, tables)
        lives = [warehouse.start(*arguments)]
        try:
            for _ in range(min(_KILLS_IN_A_JOB, kills - series)):
                lives.append(warehouse.start(*arguments))
                _kill_in_mid_work(lives[-2], _checkpoint(warehouse, name), dice.uniform(0, 1.5))
            warehouse.ended(lives[-1])
        finally:
            for life in lives:
                kill(life)
        assert _tables(warehouse, name, tables) == expected, f"--seed={seed}, series {series}"
        injected["killed"] += len(lives) - 1


def _run(warehouse: Warehouse, name: str, *more: str) -> None:
    warehouse.ended(warehouse.start(*_arguments(warehouse, name), *more))


def _arguments(warehouse: Warehouse, name: str, tables: Sequence[str] = _BOTH) -> list[str]:
    """Arguments of the job of a name; its tables of results are there."""
    if warehouse.lake.format == "iceberg":
        warehouse.ended(warehouse.start("create", *(warehouse.table(f"{name}_{table}") for table in _BOTH)))
    results = [warehouse.table(f"{name}_{table}") for table in tables]
    return ["run", warehouse.table("events"), str(_checkpoint(warehouse, name)), *results]


def _checkpoint(warehouse: Warehouse, name: str) -> Path:
    return warehouse.folder / "checkpoints" / name


def _tables(warehouse: Warehouse, name: str, tables: Sequence[str] = _BOTH) -> list[dict[str, Any]]:
    return warehouse.shown(*(f"{name}_{table}" for table in tables))


def _kill_in_mid_work(life: subprocess.Popen[str], checkpoint: Path, seconds: float) -> None:
    """Kill a job some time after it has planned a micro-batch that no life before it had planned."""
    before = _planned(checkpoint)
    assert life.stdin is not None
    life.stdin.write("go\n")
    life.stdin.flush()
    deadline = time.monotonic() + _PATIENCE_S
    while _planned(checkpoint) <= before and life.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    moment = time.monotonic() + seconds
    while _planned(checkpoint) < before + 2 and time.monotonic() < moment:
        time.sleep(0.02)
    assert _planned(checkpoint) > before, "the job did not get any further"
    assert life.poll() is None, "the job ended before it could be killed; give it more to do"
    kill(life)


def _planned(checkpoint: Path) -> int:
    return max((int(file.name) for file in (checkpoint / "offsets").glob("[0-9]*")), default=-1)


def _on_the_twin() -> tuple[list[tuple[Any, ...]], list[int]]:
    """Totals and numbers of late events on the twin, whose micro-batches are the files, of one device and the other."""
    script = [
        [(device, lake_job.event(n, device)) for n in lake_job.numbers(commit)]
        for commit in range(lake_job.COMMITS)
        for device in lake_job.DEVICES
    ]
    types = [Types.LONG(), Types.STRING(), Types.SQL_TIMESTAMP(), Types.STRING()]
    source = ScriptedSource(list(lake_job.DEVICES), script, Types.ROW_NAMED(["n", "key", "at", "device"], types))
    results: list[list[Any]] = []
    for which in (0, 1):
        env = local_environment()
        events = env.from_source(source, lake_job.in_time(_milliseconds), "events")
        results.append(list(lake_job.results(events)[which].execute_and_collect()))
    # The source of the twin ends, and closes all windows; the table may grow, and those at its end stay open.
    last = max(_milliseconds(row, 0) for batch in script for _, row in batch) - 301
    totals = [(row["key"], row["window"].start, row["count"], row["n"]) for row in results[0]]
    return sorted(total for total in totals if total[1] + 199 <= last), sorted(row["n"] for row in results[1])


def _text(at_ms: int) -> str:
    return f"{datetime.fromtimestamp(at_ms / 1_000, UTC):%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z"


def _milliseconds(row: Row, _: int) -> int:
    return round(row["at"].timestamp() * 1_000)
