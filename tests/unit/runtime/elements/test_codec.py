"""Elements whose type was not declared travel as columns where functions on columns made them, else as a pickle."""

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import example, given
from hypothesis import strategies as st

from eventide.common.typeinfo import DictTypeInfo, Types
from eventide.datastream.functions import in_python
from eventide.runtime.elements.codec import ElementCodec, encoded
from eventide.runtime.elements.elements import Columns, Elements
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


TIMESTAMPS = st.none() | st.integers(-(2**63), 2**63 - 1) | st.integers(1_700_000_000_000, 1_700_000_050_000)


@given(st.lists(st.tuples(TIMESTAMPS, st.integers(-(2**40), 2**40))), st.none() | st.integers(-(2**40), 2**40))
@example([(2**63 - 1, 0)], None)
@example([(2**63 - 2, 0), (2**63 - 1, 1)], None)
@example([(-(2**63), 0), (2**63 - 1, 1)], None)
@example([(None, 5), (7, 3), (8, 4)], None)
def test_timestamps_and_numbers_arrive_as_they_were(elements, first):
    timestamps = pa.array([timestamp for timestamp, _ in elements], pa.int64())
    numbers = [number for _, number in elements] if first is None else [*range(first, first + len(elements))]
    values = pa.array([*range(len(elements))], pa.int64())
    sent = Columns(Types.LONG(), values, timestamps, pa.array(numbers, pa.int64()))
    codec = ElementCodec(Types.LONG())
    found = codec.decode(codec.encode_columns(sent)).columns
    assert found.timestamps_or_nulls().equals(timestamps)
    assert (found.timestamps is None) == (timestamps.null_count == len(timestamps))
    assert found.sequence.equals(sent.sequence)
    assert found.values.equals(values)


def test_what_all_elements_have_in_common_is_sent_once():
    count, codec = 100_000, ElementCodec(Types.BOOLEAN())
    numbers = pa.array(range(7, 7 + count), pa.int64())
    sent = Columns(Types.BOOLEAN(), pa.nulls(count, pa.bool_()), pc.add(numbers, 1_700_000_000_000), numbers)
    contents = [*encoded(codec, [Elements(columns=sent)], [])]
    assert sum(map(len, contents)) < 5 * count
    found = Columns.joined([codec.decode(content).columns for content in contents])
    assert found.sequence.equals(numbers)
    assert found.timestamps.equals(sent.timestamps)


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
