"""Reduce functions that are sums, extremes, first or last fields are known, and columns reduce them the same."""

import math
import random

import pyarrow as pa
import pytest

from eventide.common.typeinfo import Types
from eventide.common.types import Row
from eventide.datastream.functions import in_python
from eventide.runtime.columnar.panes import RegularPanes
from eventide.runtime.elements.elements import Columns
from eventide.runtime.tracing.admission import NotTraceable
from eventide.runtime.tracing.folds import FieldOfExtreme, How, fold_of
from eventide.runtime.tracing.kernels import Guard
from eventide.runtime.window.reducing_columns import reduced_columns

TRIPLE = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()])
ROW = Types.ROW_NAMED(["k", "v", "n"], [Types.STRING(), Types.LONG(), Types.LONG()])
HIGHEST, LOWEST = FieldOfExtreme(((1, True),)), FieldOfExtreme(((1, False),))
LATER = FieldOfExtreme(((1, True), (2, False)), last_of_equal=True)
PANES = RegularPanes(10, 10)


def lasting(extreme):
    return FieldOfExtreme(extreme.by, last_of_equal=True)


@pytest.mark.parametrize(
    ("function", "fields"),
    [
        (lambda a, b: (a[0], a[1] + b[1], b[2]), (How.FIRST, How.SUM, How.LAST)),
        (lambda a, b: (a[0], b[1] + a[1], a[2]), (How.FIRST, How.SUM, How.FIRST)),
        (lambda a, b: (a[0], max(a[1], b[1]), a[2] + b[2]), (How.FIRST, HIGHEST, How.SUM)),
        (lambda a, b: (a[0], min(a[1], b[1]), max(a[2], b[2])), (How.FIRST, LOWEST, FieldOfExtreme(((2, True),)))),
        (lambda a, b: a if a[1] >= b[1] else b, (HIGHEST,) * 3),
        (lambda a, b: a if a[1] > b[1] else b, (lasting(HIGHEST),) * 3),
        (lambda a, b: b if b[1] < a[1] else a, (LOWEST,) * 3),
        (lambda a, b: b if b[1] <= a[1] else a, (lasting(LOWEST),) * 3),
        (lambda a, b: (b[0] if b[1] > a[1] else a[0], max(a[1], b[1]), a[2] + b[2]), (HIGHEST, HIGHEST, How.SUM)),
        (lambda a, b: a, (How.FIRST,) * 3),
        (lambda a, b: max(a, b, key=lambda e: e[1]), (HIGHEST,) * 3),
        (lambda a, b: b if b > a else a, (FieldOfExtreme(((0, True), (1, True), (2, True))),) * 3),
        (lambda a, b: max(a, b, key=lambda e: (e[1], e[0])), (FieldOfExtreme(((1, True), (0, True))),) * 3),
        (lambda a, b: min(a, b, key=lambda e: (-e[1], e[0])), (FieldOfExtreme(((1, True), (0, False))),) * 3),
        (lambda a, b: b if (b[1], a[2]) >= (a[1], b[2]) else a, (FieldOfExtreme(((1, True), (2, False)), True),) * 3),
        (lambda a, b: a if a[1] > b[1] or (a[1] == b[1] and a[2] < b[2]) else b, (LATER,) * 3),
        (lambda a, b: b if b[1] > a[1] or (b[2] <= a[2] if not b[1] < a[1] else False) else a, (LATER,) * 3),
        (lambda a, b: (*max(a[:2], b[:2]), a[2] + b[2]), (FieldOfExtreme(((0, True), (1, True))),) * 2 + (How.SUM,)),
    ],
)
def test_a_fold_is_known_field_by_field(function, fields):
    assert fold_of(function, TRIPLE).fields == fields


@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: (a[0], a[1] - b[1], a[2]),
        lambda a, b: (a[0], a[1] + b[2], a[2]),
        lambda a, b: (a[0], a[1] + b[1] + 1, a[2]),
        lambda a, b: (a[0] + b[0], a[1], a[2]),
        lambda a, b: (b[0] if b[1] > a[1] else a[0], a[1], a[2]),
        lambda a, b: (a[0], b[1] if b[2] > 3 else a[1], a[2]),
        lambda a, b: b if b[1] > a[1] or b[2] > a[2] else a,
        lambda a, b: b if b[1] > a[1] and b[2] > a[2] else a,
        lambda a, b: b if b[1] == a[1] else a,
        lambda a, b: b if b[1] > a[2] else a,
        lambda a, b: (b[0], b[1], a[2]) if (b[1], b[2]) > (a[1], a[2]) else a,
        lambda a, b: (a[0], a[1]),
        lambda a, b: (a[0], 1, a[2]),
        lambda a, b: [a[0], a[1] + b[1], a[2]],
        in_python(lambda a, b: a),
    ],
)
def test_any_other_function_is_none(function):
    with pytest.raises(NotTraceable):
        fold_of(function, TRIPLE)


def test_a_sum_of_floating_point_numbers_is_one_in_which_the_order_shows():
    found = fold_of(lambda a, b: a + b, Types.DOUBLE())
    assert found.fields == (How.SUM_IN_ORDER,)
    assert found.shows_order(())


