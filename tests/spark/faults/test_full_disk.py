"""The disk of a checkpoint is full when Spark writes a file of some kind: an error says so, and the job goes on later.

The disk is a small one in memory (tmpfs). Functions of the job fill it at the moments that a test chooses.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from eventide.common import Duration, Types, WatermarkStrategy
from eventide.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from eventide.datastream.connectors import DataFrameSink, FileSource
from eventide.datastream.connectors.file_system import StreamFormat
from eventide.datastream.state import ValueStateDescriptor
from eventide.errors import StorageError
from support.small_disk import fill, make_room, small_disk
from support.steps import in_steps

pytestmark = [pytest.mark.spark, pytest.mark.long]

AT_STATE, AT_COMMIT, BEFORE_PLAN = 1, 2, 3
"""The micro-batches in which functions of the job fill the disk: before state is stored, before Spark's commit is
written, and so that there is room for the commit, and not for the plan of the next micro-batch."""
PAGES_OF_A_COMMIT = 2  # with its checksum
FILES, NUMBERS = 5, 6


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk") as mounted:
        yield mounted


class Sums(KeyedProcessFunction):
    """Sums by key; where there is a file that asks for it, a number fills the disk before its sum is stored."""

    def __init__(self, disk: Path, wanted: Path) -> None:
        self._disk, self._wanted = disk, wanted

    def open(self, runtime_context: Any) -> None:
        self._sum = runtime_context.get_state(ValueStateDescriptor("sum", Types.LONG()))

    def process_element(self, value: int, ctx: Any) -> Iterator[tuple[int, int]]:
        self._sum.update((self._sum.value() or 0) + value)
        if value == AT_STATE * NUMBERS and self._wanted.exists():
            self._wanted.unlink()
            fill(self._disk)
        yield value, self._sum.value()


class Job:
    """Files of numbers, one in a micro-batch; ``found`` has the rows of each micro-batch."""

    def __init__(self, place: Path, checkpoint: Path, files: Path) -> None:
        self.checkpoint, self._files = checkpoint, files
        self.fills = {batch: place / f"fill the disk in {batch}" for batch in (AT_STATE, AT_COMMIT, BEFORE_PLAN)}
        self.found: dict[int, list[tuple[int, int]]] = {}

    def run(self) -> None:
        """Read what is there, from where the checkpoint stands."""
        env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2).set_available_now()
        env.get_checkpoint_config().set_checkpoint_storage_dir(str(self.checkpoint))
        lines = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(self._files))
        source = lines.set_max_files_per_batch(1).monitor_continuously(Duration.of_millis(1)).build()
        numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "lines").map(int, Types.LONG())
        sums = numbers.key_by(lambda n: n % 3, Types.LONG()).process(
            Sums(self.checkpoint.parent, self.fills[AT_STATE]), Types.TUPLE([Types.LONG(), Types.LONG()])
        )
        sums.sink_to(DataFrameSink(self._write))
        env.execute("on a small disk")

    def _write(self, rows: DataFrame, batch: int) -> None:
        self.found[batch] = sorted(tuple(row) for row in rows.collect())
        if batch in (AT_COMMIT, BEFORE_PLAN) and self.fills[batch].exists():
            self.fills[batch].unlink()
            fill(self.checkpoint.parent, pages=PAGES_OF_A_COMMIT if batch == BEFORE_PLAN else 0)

    def numbers(self, log: str) -> list[int]:
        """The micro-batches in a log of Spark's."""
        return sorted(int(file.name) for file in (self.checkpoint / log).glob("[0-9]*"))


def write_file(folder: Path, number: int) -> None:
    folder.mkdir(exist_ok=True)
    text = "".join(f"{n}\n" for n in range(number * NUMBERS, (number + 1) * NUMBERS))
    (folder / "hidden").write_text(text)
    (folder / "hidden").rename(folder / f"{number}.txt")


@in_steps
def test_a_job_whose_disk_is_full_says_so_and_goes_on_when_there_is_room(
    spark: SparkSession, disk: Path, tmp_path: Path, injected: Counter[str]
) -> None:
    files = tmp_path / "files"
    for number in range(FILES):
        write_file(files, number)
    job = Job(tmp_path, disk / "checkpoint", files)
    of_spark = r"a disk is full: Spark cannot write .* to the checkpoint.*, .*When there is room, start the job again"
    of_query = of_spark.replace("checkpoint", f"checkpoint {re.escape(str(job.checkpoint))}")

    def stops(said: str) -> None:
        with pytest.raises(StorageError, match=said):
            job.run()
        make_room(disk)
        injected["full disks"] += 1

    def logged() -> tuple[list[int], list[int]]:
        return job.numbers("offsets"), job.numbers("commits")

    fill(disk)
    stops(rf"{re.escape(str(job.checkpoint))}/eventide/part-.* cannot be written: .*No space left on device")
    fill(disk, pages=2)  # for the record of the program and the owner, and not for Spark's metadata
    stops(of_spark)
    assert not (job.checkpoint / "metadata").exists()

    job.fills[AT_STATE].touch()
    stops(of_query)
    assert logged() == ([0, 1], [0])
    assert sorted(job.found) == [0], "no state of the micro-batch was stored"

    job.fills[AT_COMMIT].touch()
    stops(of_query)
    assert logged() == ([0, 1, 2], [0, 1])
    assert sorted(job.found) == [0, 1, 2], "the sink has had it, and has it again"

    job.fills[BEFORE_PLAN].touch()
    stops(of_spark)
    assert logged() == ([0, 1, 2, 3], [0, 1, 2, 3])
    job.run()

    calm = Job(tmp_path, tmp_path / "calm" / "checkpoint", files)
    calm.run()
    assert sorted(calm.found) == list(range(FILES))
    assert job.found == calm.found
