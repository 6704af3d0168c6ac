"""Many splits on Spark, over a restart: what is kept of them is small, and nothing is lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from eventide.common import Types, WatermarkStrategy
from eventide.datastream import StreamExecutionEnvironment
from eventide.datastream.connectors import FormatSink
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.spark.checkpoint.state_reader import evidence, stages_of_state
from eventide.testing import ScriptedSource
from eventide.why.standing import standings
from support.steps import in_steps

pytestmark = pytest.mark.spark

SPLITS = [f"orders-{n:03}" for n in range(400)]
ALL = [(split, ("k", n % 7)) for n, split in enumerate(SPLITS)]
FEW = [(split, ("k", 12)) for split in SPLITS[-20:]]
LAST = [(split, ("k", 12)) for split in SPLITS[:-20]]
PAIR = Types.TUPLE([Types.STRING(), Types.LONG()])
BY_SECOND = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda pair, _: pair[1])


def run(place: Path, *script: list[tuple[str, tuple[str, int]]]) -> None:
    """Run a job up to the end of a script, which may go on in a later run."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2).set_available_now()
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(place / "checkpoint"))
    source = ScriptedSource(SPLITS, script, PAIR, bounded=False)
    pairs = env.from_source(source, BY_SECOND, "orders").key_by(lambda pair: pair[0], Types.STRING())
    windows = pairs.window(TumblingEventTimeWindows.of(10)).reduce(lambda one, other: (one[0], one[1] + other[1]))
    windows.sink_to(FormatSink("json", {"path": str(place / "out")}))
    env.execute("orders")


@pytest.mark.long
@in_steps
def test_many_splits_go_on_after_a_restart_and_take_little_place(spark: SparkSession, tmp_path: Path) -> None:
    run(tmp_path, ALL, FEW)
    log = (tmp_path / "checkpoint" / "offsets" / "1").read_text().splitlines()
    assert len(log[-1]) < 20 * len(SPLITS)
    (stage,) = stages_of_state(spark, str(tmp_path / "checkpoint"), 1)
    names = {row.name.partition("/")[2] for row in stage.select("name").collect()}
    assert {"gate/base", "event time/base"} <= names
    (standing,) = standings(evidence(spark, str(tmp_path / "checkpoint"), 0))
    assert {split.name: split.record and split.record.rows for split in standing.splits} == (
        dict.fromkeys(SPLITS, 1) | dict.fromkeys(SPLITS[-20:], 2)
    )
    assert not [*(tmp_path / "out").glob("part-*")]
    run(tmp_path, ALL, FEW, LAST)
    rows = [json.loads(line) for part in (tmp_path / "out").glob("part-*") for line in part.read_text().splitlines()]
    assert [[*row.values()] for row in rows] == [["k", sum(n for _, (_, n) in ALL)]]
