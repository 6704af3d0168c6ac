"""Common behaviour of all commands: help, exit codes, errors, JSON, and that they are there at once."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from eventide import __version__
from eventide.cli.answers import AsJson, answer
from eventide.cli.app import Commands, app
from eventide.errors import EventideError, StateError

COMMANDS = [command.name or command.callback.__name__ for command in app.registered_commands]


def small_app() -> typer.Typer:
    """Two commands, put together as eventide's are."""
    small = typer.Typer(cls=Commands)

    @small.command()
    def weigh(grams: Annotated[int, typer.Argument()], as_json: AsJson = False) -> None:
        if grams < 0:
            raise StateError(f"[{grams}] grams cannot be")
        answer({"grams": grams}, f"[{grams}] grams", as_json=as_json, fine=grams < 100)

    @small.command()
    def explode() -> None:
        raise ZeroDivisionError

    return small


def test_the_version_is_said() -> None:
    said = CliRunner().invoke(app, ["--version"])
    assert (said.exit_code, said.output) == (0, f"eventide {__version__}\n")


@pytest.mark.parametrize(("grams", "code"), [(7, 0), (100, 1)])
def test_an_answer_is_text_or_json_and_its_exit_code_says_whether_it_is_good(grams: int, code: int) -> None:
    as_text = CliRunner().invoke(small_app(), ["weigh", str(grams)])
    as_json = CliRunner().invoke(small_app(), ["weigh", str(grams), "--json"])
    assert (as_text.exit_code, as_text.stdout, as_text.stderr) == (code, f"[{grams}] grams\n", "")
    assert (as_json.exit_code, json.loads(as_json.stdout), as_json.stderr) == (code, {"grams": grams}, "")


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_an_error_of_eventide_is_one_message_on_standard_error(options: list[str]) -> None:
    said = CliRunner().invoke(small_app(), ["weigh", *options, "--", "-1"])
    assert (said.exit_code, said.stdout, said.stderr) == (2, "", "eventide: [-1] grams cannot be\n")


@pytest.mark.parametrize("arguments", [["weigh"], ["weigh", "much"], ["weigh", "1", "--yson"], ["nonsense"]])
def test_wrong_use_is_exit_code_2_with_a_word_on_standard_error(arguments: list[str]) -> None:
    said = CliRunner().invoke(small_app(), arguments)
    assert (said.exit_code, said.stdout) == (2, "")
    assert "Usage:" in said.stderr


def test_an_error_of_any_other_kind_is_a_fault_and_comes_through() -> None:
    said = CliRunner().invoke(small_app(), ["explode"])
    assert isinstance(said.exception, ZeroDivisionError)
    assert not issubclass(ZeroDivisionError, EventideError)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_json_and_examples_in_its_help(command: str) -> None:
    said = CliRunner().invoke(app, [command, "--help"])
    assert said.exit_code == 0
    assert "--json" in said.stdout
    assert f"eventide {command}" in said.stdout.partition("For example:")[2]


def test_help_loads_no_spark_no_pandas_and_no_arrow() -> None:
    program = """
import runpy, sys
sys.argv[1:] = ["--help"]
try:
    runpy.run_module("eventide", run_name="__main__")
except SystemExit as end:
    print(end.code, sorted({"pyspark", "pandas", "pyarrow", "numpy"} & set(sys.modules)))
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "Usage: eventide" in said.stdout
    assert said.stdout.endswith("0 []\n")
