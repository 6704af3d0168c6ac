"""Over Spark Connect too: what Flink gave. A telling set of scenarios by default, all of them with --all-scenarios."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.scenarios.all_programs import any_program
from tests.scenarios.checks import Record, assert_as_flink
from tests.scenarios.on_spark import give_groups, recorded_watermarks
from tests.scenarios.programs import Scenario

from eventide.datastream import StreamExecutionEnvironment
from eventide.plan.job import JobSettings
from eventide.runtime.exchange.frames import Frame
from eventide.spark.connect import ROWS, ResultFiles, ResultSpool, ask, ask_for_rows, sink_key
from eventide.spark.query.compiler import frames_of
from eventide.spark.session.make import settings_for_start

pytestmark = [pytest.mark.spark, pytest.mark.connect]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test the groups of scenarios that run without Spark Connect."""
    give_groups(metafunc)


def test_spark_connect_gives_what_flink_gave(
    env: StreamExecutionEnvironment, spark: SparkSession, tmp_path: Path, several: list[Scenario]
) -> None:
    """Side by side in one query; the results are taken after its end, so it waits for no reader."""
    records = [Record() for _ in several]
    takes = []
    for scenario, record in zip(several, records, strict=True):
        results, late = any_program(env, scenario)
        results.print()
        takes.append(record.add_outputs)
        if late is not None:
            late.print()
            takes.append(record.add_late)
    plan = env.get_plan()
    location = str(tmp_path / "scenarios")
    leaving = ResultSpool(location, "nobody", plan.sinks)
    frames = frames_of(plan, JobSettings("scenarios"), spark)
    output = frames.writeStream.foreachBatch(leaving).trigger(availableNow=True)
    with settings_for_start(spark, plan.parallelism, only_with_data=True):
        query = output.option("checkpointLocation", location).start()
    query.awaitTermination()
    take_of = {sink_key(sink): (sink, take) for sink, take in zip(plan.sinks, takes, strict=True)}
    left = ResultFiles(location)
    ask(spark, partial(left.begin, "test"))
    for row in ask_for_rows(spark, partial(left.take, "test", -1, -1, 1_000_000), ROWS).to_pylist():
        sink, add = take_of[row["sink"]]
        elements = sink.codec.decode(Frame.from_bytes(sink.number, 0, row["frame"]).content)
        add(row["batch"], list(zip(elements.values, elements.timestamps, strict=True)))
    for index, watermark in recorded_watermarks(plan, query):
        records[index].add_watermark(watermark)
    for scenario, record in zip(several, records, strict=True):
        assert_as_flink(scenario, record, scenario.watermarks_at_batch_ends())
