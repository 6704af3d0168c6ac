"""Every element goes to exactly one subtask, that of its key; signals go to all."""

from operator import itemgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.common import Row, Types
from eventide.errors import DataError, UserFunctionError
from eventide.runtime.chain.chain import ChainNode, ChannelOutput, end_frames, report_frames
from eventide.runtime.elements.codec import ElementCodec
from eventide.runtime.elements.elements import Elements
from eventide.runtime.elements.keys import key_group, subtask_of
from eventide.runtime.exchange.frames import BY_ELEMENT, END_OF_BATCH, Edge, Frame, Signal, WatermarkReport
from eventide.runtime.exchange.partitioners import ForwardPartitioner, KeyGroupPartitioner

PICKLED = ElementCodec(Types.PICKLED_BYTE_ARRAY(), Types.PICKLED_BYTE_ARRAY())


def keyed_edge(subtasks, select=lambda v: v, codec=PICKLED):
    return Edge(1, 9, "producer", subtasks, KeyGroupPartitioner(codec, select, max_parallelism=16))


def elements(values):
    return Elements(list(values), [5] * len(values), list(range(len(values))))


def sent(output, edge, values):
    output.push({None: elements(values)})
    return {frame.subtask: edge.partitioner.codec.decode(frame.content) for frame in output.element_frames(3)}


@given(st.lists(st.one_of(st.text(), st.integers())), st.integers(1, 5))
def test_every_element_goes_to_the_one_subtask_that_owns_its_key_in_order(values, subtasks):
    edge = keyed_edge(subtasks)
    by_subtask = sent(ChannelOutput(ChainNode(edges=(edge,)), "s", 0, 0), edge, values)
    for subtask, part in by_subtask.items():
        assert part.keys == part.values == [v for v in values if subtask_of(key_group(v, 16), 16, subtasks) == subtask]
        assert part.sequence == sorted(part.sequence)
    assert sorted(o for part in by_subtask.values() for o in part.sequence) == list(range(len(values)))


