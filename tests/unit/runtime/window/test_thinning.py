"""Elements that a reduce function does not choose stay in their task, and the results are those of all elements."""

from collections import Counter
from functools import reduce

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.common import Row, Time, Types, WatermarkStrategy
from eventide.datastream.functions import in_python
from eventide.datastream.window import SlidingEventTimeWindows, TumblingEventTimeWindows
from eventide.runtime.columnar.panes import RegularPanes
from eventide.runtime.elements.codec import ElementCodec
from eventide.runtime.elements.elements import Columns, Elements, interleave
from eventide.runtime.exchange.partitioners import KeyGroupPartitioner
from eventide.runtime.tracing.folds import fold_of
from eventide.runtime.window import thinning
from eventide.runtime.window.thinning import Thinned, ThinningPartitioner
from eventide.testing import local_environment
from support.columns import in_columns

TRADE = Types.ROW_NAMED(
    ["key", "ts", "n", "small", "name"], [Types.STRING(), Types.LONG(), Types.LONG(), Types.INT(), Types.STRING()]
)
TRADES = st.builds(
    Row,
    key=st.sampled_from("abß"),
    ts=st.integers(0, 29),
    n=st.integers(-5, 5) | st.sampled_from([2**62, -(2**62)]),
    small=st.integers(-2, 2) | st.just(2**31 - 1) | st.just(-(2**31)),
    name=st.sampled_from(["", "x", "y", None]),
)
SPLITS = st.lists(st.lists(st.lists(TRADES, max_size=9), max_size=3), min_size=1, max_size=3)
"""The elements of each split, as they come to its writer."""

FUNCTIONS = {
    "the last": lambda a, b: b,
    "the first": lambda a, b: a,
    "the highest": lambda a, b: a if a["n"] >= b["n"] else b,
    "the last of the lowest": lambda a, b: b if b["small"] <= a["small"] else a,
    "of several": lambda a, b: Row(
        key=a["key"], ts=b["ts"], n=a["n"] + b["n"], small=min(a["small"], b["small"]), name=a["name"]
    ),
    "sums": lambda a, b: Row(
        key=b["key"], ts=max(a["ts"], b["ts"]), n=b["n"] + a["n"], small=a["small"] + b["small"], name=b["name"]
    ),
}
PANES = RegularPanes(10, 10)


def partitioner(function, codec=None):
    codec = ElementCodec(TRADE, Types.STRING()) if codec is None else codec
    through = KeyGroupPartitioner(codec, lambda e: e["key"], 128, key_columns=("key",))
    return ThinningPartitioner(through, function, PANES)


def elements_of(rows, first=0):
    times, numbers = pa.array([row["ts"] for row in rows], pa.int64()), range(first, first + len(rows))
    return Elements(columns=Columns(TRADE, TRADE.to_arrow(rows), times, pa.array(numbers, pa.int64())))


def sent(function, batches, subtasks=2):
    """Payloads that arrive of a split's elements, each with its subtask."""
    way = partitioner(function)
    writer, first = way.open("w", 0, subtasks), 0
    for rows in batches:
        if rows:
            writer.add(elements_of(rows, first))
            first += len(rows)
    return [(subtask, way.codec.decode(content)) for subtask, content in writer.take()]


