"""An element that ends the process is marked before its call; then it is an error, a dead letter, or left out."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from eventide.common import Time, Types
from eventide.datastream import KeyedProcessFunction, OutputTag, ProcessFunction
from eventide.datastream.window import CountTrigger, TumblingEventTimeWindows
from eventide.errors import DataError
from eventide.local.runner import LocalRunner
from eventide.runtime.invoke import CallMark, Search
from eventide.testing import local_environment
from support.twin import Values, plan_of, timed

BAD = OutputTag("bad")
VALUES = [("k", 1), ("k", 4), ("k", 2), ("k", 4), ("k", 3)]
NTH = 2
"""The occurrence of 4 that ends the process: its equal before it does not."""


class ProcessEnds(BaseException):
    """Stands for the end of the process, which no function or operator sees."""


class Marks:
    """Keeps the last text, as what is left of a process does; counts how often a 4 came."""

    last: ClassVar[str] = ""
    fours: ClassVar[int] = 0

    def __call__(self, text: str) -> None:
        Marks.last = text


def lethal(value: tuple[str, int]) -> bool:
    Marks.fours += value[1] == 4
    if value[1] == 4 and Marks.fours == NTH:
        raise ProcessEnds
    return True


class Processes(ProcessFunction):
    def process_element(self, value, ctx):
        if lethal(value):
            yield value


class WithKeys(KeyedProcessFunction):
    def process_element(self, value, ctx):
        if lethal(value):
            yield value


class SetsTimers(KeyedProcessFunction):
    """Gives elements when their timers fire, of which one ends the process."""

    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(value[1])

    def on_timer(self, timestamp, ctx):
        Marks.fours += timestamp == 4
        if lethal(("k", timestamp)):
            yield "k", timestamp


class LethalTrigger(CountTrigger):
    """Looks at each element."""

    def on_element(self, element, timestamp, window, ctx):
        lethal(element)
        return super().on_element(element, timestamp, window, ctx)


def keep(value):
    lethal(value)
    return value


def keyed(stream):
    return stream.key_by(lambda value: value[0], Types.STRING())


FUNCTIONS = {
    "map": lambda stream: stream.map(keep),
    "filter": lambda stream: stream.filter(lethal),
    "flat_map": lambda stream: stream.flat_map(lambda value: [value] * lethal(value)),
    "process": lambda stream: stream.process(Processes()),
    "keyed process": lambda stream: keyed(stream).process(WithKeys()),
    "timer": lambda stream: keyed(stream).process(SetsTimers()),
    "window": lambda stream: (
        keyed(stream).window(TumblingEventTimeWindows.of(Time.seconds(1))).trigger(LethalTrigger(1)).process(Values())
    ),
}


def attempt(kind: str, search: Search, *, with_letters: bool = False) -> tuple[list[Any], list[Any], int]:
    """The results of one attempt, its dead letters, and how many it has counted."""
    Marks.last, Marks.fours = "", 0
    results = FUNCTIONS[kind](timed(local_environment(), VALUES)).name("suspect")
    streams = [results]
    if with_letters:
        results = results.side_output_dead_letters(BAD)
        streams = [results, results.get_side_output(BAD)]
    plan = plan_of(*streams).with_search(search)
    runner = LocalRunner(plan, clock=lambda: 0)
    batches = [batch.elements for batch in runner.batches()]
    of_sinks = [[value for batch in batches for value, _ in batch.get(sink.number, [])] for sink in plan.sinks]
    given, letters = of_sinks if with_letters else (*of_sinks, [])
    return given, letters, runner.metrics().get("suspect", {}).get("numDeadLetters", 0)


def found(kind: str, *, with_letters: bool = False) -> CallMark:
    """The element at which the process ends."""
    with pytest.raises(ProcessEnds):
        attempt(kind, Search(frozenset({0}), Marks), with_letters=with_letters)
    mark = CallMark.found_in(Marks.last)
    assert mark is not None
    return mark


def flat(kind: str, results: list[Any]) -> list[int]:
    """The numbers that came out; a window gives what it has each time."""
    return sorted(value[1][-1][1] if kind == "window" else value[1] for value in results)


def left(kind: str) -> list[int]:
    return [1, 2, 3] if kind == "timer" else [1, 2, 3, 4]


@pytest.mark.parametrize("kind", FUNCTIONS)
def test_the_attempt_that_ends_tells_the_element(kind: str) -> None:
    mark = found(kind)
    assert (mark.operator, mark.element) == ("suspect", "4" if kind == "timer" else "('k', 4)")


@pytest.mark.parametrize("kind", FUNCTIONS)
def test_the_attempt_after_it_ends_with_an_error_that_names_the_element(kind: str) -> None:
    mark = found(kind)
    with pytest.raises(DataError, match=r"'suspect'.*\b4\b.*has ended without an exception.*--set-aside"):
        attempt(kind, Search(frozenset({0}), Marks, frozenset({mark.id})))


@pytest.mark.parametrize("kind", FUNCTIONS)
def test_with_dead_letters_it_is_one_and_the_job_goes_on(kind: str) -> None:
    mark = found(kind, with_letters=True)
    for set_aside in (frozenset(), frozenset({mark.id})):
        search = Search(frozenset({0}), Marks, frozenset({mark.id}), set_aside)
        results, letters, count = attempt(kind, search, with_letters=True)
        assert flat(kind, results) == left(kind)
        assert [(letter.operator, letter.error_type) for letter in letters] == [("suspect", "DataError")]
        assert count == 1


@pytest.mark.parametrize("kind", FUNCTIONS)
def test_set_aside_it_is_left_out_and_counted(kind: str) -> None:
    mark = found(kind)
    results, _, count = attempt(kind, Search(frozenset({0}), Marks, frozenset({mark.id}), frozenset({mark.id})))
    assert (flat(kind, results), count) == (left(kind), 1)


def test_another_micro_batch_is_not_searched() -> None:
    with pytest.raises(ProcessEnds):
        attempt("map", Search(frozenset({7}), Marks))
    assert Marks.last == ""


@pytest.mark.parametrize("kind", FUNCTIONS)
def test_once_the_functions_have_returned_no_element_is_marked(kind: str) -> None:
    mark = found(kind)
    attempt(kind, Search(frozenset({0}), Marks, frozenset({mark.id}), frozenset({mark.id})))
    assert Marks.last == ""
