"""Types that widen: no value is lost, and the text of a type says all of it."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.aggregates import (
    approx_count_distinct,
    approx_quantiles,
    approx_top_k,
    collect_list,
    collect_set,
    count_distinct,
    first,
    last,
    max_,
    mean,
    min_,
    sum_,
    variance,
)
from eventide.common import Row, Types
from eventide.common.typeinfo.widening import conversion, obstacle, type_of_text, united
from eventide.runtime.columnar.aggregation import TIMESTAMP, Aggregation
from eventide.runtime.elements.keys import stable_hash
from eventide.savepoint.tables import widened
from support.row_values import SINGLE

_NAMES = st.lists(st.text("ab_ ,(", min_size=1, max_size=4), min_size=1, max_size=4, unique=True)
_TYPES = st.recursive(
    st.sampled_from([*SINGLE, Types.PICKLED_BYTE_ARRAY(), Types.TIME_WINDOW()]),
    lambda parts: st.one_of(
        st.lists(parts, min_size=1, max_size=3).map(Types.TUPLE),
        st.lists(parts, min_size=1, max_size=3).map(Types.ROW),
        _NAMES.flatmap(
            lambda names: st.lists(parts, min_size=len(names), max_size=len(names)).map(
                lambda types: Types.ROW_NAMED(names, types)
            )
        ),
        parts.map(Types.LIST),
        parts.map(Types.OBJECT_ARRAY),
        st.tuples(parts, parts).map(lambda pair: Types.MAP(*pair)),
    ),
    max_leaves=6,
)
_NUMBERS = [Types.BYTE(), Types.SHORT(), Types.INT(), Types.LONG(), Types.BIG_INT()]


@given(_TYPES)
def test_the_text_of_a_type_says_all_of_it(kind):
    assert type_of_text(str(kind)) == kind
    assert obstacle(kind, kind) is None
    assert conversion(kind, kind) is None
    assert united(kind, kind) == kind


@given(st.sampled_from(_NUMBERS), st.sampled_from(_NUMBERS), st.data())
def test_a_wider_number_holds_every_value_under_the_same_hash(before, now, data):
    fits = obstacle(before, now, is_key=True) is None
    assert fits == (_NUMBERS.index(before) <= _NUMBERS.index(now))
    if fits:
        value = data.draw(SINGLE[before])
        [held] = now.from_arrow(before.to_arrow([value]))
        assert held == value
        assert stable_hash(held) == stable_hash(value)


_FIELDS = st.dictionaries(st.sampled_from("abcde"), st.sampled_from(_NUMBERS[:3]), min_size=1)


@given(_FIELDS, _FIELDS, st.data())
def test_a_row_keeps_what_it_has_and_has_nothing_in_new_fields(before, more, data):
    now = {name: before.get(name, kind) for name, kind in more.items()}
    was, becomes = (Types.ROW_NAMED([*fields], [*fields.values()]) for fields in (before, now))
    values = {name: data.draw(SINGLE[kind]) for name, kind in before.items()}
    expected = {name: values.get(name) for name in now}
    assert obstacle(was, becomes) is None
    convert = conversion(was, becomes) or (lambda value: value)
    assert convert(Row(**values)).as_dict() == expected
    assert convert(values) == expected
    assert convert(tuple(values.values())) == tuple(expected.values())
    assert becomes.to_arrow([convert(Row(**values))]).to_pylist() == [expected]


_AGGREGATES = [
    *(name("x") for name in (sum_, min_, max_, mean, variance, first, last)),
    *(name("x") for name in (collect_list, collect_set, count_distinct, approx_count_distinct)),
    approx_quantiles("x", [0.5]),
    approx_top_k("x", 3),
]
_PAIRS = [
    (Types.BYTE(), Types.SHORT()),
    (Types.SHORT(), Types.LONG()),
    (Types.INT(), Types.LONG()),
    (Types.FLOAT(), Types.DOUBLE()),
]


@pytest.mark.parametrize("aggregate", _AGGREGATES, ids=lambda aggregate: type(aggregate).__name__ + repr(aggregate))
@settings(max_examples=10)
@given(st.sampled_from(_PAIRS), st.data())
def test_what_aggregates_keep_of_a_narrower_type_is_what_they_keep_of_the_wider(aggregate, pair, data):
    before, now = pair
    values = data.draw(st.lists(st.none() | SINGLE[before], min_size=1, max_size=8))
    narrow, wide = (Aggregation.of([aggregate], {"x": kind.arrow_type()}) for kind in pair)
    rows = pa.table({"k": ["a"] * len(values), "x": before.to_arrow(values), TIMESTAMP: [*range(len(values))]})
    widened_rows = rows.set_column(1, "x", rows.column("x").cast(now.arrow_type()))
    expected = wide.partial(widened_rows, ["k"])
    kept = widened(narrow.partial(rows, ["k"]), expected.schema)
    found, [wanted] = ([_result(wide, one, expected) for one in some] for some in ([kept, expected], [expected]))
    assert found == [wanted, wanted]


def _result(aggregation, *partials):
    """The result of partial results, in whatever order a set is."""
    [result] = aggregation.finish(aggregation.merge(pa.concat_tables(partials), ["k"]))
    [value] = result.to_pylist()
    if isinstance(value, float):
        return pytest.approx(value, nan_ok=True)
    return sorted(map(repr, value)) if isinstance(value, list) else value
