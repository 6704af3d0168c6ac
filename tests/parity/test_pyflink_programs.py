"""PyFlink programs run once `pyflink` is `eventide` in their imports, and calls are PyFlink's."""

from __future__ import annotations

import inspect
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

from eventide.datastream import StreamExecutionEnvironment
from eventide.testing import local_environment
from parity.names import CLASSES, FUNCTIONS, counterpart, is_here

# Descriptions of types: programs make them with Types.…, so their constructors are not part of the contract.
MADE_BY_TYPES = "common.typeinfo."

# So are those of streams, and of what a static method makes.
MADE_OTHERWISE = ("datastream.data_stream.", "common.restart_strategy.")

# Another class under an older name.
OLDER_NAMES = "datastream.connectors.file_system.StreamingFileSink."


@pytest.mark.filterwarnings("ignore:.* has no effect")
@pytest.mark.filterwarnings("ignore:.* is of Flink 1; use:DeprecationWarning")
@pytest.mark.parametrize("program", sorted((Path(__file__).parent / "programs").glob("*.py.txt")), ids=lambda p: p.name)
def test_a_program_runs_after_its_imports_were_changed(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A program ends with what it must print, in comments."""
    text = program.read_text()
    changed = tmp_path / program.name.removesuffix(".txt")
    changed.write_text(text.replace("from pyflink.", "from eventide."))
    assert "pyflink" not in changed.read_text()

    monkeypatch.setattr(StreamExecutionEnvironment, "get_execution_environment", staticmethod(local_environment))
    monkeypatch.setattr(sys, "argv", [str(changed)])
    runpy.run_path(str(changed), run_name="__main__")
    expected = [line.removeprefix("# ") for line in text.partition("# prints:\n")[2].splitlines()]
    assert capsys.readouterr().out.splitlines() == expected


def test_every_method_under_pyflinks_name_takes_pyflinks_parameters() -> None:
    found = {}
    for name, methods in CLASSES.items():
        if not is_here(name) or name.startswith(OLDER_NAMES):
            continue
        cls = counterpart(name)
        for method, theirs in methods.items():
            if theirs is None or not hasattr(cls, method) or (method in vars(object) and method not in vars(cls)):
                continue
            if method == "__init__" and name.startswith((MADE_BY_TYPES, *MADE_OTHERWISE)):
                continue
            if fault := _fault(theirs.split(), _parameters(cls, method)):
                found[f"{name}.{method}"] = fault
    for name, parameters in FUNCTIONS.items():
        if parameters is not None and is_here(name):
            ours = [str(p.name) for p in inspect.signature(counterpart(name)).parameters.values()]
            if fault := _fault(parameters.split(), ours):
                found[name] = fault
    assert found == {}


def _parameters(cls: Any, method: str) -> list[str]:
    function = cls if method == "__init__" else getattr(cls, method)
    own = list(inspect.signature(function).parameters.values())
    if method != "__init__" and not isinstance(inspect.getattr_static(cls, method), staticmethod | classmethod):
        own = own[1:]
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return [stars.get(p.kind, "") + p.name + ("" if p.default is p.empty else "=") for p in own]


def _fault(theirs: list[str], ours: list[str]) -> str | None:
    same = len(ours) >= len(theirs) and all(
        our == their or our == f"{their}=" for their, our in zip(theirs, ours, strict=False)
    )
    extra = all(our.endswith("=") or our.startswith("*") for our in ours[len(theirs) :])
    return None if same and extra else f"PyFlink has ({', '.join(theirs)}), eventide ({', '.join(ours)})"
