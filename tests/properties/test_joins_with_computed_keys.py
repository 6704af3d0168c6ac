"""Joins with keys that functions compute: results on columns are those element by element, also after restarts."""

from collections import Counter, defaultdict

import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.common import Row, Types, WatermarkStrategy
from eventide.datastream import OutputTag, StreamExecutionEnvironment
from eventide.datastream.functions import in_python
from eventide.datastream.window import SlidingEventTimeWindows, TumblingEventTimeWindows
from eventide.joins import left, right, window
from eventide.local.host import LocalHost
from eventide.runtime.metrics import BATCHES_IN_PYTHON
from support.columns import in_columns
from support.examples import examples
from support.twin import plan_of, run, run_with_cuts, runner, values

ROW = Types.ROW_NAMED(["k", "at", "id"], [Types.STRING(), Types.LONG(), Types.LONG()])
STRATEGY = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("at")
LATE, BAD = OutputTag("late", ROW), OutputTag("bad")
FIELDS = left("k"), left("id").alias("l"), right("id").alias("r"), right("at")

KEYS = {
    "a number": (lambda row: row.at % 3, None),
    "a pair": (lambda row: (row.k, row.at // 20), None),
    "a text, in Python for some batches": (lambda row: "none" if row.k is None else row.k.upper(), None),
    "a function in Python": (in_python(lambda row: row.id % 2), Types.LONG()),
    "an expression": (pc.bit_wise_and(pc.field("id"), 1), None),
}
"""Keys with their declared types."""

ELEMENTS = st.builds(Row, k=st.sampled_from(["a", "b", "ß", None]), at=st.integers(-20, 30), id=st.integers(0, 10**6))
BATCHES = st.lists(st.lists(ELEMENTS, max_size=6), max_size=4)


def plus_ids(one, other):
    return one.id + other.id


def timed_ids(one, other, context):
    yield one.id, other.id // one.at, context.get_timestamp()


JOINS = {
    "at any time": lambda keyed, key: keyed(0, key).interval_join(keyed(1, key)).at_any_time().select(*FIELDS),
    "interval": lambda keyed, key: (
        keyed(0, key)
        .interval_join(keyed(1, key))
        .between(-5, 7)
        .side_output_left_late_data(LATE)
        .side_output_right_late_data(LATE)
        .select(*FIELDS)
    ),
    "interval with a function": lambda keyed, key: (
        keyed(0, key).interval_join(keyed(1, key)).between(-9, 9).process(timed_ids).side_output_dead_letters(BAD)
    ),
    "as of": lambda keyed, key: keyed(0, key).as_of_join(keyed(1, key)).select(*FIELDS),
    "tumbling windows": lambda keyed, key: (
        keyed(0).join(keyed(1)).where(*key).equal_to(*key).window(TumblingEventTimeWindows.of(9)).apply(plus_ids)
    ),
    "sliding windows": lambda keyed, key: (
        keyed(0)
        .join(keyed(1))
        .where(*key)
        .equal_to(*key)
        .window(SlidingEventTimeWindows.of(10, 4))
        .select(*FIELDS, window(), how="full")
    ),
}
"""Joins; `keyed` gives a stream of one side, with a key."""


def plan(name, key, sides):
    env = StreamExecutionEnvironment(LocalHost())

    def keyed(side, by=None):
        stream = env.from_source(in_columns(ROW, *sides[side], splits=2), STRATEGY, f"side {side}")
        return stream if by is None else stream.key_by(*by)

    joined = JOINS[name](keyed, key).uid("joined")
    tags = {"interval": [LATE], "interval with a function": [BAD]}.get(name, [])
    return plan_of(joined, *(joined.get_side_output(tag) for tag in tags))


def in_elements(key):
    """A key that makes a join element by element; an expression is computed by a function in Python."""
    select, _ = key
    return (in_python(select if callable(select) else lambda row: row.id & 1),)


def by_time(results):
    """The results of each micro-batch and sink by their time; the order of keys is not defined."""
    found = []
    for batch in results:
        for sink in batch:
            by: defaultdict[int | None, Counter] = defaultdict(Counter)
            for value, at in sink:
                by[at][f"{type(value).__name__} {value!r}"] += 1
            found.append(dict(by))
    return found


@pytest.mark.parametrize("name", JOINS)
@given(first=BATCHES, second=BATCHES, of=st.sampled_from([*KEYS]), data=st.data())
@examples(60)
def test_a_join_gives_the_same_on_columns_and_goes_on(name, first, second, of, data):
    sides, key = (first, second), KEYS[of]
    on_columns, expected = plan(name, key, sides), run(plan(name, in_elements(key), sides))
    assert on_columns.operators[0].speed.startswith("columns")
    assert by_time(run(on_columns)) == by_time(expected)
    before_last = range(1, max(len(first), len(second)))
    where = sorted(data.draw(st.sets(st.sampled_from(before_last), max_size=2))) if before_last else []
    cuts = [(at, data.draw(st.booleans())) for at in where]
    plans = [plan(name, key, sides) for _ in range(len(cuts) + 1)]
    assert by_time(run_with_cuts(plans, cuts)) == by_time(expected)


@pytest.mark.parametrize("name", JOINS)
def test_only_batches_that_a_guard_refuses_have_their_keys_found_in_python(name):
    batches = [[Row("a", 1, 1), Row("b", 2, 2)], [Row("ß", 3, 3), Row("a", 4, 4)], [Row("b", 5, 5), Row("a", 6, 7)]]
    key = KEYS["a text, in Python for some batches"]
    counted = [
        {operator: of[BATCHES_IN_PYTHON] for operator, of in batch.progress.counted.items() if BATCHES_IN_PYTHON in of}
        for batch in runner(plan(name, key, (batches, batches[:1]))).batches()
    ]
    assert counted[:3] == [{}, {"timestamps and watermarks": 1}, {}]


@pytest.mark.parametrize("name", JOINS)
def test_explain_says_why_columns_cannot_have_the_key(name):
    def speed(*key):
        return plan(name, key, ([[Row("a", 1, 1)]],) * 2).operators[0].speed

    assert speed(lambda row: row.id % 2).startswith("columns")
    assert "the key selector is Python: it uses id (line " in speed(lambda row: id(row) % 2)
    assert "columns do not tell keys of type DOUBLE apart as Python does (line " in speed(lambda row: row.id / 2)


def test_a_key_of_one_side_may_be_a_field_and_that_of_the_other_computed():
    env = StreamExecutionEnvironment(LocalHost())
    one, other = (
        env.from_source(in_columns(ROW, [Row("a", 1, 3), Row("b", 2, 14)]), STRATEGY, name) for name in ("one", "other")
    )
    joined = one.key_by("id").interval_join(other.key_by(lambda row: row.id - 11)).at_any_time().select(*FIELDS)
    made = plan_of(joined)
    assert made.operators[0].speed.startswith("columns")
    assert values(run(made)) == [Row(k="a", l=3, r=14, at=2)]


def test_keys_of_different_types_are_not_compared_on_columns():
    env = StreamExecutionEnvironment(LocalHost())
    one, other = (env.from_source(in_columns(ROW, [Row("a", 1, 0)]), STRATEGY, name) for name in ("one", "other"))
    joined = one.key_by("id").interval_join(other.key_by(lambda row: row.id > 5)).at_any_time().select(*FIELDS)
    made = plan_of(joined)
    assert "the keys of both sides have different types, LONG and BOOLEAN; declare the same" in made.operators[0].speed
    assert values(run(made)) == [Row(k="a", l=0, r=0, at=1)]  # 0 equals False
