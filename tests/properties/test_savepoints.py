"""A stream that is cut anywhere, and goes on from a savepoint, gives the results of one that was not cut."""

from collections import Counter
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.common import Row
from eventide.local.runner import LocalRunner
from eventide.local.savepoint import begun_from, take_savepoint
from eventide.savepoint.fitting import check_fit
from eventide.testing import local_environment
from saved_program import streams
from twin import plan_of

_ROWS = st.builds(Row, key=st.sampled_from("uvwxyz"), amount=st.integers(1, 9), at=st.integers(-6, 6))
_BATCHES = st.lists(st.lists(st.tuples(st.sampled_from("ab"), _ROWS), max_size=5), min_size=2, max_size=5)
_CUTS = st.lists(st.tuples(st.sampled_from([1, 2, 3, 5]), st.integers(1, 3)), min_size=1, max_size=2)


def _moved(row, number):
    """The row, as much later as its micro-batch is."""
    return Row(key=row["key"], amount=row["amount"], at=row["at"] + 8 * number)


def _results(batches, cuts):
    """What comes out, if the job is cut behind so many micro-batches under some parallelism, each time."""
    rules = [[("uvwxyz"[number], number)] for number in range(len(batches))]
    found, savepoint = Counter(), None
    with TemporaryDirectory() as directory:
        for number, (parallelism, until) in enumerate([*cuts, (2, None)]):
            program = streams(local_environment(), batches, rules, bounded=True, has_another=number > 0)
            plan, begins = plan_of(*program.values(), parallelism=parallelism), None
            if savepoint is not None:
                check_fit(savepoint, plan.identity(), allow_non_restored=False)
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


@settings(max_examples=15)
@given(_BATCHES, _CUTS)
def test_the_results_are_those_of_the_uninterrupted_run(batches, cuts):
    moved = [[(split, _moved(row, number)) for split, row in batch] for number, batch in enumerate(batches)]
    assert _results(moved, cuts) == _results(moved, [])
