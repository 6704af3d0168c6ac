"""The reason of each thing that `explain` says runs in Python, and the place of its function in the program."""

import functools
import re

import pyarrow.compute as pc
import pytest

from eventide.aggregates import count, sum_
from eventide.common import Duration, Row, Types, WatermarkStrategy
from eventide.datastream import AsyncDataStream, OutputTag
from eventide.datastream.functions import (
    AsyncFunction,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    ProcessWindowFunction,
    ReduceFunction,
    in_python,
    not_associative,
)
from eventide.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows
from eventide.joins import left, right
from eventide.runtime.pickles import captured
from eventide.runtime.tracing.reasons import place_of
from eventide.testing import local_environment

ORDER = Types.ROW_NAMED(["user", "at", "amount"], [Types.STRING(), Types.LONG(), Types.LONG()])
TENS = TumblingEventTimeWindows.of(10)
LETTERS = OutputTag("letters")
HERE = re.compile(r"\(line (\d+) of test_reasons\.py\)")


def line_of(function):
    return function.__code__.co_firstlineno


def prints(value, *more):
    print(value)
    return value


class Prints:
    def __init__(self):
        self.calls = 0

    def __call__(self, value, *more):
        return prints(value)


class Maps(MapFunction):
    def map(self, value):
        return prints(value)


class Selects(KeySelector):
    def get_key(self, value):
        return value.user


class Reduces(ReduceFunction):
    def reduce(self, value1, value2):
        return prints(value1)


class Keyed(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield value


class Contents(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key


class Waits(AsyncFunction):
    async def async_invoke(self, value):
        return [value]


@functools.wraps(prints)
def wrapped(value, *more):
    return prints(value)


@pytest.mark.parametrize(
    ("function", "written"),
    [
        (prints, prints),
        (in_python(prints), prints),
        (functools.partial(prints, 1), prints),
        (wrapped, prints),
        (Prints(), Prints.__call__),
        (functools.partial(Prints()), Prints.__call__),
        (Prints().__call__, Prints.__call__),
        (Maps().map, Maps.map),
        (Maps(), Maps.map),
        (Maps, Maps.map),
        (ReduceFunction.of(prints), prints),
        (not_associative(Reduces()), Reduces.reduce),
    ],
)
def test_a_function_is_named_by_its_line_and_file(function, written):
    assert place_of(function) == f" (line {line_of(written)} of test_reasons.py)"


@pytest.mark.parametrize("function", [len, max, functools.partial(len), str.upper, ReduceFunction.of(max), ORDER])
def test_what_the_program_has_no_code_of_has_no_place(function):
    assert place_of(function) == ""


def test_code_that_is_made_without_a_module_has_the_place_that_it_was_given():
    made = {}
    exec(compile("def first(value):\n    return value[0]", "/made/here.py", "exec"), made)
    assert made["first"].__module__ in (None, "builtins")
    assert place_of(made["first"]) == " (line 1 of here.py)"


def test_the_copy_of_a_function_that_travels_keeps_its_file():
    select = lambda value: [part for part in value]  # noqa: E731, C416 - has code within its code
    copy = captured(select, "a function")
    assert copy.__code__ is not select.__code__
    assert place_of(copy) == f" (line {line_of(select)} of test_reasons.py)"
    with pytest.raises(TypeError) as caught:
        copy(None)
    assert str(caught.traceback[-1].path) == __file__


def orders():
    in_time = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("at")
    stream = local_environment().from_collection([Row("ann", 1, 5)], ORDER)
    return stream.assign_timestamps_and_watermarks(in_time)


def timed_by(function):
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(function)
    return orders().assign_timestamps_and_watermarks(strategy)


def windows(key):
    return orders().key_by(key).window(TENS)


def rolled(key, function):
    return orders().key_by(key).reduce(function)


def in_interval(key):
    stream = orders()
    joined = stream.key_by(key).interval_join(stream.key_by("user")).between(-5, 5)
    return joined.select(left("user"), right("amount"))


def as_of(function):
    keyed = orders().key_by("user")
    return keyed.as_of_join(keyed).apply(function)


COMPUTED = lambda e: e.at % 2  # noqa: E731 - as a user writes it
HALVES = lambda e: e.at / 2  # noqa: E731
LAST = lambda a, b: b  # noqa: E731
LATEST = lambda a, b: max(a, b, key=lambda e: (e.at, e.user))  # noqa: E731


@pytest.mark.parametrize(
    ("build", "reason", "written"),
    [
        (lambda: orders().map(prints), "it uses print", prints),
        (lambda: orders().map(Prints()), "it is a Prints, not a function of Python", Prints.__call__),
        (lambda: orders().map(functools.partial(prints, 1)), "it is a partial, not a function of Python", prints),
        (lambda: orders().map(Maps()), "the global 'prints'|it uses print", Maps.map),
        (lambda: orders().filter(in_python(prints)), "the program says in_python", prints),
        (lambda: orders().map(prints).map(COMPUTED), "the type of its elements is not declared", COMPUTED),
        (lambda: timed_by(prints), "it uses print", prints),
        (
            lambda: AsyncDataStream.unordered_wait(orders(), Waits(), Duration.of_seconds(1)),
            "an asynchronous function is called with each element",
            Waits.async_invoke,
        ),
        (lambda: rolled(prints, LAST), "the key selector is Python: it uses print", prints),
        (lambda: rolled(Selects(), LAST), "the key selector is Python: it is an object", Selects.get_key),
        (lambda: rolled("user", Reduces()), "it uses print", Reduces.reduce),
        (lambda: orders().map(prints).key_by(COMPUTED).reduce(LAST), "its elements is not declared", LAST),
        (lambda: windows(prints).aggregate(count()), "the key selector is Python: it uses print", prints),
        (lambda: windows(HALVES).aggregate(count()), "columns do not tell keys of type DOUBLE apart", HALVES),
        (lambda: windows("user").reduce(LATEST), "depends on the order of elements of several splits", LATEST),
        (lambda: windows("user").reduce(LAST), "without those that the function does not choose", LAST),
        (lambda: windows("user").reduce(not_associative(LAST)), "says that it is not associative", LAST),
        (lambda: windows("user").process(Contents()), "Contents", Contents.process),
        (
            lambda: orders().key_by("user").window(EventTimeSessionWindows.with_dynamic_gap(prints)).aggregate(count()),
            "gaps in Python, because it uses print",
            prints,
        ),
        (lambda: orders().key_by(COMPUTED).sorted_by_event_time(), "it does not return fields", COMPUTED),
        (lambda: orders().key_by("user").process(Keyed()), "Keyed", Keyed.process_element),
        (lambda: in_interval(prints), "the key selector is Python: it uses print", prints),
        (lambda: as_of(prints), "its function", prints),
        (
            lambda: orders().key_by(COMPUTED).side_output_dead_letters(LETTERS).reduce(LAST),
            "each key is looked at, so that bad ones become dead letters",
            COMPUTED,
        ),
    ],
)
def test_explain_names_the_reason_and_the_line_of_what_runs_in_python(build, reason, written, capsys):
    build().explain()
    said = capsys.readouterr().out
    assert re.search(f"({reason}).*{re.escape(f'(line {line_of(written)} of test_reasons.py)')}", said), said


def test_columns_have_no_reason(capsys):
    windows("user").aggregate(sum_("amount")).map(lambda e: e.user).explain()
    orders().key_by(pc.field("user")).sum("amount").explain()
    assert not HERE.search(capsys.readouterr().out)
