"""Elements leave as one value for each key and window, reduced as they came, and arrive as they were sent."""

from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.common import Row, Types
from eventide.datastream.functions import ReduceFunction
from eventide.errors import DataError
from eventide.runtime.chain.chain import ChainNode, ChannelOutput
from eventide.runtime.columnar.panes import RegularPanes
from eventide.runtime.elements.elements import Columns, Elements
from eventide.runtime.elements.keys import key_group, subtask_of
from eventide.runtime.exchange.frames import Edge
from eventide.runtime.window import reducing
from eventide.runtime.window.contents import Accumulated, Reduced
from eventide.runtime.window.reducing import Partials, PartialsCodec, ReducingPartitioner

PICKLED = Types.PICKLED_BYTE_ARRAY()
TENS, BY_FIVE = RegularPanes(10, 10), RegularPanes(10, 5)


def joined(a, b):
    return a[0], a[1] + b[1]


def partitioner(panes=TENS, function=joined, select=lambda e: e[0], kind=PICKLED):
    reduced = Reduced(ReduceFunction.of(function))
    return ReducingPartitioner("sums", reduced, panes, PartialsCodec(kind, PICKLED), select, max_parallelism=16)


def elements(*entries):
    return Elements([value for value, _ in entries], [time for _, time in entries], list(range(len(entries))))


class Task:
    """Sends elements over one edge."""

    def __init__(self, described, subtasks=1):
        self.edge = Edge(1, 9, "events", subtasks, described)
        self.output = ChannelOutput(ChainNode(edges=(self.edge,)), "s", 0, 0)

    def send(self, batch):
        self.output.push({None: batch})

    def sent_of(self, batch):
        self.send(batch)
        return self.sent()

    def parts(self):
        return [(f.subtask, self.edge.partitioner.codec.decode(f.content)) for f in self.output.element_frames(0)]

    def sent(self):
        """The frames that left: each pane, key and value; and how many elements there were."""
        parts = [part for _, part in self.parts()]
        rows = [row for part in parts for row in zip(part.panes, part.keys, part.values, strict=True)]
        return rows, sum(map(len, parts))


def test_one_value_leaves_for_each_key_and_window():
    task = Task(partitioner())
    task.send(elements((("a", "1"), 3), (("b", "2"), 12), (("a", "3"), 9)))
    task.send(elements((("a", "4"), 0)))
    assert task.sent() == ([(0, "a", ("a", "134")), (10, "b", ("b", "2"))], 4)
    assert task.sent() == ([], 0)


def test_where_windows_overlap_a_key_is_reduced_as_long_as_its_elements_are_of_one_pane():
    task = Task(partitioner(BY_FIVE))
    task.send(elements((("a", "1"), 3), (("a", "2"), 4), (("b", "x"), 9)))
    task.send(elements((("a", "3"), 7), (("a", "4"), 2), (("b", "y"), 8), (("a", "5"), 0)))
    assert task.sent() == (
        [(0, "a", ("a", "12")), (5, "a", ("a", "3")), (0, "a", ("a", "45")), (5, "b", ("b", "xy"))],
        7,
    )


def test_each_key_goes_to_its_subtask_and_elements_are_counted_in_one_of_them():
    task = Task(partitioner(), subtasks=3)
    keys = [f"k{i}" for i in range(20)]
    task.send(elements(*[((key, "x"), 1) for key in keys], *[((key, "y"), 11) for key in keys]))
    parts = task.parts()
    assert sorted(subtask for subtask, _ in parts) == [0, 1, 2]
    for subtask, part in parts:
        assert {subtask_of(key_group(key, 16), 16, 3) for key in part.keys} == {subtask}
    assert sum(len(part) for _, part in parts) == 40


def test_without_keys_all_elements_are_one():
    task = Task(partitioner(select=None))
    task.send(elements((("a", "1"), 3), (("b", "2"), 4)))
    assert task.sent() == ([(0, None, ("a", "12"))], 2)


def test_many_values_leave_in_frames_that_keep_their_order(monkeypatch):
    monkeypatch.setattr(reducing, "_VALUES_OF_A_FRAME", 2)
    monkeypatch.setattr(reducing, "_VALUES_AT_ONCE", 4)
    task = Task(partitioner(function=lambda a, b: (a[0], f"({a[1]}{b[1]})")))
    for i in range(3):
        task.send(elements(*[((key, str(i)), 1) for key in "abcde"]))
    parts = [part for _, part in task.parts()]
    assert [part.keys for part in parts] == [["a", "b"], ["c", "d"], ["e"]] * 3
    assert [part.first for part in parts] == sorted({part.first for part in parts})
    assert [value for part in parts[::3] for _, value in part.values] == ["0", "0", "1", "1", "2", "2"]
    assert sum(len(part) for part in parts) == 15


