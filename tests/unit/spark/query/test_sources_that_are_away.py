"""Planning of a source that does not answer: micro-batches continue without it, and have all of it later."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from eventide.datastream.connectors import Source
from eventide.runtime.sources.offsets import PlannedSource, unpacked
from eventide.spark.query import data_source


class Distant(Source):
    """One split of numbers, whose server answers only while it is not away."""

    def __init__(self, may_be_away: bool = True) -> None:
        self.count, self.waits, self._may_be_away = 3, 0, may_be_away
        self.answers = threading.Event()
        self.answers.set()

    def splits(self) -> list[str]:
        return ["only"]

    def latest_position(self, split: str) -> int:
        if not self.answers.wait(60):
            raise TimeoutError("no answer")
        if self.count < 0:
            raise ConnectionError("refused")
        return self.count

    def read(self, split: str, start: int, end: int) -> Iterator[int]:
        yield from range(start, end)

    def is_bounded(self) -> bool:
        return False

    def may_be_away(self) -> bool:
        return self._may_be_away

    def wait(self, seconds: float) -> bool:
        self.waits += 1
        time.sleep(seconds)
        return True


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> data_source.FrameStreamReader:
    monkeypatch.setattr(data_source, "_ANSWERS_WITHIN_S", 0.05)
    monkeypatch.setattr(data_source, "call_before_the_end", lambda stop: None)
    reader = data_source.FrameStreamReader(b"", b"", (0,), None, None, "", {})
    vars(reader)["_spec"] = PlannedSource("distant", Distant(), None)
    return reader


def position(offset: dict[str, Any]) -> int:
    return unpacked(offset)["only"]["position"]


def next_other_than(reader: data_source.FrameStreamReader, begin: dict[str, Any]) -> dict[str, Any]:
    deadline = time.monotonic() + 30
    while (end := reader.latestOffset(begin)) == begin:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return end


def test_micro_batches_continue_and_have_all_that_came_when_it_answers(
    reader: data_source.FrameStreamReader, caplog: pytest.LogCaptureFixture
) -> None:
    source = reader._source
    begin = reader.latestOffset({})
    assert position(begin) == 3
    source.answers.clear()
    source.count = 8
    assert [reader.latestOffset(begin) for _ in range(3)] == [begin] * 3
    assert source.waits == 0, "it is being planned, and is not asked for anything else meanwhile"
    source.answers.set()
    assert position(next_other_than(reader, begin)) == 8
    assert [record.getMessage().partition(";")[0] for record in caplog.records] == [
        "the source 'distant' does not answer",
        "the source 'distant' answers again",
    ]


def test_its_error_is_the_jobs(reader: data_source.FrameStreamReader) -> None:
    source = reader._source
    begin = reader.latestOffset({})
    source.answers.clear()
    assert reader.latestOffset(begin) == begin
    source.count = -1
    source.answers.set()
    with pytest.raises(Exception, match=r"'distant'.*refused"):
        next_other_than(reader, begin)


def test_a_run_that_takes_what_is_there_waits_for_it(reader: data_source.FrameStreamReader) -> None:
    source = reader._source
    reader.prepareForTriggerAvailableNow()
    begin = reader.latestOffset({})
    source.answers.clear()
    source.count = 8
    threading.Timer(0.3, source.answers.set).start()
    assert reader.latestOffset(begin) == begin, "what came after the start of the run is for the next one"


def test_another_source_is_waited_for(reader: data_source.FrameStreamReader) -> None:
    vars(reader)["_spec"] = PlannedSource("near", source := Distant(may_be_away=False), None)
    begin = reader.latestOffset({})
    source.answers.clear()
    source.count = 8
    threading.Timer(0.3, source.answers.set).start()
    assert position(reader.latestOffset(begin)) == 8
