"""Side outputs of `map` and `flat_map`, which PyFlink has too: pairs of a tag and a value."""

import pytest

from eventide.common import Types
from eventide.datastream import OutputTag
from eventide.datastream.async_data_stream import AsyncDataStream
from eventide.datastream.functions import AsyncFunction, FlatMapFunction, MapFunction, in_python
from eventide.errors import EventideError
from eventide.testing import local_environment

TEXT = OutputTag("text", Types.STRING())
LISTS = OutputTag("lists")
BAD = OutputTag("bad")


def stream(kind):
    return local_environment().from_collection([1, 2, 3], kind)


def collected(*streams):
    """The elements of several streams of a program, each of which is run by itself."""
    return [list(one.execute_and_collect()) for one in streams]


def both(value):
    yield value
    yield TEXT, str(value)


class Both(FlatMapFunction):
    """Gives each element twice."""

    def flat_map(self, value):
        return both(value)


class SecondAside(MapFunction):
    """Gives one element to the side output."""

    def map(self, value):
        return (TEXT, str(value)) if value == 2 else value


@pytest.mark.parametrize("kind", [None, Types.INT()])
@pytest.mark.parametrize("function", [both, in_python(both), Both()])
@pytest.mark.parametrize("has_keys", [False, True])
def test_a_flat_map_gives_to_the_main_output_and_to_side_outputs(kind, function, has_keys):
    elements = stream(kind).key_by(lambda value: value) if has_keys else stream(kind)
    given = elements.flat_map(function, Types.INT())
    aside = given.get_side_output(TEXT)
    assert aside.get_type() == Types.STRING()
    assert list(map(sorted, collected(given, aside))) == [[1, 2, 3], ["1", "2", "3"]]


@pytest.mark.parametrize("kind", [None, Types.INT()])
@pytest.mark.parametrize("function", [lambda v: (TEXT, str(v)) if v == 2 else v, SecondAside()])
@pytest.mark.parametrize("declared", [None, Types.LONG()])
def test_a_map_gives_each_result_to_one_output(kind, function, declared):
    given = stream(kind).map(function, declared)
    assert collected(given, given.get_side_output(TEXT)) == [[1, 3], ["2"]]


def test_what_no_one_takes_from_a_side_output_is_left_out():
    assert collected(stream(None).flat_map(both)) == [[1, 2, 3]]


def test_values_of_side_outputs_are_of_their_type():
    given = stream(None).map(lambda value: (TEXT, value))
    with pytest.raises(EventideError, match="expected STRING, got 1"):
        list(given.get_side_output(TEXT).execute_and_collect())


def test_a_list_that_grows_is_another_one_each_time_on_side_outputs_too():
    growing = []

    def grown(value):
        growing.append(value)
        yield LISTS, growing
        yield growing

    given = stream(None).flat_map(grown)
    expected = [[1], [1, 2], [1, 2, 3]]
    assert list(given.get_side_output(LISTS).execute_and_collect()) == expected
    growing.clear()
    assert list(given.execute_and_collect()) == expected


def test_with_dead_letters_there_are_side_outputs_too():
    def by_sign(value):
        return (TEXT, str(value)) if value == 2 else 6 // (value - 1)

    given = stream(None).map(by_sign).side_output_dead_letters(BAD)
    main, aside, letters = collected(given, given.get_side_output(TEXT), given.get_side_output(BAD))
    assert (main, aside, [letter.element for letter in letters]) == ([3], ["2"], [1])


class Asks(AsyncFunction):
    """Gives a pair for a side output."""

    async def async_invoke(self, value):
        return [(TEXT, str(value))]


def test_an_asynchronous_function_that_gives_to_a_side_output_is_refused():
    waiting = AsyncDataStream.ordered_wait(stream(None), Asks(), 1_000)
    with pytest.raises(EventideError, match="an asynchronous function has no side outputs"):
        list(waiting.execute_and_collect())
