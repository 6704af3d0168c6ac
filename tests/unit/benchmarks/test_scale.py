"""The model of large jobs: its arithmetic, the costs that it takes from a run, and the answer."""

import doctest
import io
from dataclasses import replace

import pytest
from rich.console import Console

from benchmarks import scale
from benchmarks.figures import Figure, as_json
from benchmarks.scale import Costs, Load

COSTS = Costs(batch_ms=200, task_ms=10, row_us=2, key_us=5, split_ms=0.1, launch_ms=0.5, state_bytes=100, row_bytes=50)
LOAD = Load(rows_per_s=1_000, keys=1e9, subtasks=20, splits=1_000)


def test_the_examples_of_the_docstrings_are_right() -> None:
    assert doctest.testmod(scale).failed == 0


def test_a_micro_batch_is_what_cores_share_and_what_they_do_not() -> None:
    assert scale.alone_ms(COSTS, LOAD) == 200 + 1_000 * 0.1 + 20 * 0.5
    rows = 3 * 1_000
    assert scale.shared_ms(COSTS, LOAD, 3) == pytest.approx(20 * 10 + rows * 2 / 1_000 + rows * 5 / 1_000, rel=1e-5)
    assert scale.time_ms(COSTS, LOAD, 3, 4) == pytest.approx(310 + 221 / 4, rel=1e-5)
    assert scale.shared_ms(COSTS, replace(LOAD, stages=3), 3) == pytest.approx(600 + 21, rel=1e-5)


@pytest.mark.parametrize(("rows", "touched"), [(10, 10), (10_000_000, 1_000), (1_000, 632.12)])
def test_rows_of_many_keys_touch_as_many_and_those_of_few_touch_all(rows: int, touched: float) -> None:
    keys = 1e9 if touched == rows else 1_000
    assert Load(rows, keys, 1, 1).touched(1) == pytest.approx(touched, rel=1e-4)


def test_as_many_cores_as_an_interval_needs_keep_up_at_that_interval() -> None:
    load = replace(LOAD, rows_per_s=500_000, keys=1_000_000)
    cores = scale.cores_for(COSTS, load, 5)
    assert cores is not None
    assert scale.time_ms(COSTS, load, 5, cores) == pytest.approx(5_000)
    assert scale.least_interval_s(COSTS, load, cores) == pytest.approx(5, rel=1e-3)


def test_an_interval_that_planning_alone_takes_needs_more_than_cores() -> None:
    assert scale.cores_for(COSTS, replace(LOAD, splits=100_000), 5) is None
    assert scale.cores_for(COSTS, replace(LOAD, splits=100_000), 11) is not None


def test_rows_that_take_longer_than_they_come_never_keep_up() -> None:
    assert scale.least_interval_s(COSTS, replace(LOAD, rows_per_s=1_000_000), 2) is None


def test_costs_come_from_the_figures_of_a_run() -> None:
    parts = {
        "subtasks": [
            Figure(scale.EMPTY_TASK, "ms", 2.5),
            Figure("2 subtasks", "ms", 300),
            Figure("16 subtasks", "ms", 999),
            Figure("202 subtasks", "ms", 1_300),
        ],
        "many-splits": [
            Figure("1 splits", "ms", 201),
            Figure("10,000 splits", "ms", 10_200),
            Figure("10,000 splits: a report of progress", "kB", 250),
        ],
        "keys": [Figure("1,000 keys", "rows/s", 2_000_000), Figure("1,000,000 keys", "rows/s", 500_000)],
    }
    stored = [{"name": name, "figures": [as_json(one) for one in figures]} for name, figures in parts.items()]
    found = scale.costs_of({"machine": {"cores": "2"}, "parts": stored}, COSTS)
    assert found == replace(
        COSTS, batch_ms=290, task_ms=10, split_ms=1, row_us=1, key_us=3, launch_ms=2.5, report_bytes=25
    )
    assert scale.costs_of({"machine": {"cores": "2"}, "parts": []}, COSTS) == COSTS


def test_what_has_the_largest_share_breaks_first() -> None:
    def first(**load: float) -> str:
        lines = [line for line in scale.needs(COSTS, replace(LOAD, **load), 10) if line.limit]
        return max(lines, key=lambda line: line.share).what

    assert first(splits=90_000) == "driver: planning, tasks, the micro-batch itself"
    assert first(rows_per_s=80_000_000, subtasks=20) == "cores"
    assert first(keys=1e12, rows_per_s=10) == "state of a subtask"


def test_the_command_prints_what_a_job_needs() -> None:
    console = Console(record=True, width=160, file=io.StringIO())
    scale.show(COSTS, LOAD, 10, console)
    text = console.export_text()
    assert "costs: batch_ms 200, task_ms 10, row_us 2, key_us 5, split_ms 0.1, launch_ms 0.5" in text
    assert "breaks first: " in text
    assert scale.main(["--rows-per-s", "1000", "--splits", "10", "--task-ms", "5"]) == 0
