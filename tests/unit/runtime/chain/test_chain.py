"""Chained functions keep timestamps and places, and say which element was wrong."""

import datetime as dt
import math

import numpy as np
import pytest

from eventide.common import NullTimestamps, Row, Types, WatermarkStrategy
from eventide.common.ms import MAX_MS, MIN_MS
from eventide.common.time import Instant
from eventide.datastream import OutputTag
from eventide.errors import DataError, UserFunctionError
from eventide.runtime.chain.chain import ChainNode, ChannelOutput
from eventide.runtime.chain.chained_operators import Filter, FlatMap, Map, Moment
from eventide.runtime.chain.timestamps import AssignTimestamps
from eventide.runtime.chain.watermarks import HighestTimestamp
from eventide.runtime.elements.codec import ElementCodec
from eventide.runtime.elements.elements import Elements
from eventide.runtime.exchange.frames import END_OF_BATCH, Edge, WatermarkReport
from eventide.runtime.exchange.partitioners import ForwardPartitioner
from eventide.runtime.metrics import Metrics

MONOTONOUS = WatermarkStrategy.for_monotonous_timestamps()


def elements(*values):
    return Elements(list(values), [v * 10 for v in values], list(range(len(values))))


CODEC = ElementCodec(Types.PICKLED_BYTE_ARRAY())


def edge(number, assigner=None):
    return Edge(number, number, "producer", 1, ForwardPartitioner(CODEC), assigner)


def sent(output):
    """The values that left, with the number of their edge."""
    return [(frame.edge, CODEC.decode(frame.content).values) for frame in output.element_frames()]


def assign(function, number=1):
    return AssignTimestamps("times", number, MONOTONOUS.with_timestamp_assigner(function))


def main_output(step, batch):
    return step.outputs(batch, Moment(), Metrics(0))[None]


def test_map_keeps_timestamp_and_place():
    assert main_output(Map("m", lambda v: -v, None), elements(1, 2)) == Elements([-1, -2], [10, 20], [0, 1])


def test_filter_keeps_timestamp_and_place_of_what_stays():
    assert Filter("f", lambda v: v % 2, None).apply(elements(1, 2, 3)) == Elements([1, 3], [10, 30], [0, 2])


def test_flat_map_gives_each_result_the_timestamp_and_place_of_its_element():
    results = {1: ["a", "b"], 2: None, 3: [], 4: ("c",)}
    assert main_output(FlatMap("f", results.get, None), elements(1, 2, 3, 4)) == Elements(
        ["a", "b", "c"], [10, 10, 40], [0, 0, 3]
    )


@pytest.mark.parametrize("step", [Map, Filter, FlatMap])
def test_a_function_that_raises_is_named_with_the_element_and_its_traceback(step):
    def divide(value):
        return [1 / (value - 2)]

    with pytest.raises(UserFunctionError) as raised:
        main_output(step("divider", divide, None), elements(1, 2, 3))
    message = str(raised.value)
    assert "in operator 'divider', while it handled an element (element 2):" in message
    assert "ZeroDivisionError" in message
    assert "return [1 / (value - 2)]" in message
    assert isinstance(raised.value.__cause__, ZeroDivisionError)


def test_an_assigner_sees_the_timestamp_that_was_there_or_the_minimum():
    seen = []
    assign(lambda value, before: seen.append(before) or 5).sort_out(Elements([1, 2], [7, None], [0, 1]))
    assert seen == [7, MIN_MS]


@pytest.mark.parametrize(
    "timestamp", [MIN_MS + 1, -1, 0, MAX_MS, np.int64(5), 1.5, -1.5, 2.0, -0.0, np.float32(7.9), -(2.0**62)]
)
def test_milliseconds_within_64_bits_are_timestamps_without_their_fractions(timestamp):
    """PyFlink gives these."""
    (given,) = assign(lambda *_: timestamp).sort_out(elements(1))[0].timestamps
    assert (given, type(given)) == (int(timestamp), int)


@pytest.mark.parametrize(
    ("timestamp", "said"),
    [
        (None, "is None"),
        (float("nan"), "is NaN"),
        (np.float32("nan"), "is NaN"),
        (float("inf"), "inf is out of range"),
        (-(2.0**63), "out of range"),
        (2.0**63, "out of range"),
        ("12", "'12' is a str, not a number"),
        (True, "True is a bool, not a number"),
        (dt.datetime(2020, 1, 1, tzinfo=dt.UTC), "is a datetime, not a number"),
        (MIN_MS, "out of range"),
        (MAX_MS + 1, "out of range"),
    ],
)
def test_anything_else_is_refused_with_the_element(timestamp, said):
    with pytest.raises(
        DataError, match=r"in operator 'times'.*\(element 2\): the timestamp.*milliseconds since the epoch as an int"
    ) as raised:
        assign(lambda value, _: timestamp if value == 2 else 1).sort_out(elements(1, 2))
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1500, 1500),
        (dt.datetime(1970, 1, 1, 0, 0, 1, 500_999), 1500),  # noqa: DTZ001 - without a zone it is UTC
        (dt.datetime(1970, 1, 1, 2, 0, 1, 500_000, dt.timezone(dt.timedelta(hours=2))), 1500),
        (dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, dt.UTC), -1),
        (Instant.of_epoch_milli(1500), 1500),
    ],
)
def test_a_column_may_hold_milliseconds_or_a_date_and_time(value, expected):
    step = AssignTimestamps("times", 1, MONOTONOUS.with_timestamp_assigner("at"))
    assert step.sort_out(Elements([Row(at=value)], [None], [0]))[0].timestamps == [expected]