def test_elements_become_what_they_are_declared_to_be_before_the_function_sees_them():
    kind = Types.ROW_NAMED(["k", "n"], [Types.STRING(), Types.DOUBLE()])
    task = Task(partitioner(function=lambda a, b: Row(k=a.k, n=a.n + b.n), select=lambda e: e["k"], kind=kind))
    task.send(elements(({"k": "a", "n": 1}, 1), ({"k": "a", "n": 2}, 2)))
    assert task.sent() == ([(0, "a", Row(k="a", n=3.0))], 2)


def test_columns_are_reduced_with_the_times_that_they_have():
    kind = Types.TUPLE([Types.STRING(), Types.STRING()])
    task = Task(partitioner(kind=kind))
    columns = Columns(kind, kind.to_arrow([("a", "1"), ("a", "2")]), pa.array([5, 6]), pa.array([0, 1]))
    task.send(Elements(columns=columns))
    assert task.sent() == ([(0, "a", ("a", "12"))], 2)


@pytest.mark.parametrize(
    ("panes", "left"), [(TENS, [(10, "a", ("a", 3.0))]), (BY_FIVE, [(10, "a", ("a", 9)), (10, "a", ("a", 3))])]
)
def test_where_a_function_raises_the_error_leaves_in_place_of_its_pane(panes, left):
    """The operator alone knows whether the pane is late: then the function should not have been called."""

    def divided(a, b):
        return a[0], a[1] / b[1]

    task = Task(partitioner(panes, divided), subtasks=2)
    task.send(elements((("a", 8), 1), (("a", 9), 11), (("b", 1), 2), (("a", 0), 3), (("a", 0), 4)))
    task.send(elements((("b", 5), 2), (("a", 3), 12)))
    parts = [part for _, part in task.parts()]
    rows = [row for part in parts for row in zip(part.panes, part.keys, part.values, strict=True)]
    assert (rows, sum(map(len, parts))) == (left, 7)
    ((pane, kind, said),) = [failure for part in parts for failure in part.failures]
    assert (pane, kind) == (0, "UserFunctionError")
    assert "in operator 'sums', while it handled an element (key 'a', element ('a', 0)): " in said
    assert "ZeroDivisionError" in said


@pytest.mark.parametrize("kind", [PICKLED, Types.LONG()])
@pytest.mark.parametrize("panes", [TENS, BY_FIVE])
def test_what_was_reduced_since_an_element_that_was_none_says_so(panes, kind):
    task = Task(partitioner(panes, lambda a, b: a + b, select=lambda e: "a", kind=kind))
    task.send(elements((1, 1), (None, 1), (2, 2)))
    task.send(elements((4, 3), (8, 11), (16, 12)))
    assert task.sent() == ([(0, "a", Accumulated(6, ())), (10, "a", 24)], 6)


def test_an_error_leaves_where_no_value_does_and_only_once():
    task = Task(partitioner(function=lambda a, b: 1 / b), subtasks=2)
    task.send(elements((("a", 1), 1), (("a", 2), 2), (("b", 1), 3)))
    ((_, part),) = task.parts()
    assert (part.keys, part.counts, [pane for pane, *_ in part.failures]) == ([], [(0, 3)], [0])
    task.send(elements((("a", 1), 1)))
    assert task.sent() == ([(0, "a", ("a", 1))], 1)


def test_an_element_without_a_timestamp_is_named():
    with pytest.raises(DataError, match=r"in operator 'sums'.*\(element \('b', 1\)\): the element has no timestamp"):
        Task(partitioner()).send(elements((("a", 1), 1), (("b", 1), None)))


def test_an_element_that_does_not_have_its_declared_type_is_named():
    task = Task(partitioner(kind=Types.TUPLE([Types.STRING(), Types.INT()])))
    said = r"in operator 'events', when its elements were converted to their declared type: element 1, field f1"
    with pytest.raises(DataError, match=said):
        task.send(elements((("a", 1), 1), (("b", 1.5), 1)))


@pytest.mark.parametrize(
    ("key", "said"), [([1], "is a list that cannot be hashed"), (object(), "no hash that is the same in every process")]
)
def test_a_bad_key_is_refused(key, said):
    task = Task(partitioner(select=lambda e: key))
    with pytest.raises(DataError, match=rf"in operator 'events', when a key was extracted.*{said}"):
        task.sent_of(elements((("a", 1), 1)))


PAIR = Types.TUPLE([Types.STRING(), Types.INT()])
NAMED = Types.ROW_NAMED(["n"], [Types.INT()])


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


FAILURES = st.lists(st.tuples(MS, st.just("DataError"), st.text()), max_size=2)


@given(st.sampled_from([PAIR, PICKLED]), st.sampled_from([Types.STRING(), PICKLED]), REDUCED, COUNTS, MS, FAILURES)
def test_whatever_is_declared_all_of_it_comes_back(kind, key_kind, reduced, counts, first, failures):
    keys, values, panes = (list(column) for column in zip(*reduced, strict=True)) if reduced else ([], [], [])
    sent = Partials(keys, values, panes, counts, first, failures)
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
