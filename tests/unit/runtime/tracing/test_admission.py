"""Functions that might do more than compute a result from their arguments stay Python, and say why."""

import datetime
import decimal
import math
import random
import time
from operator import itemgetter

import pytest

from eventide.common.types import Row
from eventide.datastream.functions import MapFunction, in_python
from eventide.runtime.tracing.admission import NotThereYet, NotTraceable, admitted

LIMIT = 10
NAMED = {"a": ["x"]}
MANY = set(range(100_001))
Priced = Row("auction", "price")
calls = 0


def doubled(value):
    return 2 * value


def counted(value):
    global calls  # noqa: PLW0603 - that is what must stay Python
    calls += 1
    return value


class Scaled(MapFunction):
    def __init__(self, factor):
        self.factor = factor

    def map(self, value):
        return value * self.factor


class Growing(MapFunction):
    def __init__(self):
        self.seen = []

    def map(self, value):
        self.seen.append(value)
        return len(self.seen)


class Counting(MapFunction):
    def __init__(self):
        self.count = 0

    def map(self, value):
        self.count += 1
        return self.count


@pytest.mark.parametrize(
    "function",
    [
        lambda e: e.price * 2 if e.price < LIMIT else None,
        lambda e: (e["a"], e[1], len(e.b), str(e.c)),
        lambda e: doubled(e.price),
        lambda e: Priced(e.auction, e.price),
        lambda e: Row(a=e.a, b=e.b.strip().upper()),
        lambda e: [x + 1 for x in (e.a, e.b)],
        Scaled(3).map,
        itemgetter("a"),
        lambda e: math.sqrt(e.price) + math.pi,
        lambda e: e.at - datetime.datetime(1970, 1, 1) > datetime.timedelta(seconds=1),  # noqa: DTZ001
    ],
)
def test_plain_computations_are_admitted(function):
    assert admitted(function, {}, {}, {}).function is not None


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda e: e.price * random.random(), "the global 'random' is a module"),
        (lambda e: time.time() + e.price, "the global 'time' is a module"),
        (lambda e: datetime.datetime.now() - e.at, r"it calls the method now\(\)"),  # noqa: DTZ005 - that is refused
        (lambda e: print(e.a), "it uses print"),
        (lambda e: e.user in NAMED, "the global 'NAMED' is a list, which may change"),
        (lambda e: e.user in MANY, "the global 'MANY' has more than 100,000 entries, any of which may change"),
        (lambda e: e.tags.append(1), r"it calls the method append\(\)"),
        (lambda e: e.a is e.b, "it compares objects with `is`"),
        (lambda e: isinstance(e, Row), "it uses isinstance"),
        (lambda e: nowhere(e.a), "the global 'nowhere' is not there"),  # noqa: F821 - that is what is told
        (counted, "it sets a global"),
        (Growing().map, r"it calls the method append\(\)"),
        (Counting().map, "it uses its own object for more"),
        (print, "it is a builtin_function_or_method, not a function of Python"),
        (in_python(lambda e: e.price), "the program says in_python"),
        (in_python(Scaled(3)).map, "the program says in_python"),
    ],
)
def test_whatever_might_do_more_stays_python_and_says_why(function, why):
    with pytest.raises(NotTraceable, match=why):
        admitted(function, {}, {}, {})


def test_a_captured_value_that_changed_is_noticed():
    factor = 2

    def times(value):
        return value * factor

    found = admitted(times, {}, {}, {})
    assert found.is_current()
    factor = 3
    assert not found.is_current()


def test_an_attribute_that_changed_is_noticed():
    scaled = Scaled(3)
    found = admitted(scaled.map, {}, {}, {})
    scaled.factor = 4
    assert not found.is_current()


def test_a_row_from_outside_that_changed_is_noticed():
    names = Row("a", "b")
    found = admitted(lambda e: names(e[0], e[1]), {}, {}, {})
    assert found.is_current()
    names[0] = "c"
    assert not found.is_current()


