"""Savepoints on Spark: a job with state of every kind goes on with other subtasks, and with its own checkpoint then."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests import saved_program
from typer.testing import CliRunner

from eventide.cli.app import app
from eventide.common import Row, Types
from eventide.datastream import StreamExecutionEnvironment
from eventide.datastream.connectors import FormatSink
from eventide.testing import local_environment

pytestmark = pytest.mark.spark

KEYS = "uvwxyz"
BATCHES = [
    [("ab"[(i + j) % 2], Row(key=KEYS[(7 * i + 5 * j) % 6], amount=1 + (3 * i + j) % 9, at=8 * i + (5 * j) % 13 - 6))
     for j in range(6)]
    for i in range(4)
]  # fmt: skip
RULES = [[(KEYS[i], i)] for i in range(4)]
NARROW = Types.ROW_NAMED(["key", "amount", "at"], [Types.STRING(), Types.SHORT(), Types.INT()])
TELLING = ("tumbling", "two", "process", "ruled", "listed", "joined")
"""What is tried on Spark: the twin does the rest."""


def _program(env: StreamExecutionEnvironment, until: int, output: Path, rows_type: Any, **more: Any) -> None:
    """The first micro-batches of the program, or all with the end."""
    rows = [[(split, saved_program.of_type(row, rows_type)) for split, row in batch] for batch in BATCHES[:until]]
    bounded = until == len(BATCHES)
    streams = saved_program.streams(env, rows, RULES[:until], bounded=bounded, rows_type=rows_type, **more)
    first, *others = (streams[name] for name in (*TELLING, "another") if name in streams)
    results = first.union(*others).map(lambda text: text, Types.STRING())
    results.sink_to(FormatSink("text", {"path": str(output)}))


def _job(location: Path, parallelism: int) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism).set_available_now()
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(location))
    return env


def _lines(*outputs: Path) -> Counter[str]:
    found = Counter(
        line for output in outputs for file in output.glob("*.txt") for line in file.read_text().splitlines()
    )
    return Counter({line: times for line, times in found.items() if not line.startswith("another")})


def test_a_job_goes_on_with_other_subtasks_and_wider_types(spark: SparkSession, tmp_path: Path) -> None:
    undisturbed = local_environment()
    streams = saved_program.streams(undisturbed, BATCHES, RULES, bounded=True)
    first, *others = (streams[name] for name in TELLING)
    expected = Counter(first.union(*others).execute_and_collect())
    one, other = tmp_path / "one", tmp_path / "other"

    env = _job(one, 2)
    _program(env, 2, tmp_path / "out1", NARROW)
    env.execute()
    said = CliRunner().invoke(app, ["savepoint", str(one), str(tmp_path / "saved"), "--json"])
    assert said.exit_code == 0, said.output

    for until in (3, 4):  # the second run finds a checkpoint, which counts, whatever the program says
        env = _job(other, 3).from_savepoint(str(tmp_path / "saved"))
        _program(env, until, tmp_path / "out2", saved_program.WIDE, has_another=True)
        env.execute()
    assert _lines(tmp_path / "out1", tmp_path / "out2") == expected
