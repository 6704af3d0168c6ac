"""The demo's readings, and how they are accounted for."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from eventide.cli.app import app
from eventide.cli.demo.readings import FILE, FIRST_MS, HOUR_MS, Fate, counted_at_rest, fate_of, made, read, write_stream

ROOT = Path(__file__).parents[3]


def test_the_readings_of_the_package_are_those_that_the_program_makes() -> None:
    assert read().equals(made())
    assert FILE.stat().st_size < 300_000


def test_at_the_end_of_the_day_one_station_is_three_hours_behind() -> None:
    by_station = read().group_by("station").aggregate([("measured_at", "max"), ("arrived_at", "max")])
    behind_h = {
        row["station"]: (row["arrived_at_max"] - row["measured_at_max"]).total_seconds() // 3_600
        for row in by_station.to_pylist()
    }
    assert behind_h == {"coast": 0, "hills": 0, "north": 3}


def test_the_stream_has_all_readings_in_the_order_in_which_they_arrived(tmp_path: Path) -> None:
    count = write_stream(read(), tmp_path / "stream")
    files = sorted((tmp_path / "stream").iterdir(), key=lambda file: file.stat().st_mtime)
    assert len(files) == count
    arrived = [time for file in files for time in pq.read_table(file)["arrived_at"].to_pylist()]
    assert arrived == sorted(read()["arrived_at"].to_pylist())


def test_all_readings_are_counted_at_rest() -> None:
    truth = counted_at_rest(read())
    assert truth.total() == read().num_rows
    first = pc.equal(pc.floor_temporal(read()["measured_at"], unit="hour").cast("int64"), FIRST_MS)
    of_coast = pc.and_(first, pc.equal(read()["station"], "coast"))
    assert truth["coast", FIRST_MS] == pc.sum(of_coast).as_py()


def test_a_reading_is_counted_waits_is_late_or_is_lost() -> None:
    truth = Counter({("a", 0): 5, ("b", 0): 3, ("a", HOUR_MS): 7})
    before_the_end, at_the_end = HOUR_MS - 2, HOUR_MS - 1
    assert fate_of(truth, Counter(), Counter(), before_the_end) == Fate(15, 0, 15, 0, 0, 0)
    counted, late = Counter({("a", 0): 4, ("b", 0): 3}), Counter({("a", 0): 1})
    assert fate_of(truth, counted, late, at_the_end) == Fate(15, 7, 7, 1, 0, 1)
    assert fate_of(truth, Counter({("a", 0): 4}), Counter(), at_the_end) == Fate(15, 4, 7, 0, 4, 2)


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    said = CliRunner().invoke(app, ["demo", "--folder", str(tmp_path)])
    assert (said.exit_code, said.stdout) == (2, "")
    assert f"{tmp_path} is there already, and the demo would write over it" in said.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["mine"]


@pytest.mark.skipif(not (ROOT / "pyproject.toml").exists(), reason="the source tree is not here")
def test_a_wheel_has_the_command_and_the_readings(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    [wheel] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    [entries] = (tmp_path / "installed").glob("*.dist-info/entry_points.txt")
    assert "eventide = eventide.cli.app:app" in entries.read_text()
    program = (
        "from eventide.cli.demo.readings import FILE, read\n"
        "from eventide.cli.app import app\n"
        "print(FILE, read().num_rows)"
    )
    said = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path / 'installed')!r})\n{program}"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    assert said.stdout.split() == [
        str(tmp_path / "installed" / "eventide" / "cli" / "demo" / "readings.parquet"),
        str(read().num_rows),
    ]
