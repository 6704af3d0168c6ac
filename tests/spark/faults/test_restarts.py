"""A job on Spark that fails and starts again by itself: nothing is lost, and nothing comes twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource

from eventide.common import JobStatus, RestartStrategies, Types
from eventide.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from eventide.datastream.connectors import CollectSink, DataFrameSink
from eventide.datastream.state import ValueStateDescriptor
from eventide.errors import UserFunctionError
from support.steps import in_steps

pytestmark = pytest.mark.spark

NUMBERS = [n for n in range(40) if n % 2 == 0] + [n for n in range(40) if n % 2]

SLOW_ONCE = """
import pathlib, sys, time

wanted = pathlib.Path({wanted!r})
if "pyspark.sql.streaming.python_streaming_source_runner" in sys.orig_argv and wanted.exists():
    wanted.unlink()
    time.sleep(12)
"""
"""Runs when a process of Python starts."""


class Sums(KeyedProcessFunction):
    """Sums by key, which fail at one element as often as there is a file for it."""

    def __init__(self, failures: Path) -> None:
        self._failures = failures

    def open(self, runtime_context: Any) -> None:
        self._sum = runtime_context.get_state(ValueStateDescriptor("sum", Types.LONG()))

    def process_element(self, value: int, ctx: Any) -> Any:
        self._sum.update((self._sum.value() or 0) + value)
        if value == 25:
            for left in self._failures.glob("of function *"):
                left.unlink()
                raise ConnectionError("no answer")
        yield (value % 2, self._sum.value())


@pytest.mark.long
@in_steps
@pytest.mark.filterwarnings("ignore:.*temporary directory")
def test_a_job_starts_again_and_gives_each_element_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a temporary checkpoint, which is one as long as the job lives.

    Spark forgets no data source that was registered, so those of all runs are registered under one name.
    """
    registered: list[str] = []
    register = type(spark.dataSource).register

    def register_and_note(self: Any, source: type[DataSource]) -> None:
        registered.append(source.name())
        register(self, source)

    monkeypatch.setattr(type(spark.dataSource), "register", register_and_note)
    for name in ("of function 1", "of function 2", "of sink"):
        (tmp_path / name).touch()
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2).set_max_rows_per_batch(15)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 10))
    sums = env.from_collection(NUMBERS, Types.LONG()).key_by(lambda n: n % 2).process(Sums(tmp_path))
    sums.sink_to(CollectSink())
    written: dict[int, int] = {}

    def write(rows: DataFrame, batch: int) -> None:
        if batch == 1 and (tmp_path / "of sink").exists():
            (tmp_path / "of sink").unlink()
            raise OSError("disk full")
        written[batch] = rows.count()

    sums.map(lambda pair: pair[1], Types.LONG()).sink_to(DataFrameSink(write))
    job = env.execute_async("sums")
    found = sorted(job.collected())
    expected = [(n % 2, sum(m for m in NUMBERS if m <= n and m % 2 == n % 2)) for n in range(40)]
    assert found == sorted(expected)
    assert sum(written.values()) == 40
    assert job.get_job_status().result() is JobStatus.FINISHED
    reasons = [restart.reason for restart in job.get_restarts()]
    assert len(reasons) == 3
    assert (len(registered), len({*registered})) == (4, 1)
    assert sum("ConnectionError('no answer')" in reason for reason in reasons) == 2
    assert sum("disk full" in reason for reason in reasons) == 1
    process = next(counters for name, counters in job.get_metrics().items() if "PROCESS" in name.upper())
    assert process["numRecordsIn"] == 40


def test_a_job_gives_up_when_its_strategy_says_so(env: StreamExecutionEnvironment) -> None:
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(1, 10))
    stream = env.from_collection([1, 0]).map(lambda n: 1 // n)
    with pytest.raises(UserFunctionError, match="ZeroDivisionError") as caught:
        list(stream.execute_and_collect())
    assert "which was started again once" in caught.value.__notes__[0]


@pytest.mark.long
def test_a_process_that_starts_too_slowly_for_spark_is_tried_again_whatever_the_strategy(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    """Spark gives the process that plans for a source ten seconds, which is little on a machine with much to do."""
    slow_is_wanted = tmp_path / "slow"
    slow_is_wanted.touch()
    (tmp_path / "sitecustomize.py").write_text(SLOW_ONCE.format(wanted=str(slow_is_wanted)))
    env.add_python_file(str(tmp_path / "sitecustomize.py"))
    env.set_restart_strategy(RestartStrategies.no_restart())
    env.from_collection([1, 2], Types.LONG()).sink_to(CollectSink())
    job = env.execute_async("on a busy machine")
    assert sorted(job.collected()) == [1, 2]
    [restart] = job.get_restarts()
    assert "Python worker failed to connect back" in restart.reason
