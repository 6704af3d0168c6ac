"""What the guide shows is what runs: the blocks of Python of a page in order; a text block is what one printed."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "guide"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def run_page(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    page = (GUIDE / name).read_text()
    main = types.ModuleType("__main__")  # so that functions are pickled by value, as those of a script are
    monkeypatch.setitem(sys.modules, "__main__", main)
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()
    printed = ""
    for match in BLOCK.finditer(page):
        language, text = match.groups()
        line = page[: match.start()].count("\n") + 2
        if language == "python":
            assert not printed, f"{name}: the block before line {line} printed something that the page does not show"
            exec(compile("\n" * (line - 1) + text, str(GUIDE / name), "exec"), vars(main))
            printed = capsys.readouterr().out
        elif language == "text":
            assert printed == text, f"{name}, line {line}"
            printed = ""
    assert not printed, name


ON_THE_TWIN = ("watermarks.md", "windows.md", "columns.md", "aggregates.md", "process-functions.md", "joins.md")
ON_SPARK = ("getting-started.md", "sources-and-sinks.md", "testing.md", "operations.md")


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
    assert {path.name for path in GUIDE.glob("*.md")} == {*ON_THE_TWIN, *ON_SPARK}
