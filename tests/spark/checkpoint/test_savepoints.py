"""Savepoints on Spark: a job with state of every kind goes on with other subtasks, and with its own checkpoint then."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from typer.testing import CliRunner

from eventide.aggregates import count
from eventide.cli.app import app
from eventide.common import Time, Types, WatermarkStrategy
from eventide.datastream import KeyedProcessFunction
from eventide.datastream.connectors import FormatSink
from eventide.datastream.functions import RuntimeContext
from eventide.datastream.state import ValueStateDescriptor
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.errors import StateError, UserFunctionError
from eventide.spark.checkpoint.savepoint import take_savepoint
from eventide.spark.query.data_source import CAN_LIMIT
from eventide.state_processor import KeyedStateBootstrapFunction, OperatorTransformation, SavepointWriter
from eventide.testing import local_environment
from support import saved_on_spark
from support.saved_on_spark import BATCHES, NARROW, expected, goes_on, job, lines, program, runs
from support.steps import in_steps

pytestmark = pytest.mark.spark

TEN = Time.milliseconds(10)


def _killed_before_its_last_commit(checkpoint: Path) -> int:
    """Take the last commit away, as if the job had been killed before, and say of which micro-batch it was."""
    last = max(int(file.name) for file in (checkpoint / "commits").glob("[0-9]*"))
    for name in (f"{last}", f".{last}.crc"):
        (checkpoint / "commits" / name).unlink()
    return last


@pytest.mark.long
@in_steps
def test_a_job_goes_on_with_other_subtasks_and_wider_types(spark: SparkSession, tmp_path: Path) -> None:
    one = tmp_path / "one"

    env = job(one, 2)
    program(env, 2, tmp_path / "out1", NARROW)
    running = env.execute_async()
    with pytest.raises(StateError, match="is running"):
        take_savepoint(spark, str(one), str(tmp_path / "saved"))
    running.get_job_execution_result().result()
    last = _killed_before_its_last_commit(one)
    if written := [*(tmp_path / "out1").glob(f"part-{last:08d}-*")]:
        said = CliRunner().invoke(app, ["savepoint", str(one), str(tmp_path / "saved")])
        assert f"has begun micro-batch {last} and not finished it" in said.output
        for file in written:  # it was killed before the sink had anything
            file.unlink()
    options = ["--max-parallelism", "96", "--json"]
    said = CliRunner().invoke(app, ["savepoint", str(one), str(tmp_path / "saved"), *options])
    assert said.exit_code == 0, said.output
    assert json.loads(said.output)["batch"] == last - 1

    for until in (3, 4):  # the second run finds a checkpoint, which counts, whatever the program says
        goes_on(tmp_path / "saved", tmp_path, until, max_parallelism=96)
    assert lines(tmp_path / "out1", tmp_path / "out2") == expected()


@pytest.fixture
def others(pytestconfig: pytest.Config) -> list[str]:
    """The Pythons that `./run oldest` names, each with a later Spark than the one before."""
    pythons: list[str] = pytestconfig.getoption("--another-python")
    if not pythons:
        pytest.skip("--another-python names none")
    return pythons


def _run_elsewhere(python: str, *arguments: object) -> None:
    """Run the program with another Python."""
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    environment.pop("PYSPARK_PYTHON", None)
    command = [python, saved_on_spark.__file__, *map(str, arguments)]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


def test_a_savepoint_that_one_spark_took_is_begun_with_on_another(
    spark: SparkSession, tmp_path: Path, others: list[str]
) -> None:
    runs(tmp_path, until=2)
    take_savepoint(spark, str(tmp_path / "one"), str(tmp_path / "saved"))
    _run_elsewhere(others[-1], tmp_path / "saved", tmp_path)
    assert lines(tmp_path / "out1", tmp_path / "out2") == expected(together=1 if CAN_LIMIT else 2)


def test_a_job_continues_on_each_later_spark_with_its_checkpoint(
    spark: SparkSession, tmp_path: Path, others: list[str]
) -> None:
    """One micro-batch on each, but for the last one, which has all that are left."""
    runs(tmp_path, until=2)
    for until, python in zip((*range(3, 2 + len(others)), len(BATCHES)), others, strict=True):
        _run_elsewhere(python, tmp_path, "--until", until)
    assert lines(tmp_path / "out1") == expected(together=1 if CAN_LIMIT else 2)


class Counting(DataSource):
    """Numbers from one to another, which are milliseconds too."""

    @classmethod
    def name(cls) -> str:
        return "counting"

    def schema(self) -> str:
        return "key string, n bigint"

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        options = self.options

        class Reader(DataSourceStreamReader):
            def initialOffset(self) -> dict[str, int]:  # noqa: N802
                return {"n": int(options["start"])}

            def latestOffset(self) -> dict[str, int]:  # noqa: N802
                return {"n": int(options["end"])}

            def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
                return [InputPartition((start["n"], end["n"]))]

            def read(self, partition: InputPartition) -> Iterator[tuple[str, int]]:
                yield from ((f"k{n % 2}", n) for n in range(*partition.value))

        return Reader()


@pytest.mark.long
def test_a_data_frame_begins_where_the_one_before_stood(spark: SparkSession, tmp_path: Path) -> None:
    spark.dataSource.register(Counting)
    saved, position = str(tmp_path / "saved"), None
    for run, parallelism in ((1, 1), (2, 2)):
        env = job(tmp_path / f"checkpoint{run}", parallelism)
        if run == 2:
            position = env.from_savepoint(saved).saved_position()
            assert position == {"n": 19}
        start = {"start": "0" if position is None else str(position["n"])}
        rows = spark.readStream.format("counting").options(**start, end=str([19, 35][run - 1])).load()
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("n")
        windows = env.from_data_frame(rows, strategy).key_by("key").window(TumblingEventTimeWindows.of(TEN))
        counts = windows.aggregate(count()).map(lambda row: f"{row['key']} {row['count']}", Types.STRING())
        counts.sink_to(FormatSink("text", {"path": str(tmp_path / f"out{run}")}))
        env.execute()
        if run == 1:
            take_savepoint(spark, str(tmp_path / "checkpoint1"), saved)
    assert lines(tmp_path / "out1") == {"k0 5": 1, "k1 5": 1}
    assert lines(tmp_path / "out2") == {"k0 5": 2, "k1 5": 2}


class Totals(KeyedStateBootstrapFunction):
    """Keeps the total of each user."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> None:
        self.total.update((self.total.value() or 0) + value["amount"])


