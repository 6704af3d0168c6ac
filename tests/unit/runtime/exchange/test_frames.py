"""Frames and elements come back from their bytes as they were."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.common import Row, Types
from eventide.common.ms import MAX_MS, MIN_MS
from eventide.errors import DataError, TypeMismatch
from eventide.runtime.elements.codec import ElementCodec
from eventide.runtime.elements.elements import Elements, interleave
from eventide.runtime.exchange.frames import Frame, Signal, WatermarkReport

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
