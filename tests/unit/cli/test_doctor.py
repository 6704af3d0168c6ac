"""Findings of the doctor about a machine, for each thing that may be wrong with it."""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from typer.testing import CliRunner

from eventide.cli import doctor
from eventide.cli.app import app
from eventide.cli.doctor import Check, Health


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An eventide that asks for a few libraries."""
    asked = [
        "pytest>=1",
        "nowhere-to-be-found>=2,<3",
        "never-on-this-system; sys_platform == 'amiga'",
        'hypothesis<1; extra == "sketches"',
        'eventide-spark[sketches]; extra == "both"',
        'absent-one; extra == "both"',
        'eventide-spark[both]; extra == "dev"',
    ]
    folder = tmp_path / "eventide_spark-1.dist-info"
    folder.mkdir()
    extras = "".join(f"Provides-Extra: {extra}\n" for extra in ("sketches", "both", "dev"))
    lines = "".join(f"Requires-Dist: {one}\n" for one in asked)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.4\nName: eventide-spark\nVersion: 1\n{lines}{extras}")
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("package")
def test_libraries_are_those_that_the_package_asks_for_and_those_of_its_extras() -> None:
    hypothesis, here = metadata.version("hypothesis"), metadata.version("pytest")
    newer = f"{hypothesis}, and <1 is needed"
    assert list(doctor.libraries()) == [
        Check("pytest", here),
        Check("nowhere-to-be-found", "not installed", Health.WRONG, "pip install 'nowhere-to-be-found<3,>=2'"),
        Check("hypothesis (both)", newer, Health.WRONG, "pip install 'eventide-spark[both]'"),
        Check("absent-one (both)", "not installed", Health.ABSENT, "pip install 'eventide-spark[both]'"),
        Check("hypothesis (sketches)", newer, Health.WRONG, "pip install 'eventide-spark[sketches]'"),
    ]


def test_a_library_that_fits_is_fine() -> None:
    assert doctor.library(Requirement("pytest>=1")) == Check("pytest", metadata.version("pytest"))


def test_another_project_of_the_same_name_is_wrong(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert list(doctor.another_project()) == []
    folder = tmp_path / "eventide-0.0.0a16.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.4\nName: eventide\nVersion: 0.0.0a16\n")
    monkeypatch.syspath_prepend(tmp_path)
    [found] = doctor.another_project()
    assert (found.state, found.found.split(" is ")[0]) == (Health.WRONG, "eventide 0.0.0a16")
    assert found.advice.startswith("pip uninstall eventide, and then pip install --force-reinstall")


def test_a_java_that_is_missing_is_wrong_and_the_advice_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    found = doctor.java()
    assert (found.what, found.state) == ("Java", Health.WRONG)
    assert "JAVA_HOME is /nowhere, where there is none" in found.advice
    assert "apt-get install" in found.advice


def test_a_folder_for_temporary_files_that_cannot_be_written_is_wrong(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path}/absent,{tmp_path}")
    found = doctor.temporary_files()
    assert found.state is Health.WRONG
    assert found.found.startswith(f"{tmp_path}/absent cannot be written")
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    assert doctor.temporary_files().found.startswith(f"{tmp_path}, ")


def test_a_container_with_too_little_memory_is_wrong(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(doctor, "_LIMIT_OF_CONTAINER", limit)
    limit.write_text("max\n")
    monkeypatch.setattr("os.sysconf", {"SC_PAGE_SIZE": 4_096, "SC_PHYS_PAGES": 1_000_000}.__getitem__)
    assert (doctor.machine().state, "4.1 GB of memory" in doctor.machine().found) == (Health.FINE, True)
    limit.write_text("1000000000\n")
    assert (doctor.machine().state, "1.0 GB of memory" in doctor.machine().found) == (Health.WRONG, True)


def test_an_address_that_cannot_be_listened_on_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    assert doctor.local_address() == Check("local address", "127.0.0.1")
    monkeypatch.setattr(doctor, "_LOCAL_ADDRESS", "192.0.2.1")  # for documentation: no machine has it
    assert doctor.local_address().state is Health.WRONG


def test_the_answer_is_a_bad_one_if_something_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    said = CliRunner().invoke(app, ["doctor", "--json"])
    document = json.loads(said.stdout)
    assert (said.exit_code, document["fine"]) == (1, False)
    assert {"what": "Java", "state": "wrong"}.items() <= document["findings"][2].items()
    assert CliRunner().invoke(app, ["doctor"]).exit_code == 1


def test_an_extra_that_is_not_installed_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [
        Check("Python", "3"),
        Check("fastavro (avro)", "not installed", Health.ABSENT, "pip install it"),
    ]
    monkeypatch.setattr("eventide.cli.doctor.findings", lambda: found)
    said = CliRunner().invoke(app, ["doctor"])
    assert said.exit_code == 0
    assert [line.split() for line in said.stdout.splitlines()] == [
        ["ok", "Python", "3"],
        ["-", "fastavro", "(avro)", "not", "installed;", "pip", "install", "it"],
    ]
