"""The section of the runbook on backups, done word for word: a copy of a checkpoint is put back in its place.

Of a copy that was made while the job ran, some folders are older than others: it goes on right, or says what is wrong.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from eventide.cli.app import app
from eventide.common import Duration, Time, Types, WatermarkStrategy
from eventide.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from eventide.datastream.connectors import FormatSink
from eventide.datastream.connectors.file_system import FileSource
from eventide.datastream.functions import RuntimeContext
from eventide.datastream.state import ValueStateDescriptor
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.errors import StateError
from support.steps import in_steps

pytestmark = [pytest.mark.spark, pytest.mark.long]

KEYS, WINDOW_MS = "abc", 4


def contents(folder: Path) -> dict[str, bytes]:
    """All files below a folder."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


REFUSED = {
    "commits of newer": "has the commit of micro-batch 3, and not its plan, as a copy may that was made while",
    "offsets of older": "has the commit of micro-batch 3, and not its plan, as a copy may that was made while",
    "offsets of newer": r"an executor cannot find what the job has stored: there is no .*; .* from a savepoint",
    "state of older": r"an executor cannot find what the job has stored: there is no .*; .* from a savepoint",
}
"""The copies that a job does not go on with; it does with all others."""


class Numbering(KeyedProcessFunction):
    """Number the elements of each key."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.LONG()))

    def process_element(self, value: str, ctx: KeyedProcessFunction.Context) -> Iterator[str]:
        number = (self.seen.value() or 0) + 1
        self.seen.update(number)
        yield f"{value} {number}"


class Job:
    """Reads files of one line for each key, a few in a micro-batch; writes each line with its number, and windows."""

    def __init__(self, place: Path) -> None:
        self.place, self.checkpoint, self.output = place, place / "checkpoint", place / "out"
        self.files = 0

    def run(self, more_files: int) -> None:
        """Read some more files, and what was not read before."""
        (self.place / "in").mkdir(exist_ok=True)
        for file in range(self.files, self.files + more_files):
            text = "".join(f"{key},{file}\n" for key in KEYS)
            (self.place / "in" / f"{file:03}.txt").write_text(text)
        self.files += more_files
        env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
        env.set_available_now().set_max_rows_per_batch(2 * len(KEYS))
        env.get_checkpoint_config().set_checkpoint_storage_dir(str(self.checkpoint))
        source = FileSource.text(str(self.place / "in")).monitor_continuously(Duration.of_millis(1)).build()
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
            lambda line, _: int(line.split(",")[1])
        )
        keyed = env.from_source(source, strategy, "lines").key_by(lambda line: line[0], Types.STRING())
        numbered = keyed.process(Numbering(), Types.STRING()).uid("numbered")
        windows = keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(WINDOW_MS)))
        joined = windows.reduce(lambda one, other: f"{one}+{other}").uid("joined")
        numbered.union(joined).sink_to(FormatSink("text", {"path": str(self.output)}))
        env.execute("a job with a backup")

    def expected(self) -> Counter[str]:
        """All lines of a job that was never stopped."""
        numbered = [f"{key},{file} {file + 1}" for key in KEYS for file in range(self.files)]
        starts = range(0, self.files - WINDOW_MS, WINDOW_MS)
        windows = ["+".join(f"{key},{start + n}" for n in range(WINDOW_MS)) for key in KEYS for start in starts]
        return Counter([*numbered, *windows])

    def found(self) -> Counter[str]:
        return Counter(line for file in self.output.glob("part-*") for line in file.read_text().splitlines())

    def back_up(self, name: str) -> Path:
        """A copy of the whole checkpoint."""
        return shutil.copytree(self.checkpoint, self.place / name)

    def put_back(self, copy: Path) -> None:
        shutil.rmtree(self.checkpoint)
        shutil.copytree(copy, self.checkpoint)

    def delete_later_results(self) -> None:
        """Do what the runbook says: delete part files from the number on that the command tells."""
        said = CliRunner().invoke(app, ["checkpoint", str(self.checkpoint)])
        assert said.exit_code == 0, said.stderr
        told = re.search(r"those of the next micro-batch begin with (part-\d+-)", " ".join(said.stdout.split()))
        assert told is not None, said.stdout
        for file in self.output.glob("part-*"):
            if file.name >= told[1]:
                file.unlink()


@in_steps
def test_a_copy_of_a_stopped_job_is_put_back_and_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.run(4)
    copy = job.back_up("backup")
    job.run(6)
    assert job.found() == job.expected()

    job.put_back(copy)
    with pytest.raises(
        StateError, match=r"which is there; .* If an older copy of the checkpoint was put back, first delete"
    ):
        job.run(1)
    job.delete_later_results()
    job.run(0)
    assert job.found() == job.expected()


@in_steps
def test_of_a_copy_that_was_made_while_the_job_ran_nothing_comes_twice(spark: SparkSession, tmp_path: Path) -> None:
    """Each folder of the checkpoint in turn is older, or newer, than all others."""
    job = Job(tmp_path)
    job.run(4)
    older = job.back_up("older")
    job.run(4)
    newer = job.back_up("newer")
    job.run(4)
    folders = sorted(
        folder.name
        for folder in newer.iterdir()
        if folder.is_dir() and contents(folder) != contents(older / folder.name)
    )
    assert {*folders} >= {"commits", "offsets", "state"}
    whole_output = shutil.copytree(job.output, tmp_path / "whole output")
    for name in folders:
        for one, others in ((older, newer), (newer, older)):
            mixed = shutil.copytree(others, tmp_path / f"{name} of {one.name}")
            shutil.rmtree(mixed / name)
            shutil.copytree(one / name, mixed / name)
            job.put_back(mixed)
            shutil.rmtree(job.output)
            shutil.copytree(whole_output, job.output)
            refused = REFUSED.get(mixed.name)
            job.delete_later_results()
            if refused is None:
                job.run(0)
                assert job.found() == job.expected(), mixed.name
            else:
                with pytest.raises(StateError, match=refused):
                    job.run(0)
