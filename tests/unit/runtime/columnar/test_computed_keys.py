"""Keys that functions compute: which of them windows find on columns, and what is said of the others."""

import pytest

from eventide.aggregates import count
from eventide.common import Row, Types, WatermarkStrategy
from eventide.datastream.functions import KeySelector, in_python
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.errors import DataError
from eventide.testing import local_environment
from support.twin import plan_of

EVENT = Types.ROW_NAMED(["k", "t"], [Types.STRING(), Types.LONG()])
PAIR = Types.TUPLE([Types.STRING(), Types.LONG()])


class Opened(KeySelector):
    def __init__(self):
        self.key = 0

    def open(self, runtime_context):
        self.key = "x"

    def get_key(self, value):
        return self.key


class Plain(KeySelector):
    def get_key(self, value):
        return value.k, value.t % 2


def counted(key, key_type=None, rows=None):
    rows = [Row(k="a", t=1), Row(k=None, t=12)] if rows is None else rows
    events = local_environment().from_collection(rows, EVENT)
    in_order = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("t")
    keyed = events.assign_timestamps_and_watermarks(in_order).key_by(key, key_type)
    return keyed.window(TumblingEventTimeWindows.of(100)).aggregate(count())


def speed(stream):
    return next(iter(plan_of(stream).operators)).speed


@pytest.mark.parametrize(
    ("key", "key_type", "keys"),
    [
        (lambda e: (e.k, e.t % 10), None, [("a", 1), (None, 2)]),
        (lambda e: e.t % 10, Types.INT(), [1, 2]),
        (Plain(), None, [("a", 1), (None, 0)]),
        (Opened(), Types.STRING(), ["x"]),
        (in_python(lambda e: e.k), Types.STRING(), ["a", None]),
    ],
)
def test_keys_are_found_on_columns(key, key_type, keys):
    stream = counted(key, key_type)
    assert speed(stream).startswith("columns")
    assert {row.key for row in stream.execute_and_collect()} == {*keys}


@pytest.mark.parametrize(
    ("key", "key_type", "keys", "reason"),
    [
        (lambda e: None if e.k is None else (e.k, 1), PAIR, [("a", 1), None], "something else than a new tuple"),
        (in_python(lambda e: e.k and (e.k, 1)), PAIR, [("a", 1), None], "says in_python"),
        (lambda e: e.t / 2, None, [0.5, 6.0], "keys of type DOUBLE"),
        (Opened(), None, ["x"], "may change when it is opened"),
    ],
)
def test_keys_that_columns_cannot_have_are_found_with_each_element(key, key_type, keys, reason):
    stream = counted(key, key_type)
    assert speed(stream).startswith("element by element")
    assert reason in speed(stream)
    assert {row.key for row in stream.execute_and_collect()} == {*keys}


def test_a_key_that_a_trace_did_not_show_is_named():
    with pytest.raises(DataError, match=r"the key 9223372036854775808 of the element Row.*LONG.*in_python"):
        list(counted(lambda e: e.t * 2**60, rows=[Row(k="a", t=8)]).execute_and_collect())
    [row] = counted(in_python(lambda e: e.t * 2**60), rows=[Row(k="a", t=8)]).execute_and_collect()
    assert row.key == 2**63
