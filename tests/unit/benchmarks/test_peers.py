"""The benchmark of the field, but for its engines: the events, what should come out, the comparison, and the page."""

import ast
import re
from pathlib import Path

import pandas as pd
import pytest

from benchmarks.peers import page, results
from benchmarks.peers.engines import ENGINES, HERE
from benchmarks.peers.events import DISORDER_MS, START_MS, STEP_MS, Events
from benchmarks.peers.page import Outcome
from benchmarks.peers.programs.contract import BATCHES, BOUND_MS, GAP_MS
from benchmarks.peers.race import Cell

FEW = Events(2_000)


def test_both_layouts_have_the_same_rows_and_each_stream_is_in_the_order_of_arrival(tmp_path: Path) -> None:
    tables = FEW.write(tmp_path)
    for kind, count in (("events", 2_000), ("answers", 1_000)):
        whole = [pd.read_csv(path) for path in sorted((tmp_path / "whole" / kind).iterdir())]
        assert sum(map(len, whole)) == len(tables[kind]) == count
        for number, stream in enumerate(whole):
            parts = [pd.read_csv(tmp_path / "parts" / kind / f"{batch}-{number}.csv") for batch in range(BATCHES)]
            pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), stream)
            assert (stream["at"].cummax() - stream["at"]).max() < DISORDER_MS < BOUND_MS
        assert not set(whole[0]["user"]) & set(whole[1]["user"])


def test_no_two_events_are_exactly_a_gap_apart() -> None:
    at = FEW.tables()["events"]["at"]
    assert ((at - START_MS) % STEP_MS == 0).all()
    assert GAP_MS % STEP_MS


def test_what_should_come_out_of_a_few_events() -> None:
    events = pd.DataFrame(
        [("a", "ann", 9_000, 950), ("b", "bob", 9_500, 1), ("c", "ann", 9_900, 20), ("d", "ann", 11_000, 7)],
        columns=["event", "user", "at", "value"],
    )
    answers = pd.DataFrame([("a", "ann", 11_000, 5), ("b", "bob", 11_501, 6)], columns=events.columns)
    wanted = {
        name: table.values.tolist() for name, table in results.expected({"events": events, "answers": answers}).items()
    }
    assert wanted == {
        "stateless": [["ANN", 1_900]],
        "tumbling": [["ann", 0, 970], ["ann", 10_000, 7], ["bob", 0, 1]],
        "sessions": [["ann", 9_000, 970], ["ann", 11_000, 7], ["bob", 9_500, 1]],
        "process": [["ann", 0, 950], ["ann", 10_000, 7], ["bob", 0, 1]],
        "join": [["a", 950, 5]],
    }


def test_rows_that_differ_are_an_error_and_their_order_is_not() -> None:
    wanted = pd.DataFrame({"user": ["ann", "bob"], "doubled": [2, 4]})
    assert results.check("stateless", wanted[::-1], wanted, FEW) == 2
    with pytest.raises(ValueError, match=r"of 2 rows, 1 are missing, such as \[\('bob', 4\)\], and 0 are too many"):
        results.check("stateless", wanted[:1], wanted, FEW)
    with pytest.raises(ValueError, match=r"0 are missing, such as \[\], and 2 are too many"):
        results.check("stateless", pd.concat([wanted, wanted]), wanted, FEW)


def test_windows_that_may_be_open_at_the_end_are_not_compared() -> None:
    wanted = pd.DataFrame({"user": "ann", "start": [START_MS, FEW.end_ms - 10_000], "total": 1})
    recipe = Events(500_000)
    assert results.check("tumbling", wanted.assign(start=[START_MS, recipe.end_ms]), wanted[:1], recipe) == 1


@pytest.mark.parametrize("heading", ["", '"user","doubled","time","diff"\n'])
def test_lines_are_read_with_and_without_a_heading(tmp_path: Path, heading: str) -> None:
    (tmp_path / "0").write_text(heading + ("ANN,2\n" if not heading else '"ANN","2","0","1"\n'))
    assert results.written("stateless", tmp_path).values.tolist() == [["ANN", 2]]


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
def test_an_engine_has_every_program_or_says_why_not_and_its_versions_are_pinned(engine) -> None:
    tree = ast.parse((HERE / "programs" / engine.file).read_text())
    assigned = {ast.unparse(node.targets[0]): node.value for node in tree.body if isinstance(node, ast.Assign)}
    assert {key.value for key in assigned["PROGRAMS"].keys} == results.COLUMNS.keys() - engine.cannot.keys()
    assert re.fullmatch(r"\d+\.\d+(\.\d+)?", engine.version)
    if engine.requirements:
        lines = (HERE / "requirements" / f"{engine.requirements}.txt").read_text().splitlines()
        assert all("==" in line for line in lines)


OUTCOME = Outcome(
    300,
    {"eventide": "0.1.0", "Other": "2.0"},
    {"cores": "2", "cpu": "a processor", "python": "3.11.7"},
    [
        Cell("tumbling", "eventide", 1.0, 9.04, 20),
        Cell("tumbling", "Other", 2.0, 0.5, 20),
        Cell("join", "eventide", 3.0, 8.0, 7),
        Cell("join", "Other", 1.5, 0.7, 7),
        Cell("process", "eventide", 3.0, 8.0, 7),
        Cell("process", "Other", note="no timers"),
    ],
)


def test_the_table_has_the_first_of_each_program_in_bold_and_counts_what_eventide_beats() -> None:
    texts = page.texts(OUTCOME)
    assert texts["peers"].splitlines() == [
        "| rows a second | tumbling sum by key | interval join | process function with state and timer |",
        "|---|---:|---:|---:|",
        "| eventide | **300** | 150 | **100** |",
        "| Other | 150 | **300** |  |",
        "",
        "eventide is first in 2 of 3 programs, and faster than 1 of 2 other cells.",
    ]
    assert texts["peers-empty"] == "- Other, process function with state and timer: no timers."
    assert "| eventide | 0.1.0 | 8.0 to 9.0 s |" in texts["peers-starts"]


def test_an_outcome_is_what_was_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "RESULTS", tmp_path / "peers.json")
    OUTCOME.store()
    assert Outcome.read() == OUTCOME


def test_the_page_has_a_place_for_all_that_a_run_found() -> None:
    root = Path(__file__).parents[3]
    places = re.findall(r"<!-- figures: ([a-z0-9-]+) -->", (root / page.PAGE).read_text())
    assert sorted(places) == sorted(page.texts(OUTCOME))