class Shows(KeyedProcessFunction):
    """Gives the total of each user that is asked for."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value, self.total.value()


def test_state_is_made_of_a_data_frame_in_parallel(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.range(0, 1_000, 1, 4).selectExpr("cast(id % 100 as string) as user", "id as amount")
    totals = OperatorTransformation.bootstrap_with(rows).key_by("user").transform(Totals())
    location = tmp_path / "saved"
    SavepointWriter.new_savepoint(parallelism=3).with_operator("totals", totals).write(str(location))
    assert len([*location.glob("keyed/bootstrapped/totals/*.parquet")]) == 3
    asked = local_environment().from_savepoint(str(location)).from_collection([str(user) for user in range(100)])
    found = asked.key_by(lambda user: user).process(Shows()).uid("totals").execute_and_collect()
    assert dict(found) == {str(user): 10 * user + 4_500 for user in range(100)}


@pytest.mark.long
@pytest.mark.parametrize("key", ["user", lambda row: {}[row["user"]]], ids=["of the state", "of the key"])
def test_what_a_function_raises_on_rows_of_a_data_frame_is_its_error(
    spark: SparkSession, tmp_path: Path, key: Any
) -> None:
    """Dead letters of the function that makes state, and of the function that finds keys."""
    rows = spark.range(3).selectExpr("cast(id as string) as user", "cast(null as bigint) as amount")
    totals = OperatorTransformation.bootstrap_with(rows).key_by(key).transform(Totals())
    with pytest.raises(UserFunctionError, match=r"in operator 'totals', .*the user's function raised"):
        SavepointWriter.new_savepoint().with_operator("totals", totals).write(str(tmp_path / "saved"))
    assert not (tmp_path / "saved").exists()
