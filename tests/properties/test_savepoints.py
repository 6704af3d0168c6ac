"""A stream that is cut anywhere, and goes on from a savepoint, gives the results of one that was not cut."""

from collections import Counter
from tempfile import TemporaryDirectory
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.common import Row, Types
from eventide.local.host import begun_from, take_savepoint
from eventide.local.runner import LocalRunner
from eventide.savepoint.fitting import check_fit
from eventide.testing import local_environment
from support.saved_program import ROWS, WIDE, of_type, streams
from support.twin import plan_of

_NUMBERS = st.sampled_from([Types.BYTE(), Types.SHORT(), Types.INT(), Types.LONG()])
_NARROW = st.builds(
    lambda amount, at, gone: Types.ROW_NAMED(
        ["key", "amount", "at", *gone], [Types.STRING(), amount, at, *gone.values()]
    ),
    _NUMBERS,
    _NUMBERS,
    st.sampled_from([{}, {"gone": Types.SQL_DATE()}]),
)
_ROWS = st.builds(Row, key=st.sampled_from("uvwxyz"), amount=st.integers(1, 9), at=st.integers(-6, 6))
_BATCHES = st.lists(st.lists(st.tuples(st.sampled_from("ab"), _ROWS), max_size=5), min_size=2, max_size=5)
_CUTS = st.lists(st.tuples(st.sampled_from([1, 2, 3, 5]), st.integers(1, 3)), min_size=1, max_size=2)


def _moved(row, number):
    """The row, as much later as its micro-batch is."""
    return Row(key=row["key"], amount=row["amount"], at=row["at"] + 8 * number)


def _results(batches, cuts, narrow=None):
    """The results of a job that is cut after each of `cuts`: a number of micro-batches, under a parallelism.

    Elements have the ``narrow`` type until the first cut, and that of the program after it.
    """
    rules = [[("uvwxyz"[number], number)] for number in range(len(batches))]
    found, savepoint = Counter(), None
    with TemporaryDirectory() as directory:
        for number, (parallelism, until) in enumerate([*cuts, (2, None)]):
            kind = narrow if narrow and number == 0 and cuts else WIDE if narrow else ROWS
            rows = [[(split, of_type(row, kind)) for split, row in batch] for batch in batches]
            program = streams(local_environment(), rows, rules, bounded=True, has_another=number > 0, rows_type=kind)
            plan, begins = plan_of(*program.values(), parallelism=parallelism), None
            if savepoint is not None:
                check_fit(savepoint, plan.identity(), plan.operators, allow_non_restored=False)
                begins = begun_from(savepoint, plan)
            runner = LocalRunner(plan, clock=lambda: 0, checkpoint=begins)
            for batch in runner.batches():
                found.update(text for rows in batch.elements.values() for text, _ in rows)
                if batch.batch + 1 == until:
                    savepoint = take_savepoint(plan, runner.checkpoint, f"{directory}/{number}")
                    break
            else:
                break
    return Counter({text: times for text, times in found.items() if not text.startswith("another")})


@settings(max_examples=8)
@given(_BATCHES, _CUTS, st.sampled_from([1, 3, 65_536]))
def test_the_results_are_those_of_the_uninterrupted_run(batches, cuts, rows_at_once):
    moved = [[(split, _moved(row, number)) for split, row in batch] for number, batch in enumerate(batches)]
    with patch("eventide.savepoint.saved._ROWS", rows_at_once):
        assert _results(moved, cuts) == _results(moved, [])


@settings(max_examples=8)
@given(_BATCHES, _CUTS, _NARROW)
def test_elements_may_have_a_narrower_type_until_it_is_cut(batches, cuts, narrow):
    moved = [[(split, _moved(row, number)) for split, row in batch] for number, batch in enumerate(batches)]
    assert _results(moved, cuts, narrow) == _results(moved, [], narrow)
