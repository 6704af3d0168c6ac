"""The samples of Flink's pages on event time, in Python, with the names that they have there.

What a page leaves open (the input, the key, the window) is as small as it can be. All samples run without Spark. So do
they on Spark, in a task of its own (`./run long`), but for those that need a clock or micro-batches of the test's; the
suite runs a few in one job. Samples with Kafka are in `tests/kafka`, for they need a broker.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from eventide.common import Time
from eventide.datastream import StreamExecutionEnvironment
from eventide.datastream.connectors import CollectSink
from eventide.datastream.window import SlidingProcessingTimeWindows
from eventide.errors import ProgramError
from eventide.local.runner import LocalRunner
from eventide.testing import local_environment
from samples_of_flink import process, watermarks, windows
from samples_of_flink.table import Sample
from support.twin import plan_of

SAMPLES = [
    found for page in (watermarks, windows, process) for found in vars(page).values() if isinstance(found, Sample)
]


@pytest.mark.parametrize("chosen", SAMPLES, ids=lambda chosen: chosen.build.__name__)
def test_the_sample_gives_what_the_page_says(chosen: Sample, tmp_path: Path) -> None:
    env = local_environment().set_parallelism(1)
    plan = plan_of(chosen.built(env, tmp_path), parallelism=1)
    clock = itertools.count(0, chosen.step_ms).__next__
    found: list[Any] = []
    for batch in LocalRunner(plan, chosen.max_rows, clock=clock).batches():
        found += [value for elements in batch.elements.values() for value, _ in elements]
        if chosen.limit is not None and len(found) >= chosen.limit:
            break
    assert sorted(found, key=repr) == sorted(chosen.gives, key=repr)


def test_flink_and_eventide_refuse_one_sample_of_the_page_on_windows() -> None:
    """The offset is more than the slide: Flink's assigner throws an exception."""
    with pytest.raises(ProgramError, match="window offset: expected less than the window slide of 3600000 ms"):
        SlidingProcessingTimeWindows.of(Time.hours(12), Time.hours(1), Time.hours(-8))


@pytest.mark.spark
def test_samples_give_the_same_on_spark(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    """One job has windows after windows, rows and timers, and side outputs."""
    chosen = {
        "windows": windows.consecutive_windows,
        "rows": process.count_rows_with_timeout,
        "sides": process.side_outputs,
    }
    streams = [
        one.built(env.set_parallelism(1), tmp_path).map(lambda value, name=name: (name, value))
        for name, one in chosen.items()
    ]
    streams[0].union(*streams[1:]).add_sink(CollectSink())
    found = list(env.execute_async("samples").collected())
    assert sorted(found, key=repr) == sorted(
        ((name, value) for name, one in chosen.items() for value in one.gives), key=repr
    )


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.parametrize(
    "chosen",
    [one for one in SAMPLES if not one.step_ms and one.max_rows is None],
    ids=lambda chosen: chosen.build.__name__,
)
def test_the_sample_gives_the_same_on_spark(chosen: Sample, env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    chosen.built(env.set_parallelism(1), tmp_path).add_sink(CollectSink())
    job = env.execute_async(chosen.build.__name__)
    try:
        found = list(itertools.islice(job.collected(), chosen.limit))
    finally:
        if chosen.limit is not None:
            job.cancel().result()
    assert sorted(found, key=repr) == sorted(chosen.gives, key=repr)
