"""What the file sink writes is read back once and whole, or the job is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from eventide.common import Encoder, Types, WatermarkStrategy
from eventide.datastream import DataStream, StreamExecutionEnvironment
from eventide.datastream.connectors import FileSink, FormatSink
from eventide.errors import ProgramError, UserFunctionError
from eventide.testing import ScriptedSource

pytestmark = pytest.mark.spark


def lines(path: Path) -> FileSink:
    return FileSink.for_row_format(str(path), Encoder.simple_string_encoder()).build()


def texts(spark: SparkSession, path: Path) -> list[str]:
    return sorted(row.value for row in spark.read.text(str(path)).collect())


def numbers(env: StreamExecutionEnvironment, *batches: list[int]) -> DataStream:
    script = [[("split", number) for number in batch] for batch in batches]
    source = ScriptedSource(["split"], script, Types.LONG(), bounded=False)
    env.set_available_now()
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "script")


def again(checkpoint: Path) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(checkpoint))
    return env


def test_a_restarted_job_adds_what_is_new_and_a_second_sink_needs_another_directory(
    spark: SparkSession, tmp_path: Path
) -> None:
    checkpoint, out = tmp_path / "checkpoint", tmp_path / "out"
    env = again(checkpoint)
    numbers(env, [1, 2]).sink_to(lines(out))
    env.execute()
    assert texts(spark, out) == ["1", "2"]

    env = again(checkpoint)
    numbers(env, [1, 2], [3]).sink_to(lines(out))
    env.execute()
    assert texts(spark, out) == ["1", "2", "3"]

    env = again(checkpoint)
    stream = numbers(env, [1, 2], [3], [4])
    stream.sink_to(lines(out))
    stream.print()
    with pytest.raises(ProgramError, match="another number of sinks"):
        env.execute()
    assert texts(spark, out) == ["1", "2", "3"]


def test_two_file_sinks_write_all_lines_and_not_over_those_of_another_job(spark: SparkSession, tmp_path: Path) -> None:
    all_of_them, even = tmp_path / "all", tmp_path / "even"

    def job(checkpoint: str) -> StreamExecutionEnvironment:
        env = again(tmp_path / checkpoint)
        stream = numbers(env, [1, 2], [3, 4])
        stream.sink_to(lines(all_of_them))
        stream.filter(lambda number: number % 2 == 0).sink_to(lines(even))
        return env

    job("first").execute()
    assert (texts(spark, all_of_them), texts(spark, even)) == (["1", "2", "3", "4"], ["2", "4"])
    with pytest.raises(ProgramError, match="holds the output of another job"):
        job("second").execute()


def test_a_directory_in_which_a_job_failed_can_be_used(spark: SparkSession, tmp_path: Path) -> None:
    for checkpoint, dividend in (("first", 0), ("second", 1)):
        env = again(tmp_path / checkpoint)
        numbers(env, [1]).map(lambda number, by=dividend: number // by, Types.LONG()).sink_to(lines(tmp_path / "out"))
        if dividend == 0:
            with pytest.raises(UserFunctionError):
                env.execute()
        else:
            env.execute()
    assert texts(spark, tmp_path / "out") == ["1"]


def test_two_sinks_with_one_directory_are_refused(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    stream = numbers(env, [1])
    stream.sink_to(lines(tmp_path / "out"))
    stream.sink_to(FormatSink("parquet", {"path": str(tmp_path / "out")}))
    with pytest.raises(ProgramError, match="two sinks write to the directory"):
        env.execute()
