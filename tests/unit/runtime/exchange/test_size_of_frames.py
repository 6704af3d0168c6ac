"""Frames are bounded by bytes, on every way out of a task, and what is in them is the same as in one."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.api.source import Source
from eventide.common import Types
from eventide.errors import DataError
from eventide.runtime.chain import chain
from eventide.runtime.chain.chain import ChainNode, packed, report_frames
from eventide.runtime.elements.codec import ElementCodec
from eventide.runtime.elements.elements import FRAME_BYTES, Elements, frame_slices, interleave
from eventide.runtime.exchange.frames import Edge, Inbox, Signal, WatermarkReport
from eventide.runtime.exchange.partitioners import BroadcastPartitioner, ForwardPartitioner, KeyGroupPartitioner
from eventide.runtime.sources.offsets import PartRange, SplitRange
from eventide.runtime.sources.task import SourceSpec, SourceTask

UNDECLARED = Types.PICKLED_BYTE_ARRAY()
TEXT = Types.STRING()
MANY_BYTES = 4 * FRAME_BYTES
"""No frame of several elements has more."""


def elements(values):
    return Elements([*values], [None] * len(values), [*range(len(values))])


def contents(partitioner, batch, subtasks=1):
    writer = partitioner.open("producer", 0, subtasks)
    writer.add(batch)
    return [content for _, content in writer.take()]


def ways(kind):
    return {
        "together": ForwardPartitioner(ElementCodec(kind)),
        "by key": KeyGroupPartitioner(ElementCodec(kind, Types.LONG()), len, 128),
        "by key that is pickled": KeyGroupPartitioner(ElementCodec(kind, UNDECLARED), len, 128),
        "to all": BroadcastPartitioner(ElementCodec(kind)),
    }


@pytest.mark.parametrize("kind", [UNDECLARED, TEXT], ids=str)
@pytest.mark.parametrize("way", ways(TEXT))
def test_two_hundred_large_elements_leave_in_frames_of_some_bytes(kind, way):
    partitioner = ways(kind)[way]
    values = [str(i) * 50_000 for i in range(10, 110)]
    frames = contents(partitioner, elements(values))
    assert max(map(len, frames)) <= MANY_BYTES
    decoded = [partitioner.codec.decode(frame) for frame in frames]
    assert interleave(sorted(decoded, key=lambda batch: batch.first)).values == values


@pytest.mark.parametrize("kind", [UNDECLARED, TEXT], ids=str)
def test_few_large_elements_among_many_small_ones_leave_in_frames_of_some_bytes(kind):
    values = ["x"] * 5_000
    values[3_000:3_040] = ["y" * 300_000] * 40
    frames = contents(ForwardPartitioner(ElementCodec(kind)), elements(values))
    assert max(map(len, frames)) <= MANY_BYTES
    assert [value for frame in frames for value in ElementCodec(kind).decode(frame).values] == values


def test_an_element_that_is_larger_than_a_frame_has_one_of_its_own():
    values = ["x", "y" * 3 * MANY_BYTES, "z"]
    frames = contents(ForwardPartitioner(ElementCodec(UNDECLARED)), elements(values))
    assert [ElementCodec(UNDECLARED).decode(frame).values for frame in frames] == [[value] for value in values]


def test_small_elements_stay_in_one_frame():
    assert len(contents(ForwardPartitioner(ElementCodec(UNDECLARED)), elements(["x"] * 1_000))) == 1


def test_an_element_that_no_row_of_spark_can_have_is_refused(monkeypatch):
    monkeypatch.setattr(chain, "_MOST_BYTES", 1_000)
    edge = Edge(0, 1, "parse", 1, ForwardPartitioner(ElementCodec(UNDECLARED)))
    writer = edge.partitioner.open("parse", 0, 1)
    writer.add(elements(["x" * 2_000]))
    with pytest.raises(DataError, match="Keep large objects in files or a store, and send their names"):
        list(packed(edge, writer, "s", 0, 0))


def test_reports_of_many_splits_leave_in_several_frames():
    edge = Edge(0, 1, "source", 2, ForwardPartitioner(ElementCodec(UNDECLARED)))
    reports = [WatermarkReport(f"split-{i:05}", watermark=i) for i in range(10_000)]
    frames = [frame for frame in report_frames(edge, reports) if frame.subtask == 0]
    assert max(len(frame.to_bytes()) for frame in frames) <= MANY_BYTES
    assert len(frames) > 1
    assert sorted(report for _, report in Inbox(frames, {}).all_reports()) == reports


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 3_000), min_size=1, max_size=60), st.integers(1, 4_000))
def test_slices_hold_all_rows_and_more_than_twice_the_bytes_only_as_single_rows(sizes, at_most):
    rows = pa.array(["x" * size for size in sizes])
    cuts = list(frame_slices(rows, at_most))
    assert [row for start, count in cuts for row in range(start, start + count)] == [*range(len(sizes))]
    assert all(count == 1 or rows.slice(start, count).nbytes <= 2 * at_most for start, count in cuts)


class Counting(Source):
    """Large elements, and a list of those that it has given."""

    def __init__(self, count, size):
        self.count, self.size, self.given = count, size, []

    def splits(self):
        return ["s"]

    def latest_position(self, split):
        return self.count

    def read(self, split, start, end):
        for i in range(start, end):
            self.given.append(i)
            yield bytes(self.size)


def test_a_source_sends_large_elements_before_many_of_them_wait():
    edge = Edge(0, 1, "source", 1, ForwardPartitioner(ElementCodec(UNDECLARED)))
    source = Counting(2_000, 1 << 20)
    task = SourceTask(SourceSpec("source", UNDECLARED, ChainNode(edges=(edge,)), source=source))
    frames = task.read_ranges(source, [SplitRange("s", (PartRange("s", 0, 2_000),), ended=True)], ends_source=False)
    assert next(frames).signal is Signal.ELEMENTS
    assert len(source.given) <= 200
