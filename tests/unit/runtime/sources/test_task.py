"""Planning of micro-batches over splits, and what a source task sends."""

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.common import Row, Types, Watermark
from eventide.datastream.connectors import IDLE, CollectionSource, NumberSequenceSource, Source, TimestampedBatch
from eventide.datastream.window import TimestampedValue
from eventide.errors import DataError, ProgramError, UserFunctionError
from eventide.runtime.chain.chain import ChainNode
from eventide.runtime.elements.codec import ElementCodec
from eventide.runtime.exchange.frames import (
    BY_ELEMENT,
    END_OF_BATCH,
    END_OF_INPUT,
    START_OF_BATCH,
    Edge,
    Signal,
    WatermarkReport,
)
from eventide.runtime.exchange.partitioners import ForwardPartitioner
from eventide.runtime.sources.offsets import (
    PartRange,
    SplitRange,
    everything,
    next_offsets,
    ranges_between,
    source_ends,
)
from eventide.runtime.sources.task import SourceSpec, SourceTask
from eventide.testing import End, Idle, ScriptedSource


class Growing(Source):
    """Splits of a given length that may grow; unbounded unless told otherwise."""

    def __init__(self, lengths, bounded=False, first=0):
        self.lengths, self.bounded, self.first = lengths, bounded, first

    def splits(self):
        return list(self.lengths)

    def latest_position(self, split):
        return self.lengths[split]

    def initial_position(self, split):
        return self.first

    def read(self, split, start, end):
        for i in range(start, end):
            yield f"{split}{i}"

    def is_bounded(self):
        return self.bounded


class Yields(Growing):
    """Yields what it is told, whatever is asked for."""

    def __init__(self, items, type_info=None):
        super().__init__({"s": len(items)})
        self.items, self.type_info = items, type_info

    def read(self, split, start, end):
        yield from self.items

    def get_produced_type(self):
        return self.type_info or super().get_produced_type()


def at(position, ended=False, start=0):
    return {"start": start, "position": position, "ended": ended, "audience": ""}


def part(split, start, end, *, ended, joined=False):
    return SplitRange(split, (PartRange(split, start, end),), ended, joined=joined)


def sent(source, ranges, ends=False):
    """The frames of a task for the one subtask after it: signals, round, channel, and elements or content."""
    codec = ElementCodec(Types.PICKLED_BYTE_ARRAY())
    root = ChainNode(edges=(Edge(1, 9, "src", 1, ForwardPartitioner(codec), by_element=True),))
    task = SourceTask(SourceSpec("src", source.get_produced_type(), root, source))
    return [
        (f.signal, f.point, f.channel, codec.decode(f.content).values if f.signal is Signal.ELEMENTS else f.content)
        for f in task.read_ranges(source, ranges, ends)
        if f.signal is not Signal.METRICS
    ]


def test_without_a_limit_all_that_is_there_is_read():
    assert Growing({"a": 5, "b": 2}).next_positions({"a": 1, "b": 2}, None) == {"a": 5, "b": 2}


@pytest.mark.parametrize(
    ("lengths", "limit", "ends"),
    [
        ({"a": 9, "b": 9}, 4, {"a": 2, "b": 2}),
        ({"a": 9, "b": 1}, 4, {"a": 3, "b": 1}),
        ({"a": 0, "b": 9, "c": 9}, 4, {"a": 0, "b": 2, "c": 2}),
        ({"a": 9, "b": 9}, 5, {"a": 3, "b": 2}),
        ({"a": 9, "b": 9}, 1, {"a": 1, "b": 1}),
        ({"a": 1, "b": 1}, 9, {"a": 1, "b": 1}),
        ({}, 9, {}),
    ],
)
def test_a_limit_is_shared_and_what_some_leave_goes_to_the_others(lengths, limit, ends):
    assert Growing(lengths).next_positions(dict.fromkeys(lengths, 0), limit) == ends


@given(st.dictionaries(st.text(max_size=2), st.integers(0, 50), max_size=6), st.integers(1, 60))
def test_a_limit_is_kept_and_not_wasted_and_no_split_starves(lengths, limit):
    ends = Growing(lengths).next_positions(dict.fromkeys(lengths, 0), limit)
    assert all(ends[split] <= lengths[split] for split in lengths)
    assert all(ends[split] > 0 for split, length in lengths.items() if length)
    assert sum(ends.values()) == min(max(limit, sum(map(bool, lengths.values()))), sum(lengths.values()))


