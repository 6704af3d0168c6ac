"""Types as PyFlink programs make them, and what PyFlink's can hold beyond them."""

from decimal import Decimal

import pytest

from eventide.common import Row, RowKind, Types
from eventide.common.typeinfo import ListTypeInfo, MapTypeInfo, RowTypeInfo, TupleTypeInfo
from eventide.errors import TypeMismatch
from eventide.testing import local_environment


def test_types_made_by_their_classes_are_those_of_the_factory():
    """With the parameters of PyFlink's classes, by place and by name."""
    one, other = Types.STRING(), Types.INT()
    assert RowTypeInfo([one]) == RowTypeInfo(field_types=[one]) == Types.ROW([one])
    assert RowTypeInfo([one], ["a"]) == RowTypeInfo(field_types=[one], field_names=["a"]) == Types.ROW_NAMED("a", [one])
    assert TupleTypeInfo([one]) == TupleTypeInfo(field_types=[one]) == Types.TUPLE([one])
    assert ListTypeInfo(one) == ListTypeInfo(element_type=one) == Types.LIST(one)
    assert MapTypeInfo(one, other) == MapTypeInfo(key_type_info=one, value_type_info=other) == Types.MAP(one, other)
    kinds = {RowTypeInfo([one], ["a"]), TupleTypeInfo([one]), ListTypeInfo(one), MapTypeInfo(one, other)}
    assert kinds == {Types.ROW_NAMED(["a"], [one]), Types.TUPLE([one]), Types.LIST(one), Types.MAP(one, other)}


def test_streams_of_a_type_made_by_its_class_can_be_one():
    env = local_environment()
    streams = [env.from_collection([(name,)], RowTypeInfo([Types.STRING()], ["name"])) for name in ("wren", "owl")]
    assert [row.name for row in streams[0].union(streams[1]).execute_and_collect()] == ["wren", "owl"]


@pytest.mark.parametrize(
    ("kind", "value", "says"),
    [
        (
            Types.BIG_DEC(),
            Decimal("1E+30"),
            "up to 20 digits before the point and 18 after it; .*do not declare the type",
        ),
        (Types.BIG_DEC(), Decimal("0.0599999999999999998"), "up to 20 digits before the point and 18 after it"),
        (Types.BIG_INT(), 10**38, "up to 38 digits; do not declare the type"),
        (
            Types.ROW([Types.INT()]),
            Row.of_kind(RowKind.UPDATE_AFTER, 1),
            "of kind UPDATE_AFTER, .*do not declare the type",
        ),
    ],
)
@pytest.mark.parametrize(
    ("wrap", "put"),
    [
        (lambda kind: kind, lambda value: value),
        (Types.LIST, lambda value: [value]),
        (lambda kind: Types.TUPLE([kind]), lambda value: (value,)),
    ],
)
def test_a_limit_that_pyflink_has_not_is_told_with_the_way_out(kind, value, says, wrap, put):
    for convert in (wrap(kind).to_arrow, wrap(kind).as_declared):
        with pytest.raises(TypeMismatch, match=rf"expected .*, got .*; it .*{says}"):
            convert([put(value)])
    undeclared = Types.PICKLED_BYTE_ARRAY()
    (same,) = undeclared.from_arrow(undeclared.to_arrow([value]))
    assert same == value
    assert not isinstance(value, Row) or same.get_row_kind() is value.get_row_kind()
