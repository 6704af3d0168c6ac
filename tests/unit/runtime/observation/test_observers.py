"""Observations of readers arrive, in one frame for each edge, in the state of the first subtask that hears of them."""

from types import SimpleNamespace

import numpy as np

from eventide.runtime.eventtime.valve import ValveEdge, WatermarkValve
from eventide.runtime.exchange.frames import END_OF_BATCH, Frame, Inbox, Signal, WatermarkReport
from eventide.runtime.exchange.partitioners import ReportsOnlyPartitioner
from eventide.runtime.metrics import DEAD_LETTERS, LATE_DROPPED, RECORDS_OUT, Metrics
from eventide.runtime.observation.event_time_log import EVENT_TIME, LATE, NUMBERS, EventTimeLog, Lateness, remembered
from eventide.runtime.observation.observers import OperatorObserver, ReaderObserver
from eventide.runtime.state.backend import MemoryBackend

EDGES = (ValveEdge(0, "clicks", ("a",), is_source=True),)


def edge(target=1, number=0, assigner=5, **how):
    fixed = {"has_watermarks": True, "takes_elements": True, "partitioner": None}
    return SimpleNamespace(target=target, number=number, assigner=assigner, **(fixed | how))


def observed(*edges, counters=None):
    reader = ReaderObserver(edges)
    reader.of_split("a").see(5, np.array([10, 30, 20]))
    reader.of_split("b")
    return list(reader.frames(counters or {}))


def test_each_edge_hears_of_the_timestamps_of_its_assigner():
    frames = observed(edge(1), edge(2, assigner=6), edge(3, assigner=None), edge(4))
    assert [(frame.target, frame.subtask, frame.signal) for frame in frames] == [
        (1, 0, Signal.OBSERVED),
        (4, 0, Signal.OBSERVED),
    ]
    ((split, snapshot),) = frames[0].content["timestamps"]
    assert (split, snapshot[:4]) == ("a", [3, 30, 10, 10])


def test_sinks_and_targets_of_reports_alone_hear_nothing():
    assert observed(edge(has_watermarks=False), edge(takes_elements=False), counters={"a": {DEAD_LETTERS: 1}}) == []


def test_where_no_elements_leave_only_counts_do():
    (frame,) = observed(edge(partitioner=ReportsOnlyPartitioner()), counters={"a": {DEAD_LETTERS: 1}})
    assert frame.content == {"counts": {"a": {DEAD_LETTERS: 1}}}


def test_one_edge_alone_hears_of_dead_letters_and_none_of_other_counts():
    counters = {"parse": {DEAD_LETTERS: 2, RECORDS_OUT: 7}}
    first, second = observed(edge(1), edge(2), counters=counters)
    assert first.content["counts"] == {"parse": {DEAD_LETTERS: 2}}
    assert "counts" not in second.content


def test_counts_of_a_task_before_go_on_with_those_of_the_task():
    before = Frame(1, 0, Signal.OBSERVED, END_OF_BATCH, 0, "", {"counts": {"read": {DEAD_LETTERS: 1}}})
    reader = ReaderObserver([edge(assigner=None)])
    reader.hear(before)
    reader.hear(Frame(1, 0, Signal.OBSERVED, END_OF_BATCH, 0, "", {"timestamps": []}))
    (frame,) = reader.frames({"parse": {DEAD_LETTERS: 2}})
    assert frame.content == {"counts": {"parse": {DEAD_LETTERS: 2}, "read": {DEAD_LETTERS: 1}}}


class Subtask:
    """The observer of a subtask over some micro-batches, on one state."""

    def __init__(self, index=0, *, in_batch=False, name="sums"):
        self.backend = MemoryBackend()
        self.index = index
        self.in_batch = in_batch
        self.name = name

    def micro_batch(self, *frames, late=(), clock_ms=50):
        metrics, valve = Metrics(clock_ms), WatermarkValve(EDGES)
        if late:
            metrics.count_late(self.name, LATE_DROPPED, list(late), 100)
        observer = OperatorObserver(
            self.name, EDGES, self.index, self.backend, metrics, clock_ms, in_batch=self.in_batch
        )
        observer.begin_batch(valve.watermark, 15)
        inbox = Inbox(frames, {})
        valve.end_batch(inbox.reports(END_OF_BATCH), clock_ms, [])
        observer.end_batch(inbox, valve, {"numKeys": 3})

    def kept(self, name):
        return remembered(self.backend.get(name))


def report(watermark=9):
    said = [WatermarkReport("a", END_OF_BATCH, watermark, spoke=True)]
    return Frame(1, 0, Signal.REPORTS, END_OF_BATCH, 0, "", said)


def test_the_first_subtask_keeps_the_log_of_splits_and_of_the_watermark():
    subtask = Subtask()
    subtask.micro_batch(report(), *observed(edge(1)))
    log = EventTimeLog.of(subtask.kept(EVENT_TIME))
    record = log.splits["clicks", "a"]
    assert (record.rows, record.newest, record.heard, record.late) == (3, 30, 50, 1)
    assert (log.holder[0].channel, log.moves[-1][:2]) == ("a", (50, 9))


def test_other_subtasks_keep_counts_alone():
    subtask = Subtask(1)
    subtask.micro_batch(report(), *observed(edge(1)))
    assert subtask.kept(EVENT_TIME) is None
    assert subtask.kept(NUMBERS)["held"] == {"numKeys": 3}


def test_counts_add_up_over_micro_batches_also_under_another_name():
    subtask = Subtask()
    subtask.micro_batch(report(), late=[1, 2])
    subtask.name = "totals"
    counts = Frame(1, 0, Signal.OBSERVED, END_OF_BATCH, 0, "", {"counts": {"read": {DEAD_LETTERS: 4}}})
    subtask.micro_batch(report(), counts, late=[3])
    assert subtask.kept(NUMBERS)["counters"] == {"totals": {LATE_DROPPED: 3}, "read": {DEAD_LETTERS: 4}}
    assert Lateness.of(subtask.kept(LATE)).behind.total == 3


def test_batch_execution_keeps_late_elements_alone():
    subtask = Subtask(in_batch=True)
    subtask.micro_batch(report(), *observed(edge(1)), late=[1])
    assert subtask.kept(LATE) is not None
    assert subtask.kept(EVENT_TIME) is subtask.kept(NUMBERS) is None


def test_the_log_of_an_earlier_version_which_had_a_list_of_splits_is_read():
    row = [5, 50, 3, 30, [3, 15, [15], [1]], 0, 1.0]
    log = EventTimeLog.of({"splits": [["clicks", "a", *row]], "ended": [], "moves": [], "holder": None})
    assert log.splits["clicks", "a"].snapshot() == row
    log.end_batch([("clicks", "a"), ("clicks", "b")], [("clicks", "b")], [], 60, 0)
    assert EventTimeLog.of(log.snapshot()).snapshot()["splits"]["clicks"].keys() == {"a", "b"}
