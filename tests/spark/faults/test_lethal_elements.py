"""An element that ends its Python process: found by the next attempt, and then a dead letter, or set aside."""

from __future__ import annotations

import ctypes
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from eventide.cli.app import app
from eventide.common import RestartStrategies, Types, WatermarkStrategy
from eventide.datastream import KeyedProcessFunction, OutputTag, StreamExecutionEnvironment
from eventide.datastream.connectors import FileSource
from eventide.datastream.state import ValueStateDescriptor
from eventide.errors import DataError, EventideError
from support.steps import in_steps

pytestmark = pytest.mark.spark

NUMBER = Types.ROW_NAMED(["n"], [Types.LONG()])
PAIR = Types.TUPLE([Types.LONG(), Types.LONG()])
BAD = OutputTag("bad")
LAST, CRASHES, IS_KILLED = 60, 23, 41


def parsed(row: Any) -> Any:
    """A function with a bug in native code, which one element meets."""
    if row.n == CRASHES:
        ctypes.string_at(0)
    return row


class Sums(KeyedProcessFunction):
    """Sums numbers by key; at one of them the system has no memory left, and kills the process."""

    def open(self, runtime_context: Any) -> None:
        self.sum = runtime_context.get_state(ValueStateDescriptor("sum", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Any:
        if value.n == IS_KILLED:
            os.kill(os.getpid(), signal.SIGKILL)
        self.sum.update((self.sum.value() or 0) + value.n)
        yield value.n, self.sum.value()


class Job:
    """Files of twenty numbers, one in a micro-batch, through both functions; ``found`` has results by micro-batch."""

    def __init__(self, place: Path) -> None:
        self.location = str(place / "checkpoint")
        self.found: dict[int, list[tuple[int, int]]] = {}
        self.letters: dict[int, list[Any]] = {}
        self._folder = place / "in"
        self._folder.mkdir()
        for first in range(0, LAST, 20):
            lines = "".join(json.dumps({"n": n}) + "\n" for n in range(first, first + 20))
            (self._folder / f"{first:03}.json").write_text(lines)

    def run(self, *, restarts: int = 0, with_letters: bool = False) -> Any:
        env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
        env.get_checkpoint_config().set_checkpoint_storage_dir(self.location)
        if restarts:
            env.set_restart_strategy(RestartStrategies.fixed_delay_restart(restarts, 0))
        source = FileSource.json_lines(str(self._folder), type_info=NUMBER).set_max_files_per_batch(1).build()
        rows = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").map(parsed, NUMBER).name("parse")
        rows = rows.side_output_dead_letters(BAD) if with_letters else rows
        sums = rows.key_by(lambda row: row.n % 2, Types.LONG()).process(Sums(), PAIR).name("sum").uid("sum")
        if with_letters:
            sums = sums.side_output_dead_letters(BAD)
            letters = rows.get_side_output(BAD).union(sums.get_side_output(BAD))
            letters.sink_to(self._keeping(self.letters, lambda row: (row.operator, row.error_type, row.text)))
        sums.sink_to(self._keeping(self.found, tuple))
        client = env.execute_async("lethal")
        return client, client.get_job_execution_result().result()

    @staticmethod
    def _keeping(into: dict[int, list[Any]], what: Callable[[Any], Any]) -> Any:
        return lambda rows, batch: into.__setitem__(batch, [what(row) for row in rows.collect()])

    def check(self) -> None:
        """All numbers came once, in sums of which each has those before it, without the two."""
        given = sorted(pair for pairs in self.found.values() for pair in pairs)
        expected, sums = [], [0, 0]
        for n in range(LAST):
            if n not in (CRASHES, IS_KILLED):
                sums[n % 2] += n
                expected.append((n, sums[n % 2]))
        assert given == expected


def set_aside(location: str) -> Any:
    return CliRunner().invoke(app, ["checkpoint", location, "--set-aside"])


@in_steps
@pytest.mark.long
def test_it_is_found_by_the_next_attempt_named_and_set_aside_by_the_command(spark: object, tmp_path: Path) -> None:
    job = Job(tmp_path)
    with pytest.raises(EventideError, match="when the job is started again, it finds out which element"):
        job.run()
    refused = set_aside(job.location)
    assert (refused.exit_code, "no element is known" in refused.stderr) == (2, True)
    for _ in range(3):  # the last of these attempts ends no process
        with pytest.raises(DataError, match=r"'parse', while it handled an element \(element Row\(n=23\)\)") as error:
            job.run()
    assert "--set-aside" in str(error.value)
    said = set_aside(job.location)
    assert (said.exit_code, "parse, while it handled an element: Row(n=23)" in said.stdout) == (0, True)
    with pytest.raises(EventideError, match="when the job is started again"):
        job.run()  # which comes to another micro-batch
    with pytest.raises(DataError, match=r"'sum', while it handled an element .*Row\(n=41\)"):
        job.run()
    assert set_aside(job.location).exit_code == 0
    job.run()
    job.check()


@in_steps
@pytest.mark.long
def test_with_dead_letters_and_a_restart_strategy_the_job_gets_past_it_by_itself(spark: object, tmp_path: Path) -> None:
    job = Job(tmp_path)
    client, result = job.run(restarts=6, with_letters=True)
    job.check()
    letters = [letter for of_batch in job.letters.values() for letter in of_batch]
    assert letters == [("parse", "DataError", "Row(n=23)"), ("sum", "DataError", "Row(n=41)")]
    assert len(client.get_restarts()) == 6
    assert [result.metrics[name]["numDeadLetters"] for name in ("parse", "sum")] == [1, 1]
