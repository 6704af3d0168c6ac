"""Functions on whole batches: Arrow, pandas and Polars in and out, with the time of each row."""

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from eventide.common import Row, Types, WatermarkStrategy
from eventide.datastream import OutputTag, ProcessFunction
from eventide.errors import ProgramError, UserFunctionError
from eventide.testing import local_environment

READING = Types.ROW_NAMED(["name", "at", "value"], [Types.STRING(), Types.LONG(), Types.LONG()])
RESULT = Types.ROW_NAMED(["name", "twice"], [Types.STRING(), Types.LONG()])
READINGS = [Row(name=name, at=at, value=value) for name, at, value in [("a", 1, 5), ("b", 2, 0), ("a", 3, 7)]]
BY_TIME = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("at")


class WithTime(ProcessFunction):
    """Emits each element with its time."""

    def process_element(self, value, ctx):
        yield value, ctx.timestamp()


def readings():
    return local_environment().from_collection(READINGS, READING).assign_timestamps_and_watermarks(BY_TIME)


def timed(stream):
    return list(stream.process(WithTime()).execute_and_collect())


TWICE = [(Row(name="a", twice=10), 1), (Row(name="b", twice=0), 2), (Row(name="a", twice=14), 3)]


def in_arrow(batch):
    return pa.record_batch({"twice": pc.multiply(batch.column("value"), 2), "name": batch.column("name")})


def in_pandas(frame):
    return pd.DataFrame({"name": frame.name, "twice": frame.value * 2})


def in_polars(frame):
    return frame.select("name", (pl.col("value") * 2).alias("twice"))


@pytest.mark.parametrize(
    ("function", "form"),
    [(in_arrow, "arrow"), (in_pandas, "pandas"), (in_polars, "polars")],
    ids=["arrow", "pandas", "polars"],
)
def test_a_map_over_batches_gives_each_row_the_time_of_the_one_in_its_place(function, form):
    assert timed(readings().map_batches(function, RESULT, form=form)) == TWICE


@pytest.mark.parametrize(
    ("function", "form"),
    [
        (lambda batch: pc.greater(batch.column("value"), 0), "arrow"),
        (lambda batch: batch.column("value").to_numpy() > 0, "arrow"),
        (lambda frame: frame.value > 0, "pandas"),
        (lambda frame: frame["value"] > 0, "polars"),
        (lambda batch: pc.if_else(pc.greater(batch.column("value"), 0), True, None), "arrow"),
    ],
)
def test_a_filter_over_batches_keeps_what_is_true(function, form):
    assert timed(readings().filter_batches(function, form=form)) == [(READINGS[0], 1), (READINGS[2], 3)]


def spread(batch):
    """Each row as often as its value says, at most twice."""
    counts = [min(2, value) for value in batch.column("value").to_pylist()]
    rows = [row for row, count in enumerate(counts) for _ in range(count)]
    return batch.column("name").take(pa.array(rows, pa.int64())), rows


def test_a_flat_map_over_batches_says_where_each_row_comes_from():
    assert timed(readings().flat_map_batches(spread, Types.STRING())) == [("a", 1), ("a", 1), ("a", 3), ("a", 3)]


def test_elements_without_fields_come_as_an_array():
    numbers = local_environment().from_collection([1, 2, 3], Types.LONG())
    assert list(numbers.map_batches(lambda array: pc.add(array, 1), Types.INT()).execute_and_collect()) == [2, 3, 4]


@pytest.mark.parametrize(
    ("build", "why"),
    [
        (lambda s: s.map_batches(lambda b: b.slice(1), READING), "gave 2 rows for 3; flat_map_batches takes"),
        (lambda s: s.map_batches(lambda b: b, RESULT), "gave a batch with the fields name, at, value"),
        (lambda s: s.map_batches(lambda b: 5, RESULT), "an Arrow batch or array, not a int"),
        (lambda s: s.map_batches(lambda b: b.column("name"), Types.LONG()), "does not become int64"),
        (lambda s: s.filter_batches(lambda b: b.column("value")), "expected 3 truth values"),
        (lambda s: s.flat_map_batches(lambda b: b, READING), "expected a pair of results"),
        (lambda s: s.flat_map_batches(lambda b: (b, [2, 1, 0]), READING), "in non-decreasing order"),
        (lambda s: s.flat_map_batches(lambda b: (b, [0, 1, 3]), READING), "from 0 to 2"),
    ],
)
def test_a_result_that_is_none_is_told(build, why):
    with pytest.raises(Exception, match=why):
        list(build(readings()).execute_and_collect())


def test_what_a_function_raises_names_the_operator():
    broken = readings().map_batches(lambda batch: batch.column("nowhere"), RESULT).name("broken")
    with pytest.raises(UserFunctionError, match="in operator 'broken', while it handled a batch"):
        list(broken.execute_and_collect())


def test_a_bad_element_is_found_among_the_others():
    bad = OutputTag("bad")
    inverse = readings().map_batches(lambda batch: pc.divide(100, batch.column("value")), Types.LONG())
    good = inverse.name("inverse").side_output_dead_letters(bad)
    letters = good.get_side_output(bad).map(lambda letter: letter.element["value"], Types.LONG())
    assert sorted(good.union(letters).execute_and_collect()) == [0, 14, 20]


@pytest.mark.parametrize(
    ("build", "why"),
    [
        (lambda s: s.map(lambda e: object()).map_batches(in_arrow, RESULT), "needs elements whose type is declared"),
        (lambda s: s.map_batches(5, RESULT), "takes a function of a batch, not 5"),
        (lambda s: s.map_batches(in_arrow, RESULT, form="numpy"), "form is one of 'arrow', 'pandas', 'polars'"),
    ],
)
def test_a_program_that_cannot_run_is_refused_where_it_is_written(build, why):
    with pytest.raises(ProgramError, match=why):
        build(readings())
