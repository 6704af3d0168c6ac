"""Rolling aggregations of elements whose type only a trace shows: results on columns are those of Python."""

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from eventide.common import Row, Types, WatermarkStrategy
from eventide.datastream import StreamExecutionEnvironment
from eventide.local.host import LocalHost
from eventide.plan.description import explain
from eventide.runtime.metrics import BATCHES_IN_PYTHON
from support.columns import in_columns
from support.twin import plan_of, run, run_with_cuts, runner

WITHOUT = WatermarkStrategy.no_watermarks()
KIND = Types.ROW_NAMED(["k", "v", "w"], [Types.STRING(), Types.LONG(), Types.LONG()])
LARGE = 2**62
"""A value whose multiple has more than 64 bits, so that a batch with it is mapped in Python, to other elements."""

SHAPES = {
    "wider row": (lambda e: Row(k=e.k, n=e.v * 4, x=e.w / 4, more=e.v), "k", "n", "x"),
    "tuple": (lambda e: (e.k, e.v * 4, e.w / 4), lambda e: e[0], 1, 2),
    "row": (lambda e: Row(k=e.k, n=e.v * 4, x=e.w / 4), "k", "n", "x"),
    "dict": (lambda e: {"k": e.k, "n": e.v * 4, "x": e.w / 4}, lambda e: (e["k"], e["n"] % 2), "n", "x"),
}
"""By their shape: the function that makes elements, their key, and two fields: a whole number, and one with a point."""

ROLLS = {
    "sum": lambda keyed, n, x: keyed.sum(n),
    "sum of floats": lambda keyed, n, x: keyed.sum(x),
    "min": lambda keyed, n, x: keyed.min(x),
    "max": lambda keyed, n, x: keyed.max(n),
    "min by": lambda keyed, n, x: keyed.min_by(n),
    "max by": lambda keyed, n, x: keyed.max_by(x),
    "last": lambda keyed, n, x: keyed.reduce(lambda a, b: b),
    "highest": lambda keyed, n, x: keyed.reduce(lambda a, b: max(a, b, key=lambda e: e[n])),
    "step by step": lambda keyed, n, x: keyed.reduce(lambda a, b: b if (a[n] + b[n]) % 3 else a),
}
few = st.integers(-4, 4)
ROWS = st.builds(Row, k=st.sampled_from(["a", "b", "ß"]), v=st.one_of(*[few] * 12, st.just(LARGE)), w=few)
BATCHES = st.lists(st.lists(ROWS, max_size=6), min_size=1, max_size=6)


def plan(shape, roll, batches, in_python=False):
    make, key, n, x = SHAPES[shape]
    env = StreamExecutionEnvironment(LocalHost())
    env.get_config().set_functions_in_python(in_python)
    made = env.from_source(in_columns(KIND, *batches, splits=2), WITHOUT, "rows").map(make)
    return plan_of(ROLLS[roll](made.key_by(key), n, x).uid("rolled").map(lambda e: e))


def shown(results):
    """Results with the types of all that is in them."""
    return [
        [
            [([type(part) for part in (e.values() if type(e) is dict else e)], repr(e)) for e, _ in sink]
            for sink in batch
        ]
        for batch in results
    ]


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=2 * settings().max_examples)
@given(data=st.data(), batches=BATCHES)
def test_jobs_give_what_python_gives_also_where_they_change_from_one_to_the_other(shape, data, batches):
    roll = data.draw(st.sampled_from([*ROLLS]))
    expected = run(plan(shape, roll, batches, in_python=True))
    where = sorted(data.draw(st.sets(st.integers(1, len(batches)), max_size=3)))
    cuts = [(at, data.draw(st.booleans())) for at in where]
    plans = [plan(shape, roll, batches, in_python=data.draw(st.integers(0, 3)) == 0) for _ in range(len(cuts) + 1)]
    assert shown(run_with_cuts(plans, cuts)) == shown(expected)
    event(f"with a large number: {any(row.v == LARGE for batch in batches for row in batch)}")


@pytest.mark.parametrize("roll", ROLLS)
@pytest.mark.parametrize("shape", SHAPES)
def test_explain_says_that_they_run_on_columns_and_so_do_functions_after_them(shape, roll):
    told = explain(plan(shape, roll, [[Row("a", 1, 2)]]))
    assert "columns, the next element of all keys at once" in told or "columns, in one pass" in told
    assert told.count("on columns, where its elements come so") == 2


def test_only_micro_batches_with_other_elements_run_in_python_and_those_that_meet_their_state():
    numbers = [1, 2, LARGE, 3, 4]
    batches = [[Row("a", number, 0), Row("b", number % 5, 0)] for number in numbers]
    batches[3] = batches[3][1:]
    found = [
        {name: of[BATCHES_IN_PYTHON] for name, of in batch.progress.counted.items() if of.get(BATCHES_IN_PYTHON)}
        for batch in runner(plan("row", "sum", batches)).batches()
    ]
    assert found[:4] == [{}, {}, {"map": 1, "rolling sum of n": 1}, {}]
    assert found[4] == {"rolling sum of n": 1}


@pytest.mark.parametrize("shape", SHAPES)
def test_elements_of_one_split_may_be_columns_and_those_of_another_objects(shape):
    batch = [Row("a", LARGE, 0), Row("a", 0, 0), Row("a", LARGE, 0)]
    python = run(plan(shape, "sum", [batch], in_python=True))
    assert shown(run(plan(shape, "sum", [batch]))) == shown(python)


@pytest.mark.parametrize("saves", [False, True], ids=["checkpoint", "savepoint"])
def test_a_map_that_gives_a_field_more_from_a_restart_on_goes_on_with_the_state(saves):
    batches = [[Row("a", number, 0), Row("b", 2, 0)] for number in (3, 1, 4, 1)]

    def two(in_python):
        plans = [plan(shape, "highest", batches, in_python) for shape in ("row", "wider row")]
        return shown(run_with_cuts(plans, [(2, saves)]))

    assert two(in_python=False) == two(in_python=True)
    assert "Row(k='b', n=8, x=0.0)" in repr(two(in_python=False)[2])


def test_a_place_is_no_key_of_a_dict_on_columns_either():
    env = StreamExecutionEnvironment(LocalHost())
    made = env.from_source(in_columns(KIND, [Row("a", 1, 2)]), WITHOUT, "rows").map(lambda e: {"k": e.k, "n": e.v})
    assert "columns do not add up or compare that field of DICT(k: STRING, n: LONG)" in explain(
        plan_of(made.key_by("k").sum(1))
    )
