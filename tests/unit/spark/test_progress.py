"""Spark's progress of a query and its micro-batches, and the part of it on the terminal."""

import io
import json
from types import SimpleNamespace

import pytest
from pyspark.sql.streaming.listener import StreamingQueryProgress
from rich.console import Console

from eventide.common.job import BatchProgress
from eventide.spark import progress
from eventide.spark.progress import ProgressView, about, have_ended
from eventide.spark.query.data_source import PENDING

ENDED, GOES_ON = {"position": 3, "ended": True}, {"position": 3, "ended": False}


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ([{"function": ENDED}], True),
        ([{"function": ENDED}, {"a": ENDED, "b": ENDED}], True),
        ([{"function": ENDED}, {"a": ENDED, "b": GOES_ON}], False),
        ([{"function": ENDED}, {"logOffset": 0}], False),
        ([{"function": ENDED}, {"orders": {"0": 7}}], False),
        ([{"function": ENDED}, 7], False),
        ([{"function": ENDED}, None], False),
        ([{"function": ENDED}, {}], False),
        ([], False),
    ],
)
def test_sources_have_ended_when_all_parts_of_all_of_them_have_and_all_are_ours(ends, expected):
    sources = [SimpleNamespace(endOffset=None if end is None else json.dumps(end)) for end in ends]
    assert have_ended(SimpleNamespace(sources=sources)) is expected


def test_an_offset_may_be_told_as_python_writes_it():
    sources = [SimpleNamespace(endOffset=str({"function": ENDED}))]
    assert have_ended(SimpleNamespace(sources=sources))


STATE = {
    "numRowsTotal": 0,
    "numRowsUpdated": 2,
    "allUpdatesTimeMs": 297,
    "numRowsRemoved": 1,
    "allRemovalsTimeMs": 0,
    "commitTimeMs": 35,
    "numRowsDroppedByWatermark": 0,
    "numShufflePartitions": 2,
    "numStateStoreInstances": 2,
}
# As Spark 4.1 told it of a job with two stages: the one that comes last is told first.
TOLD = {
    "id": "3a2480e1-7fd4-45f4-ac48-c7467933b70f",
    "runId": "9ae7b2e1-7f2b-4c96-afa2-1e8e5d60c103",
    "name": "x",
    "timestamp": "2026-11-23T02:02:48.768Z",
    "batchId": 4,
    "batchDuration": 1506,
    "numInputRows": 7,
    "durationMs": {
        "addBatch": 1052,
        "commitOffsets": 39,
        "getBatch": 1,
        "latestOffset": 1,
        "queryPlanning": 386,
        "triggerExecution": 1505,
        "walCommit": 18,
    },
    "stateOperators": [
        STATE
        | {
            "operatorName": "transformWithStateInPySparkExec",
            "memoryUsedBytes": 1_056_396,
            "customMetrics": {"rocksdbSstFileSize": 2_091},
        },
        STATE
        | {
            "operatorName": "transformWithStateInPySparkExec",
            "memoryUsedBytes": 2_108_632,
            "customMetrics": {"rocksdbSstFileSize": 4_176},
        },
        STATE | {"operatorName": "dedupe", "memoryUsedBytes": 9, "customMetrics": {}},
    ],
    "sources": [],
    "sink": {"description": "ForeachBatchSink", "numOutputRows": -1},
    "observedMetrics": {},
}


def test_the_time_of_a_micro_batch_is_told_by_what_it_was_spent_on_and_the_state_by_stage():
    assert about(StreamingQueryProgress.fromJson(TOLD), {}) == {
        "began_ms": 1_795_399_368_768,
        "took_ms": 1_505,
        "spent_ms": {"planning": 388, "running": 1_052, "committing": 57, "other": 8},
        "sink_ms": {},
        "pending": {},
        "pending_of": {},
        "state_bytes": (4_176, 2_091),
    }


def source_of(description, end, latest):
    counts = {"numInputRows": 7, "inputRowsPerSecond": 1.0, "processedRowsPerSecond": 1.0, "metrics": {}}
    return {"description": description, "startOffset": None, "endOffset": end, "latestOffset": latest, **counts}


def test_what_sources_have_left_is_told_by_our_sources_and_by_the_offsets_of_kafka():
    ours = {PENDING: {"source": "orders", "records": 12, "splits": {"a": 9, "b": 3}}}
    kafka = '{"topic": {"0": 5, "1": 7}}', '{"topic": {"0": 9, "1": 7, "2": 1}}'
    sources = [
        source_of("PythonMicroBatchStream", json.dumps({"a": GOES_ON}), json.dumps(ours)),
        source_of("PythonMicroBatchStream", json.dumps({"a": GOES_ON}), None),
        source_of("KafkaV2[Subscribe[topic]]", *kafka),
        source_of("FileStreamSource[file:/in]", '{"logOffset": 0}', '{"logOffset": 3}'),
        source_of("RateStreamV2", "7", "9"),
    ]
    told = about(StreamingQueryProgress.fromJson(TOLD | {"sources": sources}), {})
    assert told["pending"] == {"orders": 12, "KafkaV2[Subscribe[topic]]": 5}
    assert told["pending_of"] == {
        "orders": {"a": 9, "b": 3},
        "KafkaV2[Subscribe[topic]]": {"topic-0": 4, "topic-2": 1, "topic-1": 0},
    }


def test_the_time_of_sinks_is_told_apart_from_that_of_operators():
    told = about(StreamingQueryProgress.fromJson(TOLD), {"results": 300, "late": 40})
    assert told["spent_ms"] == {"planning": 388, "running": 712, "committing": 57, "other": 8, "sinks": 340}
    assert told["sink_ms"] == {"results": 300, "late": 40}


PROGRESS = [BatchProgress(4, {}, {"sums": 1_000}, {}, rows_in=50, began_ms=1_000, took_ms=1_500)]


def test_a_terminal_shows_a_few_lines_in_place(monkeypatch):
    terminal = Console(force_terminal=True, width=100, record=True, file=io.StringIO())
    monkeypatch.setattr(progress, "Console", lambda **_: terminal)
    view = ProgressView("trips [bold]", "http://127.0.0.1:8081")
    view.show(PROGRESS)
    view.close()
    shown = terminal.export_text()
    for line in (
        "trips [bold]",
        "http://127.0.0.1:8081",
        "the first has not ended yet",
        "4, 1.5 s",
        "33 a second; 0 late",
    ):
        assert line in shown
    assert "1970-01-01 00:00:01 (sums), 1.5 s behind the clock" in shown


def test_where_there_is_no_terminal_nothing_is_shown(capsys):
    view = ProgressView("trips")
    view.show(PROGRESS)
    view.close()
    assert capsys.readouterr() == ("", "")
