"""Traces give the results of the functions: their values and types, and nothing where a function raises."""

import datetime
import decimal
import gc
import math
import sys
import time
import weakref
from decimal import Decimal

import pyarrow as pa
import pytest

from eventide.common.typeinfo import DictTypeInfo, Types
from eventide.common.types import Row
from eventide.datastream.functions import AggregateFunction, in_python
from eventide.runtime.elements.elements import Columns
from eventide.runtime.tasks.operator import Key
from eventide.runtime.tracing.admission import NotTraceable
from eventide.runtime.tracing.column_functions import accumulated, filtered, flat_mapped, mapped
from eventide.runtime.tracing.folds import How, aggregate_fold_of, fold_of
from eventide.runtime.tracing.kernels import KERNELS, Guard
from support.random_functions import (
    Case,
    Maker,
    aggregate_difference,
    difference,
    difference_of_rows,
    process_difference,
)
from support.random_operators import (
    OperatorMaker,
    assigner_difference,
    flat_join_difference,
    gap_difference,
    interval_join_difference,
    join_difference,
    key_difference,
    reduce_difference,
)

TEXT_IN_LOOPS = pytest.mark.skipif(sys.version_info >= (3, 12), reason="their code tells places of errors there")
"""For functions with f-strings in generators and comprehensions, which stay in Python."""
TELLS_PLACES = pytest.mark.skipif(sys.version_info < (3, 12), reason="their code tells no places of errors there")
"""For generators whose questions for None cannot be seen."""

FUNCTIONS = 700


