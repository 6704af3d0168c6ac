"""Elements that have ended processes are kept for the unfinished micro-batch, and for no other."""

import faulthandler
import json
import os
from pathlib import Path

import pytest

from eventide.errors import DataError, StateError
from eventide.runtime.invoke import CallMark
from eventide.runtime.sources.offsets import packed
from eventide.spark.checkpoint.unfinished import Searched, note_end, searched, set_aside
from eventide.spark.failures import original
from eventide.spark.query.worker import FaultLog

ENDED = "Python worker exited unexpectedly (crashed): "


class Checkpoint:
    """Spark's logs of a job of one source."""

    def __init__(self, place: Path) -> None:
        self.location = str(place)
        self._place = place

    def plan(self, number: int, *, spark_ms: int, source_ms: int) -> None:
        self._write("offsets", number, f'{{"batchTimestampMs":{spark_ms}}}\n{_line(source_ms)}')

    def commit(self, number: int) -> None:
        self._write("commits", number, "{}")

    def _write(self, log: str, number: int, content: str) -> None:
        (self._place / log).mkdir(exist_ok=True)
        (self._place / log / str(number)).write_text(f"v1\n{content}")


def _line(source_ms: int) -> str:
    return json.dumps(packed({"a": {"start": 0, "position": 1, "ended": False}}, source_ms))


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    there = Checkpoint(tmp_path)
    there.plan(0, spark_ms=10, source_ms=11)
    there.commit(0)
    there.plan(1, spark_ms=20, source_ms=21)
    return there


def mark(number: int) -> CallMark:
    return CallMark("parse", "while it handled an element", f"'{number}'", f"id-{number}")


def test_the_first_end_says_that_there_is_something_to_search_for(checkpoint: Checkpoint) -> None:
    assert searched(checkpoint.location) is None
    note_end(checkpoint.location, ENDED)
    assert searched(checkpoint.location) == Searched((20, 21), (), ())
    with pytest.raises(StateError, match=r"no element is known .* start the job again"):
        set_aside(checkpoint.location)


def test_what_is_set_aside_is_what_was_known_then(checkpoint: Checkpoint) -> None:
    note_end(checkpoint.location, ENDED)
    for number in (1, 2):
        note_end(checkpoint.location, f"{ENDED}{mark(number).line()}Fatal Python error: Segmentation fault")
    assert set_aside(checkpoint.location).elements == [mark(1), mark(2)]
    note_end(checkpoint.location, f"{ENDED}{mark(3).line()}")
    assert searched(checkpoint.location) == Searched((20, 21), ("id-1", "id-2"), ("id-1", "id-2"))


def test_an_element_is_found_when_two_processes_have_ended_at_it(checkpoint: Checkpoint) -> None:
    """A system without memory ends a process at any element."""
    for number in (1, 2):
        note_end(checkpoint.location, f"{ENDED}{mark(number).line()}")
    assert searched(checkpoint.location) == Searched((20, 21), (), ())
    note_end(checkpoint.location, f"{ENDED}{mark(1).line()}")
    assert searched(checkpoint.location) == Searched((20, 21), ("id-1",), ())


def test_it_counts_until_the_micro_batch_is_committed(checkpoint: Checkpoint) -> None:
    note_end(checkpoint.location, f"{ENDED}{mark(1).line()}")
    checkpoint.commit(1)
    assert searched(checkpoint.location) is None
    note_end(checkpoint.location, ENDED)  # of a process that ended in no micro-batch
    checkpoint.plan(2, spark_ms=30, source_ms=31)
    assert searched(checkpoint.location) is None
    note_end(checkpoint.location, ENDED)
    assert searched(checkpoint.location) == Searched((30, 31), (), ())


def test_an_error_with_a_mark_names_the_element_and_another_says_what_comes_next() -> None:
    named = original(RuntimeError(f"{ENDED}{mark(1).line()}\tat org.apache.spark"))
    assert type(named) is DataError
    assert str(named).startswith("in operator 'parse', while it handled an element (element '1'): the Python process")
    assert "when the job is started again, it finds out which element" in str(original(RuntimeError(ENDED)))


def test_the_log_has_the_last_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    was_enabled = faulthandler.is_enabled()
    FaultLog()("nowhere")
    monkeypatch.setenv("PYTHON_FAULTHANDLER_DIR", str(tmp_path))
    log = FaultLog()
    log("a long first text")
    log("second")
    try:
        faulthandler.dump_traceback(file=log._file, all_threads=False)  # it prints 100 threads at most
    finally:
        faulthandler.disable()
        log._file.close()
        if was_enabled:
            faulthandler.enable()
    said = (tmp_path / str(os.getpid())).read_text()
    assert said.startswith("second")
    assert "test_the_log_has_the_last_text" in said
