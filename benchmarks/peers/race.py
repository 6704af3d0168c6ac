"""A race: each engine runs each program in a process of its own, and its results are checked."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from benchmarks.peers import results, topics
from benchmarks.peers.engines import HERE, Engine
from benchmarks.peers.events import Events
from eventide.testing import KafkaBroker


@dataclass(frozen=True)
class Cell:
    """The time that one engine needed for one program.

    Attributes:
        program: its name.
        engine: its name.
        seconds: from the start of processing to the last result.
        start_s: from the start of the process to the start of processing.
        rows: how many rows were compared.
        note: why there is no time.
    """

    program: str
    engine: str
    seconds: float | None = None
    start_s: float | None = None
    rows: int | None = None
    note: str = ""


@dataclass(frozen=True)
class Race:
    """The events, results and limits that all engines share.

    Attributes:
        recipe: of the events.
        wanted: the results of each program.
        place: a folder with the events (`all`) and a few events (`little`); results go there too.
        broker: has the events in topics, if an engine needs that.
        limit_s: after how long a program is stopped, from the start of its process.
    """

    recipe: Events
    wanted: dict[str, pd.DataFrame]
    place: Path
    broker: KafkaBroker | None
    limit_s: float

    def run(self, engine: Engine, program: str) -> Cell:
        """Run a program on an engine, and check its results.

        Raises:
            RuntimeError: if the program fails, with what it said last.
            ValueError: if its results are wrong.
        """
        if program in engine.cannot:
            return Cell(program, engine.name, note=engine.cannot[program])
        out = self.place / f"{program}-{engine.name.replace(', ', '-')}"
        out.mkdir()
        began = time.time()
        times = self._times(engine, program, out)
        if times is None:
            return Cell(program, engine.name, note=f"not done within {self.limit_s:.0f} s")
        found = self._found(engine, program, out)
        rows = results.check(program, found, self.wanted[program], self.recipe)
        return Cell(program, engine.name, times["ended"] - times["started"], times["started"] - began, rows)

    def _times(self, engine: Engine, program: str, out: Path) -> dict[str, float] | None:
        """When processing started and ended; None if that takes too long."""
        python, file = engine.python(), HERE / "programs" / engine.file
        variables = {"PYTHONWARNINGS": "ignore", "PYSPARK_PYTHON": str(python), **engine.variables}
        if self.broker is not None:
            variables["PEERS_KAFKA"] = self.broker.bootstrap_servers
        log = out / "log"
        with log.open("w") as errors, subprocess.Popen(
            [str(part) for part in (python, file, program, self.place / "all", self.place / "little", out)],
            env={**os.environ, **variables},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        ) as process:  # fmt: skip
            try:
                said, _ = process.communicate(timeout=self.limit_s)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                return None
        lines = [line for line in said.splitlines() if line.startswith('{"started"')]
        if process.returncode or not lines:
            raise RuntimeError(f"{engine.name} failed at {program}: {log.read_text()[-2_000:]}")
        return json.loads(lines[-1])

    def _found(self, engine: Engine, program: str, out: Path) -> pd.DataFrame:
        if engine.reads_kafka and self.broker is not None:
            return topics.read(self.broker, program)
        return results.written(program, out / "results" / "out")


def reason(error: str) -> str:
    r"""The innermost cause in what a program said last, shortened.

    >>> reason("Job failed.\n\tat Task.run\nCaused by: IllegalState: closed\n\tat Task.close\n")
    'IllegalState: closed'
    """
    lines = [line for line in error.splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    return textwrap.shorten((causes or lines or ["it said nothing"])[-1].partition(" (")[0], 200)
