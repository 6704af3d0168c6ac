"""As-of joins: what pandas' merge_asof gives, and the same on columns and element by element."""

from collections import Counter

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.common import Row, Types, WatermarkStrategy
from eventide.datastream import OutputTag, RuntimeExecutionMode
from eventide.datastream.functions import in_python
from eventide.errors import ProgramError
from eventide.joins import left, right
from eventide.testing import ScriptedSource, local_environment
from support.twin import by_sink, plan_of, run, run_with_restarts, runner

EVENT = Types.ROW_NAMED(["key", "at", "n"], [Types.STRING(), Types.LONG(), Types.LONG()])
LATE = OutputTag("late", EVENT)
ELEMENTS = st.builds(Row, key=st.sampled_from(["a", "b", None]), at=st.integers(-5, 30), n=st.integers(0, 10**6))
BATCHES = st.lists(st.lists(st.tuples(st.sampled_from("st"), ELEMENTS), max_size=6), max_size=5)
HOW = st.sampled_from(["inner", "left"])
MODES = st.sampled_from([RuntimeExecutionMode.STREAMING] * 3 + [RuntimeExecutionMode.BATCH])
FIELDS = left("key"), left("at"), left("n"), right("at").alias("since"), right("n").alias("of")


@in_python
def by_function(element):
    return element.key


def program(elements, versions, how, *, bound=0, lateness=0, mode=RuntimeExecutionMode.STREAMING, key="key"):
    env = local_environment()
    by_time = WatermarkStrategy.for_bounded_out_of_orderness(bound).with_timestamp_assigner("at")
    streams = (
        env.from_source(ScriptedSource(["s", "t"], batches, EVENT), by_time, name, EVENT).key_by(key)
        for name, batches in (("elements", elements), ("versions", versions))
    )
    one, other = streams
    join = one.as_of_join(other).allowed_lateness(lateness).side_output_late_data(LATE)
    found = join.select(*FIELDS, how=how)
    plan = plan_of(found, found.get_side_output(LATE), mode=mode)
    assert plan.operators[0].speed.startswith("columns") == (key == "key")
    return plan


def counted(sink):
    return Counter((str(value), timestamp) for value, timestamp in sink)


@settings(max_examples=60)
@given(BATCHES, BATCHES, HOW, st.sampled_from([0, 5, 100]), st.sampled_from([0, 0, 4, 50]), MODES, st.integers(1, 3))
def test_columns_give_what_elements_give(elements, versions, how, bound, lateness, mode, every):
    settled = {"bound": bound, "lateness": lateness, "mode": mode}
    on_columns, in_python = (program(elements, versions, how, key=key, **settled) for key in ("key", by_function))
    ours, theirs = ([by_sink(plan, batch) for batch in runner(plan).batches()] for plan in (on_columns, in_python))
    assert [[*map(counted, batch)] for batch in ours] == [[*map(counted, batch)] for batch in theirs]
    if mode is RuntimeExecutionMode.STREAMING:
        for plan in (on_columns, in_python):
            assert run_with_restarts(plan, every) == run(plan)


@given(BATCHES, BATCHES, HOW, MODES)
def test_it_is_what_pandas_gives_where_nothing_is_late(elements, versions, how, mode):
    """Versions of one time are told apart by their order, which is defined within a split: one alone is left here."""
    versions = [list({(split, row.key, row.at): (split, row) for split, row in batch if split == "s"}.values())
                for batch in versions]  # fmt: skip
    seen = set()
    versions = [[one for one in batch if (k := (one[1].key, one[1].at)) not in seen and not seen.add(k)]
                for batch in versions]  # fmt: skip
    plan = program(elements, versions, how, bound=1_000, mode=mode)
    found = Counter(
        (value.key, value.at, value.n, value.since, value.of)
        for batch in runner(plan).batches() for value, _ in by_sink(plan, batch)[0]
    )  # fmt: skip
    rows, others = (
        pd.DataFrame(
            [(str(row.key), row.at, row.n) for batch in batches for _, row in batch], columns=["key", "at", "n"]
        )
        .astype({"at": "int64", "n": "int64"})
        .sort_values("at", kind="stable")
        for batches in (elements, versions)
    )
    others = others.rename(columns={"n": "of"}).assign(since=others["at"])
    merged = pd.merge_asof(rows, others, on="at", by="key")
    if how == "inner":
        merged = merged[merged["since"].notna()]
    expected = Counter(
        (None if key == "None" else key, at, n, *(None if pd.isna(one) else int(one) for one in (since, of)))
        for key, at, n, of, since in merged[["key", "at", "n", "of", "since"]].itertuples(index=False)
    )
    assert found == expected


def test_rows_that_others_have_replaced_leave_the_state():
    versions = [[("s", Row(key="a", at=at, n=at)), ("t", Row(key="b", at=at, n=at))] for at in range(0, 200, 10)]
    elements = [[("s", Row(key="a", at=at, n=1)), ("t", Row(key="a", at=at, n=1))] for at in range(0, 200, 10)]
    for key in ("key", by_function):
        plan = program(elements, versions, "inner", key=key)
        most = max(
            batch.progress.held["as-of join"].get("numElements", batch.progress.held["as-of join"].get("numKeys", 0))
            for batch in runner(plan).batches()
        )
        assert most <= 6


def test_a_function_may_make_the_result():
    env = local_environment()
    by_time = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda e, _: e[1])
    orders, rates = (
        env.from_collection(rows).assign_timestamps_and_watermarks(by_time).key_by(lambda e: e[0])
        for rows in ([("EUR", 5), ("CHF", 5)], [("EUR", 1), ("EUR", 6)])
    )
    joined = orders.as_of_join(rates).apply(lambda order, rate: (order, rate), how="left")
    assert sorted(joined.execute_and_collect()) == [(("CHF", 5), None), (("EUR", 5), ("EUR", 1))]


def test_what_a_function_changes_is_not_the_state():
    env = local_environment().set_max_rows_per_batch(1)
    by_time = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda e, _: e[1])
    orders, rates = (
        env.from_collection(rows).assign_timestamps_and_watermarks(by_time).key_by(lambda e: e[0])
        for rows in ([["EUR", 5], ["EUR", 5], ["EUR", 6]], [["EUR", 1]])
    )

    def use_up(order, rate):
        rate.append(order.pop())
        return rate

    joined = orders.as_of_join(rates).apply(use_up)
    assert sorted(joined.execute_and_collect()) == [["EUR", 1, 5], ["EUR", 1, 5], ["EUR", 1, 6]]


def test_what_is_no_join_is_refused():
    env = local_environment()
    by_time = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda e, _: e[1])
    plain = env.from_collection([("a", 1)])
    timed = plain.assign_timestamps_and_watermarks(by_time)
    keyed = timed.key_by(lambda e: e[0])
    with pytest.raises(ProgramError, match="as_of_join needs another keyed stream"):
        keyed.as_of_join(timed)
    with pytest.raises(ProgramError, match="an as-of join needs event time"):
        keyed.as_of_join(plain.key_by(lambda e: e[0]))
    with pytest.raises(ProgramError, match="an as-of join is 'inner' or 'left', not 'full'"):
        keyed.as_of_join(keyed).apply(lambda one, other: one, how="full")
    with pytest.raises(ProgramError, match="allowed lateness: expected 0 ms or more, got -1 ms"):
        keyed.as_of_join(keyed).allowed_lateness(-1)
