"""Functions that stay Python get the fields that their code names, and no other fields become Python objects."""

import math
from operator import itemgetter

import pyarrow as pa
import pytest

from eventide.common import Row, Types
from eventide.datastream.functions import MapFunction
from eventide.errors import UserFunctionError
from eventide.runtime.chain.chained_operators import Filter, FlatMap, Map, Moment, Process
from eventide.runtime.elements.elements import Columns, Elements
from eventide.runtime.elements.touched import touched_fields
from eventide.runtime.metrics import Metrics

ORDER = Types.ROW_NAMED(
    ["user", "cents", "tags", "as_dict"], [Types.STRING(), Types.LONG(), Types.LIST(Types.STRING()), Types.LONG()]
)
PAIR = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()])
SEEN = []


class Method(MapFunction):
    factor = 3

    def map(self, value):
        return value.cents * self.factor


def counted(e):
    for _ in range(2):
        SEEN.append(e["cents"])
    return e.user


def reassigned(e):
    if e.cents:
        e = e.user
    return e


def kept(e):
    other = e
    return other.user


def inner(e):
    def of_it():
        return e.cents

    return [e.user for _ in range(2)] + [of_it()]


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (lambda e: SEEN.append(e.user), {"user"}),
        (lambda e: math.sqrt(e["cents"]) if e.user else e[-2], {"user", "cents", "tags"}),
        (lambda e: e.user.upper(), {"user"}),
        (lambda e: "e", set()),
        (lambda e: 1 if e.user == "e" else e.cents, {"user", "cents"}),
        (Method().map, {"cents"}),
        (counted, {"user", "cents"}),
    ],
)
def test_fields_that_a_function_names(function, names):
    assert touched_fields(function, ORDER) == {ORDER.field_names.index(name) for name in names}


@pytest.mark.parametrize(
    "function",
    [
        lambda e: e,
        lambda e: print(e, e.user),
        lambda e: e.get_field_names(),
        lambda e: e.as_dict,  # a field that is a method
        lambda e: e.unknown,
        lambda e: e["unknown"],
        lambda e: e[SEEN[0]],
        lambda e: [e.user, locals()],
        lambda *e: e[0].user,
        lambda e: e.user if e is not None else None,
        reassigned,
        kept,
        inner,
        itemgetter("user"),
        len,
    ],
)
def test_functions_of_which_it_is_not_known(function):
    assert touched_fields(function, ORDER) is None


def test_fields_of_tuples_have_places_only():
    assert touched_fields(lambda e: SEEN.append(e[1] + e[-1]), PAIR) == {1, 2}
    assert touched_fields(lambda e: e[3], PAIR) is None
    assert touched_fields(lambda e: e["f1"], PAIR) is None


ROWS = [Row(user="abc"[i % 3], cents=i, tags=["x"] * (i % 2), as_dict=-i) for i in range(9)]


def elements():
    numbers = pa.array(range(len(ROWS)), pa.int64())
    return Elements(columns=Columns(ORDER, ORDER.to_arrow(ROWS), numbers, numbers))


@pytest.fixture
def made(monkeypatch):
    """The fields that became Python objects, by the types of their columns."""
    found = []
    for kind in {type(one) for one in ORDER.types}:
        real = kind.from_arrow

        def from_arrow(self, array, real=real):
            found.append(str(self))
            return real(self, array)

        monkeypatch.setattr(kind, "from_arrow", from_arrow)
    return found


def test_a_map_makes_the_fields_that_it_names(made):
    out = Map("m", lambda e: (SEEN.append(0), e.cents)[1], None).outputs(elements(), Moment(), Metrics())[None]
    assert (out.values, out.timestamps, made) == ([row.cents for row in ROWS], list(range(9)), ["LONG"])


def test_a_flat_map_and_a_process_function_do_so_too(made):
    several = FlatMap("f", lambda e: [e.user] * (SEEN.append(0) or e.cents % 3), None)
    assert several.outputs(elements(), Moment(), Metrics())[None].values == [
        r.user for r in ROWS for _ in range(r[1] % 3)
    ]
    processed = Process("p", lambda e, ctx: [(e.user, ctx.timestamp())], None).outputs(elements(), Moment(), Metrics())
    assert processed[None].values == [(row.user, row.cents) for row in ROWS]
    assert sorted(made) == ["LONG", "STRING", "STRING"]


def test_a_filter_leaves_elements_on_columns(made):
    kept = Filter("f", lambda e: SEEN.append(0) or e.cents % 2, None).apply(elements())
    assert (kept.is_unread, made) == (True, ["LONG"])
    assert kept.values == ROWS[1::2]


def test_a_filter_that_names_what_can_be_changed_gets_whole_elements():
    popped = Filter("f", lambda e: e.tags.pop() if e.tags else "", None).apply(elements())
    assert popped.values == [Row(user="abc"[i % 3], cents=i, tags=[], as_dict=-i) for i in range(1, 9, 2)]


@pytest.mark.parametrize("kind", [Map, Filter, FlatMap])
def test_an_error_names_the_whole_element(kind):
    operator = kind("m", lambda e: SEEN.append(0) or [1 // (e.cents - 4)], None)
    with pytest.raises(UserFunctionError, match=r"Row\(user='b', cents=4, tags=\[\], as_dict=-4\)"):
        operator.outputs(elements(), Moment(), Metrics())


def test_elements_that_are_none_stay_none():
    values = pa.array([None, {"user": "a", "cents": 1, "tags": [], "as_dict": 0}], ORDER.arrow_type())
    assert ORDER.from_arrow(values, {0}) == [None, Row(user="a", cents=None, tags=None, as_dict=None)]
