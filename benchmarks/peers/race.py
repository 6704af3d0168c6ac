"""One cell of the table: an engine runs a program in a process of its own, and its results are checked."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.engines import HERE, Engine

LIMIT_S = 120.0
"""After how long a program is stopped, from the start of its process."""


@dataclass(frozen=True)
class Cell:
    """What one engine needed for one program.

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


def run(
    engine: Engine, program: str, data: Path, out: Path, kafka: str, compare: Callable[[Path], int]
) -> Cell:  # fmt: skip
    """Run a program on an engine.

    Args:
        engine: in its environment.
        program: the name of the program.
        data: the folder of the events, and of a few events.
        out: a folder that is not there yet.
        kafka: the address of a broker that has the events, if the engine needs one.
        compare: checks the results in a folder, and says how many there are.
    """
    if program in engine.cannot:
        return Cell(program, engine.name, note=engine.cannot[program])
    python = engine.python()
    command = [python, HERE / "programs" / engine.file, program, data / "all", data / "little", out]
    variables = {"PYTHONWARNINGS": "ignore", "PYSPARK_PYTHON": str(python), "PEERS_KAFKA": kafka, **engine.variables}
    out.mkdir(parents=True)
    began = time.time()
    with (out / "log").open("w") as log, subprocess.Popen(
        list(map(str, command)),
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        start_new_session=True,
    ) as process:  # fmt: skip
        try:
            said, _ = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return Cell(program, engine.name, note=f"not done within {LIMIT_S:.0f} s")
    lines = [line for line in said.splitlines() if line.startswith('{"started"')]
    if process.returncode or not lines:
        raise RuntimeError(f"{engine.name} failed at {program}: {(out / 'log').read_text()[-2_000:]}")
    times = json.loads(lines[-1])
    rows = compare(out / "results" / "out")
    return Cell(program, engine.name, times["ended"] - times["started"], times["started"] - began, rows)