@pytest.fixture
def far_from_utc(monkeypatch):
    """A local time that has two offsets a year."""
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("far_from_utc")
@pytest.mark.parametrize("part", range(4))
def test_traces_of_random_functions_give_what_the_functions_give(part, pytestconfig):
    maker = Maker(pytestconfig.getoption("randomly_seed", 0) * 4 + part)
    on_columns = 0
    for _ in range(FUNCTIONS // 4):
        try:
            found = difference(maker.case())
        except (NotTraceable, Guard):
            continue
        assert found is None, found
        on_columns += 1
    assert on_columns > FUNCTIONS // 4 // 4


def test_parts_of_random_aggregate_functions_make_what_the_functions_give(pytestconfig):
    maker = Maker(pytestconfig.getoption("randomly_seed", 0))
    on_columns = 0
    for _ in range(FUNCTIONS // 2):
        try:
            found = aggregate_difference(maker.aggregate())
        except (NotTraceable, Guard):
            continue
        assert found is None, found
        on_columns += 1
    assert on_columns > FUNCTIONS // 2 // 20


def test_outputs_of_random_process_functions_are_those_of_their_calls(pytestconfig):
    maker = Maker(pytestconfig.getoption("randomly_seed", 0))
    on_columns = 0
    for _ in range(FUNCTIONS // 2):
        try:
            found = process_difference(maker.process())
        except (NotTraceable, Guard):
            continue
        assert found is None, found
        on_columns += 1
    assert on_columns > FUNCTIONS // 2 // 8


def test_random_rows_whose_fields_have_no_names_become_rows_of_the_declared_type(pytestconfig):
    maker = Maker(pytestconfig.getoption("randomly_seed", 0))
    on_columns = 0
    for _ in range(FUNCTIONS // 4):
        try:
            found = difference_of_rows(maker.row_by_position())
        except (NotTraceable, Guard):
            continue
        assert found is None, found
        on_columns += 1
    assert on_columns > FUNCTIONS // 4 // 8


@pytest.mark.usefixtures("far_from_utc")
@pytest.mark.parametrize(
    ("make", "compare", "often"),
    [
        (OperatorMaker.reduce, reduce_difference, 3),
        (OperatorMaker.key_selector, key_difference, 5),
        (OperatorMaker.assigner, assigner_difference, 8),
        (OperatorMaker.gap, gap_difference, 8),
        (OperatorMaker.join, join_difference, 8),
        (OperatorMaker.flat_join, flat_join_difference, 8),
        (OperatorMaker.interval_join, interval_join_difference, 5),
    ],
    ids=lambda one: getattr(one, "__name__", None),
)
def test_operators_make_of_random_functions_what_these_give_when_they_are_called(make, compare, often, pytestconfig):
    maker = OperatorMaker(pytestconfig.getoption("randomly_seed", 0))
    on_columns = 0
    for _ in range(FUNCTIONS // 4):
        try:
            found = compare(make(maker))
        except (NotTraceable, Guard):
            continue
        assert found is None, found
        on_columns += 1
    assert on_columns > FUNCTIONS // 4 // often


def test_a_difference_is_found(monkeypatch):
    case = Case("lambda e: e + 1", lambda e: e + 1, Types.LONG(), [1, 2])
    assert difference(case) is None
    monkeypatch.setattr("support.random_functions.mapped", lambda *_: mapped(lambda e: e + 2, *_[1:]))
    assert "gives 2, and its trace 3" in str(difference(case))


def columns_of(kind, values):
    array = kind.to_arrow(values)
    return Columns(kind, array, None, None)


def asks_in_a_generator(value):
    return sum(0 if each is None else 1 for each in (value,))


def split_on_one_way(pair):
    """Split a text, whose parts are not always looked at."""
    parts = pair[0].split(",")
    return pair[1] if pair[1] > 5 else int(parts[0])


SPLIT = KERNELS["split"]
TEXT_AND_NUMBER = Types.TUPLE([Types.STRING(), Types.LONG()])


@pytest.mark.parametrize(
    ("function", "kind", "values", "why"),
    [
        (lambda e: e + 1, Types.LONG(), [1, None], "None"),
        (lambda e: e + 1, Types.LONG(), [2**63 - 1], "more than 64 bits"),
        (lambda e: e // 0 if e else 1, Types.LONG(), [0, 1], "division by zero"),
        (lambda e: e / 3, Types.LONG(), [2**53 + 1], r"beyond 2**53"),
        (lambda e: e < 0.5, Types.LONG(), [2**53 + 1], r"beyond 2**53"),
        (lambda e: e.upper(), Types.STRING(), ["ß"], "not ASCII"),
        (lambda e: e.split(",")[1], Types.STRING(), ["a,b", "a"], "fewer parts"),
        (split_on_one_way, TEXT_AND_NUMBER, [("1", 1), (None, 9)], "None"),
        (lambda e: f"{e}!", Types.STRING(), ["a", None], "None"),
        (lambda e: int(e) + 1, Types.STRING(), ["1", "x"], "invalid literal"),
        (lambda e: int(e) + 1, Types.DOUBLE(), [1.5, float("nan")], "NaN"),
        (lambda e: e**70, Types.LONG(), [2], "too large"),
        (lambda e: e**0.5, Types.DOUBLE(), [-1.0], "not of type float"),
        (lambda e: e[0], Types.TUPLE([Types.LONG()]), [None], "a tuple or row that is None"),
        pytest.param(asks_in_a_generator, Types.LONG(), [None], "tests for that", marks=TELLS_PLACES),
    ],
)
def test_a_batch_that_columns_might_get_wrong_is_handed_back(function, kind, values, why):
    with pytest.raises(Guard) as guard:
        mapped(function, columns_of(kind, values), None)
    assert why in f"{guard.value}: {guard.value.__cause__}"


@pytest.mark.parametrize(
    "function",
    [
        lambda e: 0 if e[0] is None else e[0] + 1,
        lambda e: e[0] is None,
        lambda e: (e[0] is not None and e[1] is not None, e[0]),
        lambda e: e[0] if e[0] is not None else e[1],
        lambda e: (e[0] is not None) and e[0] + (e[1] if e[1] is not None else 0) > 3,
        lambda e: f"{e[0]}{'!' if e[1] is not None else ''}" if e[0] is not None else None,
    ],
)
def test_a_field_that_is_asked_whether_it_is_none_may_be_so(function):
    kind = Types.TUPLE([Types.LONG(), Types.LONG()])
    values = [(1, 2), (None, 5), (3, None), (None, None)]
    column, result = mapped(function, columns_of(kind, values), None)
    found = result.from_arrow(column)
    expected = [function(value) for value in values]
    assert found == expected
    assert [*map(type, found)] == [*map(type, expected)]


@pytest.mark.parametrize(
    "function",
    [
        lambda e: (e.split("/")[0], e.split("/")[-1], len(e.split("/"))),
        lambda e: (e.split("/", 1)[1], e.rsplit("/", 1)[0], e.split(" ", 1)[0]),
        lambda e: (e.partition("/")[0], e.partition("/")[2], len(e.split())),
        lambda e: (e.count("/"), e.count("//"), e.count("é/é"), e.count("")),
        lambda e: e.split("/")[2] if e.count("/") > 1 else e.split("/")[1],
    ],
)
def test_parts_of_texts_are_those_of_python(function):
    values = ["a/b", "é/é/é", "//", "///", " x /y z/", "a//b//c"]
    column, kind = mapped(function, columns_of(Types.STRING(), values), None)
    assert kind.from_arrow(column) == [function(value) for value in values]


@pytest.mark.parametrize(
    "function",
    [
        lambda e: e[0] in {"OR", "ID", "CA"},
        lambda e: e[0] not in {"OR", "ID"} and e[1] > 1,
        lambda e: f"{e[1]}!" if e[1] in {1, 3} else "",
    ],
)
def test_a_value_is_looked_for_in_a_set_that_the_function_names(function):
    values = [("OR", 1), ("NV", 2), ("CA", 3)]
    column, kind = mapped(function, columns_of(Types.TUPLE([Types.STRING(), Types.LONG()]), values), None)
    assert kind.from_arrow(column) == [function(value) for value in values]


def test_a_text_is_split_once_for_all_of_its_parts(monkeypatch):
    splits = []

    def parts(*arguments):
        splits.append(arguments)
        return SPLIT(*arguments)

    monkeypatch.setitem(KERNELS, "split", parts)
    column, kind = mapped(
        lambda e: (e.split("/")[0], e.split("/")[1], len(e.split("/"))), columns_of(Types.STRING(), ["a/b/c"]), None
    )
    assert kind.from_arrow(column) == [("a", "b", 3)]
    assert len(splits) == 1


def test_an_aggregate_function_passes_over_what_is_none():
    class Total(AggregateFunction):
        def create_accumulator(self):
            return 0

        def add(self, value, accumulator):
            return accumulator + (0 if value[1] is None else value[1])

        def get_result(self, accumulator):
            return accumulator

        def merge(self, acc_a, acc_b):
            return acc_a + acc_b

    kind = Types.TUPLE([Types.STRING(), Types.LONG()])
    assert aggregate_fold_of(Total(), kind).fold.fields == (How.SUM,)
    found = accumulated(Total().add, columns_of(kind, [("a", 1), ("b", None)]), 0, Types.LONG())
    assert found.to_pylist() == [1, 0]


def test_a_branch_is_computed_for_its_own_rows_alone():
    column, kind = mapped(lambda e: 10 // e if e else 0, columns_of(Types.LONG(), [5, 0, 3]), None)
    assert kind.from_arrow(column) == [2, 0, 3]


EASTERN = datetime.timezone(datetime.timedelta(hours=-5))


def twice(value):
    return value, value


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda e: [e[0]], "it returns a list"),
        (lambda e: None, "it returns None"),
        (lambda e: f"{e[0]!r}", "it makes text of a value"),
        (lambda e: f"{e[0]:{e[0]}}", "it makes text of a int"),
        (lambda e: f"{e}", "it makes text of a value"),
        (lambda e: e[1].split(","), "it returns a list"),
        (lambda e: [part + "" for part in e[1].split(",")], "it goes through the parts of a split"),
        (lambda e: e[1].split(e[1])[0], "arguments that are not constants"),
        (lambda e: e[1].replace(old="a", new="b"), "arguments by name"),
        (lambda e: e[0] + e[1], "it uses the operator add on a int and a str"),
        (lambda e: {e[0]: 1}, "as the key of a dict"),
        (lambda e: {1: e[0]}, "a dict whose keys are not all text"),
        (lambda e: {}, "without fields"),
        (lambda e: twice(Row(x=e[0])), "one object in two places"),
        (lambda e: 1 if e[0] else "one", "it returns values of several types"),
        (lambda e: e[0] ** e[0], "raises a value to a power"),
        (lambda e: e[7], "it raised IndexError"),
        (lambda e: math.nowhere + e[0], "it uses math.nowhere, which columns do not have"),
        (lambda e: math.nowhere(e[0]), "it uses math.nowhere, which columns do not have"),
        (lambda e: math.gcd(e[0], 1.5), r"it calls gcd\(\) with values that are not whole numbers"),
        (lambda e: math.tanh(e[1]), r"it calls tanh\(\) with values that are not numbers"),
        (lambda e: datetime.timedelta(e[1]), r"it calls timedelta\(\) with a str"),
        (lambda e: datetime.timedelta(e[0], years=1), r"it calls timedelta\(\) with arguments that are not known"),
        (lambda e: datetime.datetime.fromtimestamp(e[0], EASTERN), "a zone other than UTC"),
        (lambda e: datetime.datetime.fold, "it uses the attribute 'fold' of the class datetime"),
    ],
)
def test_what_cannot_be_traced_says_why(function, why):
    with pytest.raises(NotTraceable, match=why):
        mapped(function, columns_of(Types.TUPLE([Types.LONG(), Types.STRING()]), [(1, "a")]), None)


def test_a_changed_value_from_outside_is_used_from_the_next_batch_on():
    factor = 2
    columns = columns_of(Types.LONG(), [1, 2])

    def times(value):
        return value * factor

    assert mapped(times, columns, None)[0].to_pylist() == [2, 4]
    factor = 3
    assert mapped(times, columns, None)[0].to_pylist() == [3, 6]


@pytest.mark.parametrize(
    ("declared", "results"),
    [(Types.INT(), [1, 2]), (Types.DOUBLE(), [1.0, 2.0]), (Types.BYTE(), [1, 2])],
)
def test_results_are_brought_to_the_declared_type(declared, results):
    column, kind = mapped(lambda e: e, columns_of(Types.LONG(), [1, 2]), declared)
    assert kind == declared
    assert kind.from_arrow(column) == results


def test_a_result_that_does_not_fit_its_declared_type_is_left_to_python():
    with pytest.raises(Guard, match="does not fit"):
        mapped(lambda e: e, columns_of(Types.LONG(), [300]), Types.BYTE())
    with pytest.raises(NotTraceable, match="is declared"):
        mapped(lambda e: e, columns_of(Types.LONG(), [300]), Types.STRING())


def halves(value):
    if value % 2 == 0:
        yield value // 2
    yield value


def labelled(value):
    for number in range(2):
        yield len(f"{value}/{number}")


@pytest.mark.parametrize(
    "function",
    [
        halves,
        lambda e: (e, e + 1),
        lambda e: [e] if e > 1 else None,
        lambda e: (x for x in (e, -e) if x > 0),
        pytest.param(labelled, marks=TEXT_IN_LOOPS),
    ],
)
def test_several_results_of_each_element_keep_their_order_time_and_number(function):
    values = [4, 1, 6, 0, 3]
    array = Types.LONG().to_arrow(values)
    columns = Columns(Types.LONG(), array, pa.array([10, 11, 12, 13, 14]), pa.array([5, 6, 7, 8, 9]))
    expected = [
        (result, time, number)
        for value, time, number in zip(values, (10, 11, 12, 13, 14), (5, 6, 7, 8, 9), strict=True)
        for result in function(value) or ()
    ]
    found = flat_mapped(function, columns, Types.LONG())
    assert (
        list(zip(found.values.to_pylist(), found.timestamps.to_pylist(), found.sequence.to_pylist(), strict=True))
        == expected
    )


def unused_ratio(e):
    ratio = e[0] / e[1]
    return ratio if e[1] > 5 else 0.0


def endless(e):
    while e[0] > 5:
        if e[0] > 4:
            break
    return e[0]


def long_chain(e):
    value = e[0]
    for _ in range(40):
        value = value * value % 1_000_003
    return value


PAIR = Types.TUPLE([Types.LONG(), Types.LONG()])
NESTED = Types.TUPLE([Types.LONG(), Types.TUPLE([Types.LONG()])])


@pytest.mark.parametrize(
    ("function", "kind", "values", "why"),
    [
        (unused_ratio, PAIR, [(1, 0)], "division by zero"),
        (lambda e: (e[0] + 1, e[1])[1], PAIR, [(2**63 - 1, 1)], "more than 64 bits"),
        (lambda e: str(e[1]), Types.TUPLE([Types.LONG(), Types.STRING()]), [(1, "a"), (1, None)], "None"),
        (lambda e: (e[0], Decimal(e[1])), Types.TUPLE([Types.LONG(), Types.BIG_DEC(3, 1)]), [(1, None)], "None"),
        (lambda e: 1 if e[1] else 0, NESTED, [(1, None)], "a tuple or row that is None"),
        (lambda e: (e[1][0], 1), NESTED, [(1, None)], "a tuple or row that is None"),
    ],
)
def test_what_a_function_would_raise_is_never_passed_over(function, kind, values, why):
    for attempt in (mapped, lambda *of: filtered(*of[:2])):
        with pytest.raises(Guard, match=why):
            attempt(function, columns_of(kind, values), None)


@pytest.mark.parametrize(
    ("function", "why"),
    [(endless, "a loop does that a value ends"), (lambda e: sum(e[0] * k for k in range(500)), "too long a chain")],
)
def test_what_would_take_for_ever_is_refused(function, why):
    with pytest.raises(NotTraceable, match=why):
        mapped(function, columns_of(PAIR, [(6, 1)]), None)


def test_a_value_that_is_used_many_times_is_computed_once():
    column, kind = mapped(long_chain, columns_of(PAIR, [(7, 0), (12, 0)]), None)
    assert kind.from_arrow(column) == [long_chain((7, 0)), long_chain((12, 0))]


@pytest.mark.parametrize("kind", [Types.SQL_DATE(), Types.SQL_TIMESTAMP(), Types.LIST(Types.LONG())])
def test_the_truth_of_other_values_than_numbers_and_text_is_left_to_python(kind):
    with pytest.raises(NotTraceable, match="which has no truth value on columns"):
        filtered(lambda e: e, columns_of(kind, [None]))


XY = Types.ROW_NAMED(["x", "y"], [Types.DOUBLE(), Types.INT()])


@pytest.mark.parametrize("declared", [XY, Types.ROW(XY.types)])
@pytest.mark.parametrize(
    "function", [lambda e: Row(e[0], e[1]), lambda e: Row(e[0], 7) if e[1] > 2 else Row(*e), lambda e: Row(None, e[1])]
)
def test_rows_without_names_become_rows_by_the_positions_of_their_fields(function, declared):
    values = [(1, 2), (3, 4), (None, 5)]
    column, kind = mapped(function, columns_of(PAIR, values), declared)
    expected = declared.as_declared([function(value) for value in values])
    assert [*map(repr, kind.from_arrow(column))] == [*map(repr, expected)]


def test_rows_without_names_and_with_them_are_rows_of_the_declared_type():
    def several(e):
        yield Row(e[0], e[1])
        yield Row(x=e[1], y=e[0])

    found = flat_mapped(several, Columns(PAIR, PAIR.to_arrow([(1, 2)]), pa.array([5]), pa.array([0])), XY)
    assert found.type_info.from_arrow(found.values) == [Row(x=1.0, y=2), Row(x=2.0, y=1)]


@pytest.mark.parametrize("declared", [None, Types.TUPLE(XY.types), Types.ROW_NAMED(["x"], [Types.LONG()])])
def test_rows_without_names_need_a_declared_row(declared):
    with pytest.raises(NotTraceable, match="no names, and no row like it is declared"):
        mapped(lambda e: Row(e[0], e[1]), columns_of(PAIR, [(1, 2)]), declared)


def test_a_row_without_names_is_neither_a_key_of_its_fields_nor_a_tuple_that_a_fold_gives():
    kind = Types.ROW_NAMED(["user"], [Types.STRING()])
    assert Key(lambda e: Row(e.user), Types.PICKLED_BYTE_ARRAY()).by_field(kind).columns == ()
    with pytest.raises(NotTraceable):
        fold_of(lambda one, other: Row(one[0], one[1] + other[1]), PAIR)


def test_tuples_become_rows_by_the_places_of_their_fields():
    kind = Types.ROW_NAMED(["a", "b"], [Types.LONG(), Types.INT()])
    column, found = mapped(lambda e: e, columns_of(PAIR, [(1, 2)]), kind)
    assert found.from_arrow(column) == [Row(a=1, b=2)]


def test_rows_without_names_stay_rows_in_every_branch():
    kind = Types.ROW([Types.LONG(), Types.LONG()])
    column, found = mapped(
        lambda e: e if e.f0 > 1 else Row(f0=e.f0 + 1, f1=e.f1), columns_of(kind, [Row(1, 2), Row(3, 4)]), None
    )
    assert found.from_arrow(column) == [Row(f0=2, f1=2), Row(f0=3, f1=4)]


def test_a_refused_batch_is_not_kept():
    def refused(e):
        return [e]

    for _ in range(2):
        columns = columns_of(Types.LONG(), [1])
        kept = weakref.ref(columns.values)
        with pytest.raises(NotTraceable):
            mapped(refused, columns, None)
        del columns
        gc.collect()
        assert kept() is None


@pytest.mark.parametrize(
    ("select", "names"),
    [
        (lambda e: e.user, ("user",)),
        (lambda e: e["user"], ("user",)),
        (lambda e: e.user if e.user is not None else "unknown", ()),
        (lambda e: str(e.user), ()),
        (lambda e: e.amount, ()),
        (lambda e: e.tags, ()),
        (in_python(lambda e: e.user), ()),
    ],
)
def test_a_key_counts_as_a_field_only_where_it_is_that_field(select, names):
    kind = Types.ROW_NAMED(["user", "amount", "tags"], [Types.STRING(), Types.DOUBLE(), Types.LIST(Types.LONG())])
    assert Key(select, Types.PICKLED_BYTE_ARRAY()).by_field(kind).columns == names


def test_a_key_that_follows_from_a_value_outside_is_no_field():
    name = "user"
    kind = Types.ROW_NAMED(["user"], [Types.STRING()])
    assert Key(lambda e: e[name], Types.STRING()).by_field(kind).columns == ()


DICT = DictTypeInfo([Types.LONG(), Types.STRING()], ["a", "b"])


def grown(e):
    e |= {"c": 1}
    return e


def test_a_function_that_changes_its_argument_is_left_to_python():
    with pytest.raises(NotTraceable, match="it changes its argument"):
        mapped(grown, columns_of(DICT, [{"a": 1, "b": "x"}]), None)


def test_dicts_of_columns_keep_the_order_of_their_keys_and_become_declared_rows():
    columns = columns_of(DICT, [{"a": 1, "b": "x"}, {"a": 2, "b": None}])
    found, kind = mapped(lambda e: {"b": e["b"], **e, "n": {"a": e["a"] + 1}}, columns, None)
    assert [repr(value) for value in kind.from_arrow(found)] == [
        "{'b': 'x', 'a': 1, 'n': {'a': 2}}",
        "{'b': None, 'a': 2, 'n': {'a': 3}}",
    ]
    declared = Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.STRING()])
    found, kind = mapped(lambda e: e, columns, declared)
    assert kind.from_arrow(found) == [Row(a=1, b="x"), Row(a=2, b=None)]
    with pytest.raises(NotTraceable, match="is declared"):
        mapped(lambda e: {"b": e["b"], "a": e["a"]}, columns, declared)


def test_ways_whose_dicts_differ_in_their_keys_are_left_to_python():
    with pytest.raises(NotTraceable, match="values of several types"):
        mapped(lambda e: e if e["a"] else {"b": e["b"], "a": 1}, columns_of(DICT, [{"a": 1, "b": "x"}]), None)


def test_dicts_inside_become_dicts_by_as_dict_alone():
    kind = Types.ROW_NAMED(["x", "rows"], [Types.LONG(), Types.LIST(Types.ROW_NAMED(["y"], [Types.LONG()]))])
    columns = columns_of(kind, [Row(x=1, rows=[Row(y=2)])])
    found, found_kind = mapped(lambda e: e.as_dict(), columns, None)
    assert found_kind.from_arrow(found) == [{"x": 1, "rows": [Row(y=2)]}]
    for function in (lambda e: e.as_dict(True), lambda e: e.as_dict(recursive=True)):
        with pytest.raises(NotTraceable, match=r"as_dict\(\) with arguments"):
            mapped(function, columns, None)


FORM, BETWEEN, PREFIXES = "%s %%", ", ", ("a", "İ")


@pytest.mark.parametrize(
    "function",
    [
        lambda e: f"{e[0]}" if e[0] > 1 else f"<{e[1]:>4}|{e[0]:+d}%>",
        lambda e: FORM % e[1],
        lambda e: {FORM: BETWEEN.join((e[1], str(e[0]), BETWEEN)), "50%": "50%" + e[1]},
        lambda e: "{}{:03d}".format(e[1], e[0]),  # noqa: UP032 - that is the form
        lambda e: "100%" if e[1] == "50%" else "%",
        pytest.param(
            lambda e: [f"{name}={value}" for name, value in zip("ab", e, strict=True)][1], marks=TEXT_IN_LOOPS
        ),
        lambda e: e[1].startswith(PREFIXES) or e[1].endswith(("%", FORM)),
        lambda e: (e[1] in "a50%", e[1][0], len(e[1].split("0"))),
    ],
)
def test_texts_are_put_together_as_python_does_it(function):
    kind = Types.TUPLE([Types.LONG(), Types.STRING()])
    values = [(1, "a"), (-20, "50%"), (3, "İ")]
    column, found = mapped(function, columns_of(kind, values), None)
    assert list(map(repr, found.from_arrow(column))) == [repr(function(value)) for value in values]


EPOCH, UTC = datetime.datetime(1970, 1, 1), datetime.UTC  # noqa: DTZ001 - as it comes from columns
TIMES = Types.TUPLE([Types.SQL_TIMESTAMP(), Types.SQL_TIMESTAMP()])


@pytest.mark.usefixtures("far_from_utc")
@pytest.mark.parametrize(
    "function",
    [
        lambda e: e[1] - e[0],
        lambda e: {"late": e[1] - e[0] > datetime.timedelta(hours=1), "days": (e[1] - e[0]).days},
        lambda e: (int(e[0].timestamp() * 1000), int(e[1].replace(tzinfo=UTC).timestamp() * 1000)),
        lambda e: (e[0] - EPOCH) // datetime.timedelta(milliseconds=1),
        lambda e: (e[1] + (e[1] - e[0]) * 2).replace(minute=0, second=0, microsecond=0),
    ],
)
def test_times_are_computed_with_as_python_does_it(function):
    values = [
        (datetime.datetime(2024, 3, 10, 2, 30), datetime.datetime(2024, 3, 10, 3, 30, 0, 1)),  # noqa: DTZ001
        (datetime.datetime(1969, 7, 20, 20, 17), datetime.datetime(1969, 7, 20, 20, 16, 59, 999_999)),  # noqa: DTZ001
    ]
    column, found = mapped(function, columns_of(TIMES, values), None)
    assert found.from_arrow(column) == list(map(function, values))


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda e: e[0] - e[1].date(), "the operator sub on a datetime and a date"),
        (lambda e: e[0].replace(tzinfo=UTC), "it returns a datetime with a zone"),
        (lambda e: e[0].replace(tzinfo=None), "a zone other than UTC"),
        (lambda e: e[0].astimezone(), r"it calls the method astimezone\(\)"),
    ],
)
def test_times_that_columns_do_not_have_say_why(function, why):
    with pytest.raises(NotTraceable, match=why):
        mapped(function, columns_of(TIMES, [(EPOCH, EPOCH)]), None)