@given(
    st.dictionaries(st.sampled_from("abc"), st.integers(0, 9), min_size=1), st.none() | st.integers(1, 7), st.booleans()
)
def test_micro_batches_read_every_position_once_and_end(lengths, limit, bounded):
    source = Growing(lengths, bounded)
    read, ends, offsets = [], 0, {}
    while (end := next_offsets(source, offsets, limit)) != offsets:
        ranges = ranges_between(source, offsets, end)
        ways = [way for part in ranges for way in part.parts]
        read += [element for way in ways for element in source.read(way.part, way.start, way.end)]
        ends += source_ends(source, offsets, end)
        offsets = json.loads(json.dumps(end))
    assert sorted(read) == sorted(f"{split}{i}" for split, n in lengths.items() for i in range(n))
    assert ends == bounded
    if offsets:
        assert offsets == everything(source)


def test_a_source_without_splits_is_refused():
    with pytest.raises(ProgramError, match=r"has no splits.*must name at least one"):
        next_offsets(Growing({}), {}, None)


def test_an_empty_collection_ends_in_its_first_micro_batch():
    source = CollectionSource([])
    end = next_offsets(source, {}, None)
    assert end == {"collection": at(0, ended=True)}
    assert ranges_between(source, {}, end) == [part("collection", 0, 0, ended=True, joined=True)]
    assert source_ends(source, {}, end)
    assert next_offsets(source, end, None) == end
    assert not source_ends(source, end, end)


def test_the_source_ends_with_its_last_split():
    source = Growing({"a": 1, "b": 3}, bounded=True)
    first = next_offsets(source, {}, 2)
    assert first == {"a": at(1, ended=True), "b": at(1)}
    assert not source_ends(source, {}, first)
    second = next_offsets(source, first, 2)
    assert ranges_between(source, first, second) == [part("b", 1, 3, ended=True)]
    assert source_ends(source, first, second)


def test_a_split_that_appears_later_is_read_from_its_initial_position():
    source = Growing({"a": 5}, first=2)
    start = next_offsets(source, {}, None)
    source.lengths["b"] = 4
    end = next_offsets(source, start, None)
    assert end == {"a": at(5, start=2), "b": at(4, start=2)}
    assert ranges_between(source, start, end) == [part("b", 2, 4, ended=False, joined=True)]


def test_a_replay_of_a_range_gives_the_same_frames():
    source = Growing({"a": 5})
    ranges = [part("a", 1, 4, ended=False)]
    assert (
        sent(source, ranges)
        == sent(source, ranges)
        == [
            (Signal.ELEMENTS, BY_ELEMENT, "a", ["a1", "a2", "a3"]),
            (Signal.REPORTS, END_OF_BATCH, "", [WatermarkReport("a", spoke=True)]),
        ]
    )


def test_the_end_of_the_source_comes_a_round_later_than_the_end_of_its_splits():
    assert sent(Growing({"a": 1}), [part("a", 0, 1, ended=True)], ends=True) == [
        (Signal.ELEMENTS, BY_ELEMENT, "a", ["a0"]),
        (Signal.REPORTS, END_OF_BATCH, "", [WatermarkReport("a", spoke=True, ended=True)]),
        (Signal.END_OF_SOURCE, END_OF_INPUT, "", None),
    ]


@pytest.mark.parametrize(
    ("items", "idle"),
    [
        ([1, IDLE], True),
        ([IDLE, 1], False),
        ([IDLE], True),
        ([], False),
        ([Watermark(1), IDLE], True),
        ([IDLE, Watermark(1)], False),
    ],
)
def test_a_split_is_idle_if_it_says_so_after_its_last_element_and_watermark(items, idle):
    frames = sent(Yields(items), [part("s", 0, 2, ended=False)])
    reports = [report for signal, _, _, content in frames if signal is Signal.REPORTS for report in content]
    assert any(report.idle for report in reports) == idle


class Operator(Yields):
    """Is not made of splits, and so counts again with whatever it gives."""

    def active_by_elements(self):
        return True