ROW = Types.ROW_NAMED(["user", "at", "shop"], [Types.STRING(), Types.LONG(), Types.DOUBLE()])
ROWS = [Row(user=f"u{i % 7}" if i % 5 else None, at=i // 3, shop=i % 4 / 2) for i in range(50)]


@pytest.mark.parametrize("names", [("user",), ("shop",), ("at", "user"), ("user", "at", "shop")])
@pytest.mark.parametrize("subtasks", [1, 3])
def test_keys_that_are_named_fields_are_found_in_columns_without_an_object_for_an_element(names, subtasks):
    types = [kind for name, kind in zip(ROW.field_names, ROW.field_types, strict=True) if name in names]
    types = types[::-1] if names[0] == "at" else types
    codec = ElementCodec(ROW, types[0] if len(types) == 1 else Types.TUPLE(types))
    by_object = keyed_edge(subtasks, itemgetter(*names), codec)
    by_column = Edge(1, 9, "producer", subtasks, KeyGroupPartitioner(codec, untouched, 16, key_columns=names))
    columns = Elements(columns=elements(ROWS).as_columns(ROW))
    found = []
    for edge, batch in ((by_object, elements(ROWS)), (by_column, columns)):
        output = ChannelOutput(ChainNode(edges=(edge,)), "s", 0, 0)
        output.push({None: batch})
        found.append({frame.subtask: codec.decode(frame.content) for frame in output.element_frames(3)})
    assert found[0] == found[1]


def test_a_key_in_a_column_that_cannot_be_one_is_refused_with_its_element():
    codec = ElementCodec(ROW, Types.DOUBLE())
    edge = Edge(1, 9, "producer", 2, KeyGroupPartitioner(codec, untouched, 16, key_columns=("shop",)))
    output = ChannelOutput(ChainNode(edges=(edge,)), "s", 0, 0)
    rows = [*ROWS[:2], Row(user="eve", at=1, shop=float("nan"))]
    with pytest.raises(DataError, match=r"element Row.user='eve'.* is not equal to itself"):
        output.push({None: Elements(columns=elements(rows).as_columns(ROW))})


def untouched(value):
    raise AssertionError(value)


@pytest.mark.parametrize(("place", "subtask"), [(0, 0), (1, 1), (2, 2), (3, 0)])
def test_without_a_key_elements_stay_together_at_the_place_of_their_task(place, subtask):
    edge = Edge(1, 9, "producer", 3, ForwardPartitioner(ElementCodec(Types.INT())), has_watermarks=False)
    output = ChannelOutput(ChainNode(edges=(edge,)), "s", 0, place)
    assert sent(output, edge, [1, 2, 3]) == {subtask: elements([1, 2, 3])}
    assert list(output.element_frames(0)) == []
    assert list(report_frames(edge, [WatermarkReport("s", watermark=7)])) == []
    assert list(end_frames(edge)) == []


def test_what_is_reported_goes_to_every_subtask():
    edge = keyed_edge(3)
    reports = [WatermarkReport("s", 2, 7), WatermarkReport("t", spoke=True)]
    assert list(report_frames(edge, [*reports, WatermarkReport("says nothing")])) == [
        Frame(9, subtask, Signal.REPORTS, END_OF_BATCH, 1, "", reports) for subtask in range(3)
    ]
    assert list(report_frames(edge, [WatermarkReport("says nothing")])) == []


def test_the_end_of_a_source_goes_to_every_subtask():
    assert [frame.subtask for frame in end_frames(keyed_edge(3))] == [0, 1, 2]


def test_on_an_edge_by_place_each_element_has_a_round_of_its_own():
    edge = Edge(1, 9, "producer", 1, ForwardPartitioner(ElementCodec(Types.INT())), by_element=True)
    output = ChannelOutput(ChainNode(edges=(edge,)), "s", 4, 0)
    output.push({None: elements([1])})
    (frame,) = output.element_frames(3)
    assert (frame.point, frame.task) == (BY_ELEMENT, 4)


def test_a_key_selector_that_raises_is_named_with_the_element():
    edge = keyed_edge(2, lambda v: v["user"])
    with pytest.raises(
        UserFunctionError, match=r"in operator 'producer', when a key was extracted \(element \{\}\).*KeyError"
    ):
        ChannelOutput(ChainNode(edges=(edge,)), "s", 0, 0).push({None: elements([{"user": 1}, {}])})


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ([1], "is a list that cannot be hashed"),
        ({}, "is a dict that cannot be hashed"),
        (object(), "no hash that is the same in every process"),
        (float("nan"), "not equal to itself"),
    ],
)
def test_a_bad_key_is_refused_with_the_element_and_advice(key, said):
    edge = keyed_edge(2, lambda v: key)
    with pytest.raises(
        DataError,
        match=(
            rf"in operator 'producer', when a key was extracted \(element 7\): .*{said}.*let the "
            rf"key selector return text"
        ),
    ):
        ChannelOutput(ChainNode(edges=(edge,)), "s", 0, 0).push({None: elements([7])})


def test_an_element_that_does_not_have_its_declared_type_is_named():
    edge = keyed_edge(1, lambda v: v[0], ElementCodec(Types.TUPLE([Types.STRING(), Types.INT()]), Types.STRING()))
    output = ChannelOutput(ChainNode(edges=(edge,)), "s", 0, 0)
    output.push({None: elements([("a", 1), ("b", 1.5)])})
    with pytest.raises(
        DataError,
        match=r"in operator 'producer', when its elements.*declared type: element 1, field f1: expected INT, got 1.5",
    ):
        list(output.element_frames(0))


def test_a_key_that_does_not_have_its_declared_type_is_named():
    edge = keyed_edge(1, str, ElementCodec(Types.INT(), Types.INT()))
    output = ChannelOutput(ChainNode(edges=(edge,)), "s", 0, 0)
    with pytest.raises(DataError, match=r"in operator 'producer'.*\(element 1\).*expected INT, got '1'"):
        output.push({None: elements([1])})