NAMES = {1: "one", 2: "two"}
PLACES = {"a": (1, "x", -0.0), "b": (2**62, "", float("nan"))}
EARLY = {"a": datetime.date(1, 1, 1), "b": datetime.date(9999, 12, 31)}
KNOWN = ["a", "b"]


@pytest.mark.parametrize(
    "function",
    [
        lambda e: NAMES.get(e[0], "many"),
        lambda e: NAMES[e[0] % 2 + 1],
        lambda e: NAMES[1] + (NAMES[e[0]] if e[0] in NAMES else NAMES.get(7, "?")),
        lambda e: PLACES[e[1]] if e[1] in PLACES else (0, e[1], 1.5),
        lambda e: PLACES.get(e[1], (*e, e[1]))[1],
        lambda e: None if (found := PLACES.get(e[1])) is None else found[2],
        lambda e: EARLY.get(e[1], datetime.date(2000, 1, 1)),
        lambda e: (e[1] in KNOWN, e[1] not in KNOWN, len(KNOWN)),
    ],
)
def test_what_is_looked_up_is_what_the_dict_has(function):
    kind = Types.TUPLE([Types.LONG(), Types.STRING()])
    values = [(1, "a"), (2, "b"), (2**63 - 1, "c"), (-1, "")]
    column, found = mapped(function, columns_of(kind, values), None)
    assert list(map(repr, found.from_arrow(column))) == [repr(function(value)) for value in values]