def test_the_order_shows_in_the_highest_of_floating_point_numbers():
    found = fold_of(lambda a, b: b if b > a else a, Types.DOUBLE())
    assert found.fields == (FieldOfExtreme(((0, True),)),)
    assert found.shows_order(())


@pytest.mark.parametrize("values", [[1.0, math.nan], [0.0, -0.0]])
def test_numbers_that_comparing_does_not_order_are_left_to_python(values):
    kind = Types.DOUBLE()
    columns = Columns(kind, kind.to_arrow(values), pa.array([1] * len(values)), pa.array(range(len(values))))
    with pytest.raises(Guard, match=r"compared is NaN or -0\.0"):
        reduced_columns(fold_of(lambda a, b: a if a >= b else b, kind), PANES, None, columns)


@pytest.mark.parametrize("kinds", [(Types.FLOAT(), Types.FLOAT()), (Types.LONG(), Types.DOUBLE())])
def test_a_sum_that_changes_the_type_of_its_field_is_none(kinds):
    with pytest.raises(NotTraceable):
        fold_of(lambda a, b: (a[0] + b[0], a[0] + b[1]), Types.TUPLE(list(kinds)))


def test_rows_are_known_by_their_names():
    assert fold_of(lambda a, b: Row(k=a.k, v=a.v + b.v, n=b.n), ROW).fields == (How.FIRST, How.SUM, How.LAST)
    with pytest.raises(NotTraceable):
        fold_of(lambda a, b: Row(v=a.v + b.v, k=a.k, n=b.n), ROW)


FOLDS = [
    lambda a, b: (a[0], a[1] + b[1], b[2]),
    lambda a, b: (a[0], max(a[1], b[1]), min(a[2], b[2])),
    lambda a, b: a if a[1] >= b[1] else b,
    lambda a, b: a if a[1] > b[1] else b,
    lambda a, b: b if b[1] < a[1] else a,
    lambda a, b: b if b[1] <= a[1] else a,
    lambda a, b: (b[0] if b[2] > a[2] else a[0], a[1] + b[1], max(a[2], b[2])),
    lambda a, b: (max(a[0], b[0]), a[1] + b[1], a[2] + b[2]),
    lambda a, b: max(a, b, key=lambda e: (e[1], e[0], e[2])),
    lambda a, b: min(a, b, key=lambda e: (e[0], -e[2])),
    lambda a, b: b if (b[1], b[2]) >= (a[1], a[2]) else a,
    lambda a, b: a if a[0] > b[0] or (a[0] == b[0] and a[1] < b[1]) else b,
]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("function", FOLDS)
def test_columns_give_the_left_fold_in_the_order_of_arrival(function, seed):
    of = random.Random(seed)
    values = [(of.choice("abc"), of.randrange(5), of.randrange(5)) for _ in range(of.choice((1, 7, 60)))]
    times = [of.randrange(25) for _ in values]
    expected = {}
    for value, time in zip(values, times, strict=True):
        place = value[2] % 2, time // 10 * 10
        expected[place] = function(expected[place], value) if place in expected else value
    columns = Columns(TRIPLE, TRIPLE.to_arrow(values), pa.array(times), pa.array(range(len(values))))
    found = reduced_columns(fold_of(function, TRIPLE), PANES, lambda e: e[2] % 2, columns)
    assert list(zip(zip(found.keys, found.panes.tolist(), strict=True), found.values, strict=True)) == list(
        expected.items()
    )
    assert found.counts == {
        pane: sum(time // 10 * 10 == pane for time in times) for pane in {t // 10 * 10 for t in times}
    }


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ([("a", 2**62, 0), ("a", 2**62, 0)], "more than 64 bits"),
        ([("a", None, 0), ("a", 1, 0)], "None"),
        ([(None, 1, 0)], "a key that is None"),
    ],
)
def test_what_columns_might_get_wrong_is_left_to_python(values, why):
    columns = Columns(TRIPLE, TRIPLE.to_arrow(values), pa.array([1] * len(values)), pa.array(range(len(values))))
    fold = fold_of(lambda a, b: (a[0], a[1] + b[1], a[2]), TRIPLE)
    with pytest.raises(Guard, match=why):
        reduced_columns(fold, PANES, lambda e: e[0], columns)


@pytest.mark.parametrize(
    ("function", "shows"),
    [
        (lambda a, b: (a[0], a[1] + b[1], max(a[2], b[2])), False),
        (lambda a, b: (b[0], a[1] + b[1], min(a[2], b[2])), False),
        (lambda a, b: (a[0], a[1] + b[1], a[2]), True),
        (lambda a, b: a if a[1] >= b[1] else b, True),
        (lambda a, b: (b[0] if b[1] > a[1] else a[0], max(a[1], b[1]), a[2] + b[2]), False),
        (lambda a, b: b if b > a else a, False),
        (lambda a, b: max(a, b, key=lambda e: (e[1], e[2])), False),
    ],
)
def test_the_order_of_elements_shows_in_what_is_no_sum_no_extreme_and_no_part_of_the_key(function, shows):
    assert fold_of(function, TRIPLE).shows_order({0}) is shows
