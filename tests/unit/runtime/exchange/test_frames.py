"""Frames come back from their bytes as they were, and are put in order, cut where something is reported."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.common import Row, Types
from eventide.common.ms import MAX_MS, MIN_MS
from eventide.errors import DataError, TypeMismatch
from eventide.runtime.columnar.layout import SEQUENCE, TableCodec, TablePayload
from eventide.runtime.elements.codec import ElementCodec
from eventide.runtime.elements.elements import Elements, interleave
from eventide.runtime.exchange.frames import (
    BY_ELEMENT,
    END_OF_BATCH,
    END_OF_INPUT,
    START_OF_BATCH,
    Frame,
    Inbox,
    Signal,
    WatermarkReport,
)

MS = st.integers(MIN_MS, MAX_MS)
CONTENT = {
    Signal.ELEMENTS: st.binary(),
    Signal.REPORTS: st.lists(
        st.builds(
            WatermarkReport,
            st.text(),
            st.integers(0, 9),
            st.none() | MS,
            st.none() | st.booleans(),
            st.booleans(),
            st.booleans(),
        )
    ),
    Signal.END_OF_SOURCE: st.none(),
    Signal.METRICS: st.dictionaries(st.text(), st.dictionaries(st.text(), st.integers())),
    Signal.OBSERVED: st.dictionaries(st.text(), st.dictionaries(st.text(), st.integers())),
}
SMALL = st.integers(-1, 2**31 - 1)


@given(st.sampled_from(list(Signal)), SMALL, SMALL, SMALL, SMALL, SMALL, st.text(max_size=20), st.data())
def test_a_frame_comes_back_from_its_bytes(signal, stage, subtask, point, edge, task, channel, data):
    frame = Frame(stage, subtask, signal, point, edge, channel, data.draw(CONTENT[signal]), task)
    assert Frame.from_bytes(stage, subtask, frame.to_bytes()) == frame


@st.composite
def elements_of(draw, values, keys=None):
    rows = draw(st.lists(st.tuples(values, st.none() | MS, st.integers(0, 2**40)), min_size=1))
    values, timestamps, order = map(list, zip(*rows, strict=True))
    return Elements(values, timestamps, order, [] if keys is None else [draw(keys) for _ in rows])


@given(elements_of(st.one_of(st.integers(), st.text(), st.tuples(st.integers())), st.text()))
def test_pickled_elements_come_back(elements):
    codec = ElementCodec(Types.PICKLED_BYTE_ARRAY(), Types.PICKLED_BYTE_ARRAY())
    assert not codec.columnar
    assert codec.decode(codec.encode(elements)) == elements


@given(elements_of(st.none() | st.tuples(st.text(), st.integers(-(2**63), MAX_MS)), st.text()))
def test_typed_elements_come_back_with_typed_keys(elements):
    codec = ElementCodec(Types.TUPLE([Types.STRING(), Types.LONG()]), Types.STRING())
    assert codec.columnar
    assert codec.decode(codec.encode(elements)) == elements


@given(elements_of(st.builds(Row, a=st.integers(0, 9)), st.tuples(st.text(), st.integers())))
def test_typed_elements_come_back_with_pickled_keys(elements):
    codec = ElementCodec(Types.ROW_NAMED(["a"], [Types.INT()]), Types.PICKLED_BYTE_ARRAY())
    assert codec.decode(codec.encode(elements)) == elements


@given(elements_of(st.floats(allow_nan=False)))
def test_typed_elements_without_keys_come_back(elements):
    codec = ElementCodec(Types.DOUBLE())
    assert codec.decode(codec.encode(elements)) == elements


def test_an_element_of_another_type_is_refused():
    with pytest.raises(TypeMismatch, match=r"element 1.*f0.*expected INT, got 'x'"):
        ElementCodec(Types.TUPLE([Types.INT()])).encode(Elements([(1,), ("x",)], [None, None], [0, 1]))


def test_an_element_that_cannot_be_pickled_is_refused():
    with pytest.raises(DataError, match=r"cannot be pickled.*generator.*plain data"):
        ElementCodec(Types.PICKLED_BYTE_ARRAY()).encode(Elements([(i for i in "ab")], [None], [0]))


def test_an_object_of_a_class_without_a_name_is_refused():
    class Local:
        number = 3

    with pytest.raises(DataError, match=r"an element cannot be pickled: .*Local.* or of a class that has a name"):
        ElementCodec(Types.PICKLED_BYTE_ARRAY()).encode(Elements([Local()], [None], [0]))


def test_elements_of_several_channels_interleave_by_place_then_channel():
    one = Elements(["a", "b", "c"], [1, 2, 3], [0, 0, 2], ["k"] * 3)
    two = Elements(["x", "y"], [4, 5], [0, 1], ["l"] * 2)
    assert interleave([one, two]) == Elements(
        ["a", "b", "x", "y", "c"], [1, 2, 4, 5, 3], [0, 0, 0, 1, 2], ["k", "k", "l", "l", "k"]
    )
    assert interleave([one]) is one


CODEC = ElementCodec(Types.PICKLED_BYTE_ARRAY())
TABLES = TableCodec()


def numbered(*places):
    return Elements([f"e{place}" for place in places], [place * 10 for place in places], list(places))


def table(*places):
    return TablePayload(pa.table({SEQUENCE: pa.array(places, pa.int64()), "v": list(places)}), places[0])


def elements(part, channel="s", edge=1, point=BY_ELEMENT, task=0):
    content = TABLES.encode(part.table, part.first) if isinstance(part, TablePayload) else CODEC.encode(part)
    return Frame(1, 0, Signal.ELEMENTS, point, edge, channel, content, task)


def reports(*said, edge=1):
    return Frame(1, 0, Signal.REPORTS, END_OF_BATCH, edge, "", list(said))


def inbox(*frames, codec=CODEC):
    return Inbox(frames, {1: codec, 2: codec})


def sequences(entries):
    return [
        payload.table.column(SEQUENCE).to_pylist() if isinstance(payload, TablePayload) else payload.sequence
        for _, payload in entries
    ]


@pytest.mark.parametrize(("make", "codec"), [(numbered, CODEC), (table, TABLES)])
def test_elements_are_cut_after_the_point_that_is_asked_for_and_come_once(make, codec):
    box = inbox(elements(make(0, 1, 3, 3, 4)), elements(make(0, 2), "t"), codec=codec)
    assert sequences(box.elements_until(START_OF_BATCH)) == []
    assert sequences(box.elements_until(1)) == [[0, 1], [0]]
    assert sequences(box.elements_until(1)) == []
    assert sequences(box.elements_until(3)) == [[3, 3], [2]]
    assert sequences(box.elements_until(END_OF_BATCH)) == [[4]]
    assert sequences(box.elements_until(END_OF_INPUT)) == []


def test_a_cut_part_keeps_values_timestamps_and_keys_together():
    part = Elements(["a", "b", "c"], [1, None, 3], [0, 1, 2], ["k", "l", "m"])
    assert part.cut(0, 1) == (Elements(["a", "b"], [1, None], [0, 1], ["k", "l"]), 2)
    assert part.cut(2, 2) == (Elements(["c"], [3], [2], ["m"]), None)
    whole, rest = part.cut(0, 2)
    assert whole is part, "what is not cut is not copied"
    assert rest is None


def test_partial_aggregates_have_no_numbers_and_are_not_cut():
    part = TablePayload(pa.table({"v": [1, 2]}), 0)
    assert part.cut(0, START_OF_BATCH) == (part, None)


def test_elements_of_a_point_wait_for_it():
    box = inbox(elements(numbered(0, 1), point=5), elements(numbered(7), point=START_OF_BATCH))
    assert sequences(box.elements_until(4)) == [[7]]
    assert sequences(box.elements_until(5)) == [[0, 1]]


def test_parts_come_by_edge_channel_task_and_number_whatever_the_order_of_frames():
    frames = [
        elements(numbered(0), "t"),
        elements(numbered(0), "a", edge=2),
        elements(numbered(9), "s"),
        elements(numbered(0), "s", task=1),
        elements(numbered(1), "s"),
    ]
    for order in (frames, frames[::-1]):
        taken = inbox(*order).elements_until(END_OF_BATCH)
        assert sequences(taken) == [[1], [9], [0], [0], [0]]
        assert [edge for edge, _ in taken] == [1, 1, 1, 1, 2]


def test_points_are_where_something_is_reported_and_the_end_in_any_case():
    assert inbox().points() == [END_OF_BATCH]
    box = inbox(
        reports(WatermarkReport("t", 3, 10), WatermarkReport("s", 3, 11), WatermarkReport("s", END_OF_BATCH, 12)),
        reports(WatermarkReport("u", 1)),
    )
    assert box.points() == [1, 3, END_OF_BATCH]
    assert box.reports(3) == [(1, WatermarkReport("s", 3, 11)), (1, WatermarkReport("t", 3, 10))]
    assert box.reports(2) == []


def test_what_one_channel_says_at_one_point_keeps_its_order():
    said = [WatermarkReport("s", 3, 10), WatermarkReport("s", 3, idle=True), WatermarkReport("s", 3, 11, idle=False)]
    assert [report for _, report in inbox(reports(*said)).reports(3)] == said


def test_the_end_of_a_source_is_a_point_of_its_own():
    box = inbox(Frame(1, 0, Signal.END_OF_SOURCE, END_OF_INPUT, 2, ""))
    assert (box.points(), box.ended_sources) == ([END_OF_BATCH, END_OF_INPUT], [2])
