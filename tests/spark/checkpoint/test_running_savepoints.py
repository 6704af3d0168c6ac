"""Savepoints of a job that goes on, and of one that is stopped for it: nothing is lost in them, or is there twice."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from eventide.common import Duration, JobClient, JobStatus, Time, Types, WatermarkStrategy
from eventide.datastream import KeyedProcessFunction, StreamExecutionEnvironment, WindowFunction
from eventide.datastream.connectors import FormatSink
from eventide.datastream.connectors.file_system import FileSource
from eventide.datastream.functions import RuntimeContext
from eventide.datastream.state import ValueStateDescriptor
from eventide.datastream.window import TimeWindow, TumblingEventTimeWindows
from eventide.errors import ProgramError
from eventide.savepoint import Savepoint
from support.steps import in_steps

pytestmark = pytest.mark.spark

KEYS = "abcde"
FILES = 16
LINES = 5
WINDOW_MS = 10
LAST_MS = 1_000_000


class Numbering(KeyedProcessFunction):
    """Number the elements of each key."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.LONG()))

    def process_element(self, value: str, ctx: KeyedProcessFunction.Context) -> Iterator[str]:
        number = (self.seen.value() or 0) + 1
        self.seen.update(number)
        yield f"{ctx.get_current_key()} {number}"


class Counting(WindowFunction):
    """Count the elements of each key in each window."""

    def apply(self, key: str, window: TimeWindow, inputs: Iterable[str]) -> list[str]:
        return [f"{key} in {window.start // WINDOW_MS}: {len(list(inputs))}"]


class CountingLoudly(WindowFunction):
    """A new version of `Counting`."""

    def apply(self, key: str, window: TimeWindow, inputs: Iterable[str]) -> list[str]:
        return [line.upper() for line in Counting().apply(key, window, inputs)]


def write_input(folder: Path) -> None:
    """Some files of lines, of which the last closes all windows before."""
    folder.mkdir()
    for file in range(FILES):
        lines = [f"{KEYS[(file + n) % len(KEYS)]},{file * LINES + n}" for n in range(LINES)]
        (folder / f"{file:03}.txt").write_text("".join(f"{line}\n" for line in lines))
    (folder / "last.txt").write_text(f"a,{LAST_MS}\n")


