"""The guide's programs are those that run."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.guide_pages import GUIDE, run_page

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
    "savepoints.md",  # tests/spark/test_savepoints.py
    "cluster.md",  # tests/cluster/test_page.py
    "connect.md",  # tests/connect
    "clusters.md",  # says what was not tried
    "locations.md",  # tests/stores
)
ON_A_BROKER = ("kafka.md", "kafka-source.md", "kafka-sink.md")  # in tests/kafka


@pytest.mark.parametrize("name", ON_THE_TWIN)
def test_a_page_without_spark(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_page(name, tmp_path, monkeypatch, capsys)


@pytest.mark.spark
@pytest.mark.parametrize("name", ON_SPARK)
def test_a_page_that_needs_spark(
    name: str,
    spark: object,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run_page(name, tmp_path, monkeypatch, capsys)


def test_every_page_of_the_guide_is_run() -> None:
    assert {path.name for path in GUIDE.glob("*.md")} == {
        *ON_THE_TWIN,
        *ON_SPARK,
        *ON_A_BROKER,
        *SHOWN_ALONE,
    }
