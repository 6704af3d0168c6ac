"""The tasks of generators: each split on its own, whatever task its elements come from."""

import pickle

import pytest

from eventide.common import Row, Types, Watermark, WatermarkGenerator, WatermarkStrategy
from eventide.common.ms import MAX_MS
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.runtime.elements.elements import Elements
from eventide.runtime.exchange.frames import END_OF_BATCH, END_OF_INPUT, Frame, Signal, WatermarkReport
from eventide.runtime.sources.task import SourceTask
from eventide.runtime.state.backend import MemoryBackend
from eventide.testing import Idle, ScriptedSource, local_environment
from support.twin import AllContents, plan_of, runner

ROW = Types.ROW_NAMED(["n"], [Types.LONG()])


class Asked(WatermarkGenerator):
    """The watermark is the last element times 100, and the number of times that it was asked."""

    def __init__(self):
        self.last, self.asked = 0, 0

    def on_event(self, event, event_timestamp, output):
        self.last = event["n"]

    def on_periodic_emit(self, output):
        self.asked += 1
        output.emit_watermark(Watermark(100 * self.last + self.asked))


ASKED = WatermarkStrategy.for_generator(Asked).with_timestamp_assigner(lambda e, _: e["n"])


def plan(*sources):
    """Windows after one strategy for all sources."""
    env = local_environment()
    streams = [
        env.from_source(source, WatermarkStrategy.no_watermarks(), f"source {number}")
        for number, source in enumerate(sources)
    ]
    stream = streams[0].union(*streams[1:]) if streams[1:] else streams[0]
    windows = stream.assign_timestamps_and_watermarks(ASKED).window_all(TumblingEventTimeWindows.of(10**9))
    return plan_of(windows.process(AllContents()), parallelism=1)


def source(*script, splits=("s", "t"), type_info=ROW):
    return ScriptedSource(splits, script, type_info)


class Stage:
    """The stage of generators of a plan, in one subtask."""

    def __init__(self, plan):
        self.sources, self.stage = plan.sources, plan.operators[0]
        self.backend = MemoryBackend()
        self.next_clock_ms = None

    def run(self, *frames, clock_ms=0):
        task = self.stage.task(0, self.backend, clock_ms)
        given = list(task.run(frames))
        self.next_clock_ms = task.next_clock_ms
        return given

    def rows(self, task, *parts):
        """The frames of a task for rows of a DataFrame."""
        return [frame for frame in SourceTask(self.sources[0], task).send_rows(parts) if frame.target > 0]


def reports(frames):
    return [report for frame in frames if frame.signal is Signal.REPORTS for report in frame.content]


def elements(*numbered):
    return Elements([Row(n=n) for n, _ in numbered], [None] * len(numbered), [number for _, number in numbered])


@pytest.mark.parametrize("type_info", [ROW, Types.PICKLED_BYTE_ARRAY()], ids=["columns", "pickled"])
def test_elements_of_one_split_from_several_tasks_interleave_by_number_and_are_numbered_anew(type_info):
    job = plan(source(type_info=type_info))
    stage, codec = Stage(job), job.operators[1].codecs[1]
    one = stage.rows(0, ("s", elements((1, 0), (4, 2))), ("t", elements((9, 5))))
    other = stage.rows(1, ("s", elements((2, 0), (3, 1), (5, 3))))
    for frames in ([*one, *other], [*other, *one]):
        given = Stage(job).run(*frames)
        found = {f.channel: codec.decode(f.content) for f in given if f.signal is Signal.ELEMENTS}
        assert {name: ([e["n"] for e in part.values], part.sequence) for name, part in found.items()} == {
            "s": ([1, 2, 3, 4, 5], [0, 1, 2, 3, 4]),
            "t": ([9], [5]),
        }


def test_every_split_is_asked_at_the_end_of_every_batch_with_the_clock_alone_too():
    stage = Stage(plan(source()))
    assert reports(stage.run(*stage.rows(0, ("s", elements((3, 0))))))[:1] == [
        WatermarkReport("s", END_OF_BATCH, 301, idle=False, spoke=True)
    ]
    assert stage.next_clock_ms == 1
    said = reports(stage.run(clock_ms=1))
    assert said == [
        WatermarkReport("s", END_OF_BATCH, 302, idle=False),
        WatermarkReport("t", END_OF_BATCH, 2, idle=False),
    ]


def test_a_split_that_its_source_calls_idle_is_not_asked_until_it_has_elements():
    idle = [[("s", Row(n=1))], [Idle("s")], [("t", Row(n=5))], [("s", Row(n=2))], []]
    marks = [
        batch.passed.get("TumblingEventTimeWindows.process", {}).get(0)
        for batch in runner(plan(source(*idle))).batches()
    ]
    assert marks == [[1], [2], [503], [], None, [MAX_MS]]


def test_splits_of_one_name_of_two_sources_are_two():
    one = source([("s", Row(n=1))], [("s", Row(n=7))], splits=["s"])
    two = source([("s", Row(n=3))], [("s", Row(n=4))], splits=["s"])
    assert len(set(plan(one, two).operators[0].channels())) == 2
    found = [batch.watermarks for batch in runner(plan(one, two)).batches()]
    assert [list(marks.values()) for marks in found] == [[101], [402], [MAX_MS]]


def test_the_input_ends_with_the_last_of_several_sources_and_says_so_once():
    stage = Stage(plan(source(splits=["s"]), source(splits=["s"])))
    for edge, given in [(1, []), (2, [Signal.END_OF_SOURCE])]:
        ends = Frame(1, 0, Signal.REPORTS, END_OF_BATCH, edge, "", [WatermarkReport("s", ended=True)])
        frames = stage.run(ends, Frame(1, 0, Signal.END_OF_SOURCE, END_OF_INPUT, edge, ""))
        assert [frame.signal for frame in frames if frame.signal is not Signal.REPORTS] == given
    assert stage.next_clock_ms is None
    assert stage.run(clock_ms=5) == []


def test_a_split_that_has_ended_leaves_no_generator_behind():
    stage = Stage(plan(source(splits=[])))
    stage.run(*stage.rows(0, ("file", elements((3, 0)))))
    (kept,) = pickle.loads(stage.backend.values["generators"])[1].values()
    assert kept[0] == ("Asked", False, ({"last": 3, "asked": 1}, []))
    stage.run(Frame(1, 0, Signal.REPORTS, END_OF_BATCH, 1, "", [WatermarkReport("file", ended=True)]))
    assert pickle.loads(stage.backend.values["generators"])[1] == {}
    assert stage.next_clock_ms is None
