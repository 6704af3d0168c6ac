"""Much input of a subtask is handled piece by piece, in the order in which all of it would be handled at once."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.common import Types
from eventide.runtime.columnar.layout import SEQUENCE, TableCodec, TablePayload, joined_rows
from eventide.runtime.elements.codec import ElementCodec
from eventide.runtime.elements.elements import Elements, interleave
from eventide.runtime.exchange.frames import BY_ELEMENT, END_OF_BATCH, Frame, Inbox, Signal
from eventide.runtime.window.reducing import Partials, PartialsCodec

PICKLES, COLUMNS = ElementCodec(Types.PICKLED_BYTE_ARRAY()), ElementCodec(Types.STRING())
TABLES = TableCodec()


def frame(codec, payload, channel, edge=1, task=0, point=BY_ELEMENT):
    content = codec.encode(payload.table, payload.first) if codec is TABLES else codec.encode(payload)
    return Frame(1, 0, Signal.ELEMENTS, point, edge, channel, content, task)


@st.composite
def channels(draw):
    """Frames of several channels, in any order: numbers rise in each channel, and some of them come twice."""
    codec = draw(st.sampled_from([PICKLES, COLUMNS, TABLES]))
    point = draw(st.sampled_from([BY_ELEMENT, 3, END_OF_BATCH]))
    frames = []
    for channel in range(draw(st.integers(1, 4))):
        number = 0
        for _ in range(draw(st.integers(1, 5))):
            numbers = []
            for step in draw(st.lists(st.integers(0, 3), min_size=1, max_size=8)):
                number += step
                numbers.append(number)
            values = [f"{channel}:{one}:{place}" + "x" * 40 for place, one in enumerate(numbers)]
            if codec is TABLES:
                table = pa.table({SEQUENCE: pa.array(numbers, pa.int64()), "v": values})
                frames.append(frame(codec, TablePayload(table, len(frames)), str(channel), channel % 2 + 1, 0, point))
            else:
                batch = Elements(values, [None] * len(values), numbers)
                frames.append(frame(codec, batch, str(channel), channel % 2 + 1, 0, point))
    return codec, draw(st.permutations(frames))


def in_order(payloads):
    if isinstance(payloads[0], TablePayload):
        return joined_rows(payloads).column("v").to_pylist()
    return interleave(payloads).values


@given(channels(), st.integers(1, 4_000), st.lists(st.integers(-1, 30), max_size=3))
def test_pieces_are_in_the_order_of_all_of_it(given_frames, size, points):
    codec, frames = given_frames
    codecs = {1: codec, 2: codec}
    whole, cut = Inbox(frames, codecs), Inbox(frames, codecs, size)
    for point in [*sorted(points), END_OF_BATCH]:
        at_once = [payload for _, payload in whole.elements_until(point)]
        pieces = [in_order(piece) for piece in cut.pieces_until(point, [1, 2])]
        assert [value for piece in pieces for value in piece] == (in_order(at_once) if at_once else [])


@pytest.mark.parametrize("codec", [PICKLES, COLUMNS], ids=["pickles", "columns"])
def test_pieces_are_of_some_bytes(codec):
    batches = [
        Elements([f"{i:90}" for i in range(at, at + 10)], [None] * 10, [*range(at, at + 10)])
        for at in range(0, 100, 10)
    ]
    frames = [frame(codec, batch, channel) for channel in "ab" for batch in batches]
    pieces = list(Inbox(frames, {1: codec}, 10_000).pieces_until(END_OF_BATCH, [1]))
    assert [sum(map(len, piece)) for piece in pieces] == ([40] * 5 if codec is COLUMNS else [20] * 10)
    assert len(list(Inbox(frames, {1: codec}).pieces_until(END_OF_BATCH, [1]))) == 1


def test_an_edge_that_is_not_asked_for_waits():
    one, other = (frame(PICKLES, Elements(["v"], [None], [0]), "s", edge) for edge in (1, 2))
    inbox = Inbox([one, other], {1: PICKLES, 2: PICKLES}, 1)
    assert [[part.values for part in piece] for piece in inbox.pieces_until(END_OF_BATCH, [2])] == [[["v"]]]
    assert [edge for edge, _ in inbox.elements_until(END_OF_BATCH)] == [1]


def test_elements_whose_numbers_do_not_rise_come_at_once():
    batches = [Elements(["b", "a"] * 50, [None] * 100, [1, 0] * 50), Elements(["c"], [None], [2])]
    frames = [frame(PICKLES, batch, "s", point=END_OF_BATCH) for batch in batches]
    assert len(list(Inbox(frames, {1: PICKLES}, 10).pieces_until(END_OF_BATCH, [1]))) == 1


def test_what_is_reduced_comes_in_runs_of_its_order():
    codec = PartialsCodec(Types.LONG(), Types.STRING())
    parts = [Partials([f"k{i}"] * 9, [i] * 9, [0] * 9, [(0, 9)], i) for i in range(6)]
    frames = [frame(codec, part, "s") for part in parts[::-1]]
    pieces = list(Inbox(frames, {1: codec}, 2_000).pieces_until(END_OF_BATCH, [1]))
    assert len(pieces) > 1
    assert [part.keys[0] for piece in pieces for part in piece] == [f"k{i}" for i in range(6)]


@pytest.mark.parametrize("size", [1, 1 << 20])
def test_what_is_reduced_comes_once_although_only_one_frame_counts_its_elements(size):
    codec = PartialsCodec(Types.LONG(), Types.STRING())
    frames = [frame(codec, Partials(["k"], [i], [0], [(0, 2)] if i == 0 else [], i), "s") for i in range(2)]
    inbox = Inbox(frames, {1: codec}, size)
    assert [part.values for piece in inbox.pieces_until(0, [1]) for part in piece] == [[0], [1]]
    assert list(inbox.pieces_until(END_OF_BATCH, [1])) == []
