"""`eventide advise` says what `eventide.advisor` does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from eventide.advisor import advise
from eventide.cli.app import app


@pytest.fixture
def readings(tmp_path: Path) -> Path:
    path = tmp_path / "readings.csv"
    rows = [("a", 1_000, 1), ("b", 5_000, 2), ("a", 400, 3), ("b", 9_000, 4)]
    path.write_text("device,ms,n\n" + "".join(f"{device},{ms},{n}\n" for device, ms, n in rows))
    return path


def run(*arguments: object) -> tuple[int, str, str]:
    said = CliRunner().invoke(app, ["advise", *map(str, arguments)])
    return said.exit_code, said.stdout, said.stderr


def test_it_says_what_the_function_returns(readings: Path) -> None:
    code, said, errors = run(readings, "--time", "ms", "--split-by", "device", "--lose", "0")
    expected = str(advise(readings, time="ms", split_by="device", lose=0))
    # Where programs may read it, no line is folded.
    assert (code, said.split(), errors) == (0, expected.split(), "")


def test_json_has_all_of_it(readings: Path) -> None:
    code, said, _ = run(readings, "--time", "ms", "--split-by", "device", "--order-by", "n", "--json")
    expected = advise(readings, time="ms", split_by="device", order_by="n").to_json()
    assert (code, json.loads(said)) == (0, expected)


def test_the_exit_code_is_1_where_the_data_are_odd(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ms,x\n1,\n,\n2,\n")
    code, said, _ = run(tmp_path, "--time", "ms")
    assert code == 1
    assert "! 1 element without a time" in said


def test_a_picture_can_be_had(readings: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    code, _, _ = run(readings, "--time", "ms", "--plot", tmp_path / "curve.svg")
    assert (code, (tmp_path / "curve.svg").stat().st_size > 1_000) == (0, True)


def test_seconds_are_refused_and_the_message_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ts\n1700000000\n1700000001\n")
    code, said, errors = run(tmp_path, "--time", "ts")
    assert (code, said) == (2, "")
    assert "look like seconds" in errors
    assert "--unit s" in errors
    assert run(tmp_path, "--time", "ts", "--unit", "s")[0] == 0


@pytest.mark.parametrize("arguments", [[], ["--kafka", "localhost:9092"], ["here", "--kafka", "h:1", "--topic", "t"]])
def test_it_needs_files_or_a_topic(arguments: list[str]) -> None:
    code, _, errors = run(*arguments, "--time", "ts")
    assert (code, errors) == (2, "eventide: name files or directories, or a topic with --kafka SERVERS --topic TOPIC\n")
