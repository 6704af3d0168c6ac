"""Checkpoints on Spark: what a location is, where sources start that start at the latest, and two runs on one."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from eventide.common import JobClient, JobStatus, Types, WatermarkStrategy
from eventide.common.checksum import json_without_checksum
from eventide.connectors._function_log import LogWriter
from eventide.datastream import SourceFunction, StreamExecutionEnvironment
from eventide.datastream.connectors import Source
from eventide.errors import ProgramError, StateError, UserFunctionError
from eventide.spark.checkpoint.owner import Ownership
from eventide.spark.checkpoint.record import append_start, fit_checkpoint, has_begun_more, last_committed, records_of
from eventide.spark.session.locations import delete_temporary, made_temporary, resolved
from eventide.testing import ScriptedSource
from support.steps import in_steps

pytestmark = pytest.mark.spark

PATIENCE_S = 60
PAIR = Types.TUPLE([Types.STRING(), Types.LONG()])


def test_a_location_without_a_scheme_is_what_spark_takes_it_for(spark: SparkSession, tmp_path: Path) -> None:
    assert resolved(spark, str(tmp_path)) == str(tmp_path)
    assert resolved(spark, f"{tmp_path}/a b%20c/") == f"{tmp_path}/a b%20c"
    assert resolved(spark, "checkpoint") == f"{os.getcwd()}/checkpoint"
    assert resolved(spark, "s3a://bucket/in") == "s3a://bucket/in"
    assert resolved(spark, "file:///in//a%20b/../c%20d/") == "/in/c%20d"
    for pattern in ("/jobs/[1]", "s3a://bucket/jobs-{1}", "jobs/*"):
        with pytest.raises(ProgramError, match="as a pattern of names, because of its"):
            resolved(spark, pattern)
    settings = {"fs.defaultFS": "viewfs://cluster/", "fs.viewfs.mounttable.cluster.link./in": tmp_path.as_uri()}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        assert resolved(spark, "/in/checkpoint") == "viewfs://cluster/in/checkpoint"
        temporary = made_temporary(spark)
        assert temporary.startswith("file:///")
        delete_temporary(spark, temporary)
        assert not os.path.exists(temporary.removeprefix("file://"))
        spark.conf.set("fs.defaultFS", "file:///")
        assert resolved(spark, "/in/checkpoint") == "/in/checkpoint"
    finally:
        for name in settings:
            spark.conf.unset(name)


def test_what_this_process_and_spark_write_beside_a_checkpoint_is_read_by_both(
    spark: SparkSession, tmp_path: Path
) -> None:
    here = str(tmp_path / "a b%20c")
    for_spark = f"file://{here}"
    assert records_of(spark, here) == records_of(spark, for_spark) == []
    for start, place in enumerate([here, for_spark, here, for_spark]):
        fields = {"program": {"start": "größer"}, "description": {}, "job": "job", "directories": [], "id": "1"}
        append_start(spark, place, {"after": start - 1, **fields})
    records = records_of(spark, here)
    assert records == records_of(spark, for_spark)
    assert [(record["start"], record["after"]) for record in records] == [(1, -1), (2, 0), (3, 1), (4, 2)]
    assert [record["program"]["start"] for record in records] == ["größer"] * 4
    for log, numbers in {"offsets": range(9, 12), "commits": range(9, 11)}.items():
        (tmp_path / "a b%20c" / log).mkdir()
        for number in numbers:
            (tmp_path / "a b%20c" / log / str(number)).write_text("v1")
            (tmp_path / "a b%20c" / log / f".{number}.crc").write_bytes(b"")
    for place in (here, for_spark):
        assert last_committed(spark, place) == 10
        assert has_begun_more(spark, place)


def test_a_checkpoint_has_the_graph_of_its_program_which_may_change(spark: SparkSession, tmp_path: Path) -> None:
    def start(bound_ms: int) -> dict[str, Any]:
        """Fit a program with a bound to the checkpoint, as its start does; return what is written down of it last."""
        strategy = WatermarkStrategy.for_bounded_out_of_orderness(bound_ms).with_timestamp_assigner(lambda e, _: e[1])
        stream = env.from_collection([("a", 1)]).assign_timestamps_and_watermarks(strategy)
        plan = env.get_plan(stream.key_by(lambda e: e[0]).count_window(2).reduce(max))
        fit_checkpoint(spark, str(tmp_path), plan, "job")
        return written()[-1]

    def written() -> list[dict[str, Any]]:
        texts = [row.value for row in spark.read.text(f"{tmp_path}/eventide").collect()]
        lines = [json_without_checksum(text, may_lack=True) for text in texts]
        return sorted(lines, key=lambda one: one["start"])

    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    first = start(5)
    assert [edge["strategy"]["bound_ms"] for edge in first["description"]["edges"] if edge["strategy"]] == [5]

    (tmp_path / "commits").mkdir()
    (tmp_path / "commits" / "0").write_text("v1\n{}")
    assert start(5) == first, "the same again is not written again"
    assert start(9)["description"] != first["description"]
    assert [one["program"] for one in written()] == [first["program"]] * 2


def topic(latest: Path) -> Source:
    """Ten numbers, read from where a file says that the latest is."""

    class Topic(Source):
        def splits(self):
            return ["p"]

        def initial_position(self, split):
            return int(latest.read_text())

        def latest_position(self, split):
            return 10

        def read(self, split, start, end):
            yield from range(start, end)

        def is_bounded(self):
            return False

        def get_produced_type(self):
            return Types.LONG()

    return Topic()


def test_a_first_micro_batch_that_failed_is_repeated_from_the_same_start(spark: SparkSession, tmp_path: Path) -> None:
    latest, well = tmp_path / "latest", tmp_path / "well"
    found: dict[int, list[int]] = {}

    def run() -> None:
        env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2).set_available_now()
        env.get_checkpoint_config().set_checkpoint_storage_dir(str(tmp_path / "checkpoint"))

        def checked(n: int) -> int:
            if not well.exists():
                raise OSError("not well")
            return n

        numbers = env.from_source(topic(latest), WatermarkStrategy.no_watermarks(), "topic").map(checked, Types.LONG())
        numbers.sink_to(lambda rows, batch: found.__setitem__(batch, sorted(row[0] for row in rows.collect())))
        env.execute("latest")

    latest.write_text("7")
    with pytest.raises(UserFunctionError, match="not well"):
        run()
    latest.write_text("10")
    well.touch()
    run()
    assert {batch: numbers for batch, numbers in found.items() if numbers} == {0: [7, 8, 9]}


def counting(go: Path) -> SourceFunction:
    """Emits three numbers, waits for a file, and emits more, until it is cancelled."""

    class Numbers(SourceFunction):
        def __init__(self):
            self.next, self.running = 0, True

        def run(self, ctx):
            while self.running:
                if self.next < 3 or go.exists():
                    with ctx.get_checkpoint_lock():
                        ctx.collect(self.next)
                        self.next += 1
                time.sleep(0.02)

        def cancel(self):
            self.running = False

        def snapshot_state(self):
            return self.next

        def restore_state(self, state):
            self.next = state

    return Numbers()


def started(place: Path, go: Path, found: list[int]) -> JobClient:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(place))
    rows = env.add_source(counting(go), "numbers", Types.LONG())
    rows.sink_to(lambda rows, _: found.extend(row[0] for row in rows.collect()))
    return env.execute_async("numbers")


def wait_for(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert condition()


def numbers_in(folder: Path) -> set[int]:
    return {int(path.name) for path in folder.iterdir() if path.name.isdigit()} if folder.exists() else set()


def test_two_runs_on_one_checkpoint_never_both_go_on(spark: SparkSession, tmp_path: Path) -> None:
    place, go, found = tmp_path / "checkpoint", tmp_path / "go", []
    first = started(place, go, found)
    with pytest.raises(StateError, match=r"a job with the checkpoint .*/checkpoint is running in this process; cancel"):
        started(place, go, [])
    wait_for(lambda: found == [0, 1, 2] and numbers_in(place / "offsets") == numbers_in(place / "commits"))
    assert first.get_job_status().result() is JobStatus.RUNNING

    # What a second run elsewhere does first, where there is a function: it takes over the log of what that emits.
    LogWriter(f"{place}/eventide-sources/1")
    go.touch()
    with pytest.raises(StateError, match="another run of this job has taken over its checkpoint"):
        first.get_job_execution_result().result(PATIENCE_S)
    assert found == [0, 1, 2]

    # And what it does where there is none: it writes down the next micro-batch before this one does.
    go.unlink()
    planned, log = place / "offsets", place / "eventide-sources" / "1"
    writers = set(log.glob("begun-*"))
    second = started(place, go, found)
    wait_for(lambda: set(log.glob("begun-*")).isdisjoint(writers))  # it knows where it stands, and plans
    last = max(numbers_in(planned))
    shutil.copy(planned / str(last), planned / str(last + 1))
    Ownership(str(place), "younger").claim()
    go.touch()
    has_stopped = r"another run of this job (goes on|has begun) with its checkpoint, and this one has stopped"
    with pytest.raises(StateError, match=has_stopped):
        second.get_job_execution_result().result(PATIENCE_S)
    assert found == [0, 1, 2]


@in_steps
def test_a_damaged_file_of_a_checkpoint_is_an_error_that_names_it(spark: SparkSession, tmp_path: Path) -> None:
    """Spark's own, which it reads with the sums that Hadoop leaves on a disk, and eventide's record without these."""

    def run(place: Path) -> list[Any]:
        env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1).set_available_now()
        env.get_checkpoint_config().set_checkpoint_storage_dir(str(place))
        source = ScriptedSource(["s"], [[("s", (f"{n % 3}", n))] for n in range(3)], PAIR, bounded=False)
        pairs = env.from_source(source, WatermarkStrategy.no_watermarks(), "pairs")
        return list(pairs.key_by(lambda e: e[0], Types.STRING()).sum(1).uid("sums").execute_and_collect())

    run(tmp_path / "whole")
    [record] = (tmp_path / "whole" / "eventide").glob("part-*")
    for name in ("offsets/2", "commits/2", "metadata", f"eventide/{record.name}"):
        place = tmp_path / name.replace("/", " ")
        shutil.copytree(tmp_path / "whole", place)
        file = place / name
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
        with pytest.raises(StateError, match=rf"{place}/{name} is not as it was written"):
            run(place)
        if name.startswith("eventide"):
            with pytest.raises(StateError, match=rf"a record in file://{place}/eventide is not as it was written"):
                records_of(spark, f"file://{place}")
