"""Programs travel by value; what cannot travel is refused with advice."""

import pickle
import threading

import pytest

from eventide.errors import DataError, EventideError, ProgramError, StateError, UserFunctionError
from eventide.runtime.invoke import calling, shown, user_function_error
from eventide.runtime.metrics import Metrics, add_up
from eventide.runtime.pickles import dumps_program, loads_program


def test_functions_and_local_classes_travel():
    class Local:
        def double(self, value):
            return 2 * value

    assert loads_program(dumps_program(Local().double, "map")).part(21) == 42


def test_a_function_that_holds_a_lock_is_refused_with_advice():
    lock = threading.Lock()
    with pytest.raises(
        ProgramError, match=r"stage 1 cannot be sent to the workers: .*lock.*create those in its open\(\) method"
    ):
        dumps_program(lambda value: lock, "stage 1")


@pytest.mark.parametrize("kind", [DataError, StateError, ProgramError])
def test_errors_of_our_own_keep_their_kind_and_get_the_place(kind):
    error = user_function_error("map", kind("bad"), during="while it slept", element=1)
    assert (type(error), str(error)) == (kind, "in operator 'map', while it slept (element 1): bad")


def test_other_errors_come_with_their_traceback():
    with (
        pytest.raises(
            UserFunctionError,
            match=(
                r"(?s)in operator 'map', while it slept: the user's function raised "
                r"KeyError.*Traceback.*raise KeyError"
            ),
        ),
        calling("map", during="while it slept"),
    ):
        raise KeyError("user")


def test_every_error_pickles():
    for error in (DataError("a"), UserFunctionError("b"), user_function_error("m", ValueError("x"), during="d")):
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again)) == (type(error), str(error))
        assert isinstance(again, EventideError)


def test_long_values_are_cut_in_messages():
    assert shown("short") == "'short'"
    assert len(shown("x" * 10_000)) < 600
    assert shown("x" * 10_000).endswith("… (10002 characters)")


def test_counters_add_up_by_operator():
    metrics = Metrics()
    metrics.count("a", "in", 2)
    metrics.count("a", "in")
    metrics.count("b", "in", 0)
    assert metrics.counters() == {"a": {"in": 3}}
    assert add_up([{"a": {"in": 3}}, {"a": {"in": 1, "out": 1}}, {"b": {}}]) == {"a": {"in": 4, "out": 1}, "b": {}}


def test_a_value_whose_repr_raises_does_not_hide_the_error():
    class Shy:
        def __repr__(self):
            raise ValueError("no")

    assert shown(Shy()) == "<a Shy whose repr raised ValueError('no')>"
