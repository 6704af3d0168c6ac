"""Why a window does not fire, asked of a running job on Spark, and of its checkpoint when it is gone."""

import json
import time

import pytest
from typer.testing import CliRunner

from eventide.aggregates import count
from eventide.cli.app import app
from eventide.common import Duration, Row, Time, Types, WatermarkStrategy
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.testing import ScriptedSource
from support.steps import in_steps

pytestmark = pytest.mark.spark

NOON = 1_790_000_040_000
ORDER = Types.ROW_NAMED(["shop", "at"], [Types.STRING(), Types.LONG()])
ON_TIME = [[(s, NOON + 60_000 * m + 1_000 * i) for i in range(0, 60, 20) for s in ("p0", "p1")] for m in range(3)]


def started(env, place, splits=("p0", "p1", "p2")):
    """Windows on columns, and windows of functions after them, over a topic of which one partition may be silent."""
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(place))
    script = [[(split, Row(shop="shop", at=at)) for split, at in batch] for batch in ON_TIME]
    script[2].append(("p0", Row(shop="shop", at=NOON + 1_000)))
    source = ScriptedSource([*splits], script, type_info=ORDER, bounded=False)
    bounded = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5)).with_timestamp_assigner("at")
    orders = env.from_source(source, bounded, "orders")
    minutes = orders.key_by("shop").window(TumblingEventTimeWindows.of(Time.minutes(1))).aggregate(count().alias("n"))
    hours = minutes.name("minutes").key_by(lambda row: row.shop).window(TumblingEventTimeWindows.of(Time.hours(1)))
    hours.reduce(lambda a, b: a).name("hours").print()
    return env.execute_async("why")


def waited_for(client, batches):
    deadline = time.monotonic() + 60
    while len(client.get_progress()) < batches and time.monotonic() < deadline:
        time.sleep(0.1)
    assert len(client.get_progress()) >= batches


@in_steps
def test_a_running_job_and_its_checkpoint_say_the_same(env, tmp_path):
    client = started(env, tmp_path / "checkpoint")
    try:
        waited_for(client, 3)
        running = client.why()
        asked = client.why(operator="minutes", at="2026-09-21T14:14:30", key="shop")
    finally:
        client.cancel().result()
    assert running.answer.startswith("'minutes' waits for split 'p2' of 'orders', which has never had an element")
    assert [window.phase.name for _, window in asked.windows] == ["OPEN"]
    assert [one.elements for one in asked.keys[0].windows] == [7, 6, 6]
    result = CliRunner().invoke(app, ["why", str(tmp_path / "checkpoint"), "--json"])
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert document["answer"] == running.answer
    minutes, hours = document["operators"]
    assert minutes["held_by"]["splits"] == hours["held_by"]["splits"] == ["p2"]
    assert hours["held_by"]["through"] == ["minutes"]
    assert {split["name"]: split["elements"] for split in minutes["splits"]} == {"p0": 10, "p1": 9, "p2": 0}


@in_steps
def test_late_elements_are_in_the_checkpoint(env, tmp_path):
    client = started(env, tmp_path / "checkpoint", splits=("p0", "p1"))
    waited_for(client, 3)
    answer = client.why()
    client.cancel().result()
    assert answer.answer.startswith("1 of 19 (5.26%) elements came too late for 'minutes', up to")
    [minutes, _] = answer.standings
    assert minutes.late.behind.total == 1
    assert "'p0' has had elements 2 min 39 s out of order" in answer.answer
