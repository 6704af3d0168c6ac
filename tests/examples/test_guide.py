"""The programs on the pages of the guide, and beside it, are those that run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.guide_pages import BLOCK, DOCS, GUIDE, run_page

COOKBOOK = DOCS / "cookbook"
RECIPES = sorted(path.name for path in COOKBOOK.glob("*.md") if path.name != "index.md")

ON_THE_TWIN = (
    "watermarks.md",
    "windows.md",
    "columns.md",
    "aggregates.md",
    "process-functions.md",
    "dead-letters.md",
    "joins.md",
    "why.md",
    "advise.md",
    "state-processor.md",
    "types.md",  # and tests/typing holds its table
)
ON_SPARK = ("getting-started.md", "sources-and-sinks.md", "testing.md", "operations.md", "live.md")
SHOWN_ALONE = (
    "command-line.md",  # commands, whose words tests/unit/cli and tests/spark/test_command_line.py hold
    "savepoints.md",  # tests/spark/checkpoint/test_savepoints.py
    "cluster.md",  # tests/cluster/test_page.py
    "connect.md",  # tests/connect
    "clusters.md",  # says what was not tried
    "locations.md",  # tests/stores
    "changing-programs.md",  # tests/unit/local/test_changed_programs.py
    "lake-tables.md",  # tests/lake
    "real-time-mode.md",  # tests/kafka/test_real_time_mode.py
    "pipelines.md",  # tests/spark/test_pipelines.py
    "runbook.md",  # symptoms and commands; tests/architecture/test_runbook.py names the tests of each section
)
ON_A_BROKER = ("kafka.md", "kafka-source.md", "kafka-sink.md")  # in tests/kafka


@pytest.mark.parametrize("name", ON_THE_TWIN)
def test_a_page_without_spark(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_page(GUIDE / name, tmp_path, monkeypatch, capsys)


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("name", ON_SPARK)
def test_a_page_that_needs_spark(
    name: str,
    spark: object,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run_page(GUIDE / name, tmp_path, monkeypatch, capsys)


def test_every_page_of_the_guide_is_run() -> None:
    assert {path.name for path in GUIDE.glob("*.md")} == {
        *ON_THE_TWIN,
        *ON_SPARK,
        *ON_A_BROKER,
        *SHOWN_ALONE,
    }


@pytest.mark.parametrize("name", ["from-spark.md", *(f"cookbook/{name}" for name in RECIPES)])
def test_a_page_beside_the_guide(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_page(DOCS / name, tmp_path, monkeypatch, capsys)


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_is_one_program_and_its_output(name: str) -> None:
    languages = [language for language, _ in BLOCK.findall((COOKBOOK / name).read_text())]
    assert languages[:2] == ["python", "text"]
    assert languages.count("python") == 1


def test_the_cookbook_lists_each_recipe_once() -> None:
    listed = re.findall(r"^\| \[.*?\]\((.*?)\)", (COOKBOOK / "index.md").read_text(), re.MULTILINE)
    assert sorted(listed) == RECIPES
    assert len(listed) == 10