def expected() -> Counter[str]:
    """All that comes out of the input, once."""
    elements = [(KEYS[(file + n) % len(KEYS)], file * LINES + n) for file in range(FILES) for n in range(LINES)]
    each = Counter(key for key, _ in elements) + Counter("a")
    windows = Counter((key, at // WINDOW_MS) for key, at in elements)
    numbered = [f"{key} {n + 1}" for key, count in each.items() for n in range(count)]
    return Counter([*numbered, *(f"{key} in {window}: {count}" for (key, window), count in windows.items())])


def program(
    folder: Path, checkpoint: Path, output: Path, counting: WindowFunction | None = None
) -> StreamExecutionEnvironment:
    """A job that reads the files, some lines in each micro-batch, and waits for more."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2).set_max_rows_per_batch(7)
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(checkpoint))
    source = FileSource.text(str(folder)).monitor_continuously(Duration.of_millis(1)).build()
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda line, _: int(line.split(",")[1])
    )
    keyed = env.from_source(source, strategy, "lines").key_by(lambda line: line.split(",")[0], Types.STRING())
    numbered = keyed.process(Numbering(), Types.STRING()).uid("numbered")
    windows = keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(WINDOW_MS)))
    counted = windows.apply(counting or Counting(), Types.STRING()).uid("counted")
    numbered.union(counted).sink_to(FormatSink("text", {"path": str(output)}))
    return env


def lines(output: Path, *, until: int | None = None) -> Counter[str]:
    """The lines that the micro-batches of a job have written, up to one of them."""
    files = [file for file in output.glob("part-*") if until is None or int(file.name.split("-")[1]) <= until]
    return Counter(line for file in files for line in file.read_text().splitlines())


def wait_until(holds: Callable[[], object], job: JobClient) -> None:
    deadline = time.monotonic() + 300
    while not holds():
        assert job.get_job_status().result() is JobStatus.RUNNING
        assert time.monotonic() < deadline
        time.sleep(0.05)


def goes_on_from(saved: str, tmp_path: Path, name: str) -> Counter[str]:
    """The lines of another job that begins with a savepoint."""
    env = program(tmp_path / "in", tmp_path / f"checkpoint-{name}", tmp_path / name).set_available_now()
    env.from_savepoint(saved).execute()
    return lines(tmp_path / name)


@pytest.mark.long
@in_steps
def test_a_savepoint_of_a_job_that_goes_on_is_of_one_micro_batch(spark: SparkSession, tmp_path: Path) -> None:
    write_input(tmp_path / "in")
    env = program(tmp_path / "in", tmp_path / "checkpoint", tmp_path / "out")
    job = env.set_default_savepoint_directory(str(tmp_path / "saved")).execute_async()
    wait_until(lambda: len(job.get_progress()) > 1, job)
    saved = job.trigger_savepoint().result()
    assert saved.startswith(f"{tmp_path}/saved/savepoint-")
    assert job.get_job_status().result() is JobStatus.RUNNING
    wait_until(lambda: lines(tmp_path / "out") == expected(), job)

    command = [sys.executable, "-m", "eventide", "savepoint", str(tmp_path / "checkpoint"), str(tmp_path / "other")]
    said = subprocess.run([*command, "--running", "--json"], capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    assert job.get_job_status().result() is JobStatus.RUNNING
    job.cancel().result()
    with pytest.raises(ProgramError, match="the job has ended; `eventide savepoint CHECKPOINT TARGET` writes"):
        job.trigger_savepoint()

    batch = Savepoint(saved).header.batch
    assert batch is not None
    assert lines(tmp_path / "out", until=batch) + goes_on_from(saved, tmp_path, "again") == expected()
    assert lines(tmp_path / "again")
    assert json.loads(said.stdout)["batch"] > batch
    assert goes_on_from(str(tmp_path / "other"), tmp_path, "last") == Counter()


@pytest.mark.long
@in_steps
def test_a_job_that_is_stopped_with_a_savepoint_goes_on_elsewhere(spark: SparkSession, tmp_path: Path) -> None:
    write_input(tmp_path / "in")
    job = program(tmp_path / "in", tmp_path / "checkpoint", tmp_path / "out").execute_async()
    with pytest.raises(ProgramError, match=r"no directory is known for the savepoint: name one, or call env\.set_def"):
        job.stop_with_savepoint(False)
    with pytest.raises(ProgramError, match="a job cannot be stopped with all its windows closed"):
        job.stop_with_savepoint(True, str(tmp_path))
    wait_until(lambda: len(job.get_progress()) > 1, job)
    saved = job.stop_with_savepoint(False, str(tmp_path)).result()
    assert job.get_job_execution_result().result().get_job_id() == job.get_job_id()
    assert job.get_job_status().result() is JobStatus.FINISHED
    begun, committed = (
        {name.name for name in (tmp_path / "checkpoint" / log).glob("[0-9]*")} for log in ("offsets", "commits")
    )
    assert begun == committed
    before = lines(tmp_path / "out")
    assert before + goes_on_from(saved, tmp_path, "again") == expected()


@pytest.mark.long
@in_steps
def test_a_new_version_is_tried_beside_the_old_one(spark: SparkSession, tmp_path: Path) -> None:
    """The new version gives the results of the old one after the savepoint, with its change, and then replaces it."""
    write_input(tmp_path / "in")
    old = program(tmp_path / "in", tmp_path / "checkpoint", tmp_path / "out").execute_async()
    wait_until(lambda: len(old.get_progress()) > 1, old)
    saved = old.trigger_savepoint(str(tmp_path)).result()

    env = program(tmp_path / "in", tmp_path / "trial", tmp_path / "tried", CountingLoudly()).set_available_now()
    env.from_savepoint(saved).execute()
    wait_until(lambda: lines(tmp_path / "out") == expected(), old)
    batch = Savepoint(saved).header.batch
    later = expected() - lines(tmp_path / "out", until=batch)
    assert lines(tmp_path / "tried") == Counter(line.upper() if " in " in line else line for line in later.elements())

    last = old.stop_with_savepoint(False, str(tmp_path)).result()
    (tmp_path / "in" / "more.txt").write_text(f"b,{LAST_MS}\nb,{2 * LAST_MS}\n")
    env = program(tmp_path / "in", tmp_path / "new", tmp_path / "from then on", CountingLoudly()).set_available_now()
    env.from_savepoint(last).execute()
    numbers = [KEYS[(file + n) % len(KEYS)] for file in range(FILES) for n in range(LINES)].count("b")
    windows = [f"{key} in {LAST_MS // WINDOW_MS}: 1".upper() for key in "ab"]
    assert lines(tmp_path / "from then on") == Counter([f"b {numbers + 1}", f"b {numbers + 2}", *windows])
