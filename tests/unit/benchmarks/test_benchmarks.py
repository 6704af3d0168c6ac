"""The benchmarks' own parts that need no Spark: the data, the table, the page."""

import doctest
import io
import json
import re
import subprocess
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from benchmarks import against, figures, nexmark_flink, page
from benchmarks.__main__ import PARTS
from benchmarks.data import BATCH_MS, DISORDER_MS, START_MS, DataSet
from benchmarks.figures import Figure, Race, as_json
from examples.nexmark.queries import QUERIES


def test_the_files_of_a_micro_batch_cover_the_same_time_and_are_out_of_order_by_less_than_a_second(
    tmp_path: Path,
) -> None:
    DataSet(keys=10, batches=2, rows_per_batch=4_000).write(tmp_path / "data")
    files = sorted((tmp_path / "data").iterdir())
    assert sorted(files, key=lambda file: file.stat().st_mtime) == files
    for number, file in enumerate(files):
        rows = pq.read_table(file)
        assert rows.schema.names == ["user", "ts", "value", "extra"]
        times = pc.divide(rows["ts"].cast("int64"), 1_000).to_numpy()
        start = START_MS + number // 4 * BATCH_MS
        assert start <= times.min() < start + 1_000
        assert start + BATCH_MS - 1_000 < times.max() < start + BATCH_MS
        assert 0 < (times[:-1] - times[1:]).max() < DISORDER_MS


def test_every_second_row_of_hot_data_is_of_one_user_and_bursts_leave_gaps(tmp_path: Path) -> None:
    DataSet(keys=10, batches=1, rows_per_batch=4_000, hot=True).write(tmp_path / "hot")
    users = pc.value_counts(pq.read_table(tmp_path / "hot")["user"]).to_pylist()
    assert 0.5 < max(user["counts"] for user in users) / 4_000 < 0.6
    DataSet(keys=10, batches=1, rows_per_batch=4_000, bursts=True).write(tmp_path / "bursts")
    rows = pq.read_table(tmp_path / "bursts")
    of_one = rows.filter(pc.equal(rows["user"], "user-0000003"))["ts"].cast("int64").to_numpy()
    of_one.sort()
    assert sum((of_one[1:] - of_one[:-1]) > 1_000_000) >= 4


def test_a_figure_is_judged_by_its_ratio_if_it_has_one() -> None:
    assert Figure("", "rows/s", 3, 2, least=1.4).is_met
    assert not Figure("", "rows/s", 3, 2, least=1.6).is_met
    assert not Figure("", "ms", 120, 100, most=1.15).is_met
    assert Figure("", "rows/s", 500_000, least=400_000).is_met
    assert not Figure("", "micro-batches", 1, 3, most=0).is_met


def test_a_race_has_a_column_for_each_engine_that_was_there_and_says_which_can_not() -> None:
    lines = [Race("bids", {"eventide": 2_000, "Spark": 1_000}), Race("winners", {"eventide": 500}, "Spark: no joins")]
    results = {"parts": [{"name": "n", "figures": [as_json(line) for line in lines]}]}
    text, missing = page.filled("<!-- figures: n -->\n<!-- end -->", results)
    assert missing == []
    assert text.splitlines()[2:-2] == [
        "| what | eventide | Spark | which system can't, and why |",
        "|---|---:|---:|---|",
        "| bids | 2,000 rows/s | 1,000 rows/s |  |",
        "| winners | 500 rows/s |  | Spark: no joins |",
    ]


def test_flink_is_asked_all_queries_and_its_one_reserved_word_is_quoted() -> None:
    assert nexmark_flink.QUERIES.keys() == QUERIES.keys()
    assert nexmark_flink.PARTITIONED_BY.keys() == {number for number, query in QUERIES.items() if query.sink}
    assert nexmark_flink.quoted("dateTime, b.dateTime AS bid_dateTime") == "`dateTime`, b.`dateTime` AS bid_dateTime"


def test_the_examples_of_the_docstrings_are_right() -> None:
    for module in (against, figures, page):
        assert doctest.testmod(module, optionflags=doctest.ELLIPSIS).failed == 0


def test_the_page_has_a_place_for_every_part() -> None:
    root = Path(__file__).parents[3]
    places = re.findall(r"<!-- figures: ([a-z0-9-]+) -->", (root / page.PAGE).read_text())
    assert sorted(places) == sorted([*PARTS, "machine"])


def test_against_a_commit_the_ratio_of_each_pair_says_how_many_times_as_quick_today_is() -> None:
    compared: dict[str, against.Compared] = {}
    for eventide, spark, is_now in [(300, 100, True), (200, 100, False), (240, 80, False), (240, 120, True)]:
        figures_of_run = [as_json(Figure("FileSource", "rows/s", eventide, spark)), as_json(Race("bids", {}))]
        against.take(compared, {"parts": [{"name": "tumbling", "figures": figures_of_run}]}, is_now=is_now)
    assert list(compared) == ["tumbling: FileSource"]
    assert compared["tumbling: FileSource"].speeds() == [1.5, 1.0]
    assert compared["tumbling: FileSource"].speeds_beside() == [1.0, 1.5]


def test_a_time_that_is_shorter_today_is_a_ratio_above_one() -> None:
    assert against.Compared("ms", now=[50.0], then=[100.0]).speeds() == [2.0]


def test_against_runs_the_code_of_both_sides_in_alternating_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both sides are real commits of a repository whose benchmark writes a number of its own."""
    monkeypatch.setattr(against, "ROOT", tmp_path)
    for speed in (100, 150):
        package = tmp_path / "benchmarks"
        package.mkdir(exist_ok=True)
        (package / "__init__.py").write_text("")
        figure = as_json(Figure("rows", "rows/s", speed, 10))
        results = {"parts": [{"name": "p", "figures": [figure]}]}
        (package / "__main__.py").write_text(
            "import json, pathlib\n"
            "pathlib.Path('build').mkdir(exist_ok=True)\n"
            f"pathlib.Path('build/benchmark.json').write_text({json.dumps(results)!r})\n"
        )
        for arguments in (["init", "-q"], ["add", "benchmarks"], ["commit", "-qm", "a"]):
            author = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
            subprocess.run(["git", *author, *arguments], cwd=tmp_path, check=True)
    console = Console(record=True, width=200, file=io.StringIO())
    assert against.compare("HEAD~1", [], 2, console) == 0
    text = console.export_text()
    sides = re.findall(r"pair (\d) of 2: (today|[0-9a-f]+)", text)
    assert [(pair, side == "today") for pair, side in sides] == [("1", True), ("1", False), ("2", False), ("2", True)]
    assert "1.50 1.50" in text
    assert against.compare("no-such-commit", [], 1, console) == 2
    assert against.compare("HEAD~1", [], 1, console, at_least=1.4) == 0
    assert against.compare("HEAD~1", [], 1, console, at_least=1.6) == 1
    assert "p: rows: 1.50 times as quick as" in console.export_text()
