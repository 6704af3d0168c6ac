"""Results of micro-batches for a program elsewhere: taken when committed, deleted when taken, on both sides."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.streaming.listener import StreamingQueryProgress

from eventide.common import JobStatus, RestartStrategies
from eventide.datastream.connectors import CollectSink
from eventide.errors import LeftElementsWarning, StateError
from eventide.spark import connect
from eventide.spark import job as job_module
from eventide.spark.checkpoint.strategies import Changes
from eventide.spark.connect import MOST_WAITING, ResultConsumer, ResultFiles, ResultSpool, sink_key
from eventide.spark.failures import Restarts
from eventide.spark.job import QueryRun, Savepoints, StreamingJob
from eventide.spark.progress import ProgressView, said_in
from eventide.spark.sinks.program_sinks import Collected, ResultHandover


def rows(batch: int, *frames: bytes) -> pa.Table:
    return pa.table({"batch": [batch] * len(frames), "sink": ["0 print"] * len(frames), "frame": [*frames]}).cast(
        connect._ROWS
    )


@pytest.fixture
def results(tmp_path: Path) -> ResultFiles:
    return ResultFiles(str(tmp_path))


def taken(results: ResultFiles, done: int, after: int, committed: int) -> list[tuple[int, bytes]]:
    batches = [*results.take("run", done, after, committed)]
    return [(row["batch"], row["frame"]) for batch in batches for row in batch.to_pylist()]


def test_what_is_committed_is_taken_in_order_and_what_the_program_has_is_deleted(results: ResultFiles) -> None:
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


def test_a_micro_batch_that_is_run_again_replaces_what_it_left(results: ResultFiles) -> None:
    results.begin("run")
    results.write(1, rows(1, b"first"))
    results.write(1, rows(1, b"second"))
    assert taken(results, -1, -1, 1) == [(1, b"second")]


def test_one_run_of_the_program_takes(results: ResultFiles) -> None:
    assert not results.is_taken_by("one")
    results.begin("one")
    assert (results.is_taken_by("one"), results.is_taken_by("two")) == (True, False)
    results.end("two")
    assert results.is_taken_by("one")
    results.end("one")
    assert not results.is_taken_by("one")


def test_a_run_that_ends_while_another_one_begins_leaves_that_alone(
    results: ResultFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results.begin("one")
    write = results._folder.write

    def after_another_one(name: str, content: bytes) -> None:
        ResultFiles(str(tmp_path)).begin("two")
        write(name, content)

    monkeypatch.setattr(results._folder, "write", after_another_one)
    results.end("one")
    assert ResultFiles(str(tmp_path)).is_taken_by("two")


def test_a_query_waits_for_its_program_until_another_run_begins_or_its_server_is_gone(
    results: ResultFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaving = ResultSpool(str(tmp_path), "one", [])
    results.begin("one")
    for batch in range(MOST_WAITING):
        results.write(batch, rows(batch, b"a"))
    looked: list[float] = []
    monkeypatch.setattr(connect.time, "sleep", lambda seconds: (looked.append(seconds), results.begin("two")))
    leaving._wait_for_room()
    assert len(looked) == 1
    results.begin("one")
    parents = iter([7, 1])
    monkeypatch.setattr(connect.os, "getppid", lambda: next(parents))
    with pytest.raises(StateError, match="server of Spark Connect that this process belongs to is gone"):
        leaving._wait_for_room()


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


SINK = SimpleNamespace(uid="collect", number=0, name="collect", type_info="LONG")


class Sinks:
    """Stands in for the sinks of a program; a frame is a number."""

    def __init__(self, hand_over: ResultHandover, *specs: Any) -> None:
        self.specs = {spec.number: spec for spec in specs}
        self._hand_over = hand_over

    def receive(self, batch: int, frames: list[int]) -> None:
        self._hand_over(batch, [(CollectSink(), frame) for frame in frames])


class Server:
    """The folder of results, and whether it answers."""

    def __init__(self, location: str) -> None:
        self.results = ResultFiles(location)
        self.location = location
        self.fails = 0
        self.committed = -1

    def leaves(self, batch: int, *numbers: int) -> None:
        frames = [str(number).encode() for number in numbers]
        rows = {"batch": [batch] * len(frames), "sink": [sink_key(SINK)] * len(frames), "frame": frames}  # type: ignore[arg-type]
        self.results.write(batch, pa.table(rows).cast(connect._ROWS))

    def ask(self, spark: Any, question: Callable[[], Any]) -> Any:
        return question()

    def ask_for_rows(self, spark: Any, question: Callable[[], Iterator[pa.RecordBatch]], schema: str) -> pa.Table:
        if self.fails:
            self.fails -= 1
            raise ConnectionError("an executor is lost")
        return pa.Table.from_batches([*question()], connect._ROWS)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    found = Server(str(tmp_path))
    monkeypatch.setattr(connect, "ask", found.ask)
    monkeypatch.setattr(connect, "ask_for_rows", found.ask_for_rows)
    monkeypatch.setattr(connect, "Frame", SimpleNamespace(from_bytes=lambda number, _, frame: int(frame)))
    return found


def taking(server: Server, run: str, collected: Collected, hand_over: ResultHandover | None = None) -> ResultConsumer:
    sinks: Any = Sinks(hand_over or ResultHandover(collected.put), SINK)
    return ResultConsumer(None, server.location, run, sinks, collected, lambda: server.committed)  # type: ignore[arg-type]


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_what_the_program_has_not_come_to_is_there_if_it_is_killed(server: Server) -> None:
    for batch in range(6):
        server.leaves(batch, 2 * batch, 2 * batch + 1)
    collected = Collected()
    server.committed = 5
    taking(server, "run", collected).start()
    assert [next(collected) for _ in range(3)] == [0, 1, 2]
    until(lambda: collected.given == 12)
    assert (server.results.waiting(), server.results.batches()) == ([], [*range(6)])
    assert [next(collected) for _ in range(6)] == [3, 4, 5, 6, 7, 8]
    until(lambda: server.results.batches() == [4, 5])


def test_at_the_end_of_all_what_the_program_has_is_deleted(server: Server) -> None:
    server.leaves(0, 1, 2)
    server.leaves(1, 3)
    collected = Collected()
    one = taking(server, "run", collected)
    server.committed = 1
    one.start()
    assert one.finish() is None
    assert server.results.batches() == [0, 1]
    collected.close()
    assert [*collected] == [1, 2, 3]
    one.settle()
    assert server.results.batches() == []


def test_each_element_comes_once_where_a_job_starts_again_in_the_same_program(server: Server) -> None:
    collected, batches = Collected(), range(5)
    hand_over = ResultHandover(collected.put)
    for batch in batches:
        server.leaves(batch, batch)
    first = taking(server, "first", collected, hand_over)
    server.committed = 4
    first.start()
    assert [next(collected) for _ in batches] == [*batches]
    server.fails = 1  # nothing of it is deleted
    until(lambda: not server.fails)
    assert isinstance(first.finish(), ConnectionError)
    server.leaves(5, 5)
    second = taking(server, "second", collected, hand_over)
    server.committed = 5
    second.start()
    assert next(collected) == 5
    assert second.finish() is None
    collected.close()
    assert [*collected] == []


def test_a_run_that_ends_because_another_one_has_begun_says_so_and_lets_that_go_on(server: Server) -> None:
    older, younger = (taking(server, run, Collected()) for run in ("older", "younger"))
    older.start()
    with pytest.raises(StateError, match="another run of this job goes on with its checkpoint"):
        raise older.finish()  # type: ignore[misc]
    older.release()
    older._let_go()
    assert server.results.is_taken_by("younger")
    assert younger.finish() is None


def test_nothing_is_asked_of_a_server_that_is_gone(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.leaves(0, 1)
    collected = Collected()
    one = taking(server, "run", collected)
    server.committed = 0
    one.start()
    assert next(collected) == 1
    monkeypatch.setattr(connect, "ask", None)
    monkeypatch.setattr(connect, "ask_for_rows", None)
    assert one.finish(RuntimeError("[INVALID_HANDLE.SESSION_CHANGED] The handle is invalid.")) is None
    one.settle()
    assert server.results.batches() == [0]


def test_elements_for_which_a_program_has_no_sink_any_more_are_told_of(server: Server) -> None:
    server.leaves(0, 1)
    sinks: Any = Sinks(ResultHandover(print))
    with pytest.warns(LeftElementsWarning, match="left elements for sinks that it does not have any more"):
        ResultConsumer(None, server.location, "run", sinks, Collected(), lambda: 0).start()  # type: ignore[arg-type]
    assert server.results.is_taken_by("run")


def test_a_run_that_takes_while_another_one_begins_does_not_undo_that(server: Server) -> None:
    for batch in range(3):
        server.leaves(batch, batch)
    older = server.results.take("older", done=-1, taken=-1, committed=2)
    server.results.begin("older")
    next(older)
    ResultFiles(server.location).begin("younger")
    assert len([*older]) == 2
    assert server.results.is_taken_by("younger")
    assert server.results.waiting() == [0, 1, 2]
    with pytest.raises(StateError, match="another run of this job goes on with its checkpoint"):
        next(server.results.take("older", done=-1, taken=-1, committed=2))


def test_runs_that_say_who_takes_at_the_same_moment_do_not_break_each_other(server: Server) -> None:
    with ThreadPoolExecutor(2) as threads:
        said = [threads.submit(server.results.begin, str(number)) for number in range(100)]
    assert [one.exception() for one in said] == [None] * 100


class Query:
    """Stands in for a query of Spark's over Connect, whose micro-batches leave two numbers each; then it ends."""

    id, name, recentProgress = "1", "orders", ()  # noqa: N815 - Spark's names

    def __init__(self, server: Server, batches: int) -> None:
        self.isActive = True
        self._server, self._batches, self._ended = server, batches, threading.Event()
        self.taking: ResultConsumer | None = None  # is told of what is committed, as by the progress of the query

    def run(self) -> None:
        for batch in range(self._batches):
            self._server.leaves(batch, 2 * batch, 2 * batch + 1)
            self._server.committed = batch
            if self.taking is not None:
                self.taking.committed(batch)
            time.sleep(0.02)
        self.isActive = False
        time.sleep(0.3)  # it is looked at in between
        self._ended.set()

    @property
    def lastProgress(self) -> Any:  # noqa: N802 - Spark's name
        raise ConnectionError("no answer")

    def awaitTermination(self) -> None:  # noqa: N802 - Spark's name
        self._ended.wait()

    def exception(self) -> None:
        return None

    def stop(self) -> None:
        self._ended.set()