@pytest.mark.parametrize(
    ("items", "said"),
    [
        ([1, 2], [WatermarkReport("s", -1, idle=False), WatermarkReport("s", spoke=True)]),
        ([IDLE, 1], [WatermarkReport("s", -1, idle=False), WatermarkReport("s", spoke=True)]),
        (
            [1, IDLE],
            [WatermarkReport("s", -1, idle=False), WatermarkReport("s", idle=True, spoke=True, source_idle=True)],
        ),
        (
            [Watermark(3), 1],
            [
                WatermarkReport("s", -1, idle=False),
                WatermarkReport("s", -1, watermark=3),
                WatermarkReport("s", spoke=True),
            ],
        ),
        ([IDLE], [WatermarkReport("s", idle=True, source_idle=True)]),
        ([], []),
    ],
)
def test_a_source_that_is_active_by_elements_says_so_in_front_of_the_first_of_a_micro_batch(items, said):
    frames = sent(Operator(items), [part("s", 0, 2, ended=False)])
    assert [report for signal, _, _, content in frames if signal is Signal.REPORTS for report in content] == said


def test_record_batches_are_rows_of_the_declared_type():
    batch = pa.RecordBatch.from_pydict({"a": pa.array([1, 2], pa.int32()), "b": ["x", "y"]})
    source = Yields([batch], Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.STRING()]))
    first, _ = sent(source, [part("s", 0, 2, ended=False)])
    assert first == (Signal.ELEMENTS, BY_ELEMENT, "s", [Row(a=1, b="x"), Row(a=2, b="y")])


@pytest.mark.parametrize("names", [("b", "a"), ("f0", "f1")])
def test_columns_of_a_record_batch_are_found_by_their_names_or_else_by_their_places(names):
    batch = pa.RecordBatch.from_arrays([pa.array([100]), pa.array([1])], names=names)
    source = Yields([batch], Types.ROW_NAMED(["a", "b"], [Types.LONG(), Types.LONG()]))
    (*_, [row]), _ = sent(source, [part("s", 0, 1, ended=False)])
    assert row == (Row(a=1, b=100) if "a" in names else Row(a=100, b=1))


def test_a_record_batch_with_some_of_the_names_is_refused():
    source = Yields([pa.RecordBatch.from_pydict({"a": [1], "c": [2]})], Types.ROW_NAMED(["a", "b"], [Types.LONG()] * 2))
    with pytest.raises(
        DataError, match=r"the record batch has the columns \['a', 'c'\], which are not elements of the"
    ):
        sent(source, [part("s", 0, 1, ended=False)])


def test_a_batch_of_rows_may_have_a_column_of_timestamps():
    batch = pa.RecordBatch.from_pydict({"a": [1, 2], "b": ["x", "y"]})
    type_info = Types.ROW_NAMED(["a", "b"], [Types.LONG(), Types.STRING()])
    source = Yields([TimestampedBatch(batch, pa.array([10, 20]))], type_info)
    codec = ElementCodec(type_info)
    spec = SourceSpec(
        "src", type_info, ChainNode(edges=(Edge(0, 0, "src", 1, ForwardPartitioner(codec)),)), source=source
    )
    first, *_ = SourceTask(spec).read_ranges(source, [part("s", 0, 2, ended=False)], False)
    assert codec.decode(first.content).timestamps == [10, 20]


def test_as_many_timestamps_as_rows():
    batch = pa.RecordBatch.from_pydict({"a": [1, 2]})
    with pytest.raises(DataError, match=r"split 's'.*the batch has 2 rows, and 1 timestamps"):
        sent(Yields([TimestampedBatch(batch, pa.array([10]))], Types.LONG()), [part("s", 0, 2, ended=False)])


class AllAtOnce(Growing):
    """Gives a run of two of each part in turn, as they come."""

    def reads_together(self):
        return True

    def read_together(self, ranges):
        self.asked = ranges
        left = {way.part: list(range(way.start, way.end)) for way in ranges}
        while any(left.values()):
            for split, numbers in left.items():
                yield split, [f"{split}{i}" for i in numbers[:2]]
                del numbers[:2]


@pytest.mark.parametrize("waiting", [3, 1_000])
def test_a_source_may_read_all_splits_of_a_task_at_once_and_each_keeps_its_order(waiting, monkeypatch):
    monkeypatch.setattr("eventide.runtime.sources.task._WAITING", waiting)
    monkeypatch.setattr("eventide.runtime.sources.splits._CHUNK", 2)
    source = AllAtOnce({"a": 5, "b": 3, "still": 0})
    ranges = [part("a", 0, 5, ended=False), part("b", 0, 3, ended=True), part("still", 0, 0, ended=False, joined=True)]
    frames = sent(source, ranges)
    assert source.asked == [PartRange("a", 0, 5), PartRange("b", 0, 3)]
    given = {split: [] for split in "ab"}
    for signal, _, split, content in frames:
        if signal is Signal.ELEMENTS:
            given[split] += content
    assert given == {"a": [f"a{i}" for i in range(5)], "b": [f"b{i}" for i in range(3)]}
    assert len(frames) == (3 if waiting == 1_000 else 5)
    assert frames[-1][-1] == [
        WatermarkReport("a", spoke=True),
        WatermarkReport("b", spoke=True, ended=True),
        WatermarkReport("still", START_OF_BATCH, joined=True),
    ]


