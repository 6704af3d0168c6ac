"""A missing or too old Java is said in words, before Spark is started."""

from pathlib import Path

import pytest

from eventide.errors import ProgramError
from eventide.spark.session.java import check_java


def java(home: Path, version: str) -> Path:
    """A program that says what a Java of some version says."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)
    return home


def test_a_java_that_is_new_enough_is_fine(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(java(tmp_path, "21.0.2")))
    check_java()


@pytest.mark.parametrize(("said", "version"), [("1.8.0_292", 8), ("11.0.1", 11), ("16", 16)])
def test_a_java_that_is_too_old_is_named_with_its_version(tmp_path, monkeypatch, said, version):
    monkeypatch.setenv("JAVA_HOME", str(java(tmp_path, said)))
    with pytest.raises(ProgramError, match=rf"version {version}\. Spark needs Java 17 or newer\. Install it"):
        check_java()


def test_a_java_home_without_a_java_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ProgramError, match=r"no Java was found: JAVA_HOME is .*, where there is none"):
        check_java()


def test_no_java_at_all_is_said(tmp_path, monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ProgramError, match="no Java was found: there is none on the PATH, and no JAVA_HOME"):
        check_java()
