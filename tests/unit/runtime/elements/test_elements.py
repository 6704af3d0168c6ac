"""A batch says the same in both of its faces, and makes the one for Python when it is asked for it."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.common import Row, Types
from eventide.errors import TypeMismatch
from eventide.runtime.elements.elements import Elements

ROW = Types.ROW_NAMED(["name", "n"], [Types.STRING(), Types.LONG()])
ROWS = st.lists(st.tuples(st.builds(Row, name=st.text(), n=st.integers(-9, 9)), st.none() | st.integers(-9, 9)))


def of_lists(rows, keys=None):
    return Elements([value for value, _ in rows], [time for _, time in rows], list(range(len(rows))), keys)


def of_columns(rows, keys=None):
    return Elements(keys=keys, columns=of_lists(rows).as_columns(ROW))


@given(ROWS, st.booleans(), st.data())
def test_both_faces_say_the_same(rows, has_keys, data):
    keys = [f"k{i}" for i in range(len(rows))] if has_keys else None
    lists, columns = of_lists(rows, keys), of_columns(rows, keys)
    assert len(lists) == len(columns)
    indices = data.draw(st.lists(st.integers(0, len(rows) - 1))) if rows else []
    start, size, by = data.draw(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 9)))
    assert columns.at(indices) == lists.at(indices)
    assert columns.slice(start, size) == lists.slice(start, size)
    assert columns.shifted(by) == lists.shifted(by)
    assert columns.copy() == lists.copy()
    assert columns.is_unread
    assert columns.between(start, start + size) == lists.between(start, start + size)
    assert columns == lists
    assert not columns.is_unread
    assert columns.at(indices) == lists.at(indices)
    assert columns.shifted(by) == lists.shifted(by)


@given(ROWS)
def test_pieces_are_all_of_the_elements(rows):
    together = Elements()
    for piece in of_columns(rows).pieces():
        together.extend(piece)
    assert together == of_lists(rows)


def test_counting_and_the_first_number_need_no_python_objects():
    batch = of_columns([(Row(name="a", n=1), 7)]).shifted(5)
    assert (len(batch), batch.first, batch.is_unread) == (1, 5, True)


def test_a_copy_shares_no_object_with_its_original():
    for batch in (of_lists([(Row(name="a", n=1), 7)]), of_columns([(Row(name="a", n=1), 7)])):
        batch.copy().values[0]["n"] = 2
        assert batch.values == [Row(name="a", n=1)]


def test_values_of_their_own_leave_the_columns_behind():
    batch = of_columns([(Row(name="a", n=1), 7)])
    batch.values = [Row(name="b", n=2)]
    assert batch.columns is None
    assert batch == Elements([Row(name="b", n=2)], [7], [0])


def test_new_timestamps_are_those_of_both_faces():
    batch = of_columns([(Row(name="a", n=1), None), (Row(name="b", n=2), None)])
    values = batch.values
    timed = batch.with_timestamps(pa.array([3, 4], pa.int64()))
    assert (timed.timestamps, timed.columns.timestamps.to_pylist()) == ([3, 4], [3, 4])
    assert timed.values is values


def test_lists_become_columns_of_the_declared_type_alone():
    with pytest.raises(TypeMismatch):
        Elements([5], [None], [0]).as_columns(ROW)
    with pytest.raises(ValueError, match="lists, and no columns"):
        Elements([5], [None], [0]).with_timestamps(pa.array([1]))
