"""Runs pages of the documentation: the blocks of Python of a page in order; a text block is what one printed."""

from __future__ import annotations

import gc
import re
import sys
import types
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
GUIDE = DOCS / "guide"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def run_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    main = types.ModuleType("__main__")  # so that functions are pickled by value, as those of a script are
    monkeypatch.setitem(sys.modules, "__main__", main)
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()
    try:
        _run_blocks(page, vars(main), capsys)
    finally:
        vars(main).clear()  # a client of a broker that the page has stopped would complain for as long as it lives
        gc.collect()


def _run_blocks(page: Path, names: dict[str, object], capsys: pytest.CaptureFixture[str]) -> None:
    contents = page.read_text()
    printed = ""
    for match in BLOCK.finditer(contents):
        language, text = match.groups()
        line = contents[: match.start()].count("\n") + 2
        if language == "python":
            assert not printed, (
                f"{page.name}: the block before line {line} printed something that the page does not show"
            )
            exec(compile("\n" * (line - 1) + text, str(page), "exec"), names)
            printed = capsys.readouterr().out
        elif language == "text":
            assert printed == text, f"{page.name}, line {line}: it printed\n{printed}"
            printed = ""
    assert not printed, page.name
