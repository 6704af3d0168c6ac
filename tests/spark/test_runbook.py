"""Commands of the runbook on a job that has the symptom."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from eventide.cli.app import app
from eventide.common import Duration, JobClient, Types, WatermarkStrategy
from eventide.dashboard.watched import WatchedJob, samples
from eventide.datastream import StreamExecutionEnvironment
from eventide.datastream.connectors import FormatSink
from eventide.datastream.connectors.file_system import FileSource
from support.steps import in_steps

pytestmark = pytest.mark.spark

_PATIENCE_S = 300


class AsksAServer:
    """A function that waits for a server that does not answer, at one element, without a timeout."""

    def __init__(self, place: Path) -> None:
        self.asked, self.answer = place / "asked", place / "answer"

    def __call__(self, line: str) -> str:
        if line == "asks":
            self.asked.write_text(str(os.getpid()))
            self.wait_for_the_answer()
        return line.upper()

    def wait_for_the_answer(self) -> None:
        """Return when the server has answered."""
        while not self.answer.exists():
            time.sleep(0.05)


def wait_until(holds: Callable[[], object], job: JobClient) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not holds():
        assert not job.get_job_status().result().is_terminal_state()
        assert time.monotonic() < deadline
        time.sleep(0.05)


@in_steps
@pytest.mark.long
def test_of_a_job_that_hangs_all_is_said_that_the_runbook_says(spark: SparkSession, tmp_path: Path) -> None:
    def metrics() -> dict[str, float]:
        told = samples([WatchedJob(1, "hangs", job, {})], time.time_ns() // 1_000_000)
        return {one.metric.name: one.value for one in told}

    def add(name: str) -> None:
        (tmp_path / f".{name}").write_text(f"{name}\n")
        (tmp_path / f".{name}").rename(folder / f"{name}.txt")

    (folder := tmp_path / "in").mkdir()
    server = AsksAServer(tmp_path)
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(tmp_path / "checkpoint"))
    source = FileSource.text(str(folder)).monitor_continuously(Duration.of_millis(1)).build()
    lines = env.from_source(source, WatermarkStrategy.no_watermarks(), "lines")
    lines.map(server, Types.STRING()).sink_to(FormatSink("text", {"path": str(tmp_path / "out")}))
    job = env.execute_async("hangs")

    add("first")
    wait_until(lambda: job.get_progress() and metrics()["timeWithoutProgress"] == 0, job)
    add("asks")
    wait_until(lambda: server.asked.exists() and metrics()["timeWithoutProgress"] > 1_000, job)
    assert metrics()["currentMicroBatchFailures"] == 0
    unfinished = job.get_progress()[-1].batch + 1
    said = CliRunner().invoke(app, ["checkpoint", str(tmp_path / "checkpoint")])
    shown = " ".join(said.stdout.split())
    assert f"unfinished micro-batch {unfinished}, planned at" in shown
    assert f"committed micro-batch {unfinished - 1}, at" in shown

    py_spy = shutil.which("py-spy", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    if py_spy is not None:
        asked = [py_spy, "dump", "--pid", server.asked.read_text()]
        said_of_it = subprocess.run(asked, capture_output=True, text=True, check=False)
        assert AsksAServer.wait_for_the_answer.__name__ in said_of_it.stdout, said_of_it.stderr

    server.answer.touch()
    wait_until(lambda: job.get_progress()[-1].batch >= unfinished and metrics()["timeWithoutProgress"] == 0, job)
    assert sorted(line for file in (tmp_path / "out").glob("part-*") for line in file.read_text().split()) == [
        "ASKS",
        "FIRST",
    ]
    job.cancel().result()
