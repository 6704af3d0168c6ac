import pickle

import pytest

from eventide.errors import DataError, EventideError, ProgramError, StateError, TypeMismatch, UserFunctionError


@pytest.mark.parametrize("kind", [ProgramError, DataError, UserFunctionError, StateError])
def test_every_error_belongs_to_the_tree_and_pickles(kind):
    error = pickle.loads(pickle.dumps(kind("what, where, what to do")))
    assert isinstance(error, EventideError)
    assert str(error) == "what, where, what to do"


def test_a_program_error_is_a_value_error():
    assert issubclass(ProgramError, ValueError)


def test_a_type_mismatch_says_where_and_pickles():
    error = pickle.loads(pickle.dumps(TypeMismatch(2, 1.5, "INT", "user.age")))
    assert (error.index, error.value, error.expected, error.path) == (2, 1.5, "INT", "user.age")
    assert str(error) == "element 2, field user.age: expected INT, got 1.5 (float)"
