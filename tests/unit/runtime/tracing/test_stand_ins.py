"""Stand-ins for objects, in functions that are traced, are never taken for the objects themselves."""

# ruff: noqa: F507, SIM300, UP030, UP031, UP032 - all ways to make text, and comparisons either way, are what is tested

import datetime
import math
import re
from decimal import Decimal

import numpy as np
import pytest

from eventide.common.typeinfo import Types
from eventide.runtime.elements.elements import Columns
from eventide.runtime.tracing.admission import NotTraceable
from eventide.runtime.tracing.column_functions import mapped
from eventide.runtime.tracing.kernels import Guard

NAMES = {1: "one"}
WORDS = {"a", "b"}
LISTED = ["a", "b"]
PATTERN = re.compile("a+")
SEEN = []
EMPTY_TUPLES = {1: ()}
FACTOR = np.int64(2)
LIMIT = np.float64(0.5)
ONE_AND_EIGHT = set(range(1_000))
ONE_AND_EIGHT.difference_update({0, *range(2, 8), *range(9, 1_000)})
KIND = Types.TUPLE([Types.LONG(), Types.STRING(), Types.LIST(Types.STRING()), Types.SQL_TIMESTAMP()])
VALUES = [(1, "a,b", ["x", "y"], datetime.datetime(2024, 1, 1))]  # noqa: DTZ001 - as they come from columns
PICKLED = Types.TUPLE([Types.PICKLED_BYTE_ARRAY()])


def columns_of(kind, values):
    return Columns(kind, kind.to_arrow(values), None, None)


def collects(e):
    seen = SEEN
    seen += [e[0]]
    return len(seen)


def repeats(e):
    seen = SEEN
    seen *= 2
    return len(seen) + e[0]


def unites(e):
    words = WORDS
    words |= {"c"}
    return len(words) + e[0]


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda e: f"{e[1].split(',')}", "a list of parts"),
        (lambda e: str(e[1].split(",")), "a list of parts"),
        (lambda e: "%s" % e[1].split(","), "a list of parts"),
        (lambda e: "{}".format(e[1].split(",")), "a list of parts"),
        (lambda e: f"{NAMES}{e[0]}", "a dict that may change"),
        (lambda e: f"{WORDS}{e[0]}", "a set from outside"),
        (lambda e: f"{PATTERN}{e[0]}", "a regular expression"),
        (lambda e: f"{PATTERN.search(e[1])}", "a match"),
        (lambda e: "%s" % (e[2],), "it makes text of a object"),
        (lambda e: "{1}{0}".format(e[2], e[0]), "it makes text of a object"),
        (lambda e: "%s" % e[3].replace(tzinfo=datetime.UTC), "it makes text of a datetime with a zone"),
        (lambda e: ",".join([e[1], 5]), "it joins values that are not text"),
        (lambda e: e[1].split(",") == ["a", "b"], "a list of parts"),
        (lambda e: NAMES == {1: "one"} and e[0], "a dict that may change"),
        (lambda e: WORDS == {"a", "b"} and e[0], "a set from outside"),
        (lambda e: len(EMPTY_TUPLES[e[0]]), "no column can hold"),
        (lambda e: FACTOR * e[0], "it computes with a int64"),
        (lambda e: LIMIT < e[0], "it computes with a float64"),
        (collects, "it changes a list from outside"),
        (repeats, "it changes a list from outside"),
        (lambda e: sorted([e[0]], key=SEEN.append), "it changes a list from outside"),
        (unites, "it raised TypeError"),
    ],
)
def test_what_is_done_with_an_object_that_columns_do_not_know_is_left_to_python(function, why):
    with pytest.raises(NotTraceable, match=why):
        mapped(function, columns_of(KIND, VALUES), None)


@pytest.mark.parametrize("function", [lambda e: "%s!" % e[0], lambda e: "{}!".format(e[0])])
def test_no_text_is_made_of_the_bytes_of_a_pickled_object(function):
    with pytest.raises(NotTraceable, match="it makes text of a object"):
        mapped(function, columns_of(PICKLED, [({"a"},)]), None)


@pytest.mark.parametrize(
    "function",
    [
        lambda e: tuple(number + e[0] for number in ONE_AND_EIGHT),
        lambda e: (sorted(ONE_AND_EIGHT)[1], len(ONE_AND_EIGHT), 8 in ONE_AND_EIGHT, e[0] in ONE_AND_EIGHT),
        lambda e: (e[1] if WORDS else "", e[1] in WORDS, LISTED[0], e[1] in LISTED, [*LISTED, "c"][2]),
        lambda e: m.group() if (m := PATTERN.search(e[1])) else "",
        lambda e: "no" if not PATTERN.search(e[1]) else "yes",
    ],
)
def test_sets_lists_and_matches_answer_as_python_does(function):
    column, kind = mapped(function, columns_of(KIND, VALUES), None)
    assert list(map(repr, kind.from_arrow(column))) == [repr(function(value)) for value in VALUES]


@pytest.mark.parametrize(
    "function",
    [
        lambda e: (e < 1e30, e > -1e30, e == 1e30, e <= 1e300),
        lambda e: (e < math.inf, e > -math.inf, e != math.inf),
        lambda e: (e < 1e36, e < 1e35, e >= 4e29, e < 0.1),
    ],
)
@pytest.mark.parametrize("scale", [0, 2, 8])
def test_decimals_of_many_digits_are_compared_with_large_numbers_exactly(function, scale):
    kind = Types.BIG_DEC(38, scale)
    values = [Decimal((sign, (5, *[0] * (29 + scale)), -scale)) for sign in (0, 1)]
    values += [Decimal((0, (0,), -scale)), Decimal((0, (9,) * 38, -scale))]
    values = kind.from_arrow(kind.to_arrow(values))
    column, found = mapped(function, columns_of(kind, values), None)
    assert found.from_arrow(column) == list(map(function, values))


def test_a_text_without_a_place_for_a_value_is_left_to_python():
    with pytest.raises(Guard) as guard:
        mapped(lambda e: "abc" % e[0], columns_of(KIND, VALUES), None)
    assert "not all arguments converted" in str(guard.value.__cause__)
