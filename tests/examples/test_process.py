"""The examples with process functions and joins print what they say: all without Spark, and most on it as one job."""

from __future__ import annotations

import runpy
from functools import partial
from pathlib import Path

import pytest

from eventide.datastream import StreamExecutionEnvironment
from eventide.testing import local_environment
from support.one_job import add_programs

EXAMPLES = Path(__file__).parents[2] / "examples" / "process"

PRINTED = {
    "event_time_timer.py": """\
P-1 was delivered on day 2
P-2 is missed since day 1: it was last at the depot
P-3 is missed since day 4: it was last at the depot
P-2 is missed since day 4: it was last at the van
""",
    "deduplication_on_columns.py": """\
ann on shoes after 0 minutes
bob on shoes after 10 minutes
ann on hats after 30 minutes
bob on hats after 61 minutes
ann on shoes after 65 minutes
""",
    "balance_on_columns.py": """\
A +100: 100
B +20: 20
A -30: 70
B +1: 21
A +5: 75
""",
    "state_access.py": """\
north: 4.0
south: 6.5
north: 5.5
""",
    "side_outputs.py": """\
light> ('Ada', 12)
light> ('Dan', 90)
heavy, in kg> ('Bob', 0.48)
heavy, in kg> ('Eve', 2.1)
wrong> the letter to Cleo weighs -3 g?
""",
    "connected_streams.py": """\
tigers
and
and
oh
my
""",
    "async_io.py": """\
2 tea: 10
1 milk: about 2
3 bread: 9
""",
    "broadcast_state.py": """\
Bob: jump and shoot
Ada: run and jump
""",
    "joins.py": """\
window join> order 1: 20 euros on day 0
window join> order 3: 10 euros on day 1
window join> order 3: 7 euros on day 1
co-group> order 2: nothing on day 0
interval join> order 1: 20 euros after 1 hours
interval join> order 2: 5 euros after 3 hours
interval join> order 3: 10 euros after 1 hours
interval join> order 3: 7 euros after 10 hours
""",
}


@pytest.mark.parametrize("name", PRINTED)
def test_the_example_prints_exactly_this(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(StreamExecutionEnvironment, "get_execution_environment", staticmethod(local_environment))
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert capsys.readouterr().out == PRINTED[name]


@pytest.mark.long
@pytest.mark.spark
def test_they_print_the_same_on_spark_as_one_job(
    env: StreamExecutionEnvironment, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = PRINTED.keys() - {"broadcast_state.py"}  # whose rules come in one micro-batch; it has scenarios on Spark
    programs = (partial(runpy.run_path, str(EXAMPLES / name), run_name="__main__") for name in names)
    add_programs(env, programs, monkeypatch)
    capsys.readouterr()
    env.set_parallelism(2).set_max_rows_per_batch(1).execute()
    expected = [line for name in names for line in PRINTED[name].splitlines()]
    assert sorted(capsys.readouterr().out.splitlines()) == sorted(expected)


def test_every_example_is_among_these_tests() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(PRINTED)
