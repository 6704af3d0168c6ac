"""Results of micro-batches for a program elsewhere: taken when committed, deleted when taken."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.streaming.listener import StreamingQueryProgress

from eventide.errors import StateError
from eventide.spark.connect import results as module
from eventide.spark.connect.results import MOST_WAITING, Results, ResultSpool
from eventide.spark.progress import said_in


def rows(batch: int, *frames: bytes) -> pa.Table:
    return pa.table({"batch": [batch] * len(frames), "sink": ["0 print"] * len(frames), "frame": [*frames]}).cast(
        module._ROWS
    )


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return Results(str(tmp_path))


def taken(results: Results, done: int, after: int, committed: int) -> list[tuple[int, bytes]]:
    batches = [*results.take("run", done, after, committed)]
    return [(row["batch"], row["frame"]) for batch in batches for row in batch.to_pylist()]


def test_what_is_committed_is_taken_in_order_and_what_the_program_has_is_deleted(results: Results) -> None:
    results.begin("run")
    for batch in (10, 9, 11):
        results.write(batch, rows(batch, b"a", b"b"))
    assert (results.batches(), results.waiting()) == ([9, 10, 11], [9, 10, 11])
    assert taken(results, -1, -1, 9) == [(9, b"a"), (9, b"b")]
    assert (results.batches(), results.waiting()) == ([9, 10, 11], [10, 11])
    assert taken(results, -1, 9, 10) == [(10, b"a"), (10, b"b")]
    assert (results.batches(), results.waiting()) == ([9, 10, 11], [11])
    assert taken(results, 10, 10, 10) == []
    assert results.batches() == [11]
    results.begin("another")
    with pytest.raises(StateError, match="another run of this job goes on with its checkpoint"):
        taken(results, 11, -1, 11)
    assert results.waiting() == [11]


def test_a_micro_batch_that_is_run_again_replaces_what_it_left(results: Results) -> None:
    results.begin("run")
    results.write(1, rows(1, b"first"))
    results.write(1, rows(1, b"second"))
    assert taken(results, -1, -1, 1) == [(1, b"second")]


def test_one_run_of_the_program_takes(results: Results) -> None:
    assert not results.is_taken_by("one")
    results.begin("one")
    assert (results.is_taken_by("one"), results.is_taken_by("two")) == (True, False)
    results.end("two")
    assert results.is_taken_by("one")
    results.end("one")
    assert not results.is_taken_by("one")


def test_a_query_waits_for_its_program_until_another_run_begins_or_its_server_is_gone(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaving = ResultSpool(str(tmp_path), "one", [])
    results.begin("one")
    for batch in range(MOST_WAITING):
        results.write(batch, rows(batch, b"a"))
    looked: list[float] = []
    monkeypatch.setattr(module.time, "sleep", lambda seconds: (looked.append(seconds), results.begin("two")))
    leaving._wait_for_room(results)
    assert len(looked) == 1
    results.begin("one")
    parents = iter([7, 1])
    monkeypatch.setattr(module.os, "getppid", lambda: next(parents))
    with pytest.raises(StateError, match="server of Spark Connect that this process belongs to is gone"):
        leaving._wait_for_room(results)


@pytest.mark.parametrize("over_connect", [False, True])
def test_counters_come_as_a_row_or_as_its_values_with_a_schema(over_connect: bool) -> None:
    class Row:
        def asDict(self) -> dict[str, object]:  # noqa: N802 - Spark's
            if over_connect:
                return {"values": [["{}"]], "schema": {"fields": [{"name": "counters"}]}}
            return {"counters": ["{}"]}

    class Progress(StreamingQueryProgress):
        def __init__(self) -> None: ...

        @property
        def observedMetrics(self) -> dict[str, Row]:  # noqa: N802 - Spark's
            return {"eventide": Row()}

    assert said_in(Progress()) == [{}]
