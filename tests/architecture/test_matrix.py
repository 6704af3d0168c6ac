"""The matrix of `./run matrix` has all that pyproject.toml promises, and its page has all of its cells."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

import matrix

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_its_pythons_are_those_of_the_classifiers() -> None:
    said = [re.search(r"Python :: (3\.\d+)$", line) for line in PROJECT["classifiers"]]
    assert {found[1] for found in said if found} == {*matrix.PYTHONS}


def test_its_first_spark_is_the_lower_bound() -> None:
    [bound] = [line for line in PROJECT["dependencies"] if line.startswith("pyspark")]
    assert bound.startswith(f"pyspark>={matrix.SPARKS[0]},")


def test_its_environments_have_each_extra_that_programs_use() -> None:
    tools = {"bench", "build", "demo", "dev", "docs", "lint", "matrix", "notebooks", "test"}
    assert {*matrix.EXTRAS} == {*PROJECT["optional-dependencies"]} - tools


def test_the_page_has_a_line_of_each_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    page = [line.split(" | ")[:3] for line in matrix.PAGE.read_text(encoding="utf-8").splitlines() if " | " in line]
    table = [line.split(" | ")[:3] for line in matrix.table({}).splitlines()]
    assert page == table


def test_a_report_of_pytest_becomes_a_result(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    assert matrix.result_of(report) == "failed before the first test"
    report.write_text("<testsuite/>")
    assert matrix.result_of(report) == "failed: no test ran"
    report.write_text('<testsuite><testcase name="a"/><testcase name="b"><skipped/></testcase></testsuite>')
    assert matrix.result_of(report) == "1 passed, 1 skipped"
    report.write_text('<testsuite><testcase name="a"/><testcase name="b"><failure/></testcase></testsuite>')
    assert matrix.result_of(report) == "failed: b"


def test_what_is_stored_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert matrix.read() == {}
    cell = matrix.Cell("4.3", "3.13", java="21")
    outcome = matrix.Outcome(cell, "2026-11-26", "2 passed", {"pyspark": "4.3.0", "pandas": "2.3.3"})
    matrix.store({cell.name: outcome})
    assert matrix.read() == {cell.name: outcome}
    assert "| 3.13 | 21 | newest | 4.3.0 | 2 passed | 2026-11-26 | 2.3.3 |  |  |  |" in matrix.table(matrix.read())
    assert len(json.loads(matrix.RESULTS.read_text())) == 1