def folded(function, rows):
    """The left fold of the elements of each key and pane."""
    groups = {}
    for row in rows:
        groups.setdefault((row["key"], row["ts"] // 10), []).append(row)
    return {group: reduce(function, some) for group, some in groups.items()}


@pytest.mark.parametrize("name", FUNCTIONS)
@settings(max_examples=40)
@given(splits=SPLITS, at_once=st.integers(1, 12))
def test_the_fold_of_what_is_left_is_that_of_all_elements(name, splits, at_once):
    """In the order in which elements of several splits take turns; and each element is counted."""
    function = FUNCTIONS[name]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(thinning, "_WORTH_IT", 1)
        patch.setattr(thinning, "_AT_ONCE", at_once)
        arrived = [part for batches in splits for part in sent(function, batches)]
    whole = [elements_of([row for rows in batches for row in rows]) for batches in splits]
    assert sum(len(part) for _, part in arrived) == sum(map(len, whole))
    found = {}
    for subtask in (0, 1):
        mine = [part.elements for at, part in arrived if at == subtask]
        found |= folded(function, interleave(mine).values if mine else [])
    assert found == folded(function, interleave(whole).values)


def test_few_elements_are_left_of_many():
    rows = [Row(key="ab"[i % 2], ts=i % 30, n=i % 11, small=1, name=None) for i in range(3_000)]
    left = {name: sum(len(part.elements) for _, part in sent(function, [rows])) for name, function in FUNCTIONS.items()}
    groups = 6
    assert left == {
        "the last": groups,
        "the first": groups,
        "the highest": groups,
        "the last of the lowest": groups,
        "of several": 2 * groups,  # the last one has its time, and the first one all else
        "sums": groups,
    }
    (_, one), *others = sent(FUNCTIONS["the last"], [rows])
    assert Counter(dict(one.left_out)) == {0: 998, 10: 998, 20: 998}
    assert not any(part.left_out for _, part in others)


def test_elements_that_come_as_objects_and_unlike_ones_stay_in_their_order():
    rows = [Row(key="a", ts=1, n=i, small=1, name="") for i in range(5_000)]
    way = partitioner(FUNCTIONS["the first"])
    writer = way.open("w", 0, 1)
    writer.add(elements_of(rows[:2_000]))
    assert writer.size == 2_000
    writer.add(Elements(rows[2_000:2_002], [1, 1], [2_000, 2_001]))
    writer.add(elements_of(rows[2_002:], 2_002))
    values = [value["n"] for _, content in writer.take() for value in way.codec.decode(content).elements.values]
    assert writer.size == 0
    assert values == [*range(2_002), 2_002]


def test_where_few_would_be_left_out_all_go():
    rows = [Row(key=str(i), ts=1, n=i, small=1, name="") for i in range(70_000)]
    way = partitioner(FUNCTIONS["the last"])
    writer = way.open("w", 0, 1)
    for begin in range(0, 70_000, 35_000):
        writer.add(elements_of(rows[begin : begin + 35_000], begin))
    assert writer.size == 70_000
    assert sum(len(way.codec.decode(content).elements) for _, content in writer.take()) == 70_000


def test_a_payload_is_cut_where_its_elements_are():
    thinned = Thinned(elements_of([Row(key="a", ts=1, n=i, small=1, name="") for i in range(4)], 5), [(0, 7)])
    assert (len(thinned), thinned.first, thinned.is_unread) == (11, 5, True)
    assert thinned.cut(0, 4) == (None, 0)
    one, rest = thinned.cut(0, 6)
    other, last = thinned.cut(rest, 99)
    assert ([*one.numbers()], one.left_out, [*other.numbers()], other.left_out) == ([5, 6], [(0, 7)], [7, 8], [])
    assert last is None


@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: a if a[1] >= b[1] else b,
        lambda a, b: (a[0], a[1] + b[1], b[2], b[3]),
        lambda a, b: max(a, b, key=lambda e: (e[2], e[3])),
    ],
    ids=["compares floating-point numbers", "adds them up", "compares two fields"],
)
def test_functions_that_need_each_element(function):
    kind = Types.TUPLE([Types.STRING(), Types.DOUBLE(), Types.LONG(), Types.LONG()])
    assert not fold_of(function, kind).takes_few


WINDOWS = [
    TumblingEventTimeWindows.of(Time.milliseconds(10)),
    SlidingEventTimeWindows.of(Time.milliseconds(20), Time.milliseconds(5)),
]


def run(function, windows):
    """A job over two splits, which have late elements."""
    rows = [Row(key="ab"[i * 7 % 2], ts=i // 4 - 40 * (i % 97 == 0), n=i * 31 % 17, small=1, name=None)
            for i in range(6_000)]  # fmt: skip
    env = local_environment()
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("ts")
    source = env.from_source(in_columns(TRADE, rows[:4_000], rows[4_000:], splits=2), strategy, "trades")
    source.key_by("key").window(windows).reduce(function).name("chosen").uid("chosen").print()
    return env


@pytest.mark.parametrize("windows", WINDOWS, ids=repr)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_job_gives_the_same_and_counts_what_is_late(name, windows, capsys):
    found = []
    for function in (FUNCTIONS[name], in_python(FUNCTIONS[name])):
        result = run(function, windows).execute()
        found.append((sorted(capsys.readouterr().out.splitlines()), result.metrics["chosen"]))
    (ours, our_metrics), (theirs, their_metrics) = found
    assert ours == theirs
    assert our_metrics["numLateRecordsDropped"] == their_metrics["numLateRecordsDropped"] > 0
    assert our_metrics["numRecordsIn"] == their_metrics["numRecordsIn"] == 6_000
