"""Types that widen: no value is lost, and the text of a type says all of it."""

from hypothesis import given
from hypothesis import strategies as st

from eventide.common import Row, Types
from eventide.common.typeinfo._texts import type_of_text
from eventide.common.typeinfo._widening import conversion, obstacle
from eventide.runtime.elements.keys import stable_hash
from properties.row_values import SINGLE

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