@pytest.mark.parametrize("kind", [Types.DOUBLE(), Types.FLOAT()])
@pytest.mark.parametrize("assigner", ["at", lambda row, _: row.at])
@pytest.mark.parametrize("null", [NullTimestamps.FAIL, NullTimestamps.DROP])
@pytest.mark.parametrize("bad", [None, math.nan, math.inf, 1e19])
def test_floats_are_the_same_timestamps_in_columns_and_one_by_one(kind, assigner, null, bad):
    type_info = Types.ROW_NAMED(["at"], [kind])
    strategy = MONOTONOUS.with_timestamp_assigner(assigner).with_null_timestamps(null)
    step = AssignTimestamps("times", 1, strategy)
    for values in ([1.75, -1.75, 0.0, 1e6], [3.0, bad, 2.5]):
        rows = Elements([Row(at=value) for value in values], [None] * len(values), list(range(len(values))))
        columns = rows.as_columns(type_info)
        assert told(lambda: step.sort_out(Elements(columns=columns))) == told(lambda: step.sort_out(rows))  # noqa: B023


def told(act):
    """Return the timestamps, or whether an error says that one is out of range."""
    try:
        return act()[0].timestamps
    except DataError as error:
        return "out of range" in str(error)


def test_a_strategy_without_an_assigner_keeps_the_timestamps_and_refuses_none():
    step = AssignTimestamps("times", 1, MONOTONOUS)
    assert step.sort_out(elements(1))[0].timestamps == [10]
    with pytest.raises(DataError, match=r"timestamp is None"):
        step.sort_out(Elements([1], [None], [0]))


def test_elements_go_down_every_branch_in_order_and_empty_ones_go_nowhere():
    negate = ChainNode(Map("m", lambda v: -v, None), None, (), (edge(2),))
    nothing = ChainNode(Filter("f", lambda v: False, None), None, (), (edge(3),))
    side = ChainNode(None, "late", (), (edge(4),))
    root = ChainNode(None, None, (negate, nothing, side), (edge(1),))
    output = ChannelOutput(root, "split", 0, 0)
    output.push({None: elements(1, 2)})
    assert sent(output) == [(1, [1, 2]), (2, [-1, -2])]
    output.push({"late": elements(3), "other": elements(4)})
    assert sent(output) == [(4, [3])]
    assert [e.number for e in root.all_edges()] == [1, 2, 3, 4]


def test_the_watermark_of_an_assigner_follows_from_the_highest_timestamp_that_it_gave():
    root = ChainNode(None, None, (ChainNode(assign(lambda v, _: v, number=7), None, (), (edge(1, 7),)),))
    (step,) = root.assigners()
    marker = HighestTimestamp(step, "split")
    output = ChannelOutput(root, "split", 0, 0, {7: marker})
    output.push({None: elements(3, 9, 4)})
    output.push({None: elements(5)})
    marker.end_batch(is_asked=True)
    assert marker.reports() == [WatermarkReport("split", END_OF_BATCH, 8, spoke=True)]


def test_a_channel_without_elements_has_nothing_to_report():
    marker = HighestTimestamp(assign(lambda v, _: v), "split")
    marker.end_batch(is_asked=True)
    assert not any(report.says_something for report in marker.reports())


def appending(values):
    """A function that changes the list in each element, and keeps the lists that it was given."""

    def append(pair):
        values.append(pair[1])
        pair[1].append("seen")
        return pair

    return append


def listeners(tag=None):
    """Two listeners of one stream that change their elements in place, and the elements that each was given."""
    one, other = [], []
    nodes = [ChainNode(Map("m", appending(values), None), None, (), (edge(1),)) for values in (one, other)]
    if tag is not None:
        nodes = [ChainNode(None, tag, (node,)) for node in nodes]
    return tuple(nodes), (one, other)


def pairs():
    return Elements([("a", [])], [1], [0])


def test_followers_do_not_share_what_a_tuple_holds():
    nodes, (one, other) = listeners()
    ChannelOutput(ChainNode(None, None, nodes), "split", 0, 0).push({None: pairs()})
    assert one == other == [["seen"]]


def test_those_who_listen_to_one_side_output_do_not_share_its_elements():
    nodes, (one, other) = listeners("late")
    ChannelOutput(ChainNode(None, None, nodes), "split", 0, 0).push({"late": pairs()})
    assert one == other == [["seen"]]


def test_those_who_listen_to_elements_without_a_timestamp_do_not_share_them():
    nodes, (one, other) = listeners("untimed")
    strategy = MONOTONOUS.with_timestamp_assigner(lambda *_: None).with_null_timestamps(OutputTag("untimed"))
    step = AssignTimestamps("times", 1, strategy)
    root = ChainNode(None, None, (ChainNode(step, None, nodes),))
    ChannelOutput(root, "split", 0, 0, {1: HighestTimestamp(step, "split")}).push({None: pairs()})
    assert one == other == [["seen"]]


@pytest.mark.parametrize("limit", [9, 2], ids=["all stay", "some stay"])
def test_an_element_that_a_filter_changes_is_changed_in_its_columns_as_well(limit):
    def marks(row):
        row["n"] = -row["n"]
        return -row["n"] < limit

    kind = Types.ROW_NAMED(["n"], [Types.LONG()])
    batch = Elements(columns=Elements([Row(n=1), Row(n=3)], [5, 6], [0, 1]).as_columns(kind))
    found = Filter("f", marks, None).apply(batch)
    assert [row["n"] for row in found.values] == [-n for n in (1, 3) if n < limit]
    assert found.as_columns(kind).field("n").to_pylist() == [-n for n in (1, 3) if n < limit]