def test_splits_that_are_read_at_once_wait_for_so_many_elements_together(monkeypatch):
    """Each of them waits for thousands of its own, which are too many where there are many splits."""
    monkeypatch.setattr("eventide.runtime.sources.task._WAITING", 40)
    given = []

    class Counts(AllAtOnce):
        def read_together(self, ranges):
            for split, run in super().read_together(ranges):
                given.extend(run)
                yield split, run

    source = Counts(dict.fromkeys("abcd", 50))
    codec = ElementCodec(Types.PICKLED_BYTE_ARRAY())
    root = ChainNode(edges=(Edge(1, 9, "src", 1, ForwardPartitioner(codec), by_element=True),))
    task = SourceTask(SourceSpec("src", source.get_produced_type(), root, source))
    read, sent = [], []
    for frame in task.read_ranges(source, [part(split, 0, 50, ended=False) for split in "abcd"], False):
        if frame.signal is Signal.ELEMENTS:
            sent += codec.decode(frame.content).values
            read.append(len(given) - len(sent))
    assert sorted(sent) == sorted(given)
    assert max(read) <= 40


def test_what_goes_wrong_between_splits_that_are_read_at_once_names_the_one_at_hand():
    class Breaks(AllAtOnce):
        def read_together(self, ranges):
            if self.lengths["a"] == 5:
                raise OSError("no broker")
            yield "b", iter([1, 1 / 0])

    ranges = [part("a", 0, 5, ended=False), part("b", 0, 3, ended=True)]
    with pytest.raises(UserFunctionError, match=r"while it read its source: the user's function raised .*no broker"):
        sent(Breaks({"a": 5, "b": 3}), ranges)


def test_many_elements_keep_their_order_over_chunks_and_frames():
    numbers = NumberSequenceSource(0, 150_000)
    frames = sent(numbers, [part("0", 0, 150_001, ended=False)])
    assert [e for signal, _, _, part in frames if signal is Signal.ELEMENTS for e in part] == list(range(150_001))
    assert len(frames) > 2


def test_a_source_that_raises_is_named_with_the_range():
    class Breaks(Growing):
        def read(self, split, start, end):
            yield 1
            raise OSError("disk on fire")

    with pytest.raises(
        UserFunctionError,
        match=r"in operator 'src', while it read its source \(split 'a', start 0, end 5\).*disk on fire",
    ):
        sent(Breaks({"a": 5}), [part("a", 0, 5, ended=False)])


@given(st.integers(-50, 50), st.integers(0, 50), st.integers(1, 9))
def test_the_splits_of_a_number_sequence_are_the_numbers_in_order_and_of_equal_length(start, more, splits):
    end = start + more
    source = NumberSequenceSource(start, end, splits)
    parts = [list(source.read(split, 0, source.latest_position(split))) for split in source.splits()]
    assert [number for part in parts for number in part] == list(range(start, end + 1))
    assert len(parts) == splits
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_a_number_sequence_needs_a_split():
    with pytest.raises(ProgramError, match=r"at least one split, not 0"):
        NumberSequenceSource(1, 5, splits=0)


def test_a_number_sequence_does_not_go_down():
    with pytest.raises(ProgramError, match=r"no numbers from 5 to 1; give NumberSequenceSource the lower one first"):
        NumberSequenceSource(5, 1)


def test_a_scripted_source_goes_a_micro_batch_further_each_time_and_then_ends():
    source = ScriptedSource(["a", "b"], [[("a", 1)], []])
    offsets = [{}]
    while (end := next_offsets(source, offsets[-1], 1)) != offsets[-1]:
        offsets.append(end)
    assert [(o["a"]["position"], o["a"]["ended"]) for o in offsets[1:]] == [(1, False), (2, False), (3, True)]


def test_an_unbounded_scripted_source_stops_without_an_end():
    source = ScriptedSource(["a"], [[("a", 1)]], bounded=False)
    assert everything(source) == {"a": at(1)}


