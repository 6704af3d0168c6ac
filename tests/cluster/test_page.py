"""The page "From a laptop to a cluster", as a reader follows it: its files, its commands, what it shows."""

from __future__ import annotations

import os
import re
import subprocess
import venv
from collections import defaultdict
from pathlib import Path
from statistics import fmean

import pyspark
import pytest

from support.cluster.drivers import PATIENCE_S
from support.guide_pages import BLOCK, GUIDE
from support.spark_cluster import SparkCluster

PAGE = [match.groups() for match in BLOCK.finditer((GUIDE / "cluster.md").read_text())]
RIDES, MAIN, PACKED, MORE = [text for language, text in PAGE if language == "py"][:4]
[LINES] = [text.splitlines() for language, text in PAGE if language == "text"]
COMMANDS = [line for language, text in PAGE if language == "sh" for line in text.splitlines()]
[PACK] = [line for line in COMMANDS if line.startswith("tar ")]
LOCAL, ON_CLUSTER, WITH_PACKED, AGAIN = [line for line in COMMANDS if line.startswith("laptop/bin/python ")]
ITS_CLUSTER, ITS_NUMBERS = "spark://127.0.0.1:7077", "39_999"
NUMBERS = 12_000
"""Enough to end an executor meanwhile; those of the page take two minutes."""

REPOSITORY = Path(__file__).parents[2]

pytestmark = [pytest.mark.spark, pytest.mark.cluster]


@pytest.fixture(scope="module")
def laptop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The environment that has eventide, with the Spark of the cluster."""
    place = tmp_path_factory.mktemp("home") / "laptop"
    venv.create(place, with_pip=True)
    install = [place / "bin" / "pip", "install", "--quiet", REPOSITORY, f"pyspark=={pyspark.__version__}"]
    subprocess.run(install, check=True)
    return place


@pytest.fixture
def folder(tmp_path: Path, laptop: Path) -> Path:
    """Where the reader is: beside the environment, with the files of the program."""
    (tmp_path / "laptop").symlink_to(laptop)
    (tmp_path / "rides.py").write_text(RIDES)
    (tmp_path / "main.py").write_text(MAIN)
    (tmp_path / "requirements.txt").touch()
    return tmp_path


def test_the_program_prints_what_the_page_shows_on_one_machine_and_on_a_cluster(
    cluster: SparkCluster, folder: Path
) -> None:
    assert sorted(printed(LOCAL, folder)) == sorted(LINES)
    assert sorted(printed(on(cluster, ON_CLUSTER), folder)) == sorted(LINES)


def test_the_program_takes_its_environment_along(cluster: SparkCluster, folder: Path) -> None:
    subprocess.run(["sh", "-c", PACK], cwd=folder, check=True)
    change_line(folder, "env.set_python_requirements(", PACKED)
    assert sorted(printed(on(cluster, WITH_PACKED), folder)) == sorted(LINES)


def test_an_executor_that_dies_takes_nothing_with_it(cluster: SparkCluster, folder: Path) -> None:
    change_line(folder, "numbers = ", MORE.replace(ITS_NUMBERS, str(NUMBERS - 1)))
    with started(on(cluster, AGAIN), folder) as program:
        assert program.stdout is not None
        found = [program.stdout.readline()]
        assert cluster.kill_executor(0) >= 1  # one of the program before may still be ending
        found += program.stdout
    assert program.returncode == 0
    assert sorted(line.rstrip("\n") for line in found) == sorted(lines_of(NUMBERS))


def test_the_page_says_how_many_lines_there_are() -> None:
    assert ITS_NUMBERS in MORE
    assert lines_of(4_000) == LINES
    assert f"prints {len(lines_of(40_000))} lines, of 34 minutes in three cities" in (GUIDE / "cluster.md").read_text()


def on(cluster: SparkCluster, command: str) -> str:
    """A command of the page with the master of another cluster."""
    assert ITS_CLUSTER in command
    return command.replace(ITS_CLUSTER, cluster.master)


def change_line(folder: Path, beginning: str, text: str) -> None:
    """Put something in place of the line of the program that begins so."""
    program = folder / "main.py"
    changed, count = re.subn(f"^{re.escape(beginning)}.*\n", text, program.read_text(), flags=re.MULTILINE)
    assert count == 1
    program.write_text(changed)


def started(command: str, folder: Path) -> subprocess.Popen[str]:
    """A command in a shell that knows nothing of this process's Python, but is in a hurry to show what it prints."""
    of_this_process = {"PYTHONPATH", "PYSPARK_PYTHON", "SPARK_HOME"}
    variables = {name: value for name, value in os.environ.items() if name not in of_this_process}
    variables |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYTHONUNBUFFERED": "1", "PWD": str(folder)}
    return subprocess.Popen(["sh", "-c", command], cwd=folder, env=variables, stdout=subprocess.PIPE, text=True)


def printed(command: str, folder: Path) -> list[str]:
    program = started(command, folder)
    said, _ = program.communicate(timeout=PATIENCE_S)
    assert program.returncode == 0
    return said.splitlines()


def lines_of(numbers: int) -> list[str]:
    """The program's lines for `numbers` numbers, in the order of cities and windows."""
    minutes = defaultdict(list)
    for number in range(numbers):
        minutes[("Bergen", "Oslo", "Tromsø")[number % 3], number * 50 // 60_000 * 60_000].append(number % 40)
    return [
        f"Row(city={city!r}, window=TimeWindow(start={start}, end={start + 60_000}), count={len(of_window)}, "
        f"avg(minutes)={fmean(of_window)!r})"
        for (city, start), of_window in sorted(minutes.items())
    ]
