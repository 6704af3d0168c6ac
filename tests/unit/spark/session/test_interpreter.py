"""How the Python processes of Spark start: with the installed PySpark, and with the user's own sitecustomize."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

import eventide

STARTED_WITH = str(Path(eventide.__file__).parent / "spark" / "session" / "interpreter")
INSTALLED = Path(pyspark.__file__).parent
OF_SPARK = [str(path) for path in sorted((INSTALLED / "python" / "lib").glob("*.zip"))]


def what_python_says(program: str, *path: str) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
    ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    return ran.stdout.strip()


@pytest.mark.parametrize("module", ["pyspark", "py4j"])
def test_modules_of_spark_come_from_where_they_are_installed_and_not_from_its_zip_files(module: str) -> None:
    where = f"import {module}; print({module}.__file__)"

    assert ".zip" in what_python_says(where, *OF_SPARK)
    installed = what_python_says(where, *OF_SPARK, STARTED_WITH)

    assert Path(installed) == INSTALLED.parent / module / "__init__.py"


def test_zip_files_of_a_spark_that_is_not_installed_here_are_left_alone(tmp_path: Path) -> None:
    elsewhere = tmp_path / "spark" / "python" / "lib" / "pyspark.zip"

    path = what_python_says("import sys; print(sys.path)", str(elsewhere), STARTED_WITH)

    assert str(elsewhere) in path


def test_the_sitecustomize_that_ours_hides_is_run(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("SAID = 'run'\n")

    assert what_python_says("import sitecustomize; print(sitecustomize.SAID)", STARTED_WITH, str(tmp_path)) == "run"
