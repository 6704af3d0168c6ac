"""Partial results of before the shuffle arrive as they were sent, in columns where that loses nothing."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.common import Row, Types
from eventide.errors import DataError
from eventide.runtime.window.reducing import Partials, PartialsCodec

PAIR = Types.TUPLE([Types.STRING(), Types.INT()])
NAMED = Types.ROW_NAMED(["n"], [Types.INT()])
PICKLED = Types.PICKLED_BYTE_ARRAY()


def partials(*values):
    return Partials(list("abc")[: len(values)], list(values), [10, 0, 10][: len(values)], [(0, 5), (10, 1)], 7)


def in_columns(data):
    return data.endswith(b"C")


@pytest.mark.parametrize(
    ("kind", "key_kind", "values", "columns"),
    [
        (PAIR, Types.STRING(), [("x", 1), ("y", 2), ("z", 3)], True),
        (PAIR, PICKLED, [("x", 1), ("y", 2)], True),
        (NAMED, Types.STRING(), [Row(n=1), Row(n=2)], True),
        (PICKLED, Types.STRING(), [{"n": 1}, [2]], False),
        (PICKLED, PICKLED, [{"n": 1}, [2]], False),
        (PAIR, Types.STRING(), [("x", 1), ("y", 2**31)], False),
        (PAIR, Types.STRING(), [("x", 1), ("y", 1.5)], False),
        (PAIR, Types.STRING(), [("x", 1), ["y", 1]], False),
        (PAIR, PICKLED, [("x", 1, "one too many")], False),
        (Types.FLOAT(), Types.STRING(), [0.1, 0.2], False),
        (Types.BIG_DEC(), Types.STRING(), [Decimal("0.10")], False),
    ],
)
def test_keys_and_values_arrive_as_they_are(kind, key_kind, values, columns):
    codec, sent = PartialsCodec(kind, key_kind), partials(*values)
    data = codec.encode(sent)
    assert in_columns(data) is columns
    received = codec.decode(data)
    assert received == sent
    assert list(map(type, received.values)) == list(map(type, values))


MS = st.integers(-(2**63), 2**63 - 1)
REDUCED = st.lists(st.tuples(st.text(), st.tuples(st.text(), st.integers(-(2**33), 2**33)), MS), max_size=5)
COUNTS = st.lists(st.tuples(MS, st.integers(0, 2**40)), max_size=3)


@given(st.sampled_from([PAIR, PICKLED]), st.sampled_from([Types.STRING(), PICKLED]), REDUCED, COUNTS, MS)
def test_whatever_is_declared_all_of_it_comes_back(kind, key_kind, reduced, counts, first):
    keys, values, panes = (list(column) for column in zip(*reduced, strict=True)) if reduced else ([], [], [])
    sent = Partials(keys, values, panes, counts, first)
    codec = PartialsCodec(kind, key_kind)
    assert codec.decode(codec.encode(sent)) == sent


def test_its_length_is_the_number_of_elements_that_it_counts():
    assert len(partials("x", "y", "z")) == 6


def test_a_key_that_does_not_have_its_declared_type_is_refused():
    with pytest.raises(DataError, match=r"expected INT, got 'a'"):
        PartialsCodec(PAIR, Types.INT()).encode(partials(("x", 1)))


def test_a_value_that_cannot_be_pickled_is_refused():
    with pytest.raises(DataError, match=r"what the reduce function gave, cannot be pickled: .*generator"):
        PartialsCodec(PICKLED, PICKLED).encode(partials(i for i in range(3)))
