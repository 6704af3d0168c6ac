"""A job goes on under another parallelism, into the directory that it has written to before."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from eventide.common import Duration, JobStatus, Types, WatermarkStrategy
from eventide.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from eventide.datastream.connectors import FormatSink
from eventide.datastream.connectors.file_system import FileSource
from eventide.datastream.functions import RuntimeContext
from eventide.datastream.state import ValueStateDescriptor
from eventide.errors import StateError
from eventide.spark.checkpoint import savepoint
from eventide.spark.checkpoint.savepoint import rescale
from support.steps import in_steps

pytestmark = pytest.mark.spark

KEYS = "abcdefg"


class Numbering(KeyedProcessFunction):
    """Number the elements of each key."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.LONG()))

    def process_element(self, value: str, ctx: KeyedProcessFunction.Context) -> Iterator[str]:
        number = (self.seen.value() or 0) + 1
        self.seen.update(number)
        yield f"{value} {number}"


def run(
    folder: Path, checkpoint: str, output: Path, *, saved: str | None = None, max_parallelism: int | None = None
) -> int | None:
    """Run the job with all that is there, a file in each micro-batch; return its parallelism."""
    env = StreamExecutionEnvironment.get_execution_environment().set_max_rows_per_batch(len(KEYS)).set_available_now()
    env.get_checkpoint_config().set_checkpoint_storage_dir(checkpoint)
    if max_parallelism is not None:
        env.set_max_parallelism(max_parallelism)
    if saved is not None:
        env.from_savepoint(saved)
    elif not Path(checkpoint).exists():
        env.set_parallelism(2)
    source = FileSource.text(str(folder)).monitor_continuously(Duration.of_millis(1)).build()
    numbered = env.from_source(source, WatermarkStrategy.no_watermarks(), "lines").key_by(lambda line: line[:1])
    numbered.process(Numbering(), Types.STRING()).sink_to(FormatSink("text", {"path": str(output)}))
    plan = env.get_plan(numbered)
    job = env.execute_async()
    job.get_job_execution_result().result()
    assert job.get_job_status().result() is JobStatus.FINISHED
    return plan.parallelism


def add(folder: Path, number: int) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{number:03}.txt").write_text("".join(f"{key}{number}\n" for key in KEYS))


def lines(output: Path) -> list[str]:
    return sorted(line for file in output.glob("part-*") for line in file.read_text().splitlines())


def expected(files: int) -> list[str]:
    """The elements of some files, each with its number among those of its key."""
    return sorted(f"{key}{file} {file + 1}" for file in range(files) for key in KEYS)


def by_command(command: str, checkpoint: str, target: str, **options: int) -> dict[str, object]:
    """The answer of the command."""
    given = [f"--{name.replace('_', '-')}={number}" for name, number in options.items()]
    arguments = [sys.executable, "-m", "eventide", command, checkpoint, target, *given, "--json"]
    said = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    found: dict[str, object] = json.loads(said.stdout)
    return found


@pytest.mark.long
@in_steps
def test_a_job_goes_on_with_more_subtasks_and_then_with_fewer(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, output = tmp_path / "in", tmp_path / "out"
    two, three, one = (str(tmp_path / name) for name in ("two", "three", "one"))
    add(folder, 0)
    add(folder, 1)
    run(folder, two, output)
    said = by_command("rescale", two, three, parallelism=3)
    assert (said["parallelism"], said["batch"]) == (3, 1)
    with pytest.raises(StateError, match=f"was continued in {three} by eventide rescale: start the program with that"):
        run(folder, two, output)
    with pytest.raises(StateError, match=f"was continued in {three} by eventide rescale"):
        rescale(spark, two, one, parallelism=1)

    add(folder, 2)
    assert run(folder, three, output) == 3
    assert lines(output) == expected(3)
    with monkeypatch.context() as interrupted:
        interrupted.setattr(savepoint, "_begin", lambda *_: sys.exit("interrupted"))
        with pytest.raises(SystemExit, match="interrupted"):
            rescale(spark, three, one, parallelism=1)
    with pytest.raises(StateError, match=f"was continued in {one} by eventide rescale"):
        run(folder, three, output)
    with pytest.raises(StateError, match=r"key groups at .*, and this one asks for 7; call it with a max"):
        rescale(spark, three, one, parallelism=1, max_parallelism=7)
    rescale(spark, three, one, parallelism=1)
    with pytest.raises(StateError, match=f"was continued in {one} by eventide rescale"):
        rescale(spark, three, one, parallelism=1)
    add(folder, 3)
    assert run(folder, one, output) == 1
    assert lines(output) == expected(4)
    numbers = {int(file.name.split("-")[1]) for file in output.glob("part-*")}
    assert numbers == {0, 1, 2, 3}


@pytest.mark.long
@in_steps
def test_the_max_parallelism_changes_through_a_savepoint_and_by_the_command(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder, first, second = tmp_path / "in", tmp_path / "first", tmp_path / "second"
    checkpoint, saved, new, last = (str(tmp_path / name) for name in ("checkpoint", "saved", "new", "last"))
    add(folder, 0)
    add(folder, 1)
    run(folder, checkpoint, first)
    with pytest.raises(StateError, match="max parallelism was 32768 and is now 7"):
        run(folder, checkpoint, first, max_parallelism=7)
    said = by_command("savepoint", checkpoint, saved, max_parallelism=7)
    assert said["program"]["max parallelism"] == 7  # type: ignore[index]

    add(folder, 2)
    with pytest.raises(StateError, match="the max parallelism was 7 and is now 32768"):
        run(folder, new, second, saved=saved)
    run(folder, new, second, saved=saved, max_parallelism=7)
    assert sorted(lines(first) + lines(second)) == expected(3)

    said = by_command("rescale", new, last, parallelism=5, max_parallelism=300)
    assert (said["parallelism"], said["max_parallelism"]) == (5, 300)
    add(folder, 3)
    assert run(folder, last, second, max_parallelism=300) == 5
    assert sorted(lines(first) + lines(second)) == expected(4)
