"""Functions that run on columns, in Python and on columns again in one job, which starts again in between."""

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.common import Duration, Row, Time, Types, WatermarkStrategy
from eventide.datastream import OutputTag, StreamExecutionEnvironment
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.local.host import LocalHost
from eventide.local.runner import LocalCheckpoint
from eventide.plan.description import explain
from eventide.runtime.metrics import BATCHES_IN_PYTHON
from support.columns import in_columns
from support.twin import by_sink, plan_of, run, run_with_restarts, runner, values

KIND = Types.ROW_NAMED(["k", "v", "at"], [Types.STRING(), Types.LONG(), Types.LONG()])
BAD = OutputTag("bad")
TENS = TumblingEventTimeWindows.of(Time.milliseconds(10))


@dataclass(frozen=True)
class Guarded:
    """A function that cannot run on columns for some elements, and fields of one of them, for which it may raise."""

    function: Any
    fails_for: dict[str, Any]
    raises: bool = False


GUARDED = {
    "beyond 64 bits": Guarded(lambda e: Row(k=e.k, v=e.v * 4 % 1_000_003, at=e.at), {"v": 2**62}),
    "division by zero": Guarded(lambda e: Row(k=e.k, v=1_000 // e.v, at=e.at), {"v": 0}, raises=True),
    "text beyond ASCII": Guarded(lambda e: Row(k=e.k.upper(), v=e.v, at=e.at), {"k": "ß"}),
}
ROWS = st.builds(Row, k=st.sampled_from("abc"), v=st.integers(1, 9), at=st.integers(0, 60))


@st.composite
def micro_batches(draw):
    """Elements of several micro-batches; whether one of them is of those that a function is guarded against."""
    of_batches = draw(
        st.lists(st.tuples(st.lists(ROWS, min_size=1, max_size=6), st.booleans()), min_size=1, max_size=5)
    )
    return [
        *of_batches,
        ([Row(k="a", v=1, at=70)], False),
        ([Row(k="b", v=2, at=80)], True),
        ([Row("c", 3, 90)], False),
    ]


def plan(guarded, batches, in_python):
    """Functions before a rolling reduce, which has columns again; one after it, before windows; and dead letters."""
    script = [
        [*rows[:-1], Row(**{**rows[-1].as_dict(), **guarded.fails_for})] if has_bad else rows
        for rows, has_bad in batches
    ]
    env = StreamExecutionEnvironment(LocalHost())
    env.get_config().set_functions_in_python(in_python)
    bounded = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(5))
    rows = env.from_source(
        in_columns(KIND, *script, splits=2), bounded.with_timestamp_assigner(lambda e, _: e.at), "rows"
    )
    moved = rows.map(lambda e: Row(k=e.k, v=e.v, at=e.at + 1), KIND).name("before")
    checked = moved.map(guarded.function, KIND).name("guarded").side_output_dead_letters(BAD)
    rolled = checked.key_by(lambda e: e.k).reduce(lambda a, b: b)
    kept = rolled.filter(lambda e: e.at % 5 != 4).name("after")
    sums = kept.key_by(lambda e: e.k).window(TENS).reduce(lambda a, b: Row(k=b.k, v=a.v + b.v, at=max(a.at, b.at)))
    return plan_of(sums, checked.get_side_output(BAD))


@pytest.mark.parametrize("guarded", GUARDED.values(), ids=GUARDED)
@settings(max_examples=8)
@given(batches=micro_batches(), every=st.integers(1, 3))
def test_a_job_that_falls_back_in_some_micro_batches_gives_what_python_gives(guarded, batches, every):
    traced = plan(guarded, batches, in_python=False)
    results = run(traced)
    assert results == run_with_restarts(traced, every)
    assert results == run(plan(guarded, batches, in_python=True))
    assert len(values(results)) > 1
    assert len(values(results, 1)) == (sum(has_bad for _, has_bad in batches) if guarded.raises else 0)


@pytest.mark.parametrize("guarded", GUARDED.values(), ids=GUARDED)
def test_only_micro_batches_with_bad_elements_fall_back(guarded):
    batches = [([Row(k="a", v=1, at=10 * number)], number % 2 == 1) for number in range(5)]
    traced = plan(guarded, batches, in_python=False)
    told = explain(traced)
    assert told.count("on columns, where its elements come so") == 4
    assert "columns, in one pass" in told
    by_batch = [
        {name: of[BATCHES_IN_PYTHON] for name, of in batch.progress.counted.items() if of.get(BATCHES_IN_PYTHON)}
        for batch in runner(traced).batches()
    ]
    assert by_batch == [{}, {"guarded": 1}, {}, {"guarded": 1}, {}, {}]


OLD = {
    "map": lambda e: Row(k=e.k, v=e.v * 2, at=e.at),
    "filter": lambda e: e.v < 8,
    "assigner": lambda e, _: e.at,
    "key": lambda e: e.v % 4,
    "reduce": lambda a, b: Row(k=a.k, v=a.v + b.v, at=max(a.at, b.at)),
}
NEW = {
    "map": lambda e: Row(k=e.k, v=e.v * 3, at=e.at),
    "filter": lambda e: e.v < 3,
    "assigner": lambda e, _: e.at + 3,
    "key": lambda e: e.v % 6,
    "reduce": lambda a, b: Row(k=a.k, v=a.v + b.v + 100, at=max(a.at, b.at)),
}


def changed(in_python, **new):
    """A program in which one function may be new; it would not change the state of the first micro-batch."""
    of = {**OLD, **new}
    batches = [[("a", 0, 1), ("b", 9, 2)], [("a", 1, 28), ("b", 3, 29)], [("c", 3, 29), ("a", 2, 50)]]
    env = StreamExecutionEnvironment(LocalHost())
    env.get_config().set_functions_in_python(in_python)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(of["assigner"])
    rows = [[Row(k=k, v=v, at=at) for k, v, at in batch] for batch in batches]
    kept = env.from_source(in_columns(KIND, *rows), strategy, "rows").filter(of["filter"])
    mapped = kept.map(of["map"], KIND)
    return plan_of(mapped, mapped.key_by(of["key"]).window(TENS).reduce(of["reduce"]))


def results_after_the_first(plan, checkpoint):
    return [by_sink(plan, batch) for batch in runner(plan, checkpoint=deepcopy(checkpoint)).batches()]


@pytest.mark.parametrize("in_python", [False, True], ids=["columns", "python"])
@pytest.mark.parametrize("part", OLD)
def test_a_lambda_that_is_changed_at_a_restart_is_the_new_one(part, in_python):
    before, now = changed(in_python), changed(in_python, **{part: NEW[part]})
    first = runner(before, checkpoint=LocalCheckpoint())
    next(first.batches())
    old, new = (results_after_the_first(program, first.checkpoint) for program in (before, now))
    assert old == run(before)[1:]
    assert new != old
    assert new == run(now)[1:]
