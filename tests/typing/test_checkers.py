"""The findings of mypy and pyright in this folder: none in the programs that pass, each mistake in the others.

A comment above a line of a program says which errors the line has: mypy's codes, and pyright's rules.

Each checker runs once, over all of them and over the table of the guide. ``./run types`` has these tests.
"""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
GUIDE = FOLDER.parents[1] / "docs" / "guide" / "types.md"
PROGRAMS = sorted([*FOLDER.glob("passes_*.py"), *FOLDER.glob("fails_*.py")])
EXPECTED = re.compile(r" *# error: (?P<mypy>[a-z -]+) \| (?P<pyright>[A-Za-z ]+)")
MYPY_FINDING = re.compile(r"(?P<file>[^:]+):(?P<line>\d+): error: .*\[(?P<code>[a-z-]+)\]$")
ROW_OF_TABLE = re.compile(r"^\| `(?P<expression>.+)` \| `(?P<revealed>.+)` \|$", re.MULTILINE)

pytestmark = pytest.mark.types

Finding = tuple[str, int, str]
"""A file, a line of it, and the code of an error there."""


def expected(checker: str) -> set[Finding]:
    return {
        (program.name, number + 1, code)
        for program in PROGRAMS
        for number, line in enumerate(program.read_text(encoding="utf-8").splitlines(), 1)
        if (marked := EXPECTED.fullmatch(line)) is not None
        for code in marked[checker].split()
    }


@pytest.fixture(scope="module")
def table() -> list[str]:
    return [f"assert_type({row['expression']}, {row['revealed']})" for row in ROW_OF_TABLE.finditer(GUIDE.read_text())]


@pytest.fixture(scope="module")
def files(table: list[str], tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The programs, and one that is made of the table."""
    (block,) = re.findall(r"^```python\n(.*?)^```$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    program = tmp_path_factory.mktemp("types") / "table.py"
    program.write_text("\n".join(["from typing import assert_type", block, *table]) + "\n", encoding="utf-8")
    return [*map(str, PROGRAMS), str(program)]


def output_of(*command: str) -> str:
    done = subprocess.run([sys.executable, "-m", *command], cwd=FOLDER, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr  # 1: there are findings, as there should be
    return done.stdout


def test_mypy_finds_each_mistake_and_nothing_else(files: list[str]) -> None:
    printed = output_of("mypy", "--config-file=mypy.ini", "--no-error-summary", *files)
    lines = [line for line in printed.splitlines() if ": note: " not in line]
    findings = [MYPY_FINDING.fullmatch(line) for line in lines]
    assert None not in findings, printed
    found = {(Path(f["file"]).name, int(f["line"]), f["code"]) for f in findings if f is not None}
    assert found == expected("mypy")


def test_pyright_finds_each_mistake_and_nothing_else(files: list[str]) -> None:
    interpreter = f"--pythonpath={sys.executable}"
    printed = output_of("pyright", "--project=pyrightconfig.json", interpreter, "--outputjson", *files)
    found = {
        (Path(finding["file"]).name, finding["range"]["start"]["line"] + 1, finding.get("rule", finding["message"]))
        for finding in json.loads(printed)["generalDiagnostics"]
    }
    assert found == expected("pyright")


def test_the_table_of_the_guide_has_the_types_that_users_meet_first(table: list[str]) -> None:
    for method in (".map(", ".key_by(", ".window(", ".aggregate("):
        assert any(method in row for row in table), method


@pytest.mark.filterwarnings("ignore:.* ha(s|ve) no effect")
@pytest.mark.parametrize(
    "program", [path for path in PROGRAMS if path.name.startswith("passes_")], ids=lambda p: p.stem
)
def test_a_program_that_passes_runs(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The classes can be subscripted, and the streams of the program can be built."""
    monkeypatch.syspath_prepend(FOLDER)
    monkeypatch.delitem(sys.modules, "orders", raising=False)  # the sinks of another program are not of this one
    runpy.run_path(str(program))
