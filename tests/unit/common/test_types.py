import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.common import Row, RowKind
from eventide.errors import ProgramError

names = st.lists(st.sampled_from("abcdef"), min_size=1, unique=True)


def test_fields_are_found_by_name_by_position_and_as_attributes():
    row = Row(name="Alice", age=11)
    assert (row["name"], row[1], row.age, row[:]) == ("Alice", 11, 11, ["Alice", 11])
    assert "name" in row
    assert "Alice" not in row


def test_a_row_of_names_makes_rows():
    person = Row("name", "age")
    assert person("Alice", 11) == Row(name="Alice", age=11)
    with pytest.raises(ProgramError):
        person("Alice", 11, 12)


def test_a_field_that_is_not_there_is_named():
    with pytest.raises(ProgramError, match="'size'; there are name"):
        Row(name="Alice")["size"]
    with pytest.raises(AttributeError, match="size"):
        _ = Row(name="Alice").size
    with pytest.raises(ProgramError, match="no names"):
        Row(1)["name"]


def test_positional_and_named_fields_do_not_mix():
    with pytest.raises(ProgramError):
        Row(1, name="Alice")


def test_values_can_be_set_and_other_attributes_cannot():
    row = Row(a=1, b=2)
    row["a"], row[1] = 10, 20
    assert list(row) == [10, 20]
    with pytest.raises(AttributeError):
        row.a = 5


def test_as_dict_goes_into_rows_when_asked():
    row = Row(key=1, value=[Row(a=2)])
    assert row.as_dict() == {"key": 1, "value": [Row(a=2)]}
    assert row.as_dict(recursive=True) == {"key": 1, "value": [{"a": 2}]}
    with pytest.raises(TypeError):
        Row(1).as_dict()


def test_names_can_be_given_later():
    row = Row(1, 2)
    row.set_field_names(["a", "b"])
    assert row == Row(a=1, b=2)
    assert row.get_fields_by_names(["b"]) == [2]


def test_the_kind_is_part_of_a_row():
    row = Row.of_kind(RowKind.DELETE, 1)
    assert row != Row(1)
    assert pickle.loads(pickle.dumps(row)).get_row_kind() is RowKind.DELETE
    assert [str(kind) for kind in RowKind] == ["+I", "-U", "+U", "-D"]


@given(names, st.randoms(use_true_random=False))
def test_named_rows_are_equal_and_hash_alike_in_any_order(fields, random):
    shuffled = random.sample(fields, len(fields))
    one, other = Row(**{n: ord(n) for n in fields}), Row(**{n: ord(n) for n in shuffled})
    assert one == other
    assert hash(one) == hash(other)


@given(st.one_of(st.none(), names), st.lists(st.integers(), min_size=6, max_size=6))
def test_a_row_survives_pickling(fields, values):
    row = Row.of_fields(fields, values[: len(fields)] if fields else values)
    copy = pickle.loads(pickle.dumps(row))
    assert copy == row
    assert repr(copy) == repr(row)


def test_a_field_found_as_an_attribute_once_is_found_again_and_only_where_it_is():
    assert [Row(temperature=i).temperature for i in range(3)] == [0, 1, 2]
    assert Row(humidity=1, temperature=2).temperature == 2
    for row in (Row(1), Row(humidity=1)):
        with pytest.raises(AttributeError, match="temperature"):
            _ = row.temperature


def test_a_copy_of_a_row_can_be_changed_by_itself():
    row = Row.of_kind(RowKind.DELETE, a=1)
    other = copy.copy(row)
    other["a"] = 2
    assert (row, other) == (Row.of_kind(RowKind.DELETE, a=1), Row.of_kind(RowKind.DELETE, a=2))
