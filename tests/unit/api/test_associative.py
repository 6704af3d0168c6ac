"""A reduce function says of itself whether it is associative."""

import pytest

from eventide.datastream.functions import ReduceFunction, associative, not_associative
from eventide.errors import ProgramError


class Longest(ReduceFunction):
    """Keeps the longer text."""

    def __init__(self):
        self.life = []

    def open(self, runtime_context):
        self.life.append("open")

    def reduce(self, value1, value2):
        return max(value1, value2, key=len)


def test_nothing_is_said_by_default():
    assert Longest().is_associative is None
    assert ReduceFunction.of(max).is_associative is None


@pytest.mark.parametrize(("say", "said"), [(associative, True), (not_associative, False)])
def test_a_function_says_what_it_was_wrapped_in_and_the_original_does_not(say, said):
    original = Longest()
    function = say(original)
    assert (function.is_associative, original.is_associative) == (said, None)
    assert function.reduce("to", "be!") == "be!"
    assert say(max).is_associative is said
    assert ReduceFunction.of(function) is function


def test_the_later_word_counts():
    assert not_associative(associative(max)).is_associative is False


def test_as_a_decorator_it_leaves_a_function_that_can_be_called():
    @associative
    def total(a, b):
        return a + b

    assert total(40, 2) == total.reduce(40, 2) == 42
    assert total.is_associative


@pytest.mark.parametrize(
    ("given", "message"), [(Longest, r"got the class .*set is_associative in the class"), (5, r"got 5")]
)
def test_what_is_no_function_of_two_values_is_refused(given, message):
    with pytest.raises(ProgramError, match=message):
        associative(given)
