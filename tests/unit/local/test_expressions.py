"""Expressions of ``pyarrow.compute`` as keys, timestamps and conditions of joins: on columns and one by one."""

import pickle

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.common import NullTimestamps, Row, Types, WatermarkStrategy
from eventide.datastream import OutputTag, ProcessWindowFunction
from eventide.datastream.functions import in_python
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.errors import DataError, EventideError, ProgramError
from eventide.testing import ScriptedSource, local_environment
from support.twin import plan_of, run, values

ORDER = Types.ROW_NAMED(["user", "at", "value"], [Types.STRING(), Types.LONG(), Types.LONG()])
IN_ORDER = WatermarkStrategy.for_monotonous_timestamps()
TENS = TumblingEventTimeWindows.of(10)
LOWER = pc.utf8_lower(pc.field("user"))
TENTHS = (pc.field("value") / 10).cast(pa.int64())


def orders(script, *, on_columns, strategy=None, env=None):
    """Elements as columns or as objects of their declared type."""
    env, strategy = env or local_environment(), strategy or of(pc.field("at") + 1)
    rows = [[("s", Row(**dict(zip(("user", "at", "value"), one, strict=True)))) for one in batch] for batch in script]
    source = ScriptedSource(["s"], rows, ORDER)
    if not on_columns:
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "orders")
        return stream.map(in_python(lambda order: order), ORDER).assign_timestamps_and_watermarks(strategy)
    batches = [
        [("s", pa.RecordBatch.from_struct_array(ORDER.to_arrow([row for _, row in batch])))] if batch else []
        for batch in rows
    ]
    return env.from_source(ScriptedSource(["s"], batches, ORDER), strategy, "orders")


class Counts(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, context.window().start, [element.value for element in elements]


def counted(stream, key):
    return stream.key_by(key).window(TENS).process(Counts())


SCRIPTS = st.lists(
    st.lists(
        st.tuples(st.sampled_from(["Ann", "ANN", "bob", None]), st.integers(0, 40), st.integers(-50, 50)), max_size=5
    ),
    max_size=4,
)


@pytest.mark.parametrize(
    ("expression", "function"),
    [
        (LOWER, lambda order: None if order.user is None else order.user.lower()),
        (TENTHS, lambda order: int(order.value / 10)),
        (pc.field("value") > 3, lambda order: order.value > 3),
        (pc.field("user"), lambda order: order.user),
    ],
)
@given(script=SCRIPTS)
@settings(max_examples=8, deadline=None)
def test_a_key_by_expression_is_that_of_a_function_that_says_the_same(expression, function, script):
    stream = orders(script, on_columns=False, strategy=IN_ORDER.with_timestamp_assigner(lambda order, _: order.at + 1))
    expected = run(plan_of(counted(stream, function)))
    for on_columns in (True, False):
        found = run(plan_of(counted(orders(script, on_columns=on_columns), expression)))
        assert sorted(map(repr, values(found))) == sorted(map(repr, values(expected)))


@pytest.mark.parametrize("on_columns", [True, False])
def test_times_finer_than_a_millisecond_are_cut_off_towards_the_past(on_columns):
    of_micros = pc.field("at").cast(pa.timestamp("us"))
    stream = orders([[("a", -1, 0), ("a", 1_999, 1)]], on_columns=on_columns, strategy=of(of_micros))
    ((found,), *_) = run(plan_of(stream))
    assert [at for _, at in found] == [-1, 1]


def of(expression):
    return IN_ORDER.with_timestamp_assigner(expression)


@pytest.mark.parametrize("on_columns", [True, False])
def test_an_element_whose_time_cannot_be_computed_is_named_dropped_or_put_aside(on_columns):
    script = [[("a", 5, 1), ("b", None, 2), ("c", 2**63 - 1, 3)]]
    with pytest.raises(DataError, match=r"overflow|None"):
        run(plan_of(orders(script, on_columns=on_columns)))
    dropping = of(pc.field("at") + 1).with_null_timestamps(NullTimestamps.DROP)
    kept = orders([script[0][:2]], on_columns=on_columns, strategy=dropping)
    assert [row.user for row in values(run(plan_of(kept)))] == ["a"]
    bad = OutputTag("bad")
    stream = orders(script, on_columns=on_columns, strategy=dropping).side_output_dead_letters(bad)
    good, letters = (values(run(plan_of(one))) for one in (stream, stream.get_side_output(bad)))
    assert [row.user for row in good] == ["a"]
    assert ["overflow" in letter.error for letter in letters] == [True]


def test_a_key_that_cannot_be_computed_names_its_element():
    for on_columns in (True, False):
        with pytest.raises(EventideError, match=r"key.*9223372036854775807.*overflow"):
            run(
                plan_of(
                    counted(orders([[("a", 1, 5), ("a", 2, 2**63 - 1)]], on_columns=on_columns), pc.field("value") + 1)
                )
            )


def joined(one, other, first, second):
    met = one.join(other).where(first).equal_to(second).window(TENS)
    return met.apply(lambda left, right: (left.user, left.value, right.user, right.value))


@given(script=SCRIPTS, others=SCRIPTS)
@settings(max_examples=8, deadline=None)
def test_joins_compare_expressions_as_they_compare_functions(script, others):
    def both(on_columns):
        env = local_environment()
        return [orders(one, on_columns=on_columns, env=env) for one in (script, others)]

    def lower(order):
        return None if order.user is None else order.user.lower()

    on_functions = values(run(plan_of(joined(*both(False), lower, lower))))
    for on_columns in (True, False):
        found = values(run(plan_of(joined(*both(on_columns), LOWER, LOWER))))
        assert sorted(map(repr, found)) == sorted(map(repr, on_functions))


def test_what_does_not_fit_is_refused_when_the_program_is_built():
    stream = orders([], on_columns=True)
    with pytest.raises(
        ProgramError,
        match=r"key_by: usr cannot be computed: No match .*; the elements are of type ROW\(user: STRING, at",
    ):
        stream.key_by(pc.field("usr"))
    with pytest.raises(ProgramError, match="no kernel matching input types"):
        stream.key_by(pc.field("user") + 1)
    with pytest.raises(ProgramError, match="gives LONG, and the key_type is STRING"):
        stream.key_by(pc.field("value") + 1, Types.STRING())
    with pytest.raises(ProgramError, match="key_by takes one expression"):
        stream.key_by(pc.field("value") + 1, "user")
    with pytest.raises(ProgramError, match="gives string; a timestamp is a whole number"):
        orders([], on_columns=True, strategy=of(pc.field("user")))
    with pytest.raises(ProgramError, match="where has STRING, equal_to has LONG"):
        stream.join(stream).where(LOWER).equal_to(TENTHS)
    with pytest.raises(ProgramError, match="elements are of type PICKLED"):
        stream.map(in_python(lambda order: order)).key_by(LOWER)


def test_a_field_alone_is_the_field_by_name():
    key = orders([], on_columns=True).key_by(pc.field("user"))._transformation.key
    assert key.columns == ("user",)


def test_a_strategy_travels_to_the_workers_and_says_where_its_timestamps_come_from():
    strategy = of(pc.field("at") + 1)
    assert pickle.loads(pickle.dumps(strategy)) == strategy
    assert strategy.describe() == "monotonous timestamps, timestamps from add_checked(at, 1)"
