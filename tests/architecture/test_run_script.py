"""`./run` greets a machine that lacks something with a message, never with a traceback."""

import ast
import os
import re
import stat
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest

RUN = Path(__file__).parents[2] / "run"
NIGHTLY = RUN.parent / ".ci" / "nightly"

posix_only = pytest.mark.skipif(os.name == "nt", reason="plants shell scripts on the PATH")


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = spec_from_loader("run_script", SourceFileLoader("run_script", str(RUN)))
    assert spec is not None
    module = module_from_spec(spec)
    assert spec.loader is not None
    spec.loader.exec_module(module)
    return module


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(RUN), *arguments], env=environment, capture_output=True, text=True, check=False
    )


def program(folder: Path, name: str, text: str) -> None:
    """Put a shell script on a planted PATH."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text("#!/bin/sh\n" + text + "\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_python_3_6_can_parse_it() -> None:
    ast.parse(RUN.read_text(encoding="utf-8"), feature_version=(3, 6))


def test_alone_it_lists_every_task_with_a_help_line(script: ModuleType) -> None:
    done = run()
    assert done.returncode == 0
    for name, task in script.TASKS.items():
        assert f"  {name:<10}{task.help}" in done.stdout


def test_an_unknown_task_is_answered_with_the_nearest_one() -> None:
    done = run("tset")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "eventide: there is no task 'tset'. Did you mean `./run test`?\n"


@pytest.mark.parametrize(
    ("says", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "21" 2023-09-19 LTS', 21),
        ('openjdk version "24-ea" 2025-03-18', 24),
        ('Picked up JAVA_TOOL_OPTIONS: -Dsome.version="1"\nopenjdk version "11.0.2" 2019-01-15', 11),
        ("The operation couldn't be completed. Unable to locate a Java Runtime.", None),
    ],
)
def test_the_version_of_java_is_read_from_what_it_says(script: ModuleType, says: str, version: int | None) -> None:
    assert script.java_version(says) == version


def test_a_missing_java_is_said_with_how_to_get_one(tmp_path: Path) -> None:
    done = run("demo", PATH=str(tmp_path))
    assert done.returncode == 2
    assert "found no Java: JAVA_HOME is not set" in done.stderr
    assert "Needed: Java 17 or newer" in done.stderr
    for system in ("Debian, Ubuntu", "macOS", "Windows"):
        assert system in done.stderr
    assert "Traceback" not in done.stderr


def test_a_java_home_without_java_is_said(tmp_path: Path) -> None:
    done = run("doctor", PATH=os.environ["PATH"], JAVA_HOME=str(tmp_path))
    assert done.returncode == 2
    assert f"JAVA_HOME is {str(tmp_path)!r}, and there is no bin/java in it." in done.stderr


@posix_only
def test_an_old_java_is_said(tmp_path: Path) -> None:
    program(tmp_path / "bin", "java", "echo 'java version \"1.8.0_402\"' >&2")
    done = run("doctor", PATH="", JAVA_HOME=str(tmp_path))
    assert done.returncode == 2
    assert f"found Java 8 ({tmp_path / 'bin' / 'java'})." in done.stderr


@posix_only
def test_a_java_that_is_only_a_stub_is_said(tmp_path: Path) -> None:
    program(tmp_path, "java", "echo 'Unable to locate a Java Runtime.' >&2; exit 1")
    done = run("doctor", PATH=str(tmp_path))
    assert done.returncode == 2
    assert "is no working Java; it said:\n  Unable to locate a Java Runtime." in done.stderr


@posix_only
def test_a_night_goes_on_after_a_failure_and_fails_with_the_list_of_those(tmp_path: Path) -> None:
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci" / "nightly").write_text(NIGHTLY.read_text())
    program(tmp_path, "run", 'case $1 in kills) exit 3 ;; cluster) exit 1 ;; esac; echo "did $*"')
    command = ["bash", str(tmp_path / ".ci" / "nightly"), "4711"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "the seed 4711" in done.stdout
    assert "did soak --check" in done.stdout
    assert done.stderr.splitlines() == [
        "nightly: ./run kills --kills=7 --seed=4711",
        "nightly: ./run cluster --kills=5 --seed=4711",
    ]
    lines = done.stdout.partition("seconds\n")[2].splitlines()
    outcomes = {line.split()[0]: line.split("  ")[-1] for line in lines}
    assert outcomes.pop("kills") == "failed with exit code 3"
    assert outcomes.pop("cluster") == "failed with exit code 1"
    assert len(outcomes) > 3
    assert set(outcomes.values()) == {"passed"}


def test_a_night_runs_tasks_that_there_are(script: ModuleType) -> None:
    tasks = re.findall(r'^    "(\w+)[ "]', NIGHTLY.read_text(), re.MULTILINE)
    assert len(tasks) > 3
    assert set(tasks) <= script.TASKS.keys()