def job_of(server: Server, query: Query, collected: Collected) -> StreamingJob:
    """A job with one run, which takes what the query leaves."""
    one = taking(server, "run", collected)
    one.start()
    run = QueryRun(query, lambda: None, taking=one)  # type: ignore[arg-type]
    restarts = Restarts("orders", RestartStrategies.no_restart())
    view = ProgressView("orders")
    savepoints = Savepoints("1", lambda _: None, None)
    changes = Changes(lambda *_: "", lambda: [])
    return StreamingJob(
        run, lambda: run, restarts, collected, view, lambda _: None, lambda *_: None, savepoints, changes
    )


@pytest.mark.parametrize("tells", [True, False])
def test_a_query_that_ends_while_the_program_takes_slowly_has_all_of_its_elements_taken(
    server: Server, tells: bool
) -> None:
    """Also where its progress tells nothing of its micro-batches: it is known that they are committed."""
    query = Query(server, batches=5)
    job = job_of(server, query, Collected(most_waiting=2))
    query.taking = job._run.taking if tells else None
    taken = job.collected()
    threading.Thread(target=query.run).start()
    found = []
    for element in taken:
        found.append(element)
        time.sleep(0.05)
    assert found == [*range(10)]
    assert server.results.batches() == []


def test_a_query_that_somebody_stops_while_the_program_takes_nothing_lets_it_go(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_module, "_ENDS_WITHIN_S", 0.2)
    query = Query(server, batches=5)
    for batch in range(5):
        server.leaves(batch, 2 * batch, 2 * batch + 1)
    server.committed = 4
    job = job_of(server, query, Collected(most_waiting=2))
    taken = job.collected()
    query.isActive = False  # and it does not end, because it waits for room
    until(lambda: not server.results.is_taken_by("run"))
    query.stop()
    assert len([*taken]) < 10
    assert job.get_job_status().result() is JobStatus.FINISHED
    assert server.results.batches() != []


def test_a_job_that_is_cancelled_while_it_takes_is_cancelled(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever becomes of the question that is asked just then."""
    query = Query(server, batches=0)
    job = job_of(server, query, Collected())
    taken = job.collected()
    asked = threading.Event()

    def fails_later(*_: Any) -> Any:
        asked.set()
        until(job._cancelled.is_set)
        raise ConnectionError("no answer")

    monkeypatch.setattr(connect, "ask_for_rows", fails_later)
    job._run.taking.committed(0)  # type: ignore[union-attr]
    asked.wait(30)
    job.cancel().result()
    assert [*taken] == []
    assert job.get_job_status().result() is JobStatus.CANCELED