def test_a_missing_key_is_left_to_python_which_raises():
    with pytest.raises(Guard, match="a key that is not in a dict"):
        mapped(lambda e: NAMES[e], columns_of(Types.LONG(), [1, 3]), None)


def test_a_changed_dict_is_looked_up_as_it_is_from_the_next_batch_on():
    table, columns = {1: "a"}, columns_of(Types.LONG(), [1, 2])

    def named(value):
        return table.get(value, "")

    assert mapped(named, columns, None)[0].to_pylist() == ["a", ""]
    table[2] = "b"
    assert mapped(named, columns, None)[0].to_pylist() == ["a", "b"]
    table[1] = 1
    with pytest.raises(NotTraceable, match="no column can hold: they are not of one type"):
        mapped(named, columns, None)


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ({}, "a dict that is empty, or has keys of other types"),
        ({True: "a"}, "keys of other types"),
        ({1: None}, "no column can hold"),
        ({1: 2**63}, "no column can hold"),
        ({1: "\ud800"}, "no column can hold"),
        ({1: datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)}, "times with a zone"),
        ({1: (1, "a"), 2: (1,)}, "no column can hold"),
    ],
)
def test_dicts_that_columns_do_not_look_up_as_python_does_say_why(table, why):
    with pytest.raises(NotTraceable, match=why):
        mapped(lambda e: table[e], columns_of(Types.LONG(), [1]), None)


