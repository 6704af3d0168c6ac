"""Elements whose type was not declared travel as columns where functions on columns made them, else as a pickle."""

from itertools import accumulate, chain

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.common.typeinfo import DictTypeInfo, Types
from eventide.datastream.functions import in_python
from eventide.runtime.elements.codec import (
    ElementCodec,
    decode_numbered,
    encode_numbered,
    encode_table,
    encoded,
    size_of_numbered,
)
from eventide.runtime.elements.elements import FRAME_BYTES, Columns, Elements
from eventide.testing import local_environment

UNDECLARED = Types.PICKLED_BYTE_ARRAY()
DICT = DictTypeInfo([Types.LONG(), Types.TUPLE([Types.STRING(), Types.DOUBLE()])], ["a", "b"])


def as_columns(kind, values):
    numbers = pa.array(range(len(values)), pa.int64())
    return Elements(columns=Columns(kind, kind.to_arrow(values), None, numbers))


def travelled(batches, keys, codec):
    return [codec.decode(memoryview(content)) for content in encoded(codec, batches, keys)]


VALUES = st.builds(
    lambda a, b: {"a": a, "b": b},
    st.none() | st.integers(-(2**63), 2**63 - 1),
    st.tuples(st.text(), st.floats(allow_nan=False)),
)


@given(st.lists(VALUES, min_size=1, max_size=5), st.sampled_from([UNDECLARED, Types.STRING()]))
def test_columns_of_a_type_that_is_not_declared_arrive_as_the_values_that_they_were(values, key_type):
    keys = [str(number) for number in range(len(values))]
    (found,) = travelled([as_columns(DICT, values)], keys, ElementCodec(UNDECLARED, key_type))
    assert found.is_unread
    assert found.columns.type_info == DICT
    assert (found.values, found.keys, found.sequence) == (values, keys, [*range(len(values))])


def test_what_is_not_of_one_type_that_has_a_name_arrives_as_pickled_values():
    codec = ElementCodec(UNDECLARED)
    mixed = [as_columns(Types.LONG(), [1]), as_columns(Types.DOUBLE(), [2.0])]
    listed = [as_columns(Types.LONG(), [1]), Elements([2.0], [None], [1])]
    odd = [as_columns(DictTypeInfo([Types.LONG(), Types.LONG()], ["a: LONG, b", "c"]), [{"a: LONG, b": 1, "c": 2}])]
    for batches in (mixed, listed, odd):
        (found,) = travelled(batches, [], codec)
        assert found.columns is None
        assert found.values == [value for batch in batches for value in batch.values]
        assert list(map(type, found.values)) == [type(value) for batch in batches for value in batch.values]


def test_a_frame_of_version_0_1_0_is_read():
    """Results for a program over Spark Connect wait in its checkpoint as such bytes."""
    columns = {"value": pa.array([10, 20]), "timestamp": pa.array([7, None]), "sequence": pa.array([0, 1])}
    stored = encode_table(pa.table(columns, metadata={"type": "LONG"}))
    found = ElementCodec(Types.LONG()).decode(stored)
    assert (found.values, found.timestamps, found.sequence) == ([10, 20], [7, None], [0, 1])


def test_frames_are_cut_by_all_that_they_hold():
    count, codec = 100_000, ElementCodec(Types.BOOLEAN())
    numbers = pa.array(range(7, 7 + count), pa.int64())
    sent = Columns(Types.BOOLEAN(), pa.nulls(count, pa.bool_()), pc.add(numbers, 1_700_000_000_000), numbers)
    contents = [*encoded(codec, [Elements(columns=sent)], [])]
    assert max(map(codec.size, contents)) < 2 * FRAME_BYTES
    found = Columns.joined([codec.decode(content).columns for content in contents])
    assert found.sequence.equals(numbers)
    assert found.timestamps.equals(sent.timestamps)


EXTREMES = st.sampled_from([-(2**63), -(2**32), 0, 2**32 - 1, 2**63 - 1])
RUNS = st.lists(st.tuples(st.sampled_from([0, 1, 1, 2, 2**32]), st.integers(100, 400)), min_size=1, max_size=4)


@given(EXTREMES, RUNS, st.booleans(), st.booleans())
def test_numbers_arrive_as_they_are_however_few_bytes_they_take(extreme, runs, has_null, in_order):
    """Numbers in runs of one distance each, up from an extreme, or down from it."""
    distances = accumulate(step for step, count in runs for _ in range(count))
    up = 1 if extreme <= 0 else -1
    numbers = sorted(extreme + up * distance for distance in chain([0], distances))
    numbers = [None] * has_null + (numbers if in_order else numbers[::2] + numbers[1::2])
    sent = pa.table({"number": pa.array(numbers, pa.int64()), "name": [*map(str, numbers)]})
    content = encode_numbered(sent, ["number"])
    found = decode_numbered(content)
    assert found.equals(sent)
    assert found.schema.equals(sent.schema)
    assert size_of_numbered(content) >= sent.nbytes


@pytest.mark.parametrize("last", [2**63 - 1, 2**63 - 2, 600])
def test_numbers_that_follow_one_another_may_end_with_the_last_there_is(last):
    sent = pa.table({"number": pa.array([last - 600 + n for n in range(601)], pa.int64())})
    assert decode_numbered(encode_numbered(sent, ["number"])).equals(sent)


def test_numbers_take_four_bytes_and_those_that_follow_one_another_none():
    count, kind = 10_000, Types.BOOLEAN()
    values, near, far = (
        pa.nulls(count, pa.bool_()),
        pa.array([5, 9] * (count // 2)),
        pa.array([5, 2**33] * (count // 2)),
    )
    follow = pa.array(range(count))
    for timestamps, sequence, expected in [(near, follow, 4), (far, follow, 8), (near, near, 8), (far, far, 16)]:
        content = ElementCodec(kind).encode(Elements(columns=Columns(kind, values, timestamps, sequence)))
        assert len(content) // count == expected
        assert ElementCodec(kind).size(content) // count == 16


def test_a_column_in_several_chunks_is_sent():
    codec, numbers = ElementCodec(Types.STRING()), pa.array([0, 1], pa.int64())
    sent = Columns(Types.STRING(), pa.chunked_array([["a"], ["b"]]), None, numbers)
    assert [codec.decode(content).values for content in encoded(codec, [Elements(columns=sent)], [])] == [["a", "b"]]


def doubled(e):
    return {"user": e[0], "v": e[1] * 2}


def marked(e):
    return {**e, "seen": e["v"] > 2**40}


def test_dicts_go_through_a_shuffle_as_they_do_from_python():
    def results(of):
        env = local_environment()
        pairs = env.from_collection(
            [("a", 1), ("b", 2**62), ("a", 5), ("c", 7)], Types.TUPLE([Types.STRING(), Types.LONG()])
        )
        counted = pairs.map(of(doubled)).map(of(marked)).key_by(of(lambda e: e["user"])).map(of(marked))
        return list(map(repr, counted.execute_and_collect()))

    assert sorted(results(lambda function: function)) == sorted(results(in_python))
