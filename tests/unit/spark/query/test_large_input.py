"""Large input, results and state of a subtask on Spark lie in a file, or are refused with advice."""

from types import SimpleNamespace

import pytest

from eventide.errors import ProgramError, StateError
from eventide.runtime.exchange.frames import BY_ELEMENT, Frame, Signal
from eventide.spark.query import subtask_run
from eventide.spark.query.frame_rows import FRAME_ROW, frame_batches
from eventide.spark.query.stage_processor import StageProcessor
from eventide.spark.query.subtask_run import HeldFrames, MapStateBackend


def frames(count, size):
    return [Frame(1, 0, Signal.ELEMENTS, BY_ELEMENT, 0, f"s{i}", bytes([i]) * size, i) for i in range(count)]


@pytest.mark.parametrize("most_bytes", [0, 500, 10_000])
def test_frames_come_back_from_memory_and_from_a_file(most_bytes, tmp_path, monkeypatch):
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path},/nowhere")
    held, given = HeldFrames(most_bytes), frames(9, 101)
    for frame in given:
        held.add(SimpleNamespace(target=1, subtask=0, frame=frame.to_bytes()))
    assert held.all() == given
    assert [*tmp_path.iterdir()] == []


def test_record_batches_of_large_frames_have_few_of_them(monkeypatch):
    monkeypatch.setattr("eventide.spark.query.frame_rows._BATCH_BYTES", 1_000)
    assert [batch.num_rows for batch in frame_batches(frames(5, 400), (0,))] == [2, 2, 1]
    assert [batch.num_rows for batch in frame_batches(frames(2, 4_000), (0,))] == [1, 1]
    assert [batch.num_rows for batch in frame_batches(frames(70, 1), (0,))] == [30, 30, 10]


def test_more_than_spark_takes_of_a_subtask_is_refused(monkeypatch):
    monkeypatch.setattr(subtask_run, "_MOST_BYTES", 250)
    rows = [FRAME_ROW(7, 0, bytes(100))] * 3
    processor = StageProcessor(b"", frozenset({1}), (0,), has_timers=False)
    passed = processor.handleInputRows((0,), iter(rows), None)
    assert [next(passed), next(passed)] == rows[:2]
    with pytest.raises(ProgramError, match=r"more than 2 GB .*env\.set_max_rows_per_batch.* --defer"):
        next(passed)


def test_a_value_of_state_that_no_store_takes_is_refused(monkeypatch):
    monkeypatch.setattr(subtask_run, "_MOST_BYTES", 250)
    stored = {}
    backend = MapStateBackend(SimpleNamespace(updateValue=stored.__setitem__))
    backend.put("small", bytes(250))
    with pytest.raises(StateError, match=r"the state 'large' has 251 bytes, .*one key, or one window, holds too many"):
        backend.put("large", bytes(251))
    assert [*stored] == [("small",)]