def test_decimals_are_compared_with_numbers_exactly():
    kind = Types.TUPLE([Types.BIG_DEC(10, 2), Types.DOUBLE(), Types.LONG()])
    values = [(Decimal("0.10"), 0.1, 1), (Decimal("1.00"), 1.0, 1), (Decimal("-0.01"), -math.inf, -(2**63))]
    for function in (
        lambda e: (e[0] < 0.1, e[0] > 0.1, e[0] == 0.1, e[0] <= 0.5, e[0] < 1e300, e[0] == 1.0, e[0] != -math.inf),
        lambda e: (e[0] < e[1], e[0] == e[1], e[2] <= e[0], e[0] == e[2], bool(e[0])),
        lambda e: (
            e[0] == Decimal("0.1"),
            e[0] < Decimal("0.1000000000000000000000000001"),
            max(e[0], Decimal("1.00")),
        ),
        lambda e: (int(e[0]), float(e[0])),
    ):
        column, found = mapped(function, columns_of(kind, values), None)
        assert list(map(repr, found.from_arrow(column))) == [repr(function(value)) for value in values]


def test_a_trap_for_decimals_that_meet_floats_is_left_to_python():
    with decimal.localcontext() as context:
        context.traps[decimal.FloatOperation] = True
        with pytest.raises(Guard, match="not to be compared"):
            mapped(lambda e: e < 0.5, columns_of(Types.BIG_DEC(3, 1), [Decimal("0.1")]), None)
