"""Joins that select fields: what they ask of a program, how they say that they run, and what they keep."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from eventide.aggregates import count
from eventide.common import Row, Time, Types, WatermarkStrategy
from eventide.datastream import OutputTag
from eventide.datastream.functions import in_python
from eventide.datastream.window import (
    CountEvictor,
    EventTimeSessionWindows,
    EventTimeTrigger,
    PurgingTrigger,
    TumblingEventTimeWindows,
)
from eventide.errors import EventideError, ProgramError
from eventide.joins import left, right, window
from eventide.runtime.columnar.stores import KeyedTable
from eventide.runtime.state.backend import MemoryBackend
from eventide.testing import local_environment
from support.twin import plan_of, run

ORDER = Types.ROW_NAMED(["id", "at", "who"], [Types.LONG(), Types.LONG(), Types.STRING()])
PAYMENT = Types.TUPLE([Types.LONG(), Types.LONG(), Types.DOUBLE()])
ORDERS = [Row(id=1, at=1, who="Ada"), Row(id=2, at=4, who="Bob"), Row(id=1, at=12, who="Cleo")]
PAYMENTS = [(1, 3, 5.0), (3, 6, 1.0), (1, 15, 2.5)]
WINDOWS = TumblingEventTimeWindows.of(Time.milliseconds(10))


def _streams():
    env = local_environment()
    by_row = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("at")
    by_tuple = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("f1")
    return (
        env.from_collection(ORDERS, ORDER).assign_timestamps_and_watermarks(by_row),
        env.from_collection(PAYMENTS, PAYMENT).assign_timestamps_and_watermarks(by_tuple),
    )


def _windowed(first_key="id", second_key="f0"):
    orders, payments = _streams()
    return orders.join(payments).where(first_key).equal_to(second_key).window(WINDOWS)


def _interval(first_key="id", second_key="f0"):
    orders, payments = _streams()
    return orders.key_by(first_key).interval_join(payments.key_by(second_key)).between(0, 5)


def _values(stream):
    return sorted((tuple(row) for batch in run(plan_of(stream)) for row, _ in batch[0]), key=repr)


def test_an_interval_join_gives_the_fields_that_are_selected():
    paid = _interval().select(left("who"), right("f2").alias("euros"), right("f1").alias("paid"))
    assert str(paid.get_type()) == "ROW(who: STRING, euros: DOUBLE, paid: LONG)"
    assert _values(paid) == [("Ada", 5.0, 3), ("Cleo", 2.5, 15)]


@pytest.mark.parametrize(
    ("how", "alone"),
    [
        ("inner", []),
        ("left", [("Bob", None, 0)]),
        ("right", [(None, 1.0, 0)]),
        ("full", [("Bob", None, 0), (None, 1.0, 0)]),
    ],
)
def test_a_window_join_keeps_those_that_meet_none(how, alone):
    selected = _windowed().select(left("who"), right("f2"), window().alias("in"), how=how)
    found = [(who, euros, found.start) for who, euros, found in _values(selected)]
    assert sorted(found, key=repr) == sorted([("Ada", 5.0, 0), ("Cleo", 2.5, 10), *alone], key=repr)


def test_explain_says_that_it_runs_on_columns():
    (operator,) = plan_of(_interval().select(left("who"), right("f2"))).operators
    assert operator.speed == "columns, rows go through the shuffle"
    assert dict(operator.describe()) == {
        "interval join": "right elements from 0 ms to 5 ms after their left ones",
        "gives": "left('who'), right('f2')",
        "late": "left dropped and counted, right dropped and counted",
        "state": "the fields that come out of each side, in Arrow columns by key, until nothing can meet them",
    }


def _paid(order, payment):
    return order


def test_explain_says_of_an_as_of_join_of_elements_what_it_says_of_one_on_columns():
    orders, payments = _streams()
    by_name = orders.key_by("id").as_of_join(payments.key_by("f0"))
    by_function = orders.key_by(in_python(lambda order: order["id"])).as_of_join(payments.key_by("f0"))
    fields = left("who"), right("f2")
    described = [
        dict(plan_of(joined).operators[0].describe())
        for joined in (by_name.select(*fields), by_function.select(*fields), by_function.apply(_paid, how="left"))
    ]
    on_columns, of_elements, of_function = [
        {line: text for line, text in lines.items() if line in ("join", "late", "gives", "function")}
        for lines in described
    ]
    assert on_columns == of_elements
    assert of_function == {
        "join": "as of the time of the left element, left",
        "late": on_columns["late"],
        "gives": "what _paid gives",
    }


@pytest.mark.parametrize(
    ("join", "reason"),
    [
        (_interval(lambda order: id(order) and order["id"]), "the key selector is Python: it uses id (line "),
        (_windowed(lambda order: id(order) and order["id"]), "the key selector is Python: it uses id (line "),
        (_windowed().evictor(CountEvictor.of(9)), "looks at single elements"),
        (_windowed().trigger(PurgingTrigger.of(EventTimeTrigger.create())), "leave trigger(...) out"),
    ],
)
def test_explain_says_why_it_runs_element_by_element(join, reason):
    selected = join.select(left("who"), right("f2"))
    (operator,) = plan_of(selected).operators
    assert operator.speed.startswith("element by element, because ")
    assert reason in operator.speed
    assert _values(selected) == [("Ada", 5.0), ("Cleo", 2.5)]


def test_sessions_are_joined_element_by_element():
    orders, payments = _streams()
    sessions = orders.join(payments).where("id").equal_to("f0").window(EventTimeSessionWindows.with_gap(8))
    selected = sessions.select(left("who"), right("f2"), window())
    assert "use tumbling or sliding windows" in plan_of(selected).operators[0].speed
    assert [(who, euros, found.start) for who, euros, found in _values(selected)] == [
        ("Ada", 5.0, 1),
        ("Cleo", 2.5, 12),
    ]


def test_a_function_can_join_by_fields():
    found = _windowed().apply(lambda order, payment: (order["who"], payment[2]))
    assert _values(found) == [("Ada", 5.0), ("Cleo", 2.5)]


def test_keys_of_several_fields():
    orders, payments = _streams()
    again = orders.join(orders).where("id", "who").equal_to("id", "who").window(WINDOWS).select(left("at"), right("id"))
    assert _values(again) == [(1, 1), (12, 1), (4, 2)]
    with pytest.raises(ProgramError, match="where has TUPLE"):
        orders.join(payments).where("id", "who").equal_to("f0")


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: _interval().select(), "not nothing"),
        (lambda: _interval().select("id"), "not 'id'"),
        (lambda: _interval().select(left("missing")), "missing"),
        (lambda: _interval().select(left("at"), right("f0").alias("at")), "two fields of the result are named 'at'"),
        (lambda: _interval().select(window()), r"window\(\) is for joins in windows"),
        (lambda: _interval("who").select(left("at")), "on the left who is STRING, on the right f0 is LONG"),
        (lambda: _windowed().select(left("at"), how="outer"), "how is one of 'inner', 'left', 'right', 'full'"),
        (lambda: _windowed("who"), "where has STRING, equal_to has LONG; declare the same type for both"),
        (lambda: _streams()[0].join(_streams()[1]), "made by two"),
        (lambda: left(""), "left takes the name of a field"),
        (lambda: left("id").alias(None), "expected a name"),
    ],
)
def test_what_does_not_fit_is_refused(build, message):
    with pytest.raises(ProgramError, match=message):
        build()


def test_elements_of_no_declared_type_have_no_fields():
    env = local_environment()
    plain = env.from_collection([{"id": 1}]).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda element, _: 0)
    )
    join = plain.key_by("id").interval_join(plain.key_by("id")).between(0, 1)
    with pytest.raises(ProgramError, match="declare output_type"):
        join.select(left("id"))


def test_only_the_fields_that_are_used_are_read():
    plan = plan_of(_interval().select(right("f2")))
    assert {source.name: source.fields for source in plan.sources} == {
        "collection": ("id", "at"),
        "collection-2": None,
    }


def test_nothing_else_takes_the_elements_of_a_window_join_on_columns():
    stream = _windowed().select(right("f2"))
    stream.print()
    plan = stream.get_execution_environment().get_plan()
    assert {source.name: source.fields for source in plan.sources}["collection"] == ("id", "at")
    assert [operator.name for operator in plan.operators] == ["join"]


def test_late_elements_of_either_side_are_whole():
    late = OutputTag("late", ORDER)
    env = local_environment()
    by_row = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("at")
    orders = env.from_collection([*ORDERS, Row(id=9, at=2, who="Dora")], ORDER).assign_timestamps_and_watermarks(by_row)
    join = orders.key_by("id").interval_join(orders.key_by("id")).between(0, 5).side_output_left_late_data(late)
    results = join.select(left("who"))
    batches = run(plan_of(results, results.get_side_output(late)), max_rows=3)
    assert [row for batch in batches for row, _ in batch[1]] == [Row(id=9, at=2, who="Dora")]


def _of(env, rows, kinds):
    """A stream of rows with fields key, at and id."""
    kind = Types.ROW_NAMED(["k", "at", "id"], kinds)
    by_row = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("at")
    return env.from_collection(
        [Row(k=k, at=at, id=number) for k, at, number in rows], kind
    ).assign_timestamps_and_watermarks(by_row)


_FIELDS = left("id"), right("id").alias("other")


@pytest.mark.parametrize("keys", [(("abc", "abc"), ("".join("abc"), "abc")), (1, 1.0), ((True,), (1,))])
def test_keys_whose_bytes_differ_though_they_are_equal_meet(keys):
    """Equal objects may have different pickles, so columns of them cannot be compared."""
    env = local_environment()
    kinds = [Types.PICKLED_BYTE_ARRAY(), Types.LONG(), Types.LONG()]
    one, other = (_of(env, [(key, 1, number)], kinds) for number, key in enumerate(keys))
    near = one.key_by("k").interval_join(other.key_by("k")).between(0, 1).select(*_FIELDS)
    together = one.join(other).where("k").equal_to("k").window(WINDOWS).select(*_FIELDS)
    for joined in (near, together):
        assert "cannot tell keys of type PICKLED_BYTE_ARRAY apart" in plan_of(joined).operators[0].speed
        assert _values(joined) == [(0, 1)]


def test_windows_can_be_keys():
    env = local_environment()
    kinds = [Types.STRING(), Types.LONG(), Types.LONG()]
    counts = [
        _of(env, [("a", 1, 1), ("a", 2, 1), ("b", 12, 1)], kinds).key_by("k").window(WINDOWS).aggregate(count())
        for _ in range(2)
    ]
    same = counts[0].join(counts[1]).where("window", "k").equal_to("window", "k").window(WINDOWS)
    selected = same.select(left("k"), left("count").alias("n"), right("count").alias("m"))
    assert _values(selected) == [("a", 2, 2), ("b", 1, 1)]
    by_window = counts[0].key_by("window").count_window(1).aggregate(count().alias("n"))
    assert [(row[0].start, row[1]) for row in _values(by_window)] == [(0, 1), (10, 1)]


@pytest.mark.parametrize("bounds", [(0, 10), (0, 2**63 - 1), (-(2**63), 0)])
@pytest.mark.parametrize("key", ["k", lambda row: row["k"]])
def test_times_at_the_end_of_the_range_can_be_joined(bounds, key):
    env = local_environment()
    kinds = [Types.STRING(), Types.LONG(), Types.LONG()]
    one, other = (_of(env, [("a", 2**63 - 5, number)], kinds) for number in (1, 2))
    assert _values(one.key_by(key).interval_join(other.key_by(key)).between(*bounds).select(*_FIELDS)) == [(1, 2)]


def test_decimals_keep_their_digits_and_names_of_tables_are_no_harm():
    env = local_environment()
    kind = Types.ROW_NAMED(
        ["k", "at", "price", "__timestamp"], [Types.LONG(), Types.LONG(), Types.BIG_DEC(), Types.LONG()]
    )
    row = Row(**{"k": 1, "at": 1, "price": Decimal("1.00"), "__timestamp": 7})
    by_row = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("at")
    stream = env.from_collection([row], kind).assign_timestamps_and_watermarks(by_row)
    join = stream.key_by("k").interval_join(stream.key_by("k")).between(0, 1)
    assert str(_values(join.select(left("price")))[0][0]) == "1.00"
    assert _values(join.select(left("__timestamp"))) == [(7,)]


def test_one_side_output_is_for_late_elements_of_one_type():
    tag = OutputTag("late")
    join = _interval().side_output_left_late_data(tag).side_output_right_late_data(tag)
    with pytest.raises(ProgramError, match="take two OutputTags"):
        join.select(left("who"))


@pytest.mark.parametrize(
    "keys",
    [
        ("k", "k"),
        (lambda row: row.k, "k"),
        (lambda row: (row.k, row.id), lambda row: (row.k, row.id)),
    ],
)
@pytest.mark.parametrize("values", [[("a", 1, 7)], [(None, 2, None)], [("a", 1, 7), ("b", 1, 7), ("a", 1, 8)]])
def test_keys_that_functions_return_are_the_fields(keys, values):
    """Whether elements travel as columns or as Python objects, and whether the function is named or not."""
    env = local_environment()
    kinds = [Types.STRING(), Types.LONG(), Types.LONG()]
    found = []
    for mark in (lambda key: key, lambda key: key if isinstance(key, str) else in_python(key)):
        one, other = (_of(env, values, kinds) for _ in range(2))
        near = one.key_by(mark(keys[0])).interval_join(other.key_by(mark(keys[1]))).between(0, 1)
        together = one.join(other).where(mark(keys[0])).equal_to(mark(keys[1])).window(WINDOWS)
        joined = near.process(lambda a, b, _: [(a.k, b.id)]), together.apply(lambda a, b: (a.k, b.id))
        found.append([_values(stream) for stream in joined])
        if not found[1:]:
            assert all(plan_of(stream).operators[0].speed.startswith("columns") for stream in joined)
    assert found[0] == found[1]
    assert found[0][0]


def test_an_element_that_is_none_has_no_key():
    orders, payments = _streams()
    some = orders.map(lambda row: row if row.id > 1 else None, ORDER)
    near = some.key_by("id").interval_join(payments.key_by("f0")).between(0, 5).select(left("who"))
    together = some.join(payments).where("id").equal_to("f0").window(WINDOWS).select(left("who"))
    for joined in (near, together):
        assert plan_of(joined).operators[0].speed.startswith("columns")
        with pytest.raises(EventideError, match="NoneType"):
            run(plan_of(joined))


def test_a_join_at_any_time_has_no_bounds_and_no_late_elements():
    orders, payments = _streams()
    join = orders.key_by("id").interval_join(payments.key_by("f0")).at_any_time()
    for selected in (join.select(left("who")), join.process(lambda order, payment: order)):
        (operator,) = plan_of(selected).operators
        lines = dict(operator.describe())
        assert (lines["interval join"], lines["late"]) == ("elements of any time", "none")
    for change in (
        join.lower_bound_exclusive,
        join.upper_bound_exclusive,
        lambda: join.side_output_left_late_data(OutputTag("late")),
        lambda: join.side_output_right_late_data(OutputTag("late")),
    ):
        with pytest.raises(ProgramError, match="a join at_any_time has no bounds, and nothing is late for it"):
            change()


@pytest.mark.parametrize("key", ["k", lambda element: element.k + 0])
def test_windows_beyond_the_range_of_a_window_column_join_if_none_is_selected(key):
    kind = Types.ROW_NAMED(["k", "at"], [Types.LONG(), Types.LONG()])
    by_time = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("at")
    stream = local_environment().from_collection([Row(k=1, at=2**60)], kind).assign_timestamps_and_watermarks(by_time)
    joined = stream.join(stream).where(key).equal_to(key).window(WINDOWS).select(left("at"), right("k"))
    assert _values(joined) == [(2**60, 1)]


@pytest.mark.parametrize("times", [1, 2])
def test_a_bound_is_made_exclusive_once_however_often_it_is_called(times):
    env = local_environment()
    by_time = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda element, _: element[1])
    first, second = (
        env.from_collection([("k", at) for at in ats]).assign_timestamps_and_watermarks(by_time).key_by(lambda e: e[0])
        for ats in ([0], range(4))
    )
    join = first.interval_join(second).between(0, 3)
    for _ in range(times):
        join = join.lower_bound_exclusive().upper_bound_exclusive()
    joined = join.process(lambda one, other, ctx: [other])
    assert _values(joined) == [("k", 1), ("k", 2)]


class _Counting(MemoryBackend):
    def __init__(self):
        super().__init__()
        self.put_names = []

    def put(self, name, value):
        self.put_names.append(name)
        super().put(name, value)


def test_rows_that_were_read_and_not_changed_are_not_written_again():
    """A join reads the other side of each element; what it finds there stays as it is."""
    backend = _Counting()
    schema = pa.schema([("__key0", pa.int64()), ("value", pa.string())])
    rows = pa.table({"__key0": [1, 2], "value": ["a", None]}, schema=schema)
    for changed in (True, False, True):
        backend.put_names.clear()
        table = KeyedTable(backend, schema, ["__key0"])
        table.read_keys_of(rows)
        if changed:
            table.table = pa.concat_tables([table.table, rows])
        table.flush(np.full(len(table.table), 5))
        assert any(name.startswith("extent/") for name in backend.put_names) == changed
