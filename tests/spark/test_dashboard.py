"""A job on Spark, as its dashboard and its client tell of it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from eventide.common import JobStatus, Time, Types, WatermarkStrategy
from eventide.common.job import BatchProgress
from eventide.common.ms import MAX_MS
from eventide.dashboard.watched import WatchedJob
from eventide.datastream import StreamExecutionEnvironment
from eventide.datastream.connectors import FormatSink, NumberSequenceSource
from eventide.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows
from eventide.spark.checkpoint.recorded_job import RecordedJob
from eventide.testing import ScriptedSource
from support.steps import in_steps
from support.twin import BY_SECOND_FIELD
from support.watching import asked, json_of

pytestmark = pytest.mark.spark

T = 1_700_000_000_000
STEPS = [
    [("a", ("x", T)), ("b", ("y", T + 12_000))],
    [("a", ("x", T + 25_000)), ("b", ("x", T + 31_000))],
    [("a", ("late", T + 1_000)), ("a", ("x", T + 26_000))],
]


def test_the_time_of_each_sink_is_told_apart_from_that_of_operators(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    """Files are committed by the only sink, and written where there are two: beside a table that takes its time."""
    rows = Types.ROW_NAMED(["n"], [Types.LONG()])

    def took(*to: Any) -> list[BatchProgress]:
        stream = env.from_collection([(1,), (2,)], rows)
        for sink, name in to:
            stream.sink_to(sink).name(name)
        client = env.execute_async("sinks")
        client.get_job_execution_result().result()
        return [progress for progress in client.get_progress() if progress.sink_ms]

    [alone] = took((FormatSink("parquet", {"path": str(tmp_path / "alone")}), "files"))
    assert alone.sink_ms.keys() == {"files"}
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(tmp_path / "another"))
    files = FormatSink("parquet", {"path": str(tmp_path / "beside")})
    [beside] = took((files, "files"), (lambda table, batch: time.sleep(0.7), "slow"))
    assert beside.sink_ms.keys() == {"files", "slow"}
    assert 700 <= beside.sink_ms["slow"] <= beside.spent_ms["sinks"]
    for progress in (alone, beside):
        assert sum(progress.spent_ms.values()) == progress.took_ms
        assert progress.spent_ms["sinks"] == sum(progress.sink_ms.values())


@in_steps
def test_elements_that_wait_for_later_micro_batches_are_counted(env: StreamExecutionEnvironment) -> None:
    env.set_max_rows_per_batch(20)
    source = NumberSequenceSource(0, 49, splits=2)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    stream.sink_to(lambda rows, batch: None)
    client = env.execute_async("waiting")
    client.get_job_execution_result().result()
    assert [progress.pending for progress in client.get_progress()][:3] == [
        {"numbers": 30},
        {"numbers": 10},
        {"numbers": 0},
    ]
    assert client.get_progress()[0].pending_of == {"numbers": {"0": 15, "1": 15}}


@in_steps
def test_a_running_job_is_told_of_with_each_micro_batch(env: StreamExecutionEnvironment) -> None:
    env.set_dashboard(port=0)
    stream = env.from_source(ScriptedSource(["a", "b"], STEPS), BY_SECOND_FIELD, "script")
    tens = stream.key_by(lambda e: e[0]).window(TumblingEventTimeWindows.of(Time.seconds(10))).reduce(max).name("tens")
    sessions = tens.key_by(lambda e: e[0]).window(EventTimeSessionWindows.with_gap(Time.minutes(1))).reduce(max)
    sessions.name("sessions").print()
    client = env.execute_async("told of")
    client.get_job_execution_result().result()

    url = env.get_dashboard_url()
    (job,) = json_of(f"{url}/api/jobs")
    assert (job["name"], job["id"], job["status"]) == ("told of", str(client.get_job_id()), "finished")
    batches = json_of(f"{url}/api/jobs/1/batches")["batches"]
    assert [batch["rows_in"] for batch in batches[:3]] == [2, 2, 2]
    second = batches[1]
    assert second["operators"]["tens"]["watermark"] == T + 24_999
    assert second["operators"]["tens"]["held"] == {"numOpenWindows": 2}
    assert second["operators"]["sessions"]["held"] == {"numKeys": 2, "numTimers": 2}
    assert second["splits"]["at"] == [T + 24_999, T + 24_999, T + 24_999, T + 30_999]
    assert batches[2]["operators"]["tens"]["dropped"] == 1
    for batch in batches:
        assert sum(batch["spent_ms"].values()) == batch["took_ms"] > 0
        assert len(batch["state_bytes"]) == 2
        assert min(batch["state_bytes"]) > 0
    assert [batch["began_ms"] for batch in batches] == sorted({batch["began_ms"] for batch in batches})
    told = asked(f"{url}/metrics")[2]
    assert f'eventide_numLateRecordsDropped_total{{job="told of",job_id="{job["id"]}",operator="tens"}} 1.0' in told
    assert f'eventide_isRunning{{job="told of",job_id="{job["id"]}"}} 0.0' in told

    checkpoint = env.get_checkpoint_config().get_checkpoint_storage_dir()
    recorded = RecordedJob(SparkSession.getActiveSession(), checkpoint)
    (known,) = recorded.get_progress()
    assert recorded.get_progress() == [known], "no micro-batch has come since"
    last = client.get_progress()[-1]
    assert (known.batch, known.watermarks) == (last.batch, {"tens": MAX_MS, "sessions": MAX_MS})
    assert known.counters == {name: last.counters[name] for name in ("tens", "sessions")}
    assert known.counters["tens"] == {"numRecordsIn": 6, "numLateRecordsDropped": 1, "numRecordsOut": 4}
    assert known.held == last.held
    assert known.spent_ms.keys() == {"planning", "running"}
    assert known.took_ms == sum(known.spent_ms.values()) > 0
    assert len(known.state_bytes) == 2
    assert min(known.state_bytes) > 0
    assert str(recorded.get_job_id()) == job["id"]
    assert recorded.get_job_status().result() is JobStatus.RUNNING, "within a minute"
    later = RecordedJob(SparkSession.getActiveSession(), checkpoint, clock=lambda: last.ended_ms + 3_600_000)
    assert later.get_job_status().result() is JobStatus.SUSPENDED
    assert "1 of 6 (16.67%) elements came too late for 'tens'" in WatchedJob(1, "", recorded, {}).why("tens")