@pytest.mark.parametrize(
    ("captured", "change"),
    [
        ({"a": 1}, lambda it: it.update(b=2)),
        ({"a": 1}, lambda it: it.update(a=1.0)),
        ({1: "a"}, lambda it: (it.clear(), it.update({True: "a"}))),
        ([1, 2], lambda it: it.append(3)),
        ([1, 2], lambda it: it.reverse()),
        ({"a"}, lambda it: it.add("b")),
        ([], lambda it: it.append(1)),
    ],
)
def test_a_container_from_outside_that_changed_is_noticed(captured, change):
    found = admitted(lambda e: e in captured, {}, {}, {})
    assert found.is_current()
    assert not found.is_closed
    change(captured)
    assert not found.is_current()


def test_a_default_by_name_is_compared_with_what_it_was():
    def times(value, *, factor=2):
        return value * factor

    found = admitted(times, {}, {}, {})
    assert found.is_current()
    times.__kwdefaults__["factor"] = 3
    assert not found.is_current()


class Opened(MapFunction):
    def open(self, runtime_context):
        self.table = {1: "one"}

    def map(self, value):
        return self.table[value]


def test_what_is_made_when_an_object_is_opened_is_not_there_yet_before():
    function = Opened()
    with pytest.raises(NotThereYet, match="its attribute 'table' is not there"):
        admitted(function.map, {}, {}, {})
    function.open(None)
    assert admitted(function.map, {}, {}, {}).is_current()


def test_a_question_for_none_is_told():
    for_none = lambda e: 0 if e.price is None else 1  # noqa: E731 - it is admitted twice
    assert admitted(for_none, {}, {}, {}).tests_for_none
    assert not admitted(for_none, {}, {}, {"IS_OP": lambda _: None}).tests_for_none
    assert not admitted(lambda e: 0 if e.price else 1, {}, {}, {}).tests_for_none


class WithoutName(MapFunction):
    def __init__(self):
        self.factor = 2

    def map(*args):
        return args[1] * args[0].factor


class Asks(MapFunction):
    """Knows an attribute only when it is asked for it."""

    def __getattr__(self, name):
        return 5

    def map(self, value):
        return value * self.factor


@in_python
def halved(value):
    return value / 2


def read_and_called(e):
    change = e.set_field_names
    change(["x"])
    return e


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (WithoutName().map, "a method that does not name its object"),
        (Asks().map, "its attribute 'factor' is not there"),
        (lambda e: halved(e.price), "the program says in_python of halved"),
        (read_and_called, "calls something that is not known by its name"),
        (lambda e: e.price.__class__, "it reads the attribute __class__"),
        (lambda e: e.b is (True if e.i > 0 else None), "compares objects with `is`"),
    ],
)
def test_ways_around_the_checks_are_closed(function, why):
    with pytest.raises(NotTraceable, match=why):
        admitted(function, {}, {}, {})


def test_a_row_from_outside_whose_value_is_only_equal_is_noticed():
    captured = Row(a=1)
    found = admitted(lambda e: e * captured.a, {}, {}, {})
    captured["a"] = 1.0
    assert not found.is_current()


def test_a_changed_default_is_noticed():
    def times(value, factor=2):
        return value * factor

    found = admitted(times, {}, {}, {})
    assert found.is_current()
    times.__defaults__ = (3,)
    assert not found.is_current()


def test_a_changed_context_of_decimals_is_noticed():
    with decimal.localcontext():
        found = admitted(lambda e: e, {}, {}, {})
        assert found.is_current()
        decimal.getcontext().prec = 5
        assert not found.is_current()


def test_a_module_whose_content_changed_is_noticed(monkeypatch):
    found = admitted(lambda e: math.floor(e.price), {}, {}, {})
    assert found.is_current()
    assert found.is_closed
    monkeypatch.setattr(math, "floor", round)
    assert not found.is_current()
    with pytest.raises(NotTraceable, match="the global 'math' is a module"):
        admitted(lambda e: math.floor(e.price), {}, {}, {})