def played(source):
    """The ranges of each micro-batch of a script, by split, which splits end with it, and whether the source does."""
    batches, start = [], {}
    while (end := next_offsets(source, start, None)) != start:
        ranges = ranges_between(source, start, end)
        read = {
            part.split: [i for way in part.parts for i in source.read(way.part, way.start, way.end)] for part in ranges
        }
        batches.append((read, [part.split for part in ranges if part.ended], source_ends(source, start, end)))
        start = end
    return batches


def test_a_split_ends_with_the_micro_batch_of_its_end_and_the_others_in_the_last_of_their_own():
    source = ScriptedSource(["a", "b"], [[("a", 1), ("b", 2), End("a")], [("b", 3)]])
    assert played(source) == [
        ({"a": [1], "b": [2]}, ["a"], False),
        ({"b": [3]}, [], False),
        ({"b": []}, ["b"], True),
    ]


@pytest.mark.parametrize("bounded", [True, False])
def test_a_source_whose_splits_have_all_ended_has_ended_with_the_last_of_them(bounded):
    source = ScriptedSource(["a", "b"], [[("b", 2), End("b")], [End("a")], []], bounded=bounded)
    assert source.is_bounded() == bounded
    assert source.may_end()
    assert played(source) == [({"a": [], "b": [2]}, ["b"], False), ({"a": []}, ["a"], True)]


def test_an_unbounded_script_ends_only_the_splits_that_it_names():
    source = ScriptedSource(["a", "b"], [[End("a")], [("b", 1)]], bounded=False)
    assert not source.may_end()
    assert played(source) == [({"a": [], "b": []}, ["a"], False), ({"b": [1]}, [], False)]


@pytest.mark.parametrize(
    ("batches", "message"),
    [
        ([[End("a"), ("a", 1)]], r"batch 0 has \('a', 1\), but the split 'a' has ended in batch 0"),
        ([[End("a")], [Idle("a")]], r"batch 1 has Idle\(split='a'\), but the split 'a' has ended in batch 0"),
        ([[End("a")], [], [End("a")]], r"batch 2 has End\(split='a'\), but the split 'a' has ended in batch 0"),
        ([[End("b")]], r"batch 0 names the split 'b'; the splits are"),
    ],
)
def test_a_script_in_which_something_follows_an_end_is_refused(batches, message):
    with pytest.raises(ProgramError, match=message):
        ScriptedSource(["a"], batches)


def test_a_script_that_names_an_unknown_split_is_refused():
    with pytest.raises(ProgramError, match=r"batch 1 names the split 'b'; the splits are"):
        ScriptedSource(["a"], [[], [("b", 1)]])


def test_a_data_error_of_a_source_stays_a_data_error():
    batch = pa.RecordBatch.from_pydict({"a": ["x"]})
    with pytest.raises(DataError, match=r"in operator 'src', while it read its source \(split 's'"):
        sent(Yields([batch], Types.ROW_NAMED(["a"], [Types.INT()])), [part("s", 0, 1, ended=False)])


@pytest.mark.parametrize(
    ("timestamp", "what"),
    [
        (2**70, r"the timestamp 1180591620717411303424 is out of range"),
        (-(2**63), r"out of range"),
        (1e19, r"the timestamp 1e\+19 is out of range"),
        ("1", r"the timestamp '1' is a str"),
        (True, r"the timestamp True is a bool"),
        (float("nan"), r"the timestamp is NaN"),
    ],
)
def test_a_timestamp_that_is_none_fails_where_the_source_is_read(timestamp, what):
    source = Yields([TimestampedValue("a", timestamp)])
    with pytest.raises(DataError, match=f"in operator 'src', while it read its source.*{what}"):
        sent(source, [part("s", 0, 1, ended=False)])


def test_timestamps_of_a_source_are_integers_of_64_bits_or_none():
    source = Yields([TimestampedValue("a", np.int64(5)), TimestampedValue("b"), TimestampedValue("c", 2**63 - 1)])
    codec = ElementCodec(Types.PICKLED_BYTE_ARRAY())
    root = ChainNode(edges=(Edge(1, 9, "src", 1, ForwardPartitioner(codec)),))
    task = SourceTask(SourceSpec("src", source.get_produced_type(), root, source))
    frames = task.read_ranges(source, [part("s", 0, 3, ended=False)], ends_source=False)
    (elements,) = (codec.decode(frame.content) for frame in frames if frame.signal is Signal.ELEMENTS)
    assert elements.timestamps == [5, None, 2**63 - 1]
    assert type(elements.timestamps[0]) is int
